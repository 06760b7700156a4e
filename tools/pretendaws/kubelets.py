"""Machines of the pretend account become Nodes of a real cluster: once a machine is up it joins, and kwok goes on from there."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tools.controlplane.cluster import Cluster
from tools.pretendaws.server import PretendAws

from joiner.model import codec
from joiner.model.quantity import Quantity
from joiner.model.resources import Resources
from joiner.sim.cloud.machines import CloudMachine


class Kubelets:
    """One for each machine. Nodes are written on a thread, so that the account goes on answering."""

    def __init__(self, aws: PretendAws, cluster: Cluster) -> None:
        self._cluster = cluster
        self._joined: set[str] = set()
        self._threads = ThreadPoolExecutor(1, thread_name_prefix="kubelets")
        aws.do(lambda account: account.cloud.machines.listen(self._changed))

    def _changed(self, machine: CloudMachine) -> None:
        if machine.up and not machine.birth.never_joins and machine.provider_id not in self._joined:
            self._joined.add(machine.provider_id)
            self._threads.submit(self._join, machine)

    def _join(self, machine: CloudMachine) -> None:
        known = {
            **machine.node_labels,
            "kubernetes.io/hostname": machine.node_name,
            "kubernetes.io/arch": machine.architecture,
            "kubernetes.io/os": machine.operating_system,
            "node.kubernetes.io/instance-type": machine.instance_type,
            "topology.kubernetes.io/zone": machine.zone,
            "topology.kubernetes.io/region": machine.region,
        }
        node: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": machine.node_name,
                "labels": known,
                "annotations": {"kwok.x-k8s.io/node": "fake", "node.alpha.kubernetes.io/ttl": "0"},
            },
            "spec": {"providerID": machine.provider_id, "taints": codec.encode(machine.node_taints)},
            "status": {"capacity": _written(machine.capacity), "allocatable": _written(machine.allocatable)},
        }
        status, answer = self._cluster.request("POST", "/api/v1/nodes", node)
        if status not in (201, 409):
            print(f"kubelet of {machine.node_name}: {status} {answer}", flush=True)

    def close(self) -> None:
        """No more machines join."""
        self._threads.shutdown(wait=True, cancel_futures=True)


def _written(amounts: Resources) -> dict[str, Any]:
    return {name: codec.encode(Quantity(amount)) for name, amount in amounts.items()}
