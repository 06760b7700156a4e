"""The problem as a plan would leave it: what is bought is there, and placed pods run on it."""

from collections.abc import Iterable, Mapping
from typing import Final

from joiner.model import podrequests, resources
from joiner.model.labels import HOSTNAME, INSTANCE_TYPE
from joiner.model.meta import replace
from joiner.model.pod import Pod, host_ports
from joiner.model.quantity import MILLI
from joiner.model.resources import NODES
from joiner.requirements import Requirements
from joiner.scheduling.plan import Plan, PlannedClaim
from joiner.scheduling.pods.volumetopology import VolumeIndex
from joiner.scheduling.problem import ExistingNode, PoolOption, Problem

NEW: Final = "new-node-"
"""How the nodes that a plan buys are called afterwards."""


def settled(problem: Problem, plan: Plan) -> Problem:
    """The problem once the plan is carried out: every placed pod runs there, the others still wait.

    Each new node is what the plan would buy first. Reservations are as they were: counts belong to the provider.
    """
    by_name = {pod.key: pod for pod in problem.pods}
    volume_index = VolumeIndex(problem.storage, problem.vocabulary)
    nodes = list(problem.nodes)
    moved: list[Pod] = []
    for number, node in enumerate(nodes):
        coming = [by_name[name] for name in plan.placements.get(node.name, ())]
        if coming:
            nodes[number] = _joined(node, coming, volume_index)
            moved.extend(_at(pod, node.name) for pod in coming)
    used: dict[str, list[Mapping[str, int]]] = {}
    options = {option.pool.name: option for option in problem.pools}
    for number, claim in enumerate(plan.claims):
        coming = [by_name[name] for name in claim.pods]
        empty, largest = _bought(options[claim.nodepool], claim, f"{NEW}{number}")
        nodes.append(_joined(empty, coming, volume_index))
        moved.extend(_at(pod, empty.name) for pod in coming)
        used.setdefault(claim.nodepool, []).append({**largest, NODES: MILLI})
    placed = {(pod.metadata.namespace, pod.name) for pod in moved}
    return replace(
        problem,
        pods=tuple(pod for pod in problem.pods if (pod.metadata.namespace, pod.name) not in placed),
        nodes=tuple(nodes),
        bound=(*problem.bound, *moved),
        pools=tuple(
            replace(option, used=resources.add(option.used, *used.get(option.pool.name, ())))
            for option in problem.pools
        ),
    )


def _at(pod: Pod, node: str) -> Pod:
    return replace(pod, spec=replace(pod.spec, node_name=node))


def _joined(node: ExistingNode, coming: Iterable[Pod], volume_index: VolumeIndex) -> ExistingNode:
    attached = dict(node.volumes)
    requests, ports = [node.used], list(node.ports)
    for pod in coming:
        requests.append(podrequests.of_pod(pod))
        ports.extend(host_ports(pod.spec))
        for driver, volumes in volume_index.volumes_of(pod).attachments.items():
            attached[driver] = attached.get(driver, frozenset()) | volumes
    return replace(node, used=resources.add(*requests), ports=tuple(ports), volumes=attached)


def _bought(option: PoolOption, claim: PlannedClaim, name: str) -> tuple[ExistingNode, Mapping[str, int]]:
    """The node that is bought first for a claim, and the most that any of its options would count against limits."""
    types = {each.name: each for each in option.catalog.types}
    first = claim.options[0]
    chosen = types[first.name]
    labels = Requirements((*claim.requirements.values(), *chosen.requirements.values())).labels()
    labels |= first.offering.requirements.labels() | {INSTANCE_TYPE: first.name, HOSTNAME: name}
    node = ExistingNode(
        name=name,
        labels=labels,
        taints=claim.taints,
        allocatable=chosen.allocatable(first.offering),
        volume_limits=chosen.volume_limits,
        initialized=False,
    )
    return node, resources.largest({**types[each.name].capacity, **each.offering.capacity} for each in claim.options)
