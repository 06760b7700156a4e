"""The AWS provider over a pretend account, for the suite of all providers."""

from collections.abc import Coroutine, Sequence
from datetime import timedelta
from typing import Any, TypeVar

import pytest
from tests.awsworld import START, AwsWorld
from tests.builders import node_pool

from joiner.catalog.market import InstanceType, Option
from joiner.cloud.aws.nodeclass.ec2nodeclass import EC2NodeClass
from joiner.cloud.errors import InsufficientCapacity
from joiner.cloud.provider import CloudProvider
from joiner.model.codec import decode
from joiner.model.meta import replace
from joiner.model.nodeclaim import NodeClaim
from joiner.model.nodeclass import NodeClassReference
from joiner.model.nodepool import NodePool
from joiner.testing.provider import Bench

T = TypeVar("T")


class AwsBench(Bench):
    """Two EC2NodeClasses, one with a capacity reservation."""

    def __init__(self) -> None:
        super().__init__()
        self._world = AwsWorld()
        self._world.reserve(end=START + timedelta(minutes=30))
        self.provider: CloudProvider = self._world.provider
        self._world.put("default", kubelet={"maxPods": 50})
        self._world.put("reserved", capacityReservationSelectorTerms=[{"id": "cr-1"}])
        self.pool = _of(node_pool(), "default")
        self.reserved_pool = _of(node_pool(), "reserved")

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._world.run(work)

    def edit_node_class(self) -> None:
        self._world.put("default", kubelet={"maxPods": 20})

    def remove_node_class(self) -> None:
        del self._world.classes["default"]

    def run_dry(self, instance_type: InstanceType) -> None:
        for offering in instance_type.offerings:
            self._world.account.limits[offering.capacity_type, instance_type.name, offering.zone] = 0
        options = [Option(name=instance_type.name, offering=each) for each in instance_type.offerings]
        for number in range(2):  # once for machines on demand, once for spot ones
            with pytest.raises(InsufficientCapacity):
                self._buy(f"too-late-{number}", options)

    def _buy(self, uid: str, options: Sequence[Option]) -> None:
        reference = {"group": EC2NodeClass.group, "kind": EC2NodeClass.kind, "name": "default"}
        claim = decode({"metadata": {"name": uid, "uid": uid}, "spec": {"nodeClassRef": reference}}, NodeClaim)
        self.run(self.provider.create(claim, options))

    def forward(self, time: timedelta) -> None:
        self._world.forward(time)

    def boots(self, provider_id: str) -> str:
        return str(self._world.account.machines[provider_id.rpartition("/")[2]].boots)

    def close(self) -> None:
        self._world.close()
        super().close()


def _of(pool: NodePool, name: str) -> NodePool:
    reference = NodeClassReference(group=EC2NodeClass.group, kind=EC2NodeClass.kind, name=name)
    spec = replace(pool.spec.template.spec, node_class_ref=reference)
    return replace(pool, spec=replace(pool.spec, template=replace(pool.spec.template, spec=spec)))
