"""The contract of providers, kept by this one."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from joiner.catalog.market import InstanceType
from joiner.model.codec import decode
from joiner.model.nodepool import NodePool
from joiner.testing.provider import Bench, Capability, ProviderContract
from rackcloud.provider import RackNodeClass, RackProvider

MACHINES = [
    {"name": f"{rack}{number}", "type": kind, "rack": rack, "arch": "amd64", "cpu": 32, "memory": "128Gi", "price": 0.5}
    for kind, rack, number in [("r640", "a", 1), ("r640", "a", 2), ("r640", "b", 3), ("r640", "b", 4), ("r940", "b", 5)]
]
POOL = {"template": {"spec": {"nodeClassRef": {"group": "rack.example.com", "kind": "RackNodeClass", "name": "mine"}}}}


class RackBench(Bench):
    lacks: frozenset[Capability] = frozenset({"reservations", "reboot", "shortages"})

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.machines, self.leases = folder / "machines.json", folder / "leases.json"
        self.machines.write_text(json.dumps(MACHINES))
        self.provider = RackProvider(self, self.leases)
        self.pool = decode({"metadata": {"name": "racks"}, "spec": POOL}, NodePool)
        self._write(pods=110)

    def _write(self, pods: int) -> None:
        spec = {"machines": str(self.machines), "pods": pods}
        self.put(decode({"metadata": {"name": "mine"}, "spec": spec}, RackNodeClass))

    def edit_node_class(self) -> None:
        self._write(pods=50)

    def run_dry(self, instance_type: InstanceType) -> None:
        taken = [each for each in MACHINES if each["type"] == instance_type.name]
        common = {"claim_uid": "theirs", "claim_name": "theirs"}
        self.leases.write_text(json.dumps({each["name"]: common for each in taken}))


class TestRackCloud(ProviderContract):
    @pytest.fixture
    def bench(self, tmp_path: Path) -> Iterator[Bench]:
        made = RackBench(tmp_path)
        yield made
        made.close()


def test_a_machine_is_not_taken_twice_after_a_restart(tmp_path: Path) -> None:
    bench = RackBench(tmp_path)
    (first, *_) = bench.run(bench.provider.instance_types(bench.pool))
    options = [option for option in bench.options(first) if option.offering.zone == "a"]
    taken = {bench.run(bench.provider.create(bench.claim(uid), options)).provider_id for uid in ("one", "two")}
    bench.provider = RackProvider(bench, bench.leases)

    assert taken == {each.provider_id for each in bench.run(bench.provider.list())} == {"rack://a1", "rack://a2"}
    bench.close()
