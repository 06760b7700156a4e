"""The contract of providers, kept by the KWOK provider and by the one of the simulated cloud."""

from collections.abc import Iterator
from datetime import timedelta
from random import Random

import pytest
from tests.builders import node_pool
from tests.contract.awsbench import AwsBench

from joiner.catalog.market import InstanceType
from joiner.cloud import plugins
from joiner.cloud.errors import InsufficientCapacity
from joiner.cloud.kwok.nodeclass import KWOKNodeClass
from joiner.cloud.kwok.provider import KwokProvider
from joiner.cloud.provider import CloudProvider
from joiner.model.codec import decode
from joiner.model.meta import replace
from joiner.model.node import Node
from joiner.sim.apiserver.server import ApiServer
from joiner.sim.cloud.cloud import PretendCloud
from joiner.sim.cloud.provider import PretendProvider
from joiner.sim.trace import Trace
from joiner.testing.provider import Bench, ProviderContract, buy, ways


class PretendBench(Bench):
    """The simulated cloud over two NodeClasses."""

    def __init__(self) -> None:
        super().__init__()
        self._write("default", {"kubelet": {"maxPods": 50}})
        reservation = {
            "id": "cr-1", "instanceType": "m-2x-amd64-linux", "zone": "test-zone-a", "count": 2,
            "endTime": "2030-01-01T00:30:00Z",
        }  # fmt: skip
        self._write("reserved", {"capacityReservations": [reservation]})
        self.pool = node_pool()
        reference = replace(self.pool.spec.template.spec.node_class_ref, name="reserved")
        template = replace(
            self.pool.spec.template, spec=replace(self.pool.spec.template.spec, node_class_ref=reference)
        )
        self.reserved_pool = replace(self.pool, spec=replace(self.pool.spec, template=template))
        self.provider = self.connect()

    def connect(self) -> CloudProvider:
        self.cloud = PretendCloud(clock=self.clock, random=Random(1), trace=Trace())
        return PretendProvider(self.cloud, node_classes=self, clock=self.clock)

    def _write(self, name: str, spec: dict[str, object]) -> None:
        self.put(decode({"metadata": {"name": name}, "spec": spec}, KWOKNodeClass))

    def edit_node_class(self) -> None:
        self._write("default", {"kubelet": {"maxPods": 20}})

    def run_dry(self, instance_type: InstanceType) -> None:
        self.cloud.limit(0, instance_type=instance_type.name)
        with pytest.raises(InsufficientCapacity):
            buy(self, "too-late", ways(instance_type))

    def boots(self, provider_id: str) -> str:
        self.forward(timedelta(minutes=2))
        machine = self.cloud.machines.get(provider_id)
        return "" if machine is None else str(machine.boots)


class KwokBench(PretendBench):
    """The KWOK provider over a simulated API server."""

    def connect(self) -> CloudProvider:
        self.server = ApiServer(self.clock, Random(1), Trace())
        self.kwok = KwokProvider(self, self.clock, self.server.client("joiner"))
        return self.kwok

    def run_dry(self, instance_type: InstanceType) -> None:
        for offering in instance_type.offerings:
            self.kwok.unavailable.mark(instance_type.name, offering)

    def boots(self, provider_id: str) -> str:
        return self.server.get(Node, self.node_name(provider_id)).status.node_info.boot_id


class TestKwok(ProviderContract):
    @pytest.fixture
    def bench(self) -> Iterator[Bench]:
        made = KwokBench()
        yield made
        made.close()

    def test_it_is_registered_under_its_own_name(self, bench: Bench) -> None:
        assert bench.provider.name in plugins.names()


class TestSimulatedCloud(ProviderContract):
    @pytest.fixture
    def bench(self) -> Iterator[Bench]:
        made = PretendBench()
        yield made
        made.close()


class TestAws(ProviderContract):
    @pytest.fixture
    def bench(self) -> Iterator[Bench]:
        made = AwsBench()
        yield made
        made.close()

    def test_it_is_registered_under_its_own_name(self, bench: Bench) -> None:
        assert bench.provider.name in plugins.names()
