"""The machines of the KWOK provider: Node objects without a kubelet, and those that will be there in a while.

The name of a machine follows from its claim, so that one claim can never get two: the second Node would have the name of the
first. What is not yet a Node is lost with the process; the claim then asks again, and gets the same name.
"""

import asyncio
import hashlib
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from joiner.catalog.market import InstanceType, Offering
from joiner.clock import Clock
from joiner.cloud.errors import InstanceNotFound, Transient
from joiner.cloud.kwok import supply
from joiner.cloud.provider import Instance
from joiner.cloud.sources.reservation import DEFAULT_LABELS
from joiner.kube.client import Client
from joiner.kube.errors import AlreadyExists, Invalid, KubeError, NotFound
from joiner.kube.tasks import Tasks
from joiner.model import labels
from joiner.model.meta import ObjectMeta, replace
from joiner.model.node import Node, NodeSpec, NodeStatus, NodeSystemInfo
from joiner.model.nodeclaim import NodeClaim
from joiner.model.quantity import Quantity
from joiner.model.resources import Resources
from joiner.model.taints import UNREGISTERED
from joiner.requirements import Requirements

PREFIX: Final = "kwok://"
CLAIM: Final = "karpenter.kwok.sh/nodeclaim"
CLAIM_UID: Final = "karpenter.kwok.sh/nodeclaim-uid"
FAKE: Final = "kwok.x-k8s.io/node"
PRICE: Final = "eks-node-viewer/instance-price"
PARTITION: Final = "kwok-partition"
_PARTITIONS: Final = "abcdefghij"
_RETRY_S: Final = 1.0


class Fleet:
    """All machines, as the API server and the plans of this process know them."""

    def __init__(self, client: Client, clock: Clock, tasks: Tasks) -> None:
        self._client = client
        self._clock = clock
        self._tasks = tasks
        self._coming: dict[str, Node] = {}
        self._reserved: dict[str, str] = {}
        """Name of a machine to the reservation it runs in."""

    def used(self, reservation: str) -> int:
        """How many machines run in a reservation, as far as we have seen."""
        return sum(1 for each in self._reserved.values() if each == reservation)

    async def bought_for(self, claim: NodeClaim) -> Instance | None:
        """The machine of a claim, if there is one."""
        try:
            return _instance(await self._node(name_of(claim)))
        except InstanceNotFound:
            return None

    async def start(
        self, claim: NodeClaim, instance_type: InstanceType, offering: Offering, delay_s: float
    ) -> Instance:
        """Make the Node, at once or after the delay. The machine counts from now on."""
        node = _node(claim, instance_type, offering)
        if node.name in self._coming:
            return _instance(self._coming[node.name])
        self._coming[node.name] = replace(node, metadata=replace(node.metadata, creation_timestamp=self._clock.now()))
        self._count(node)
        if delay_s > 0:
            self._tasks.start(f"join {node.name}", self._join_later(node, delay_s))
        else:
            await self._join_now(node)
        return replace(_instance(node), launched_at=self._clock.now())

    async def _join_now(self, node: Node) -> None:
        try:
            await self._join(node)
        except Invalid:  # the machine runs, and the cluster turns its node away
            self._tasks.start(f"join {node.name}", self._join_later(node, _RETRY_S))
        except KubeError as error:
            self._coming.pop(node.name, None)  # the next call will see whether it was made
            self._reserved.pop(node.name, None)
            raise Transient(f"Node {node.name} could not be made: {error}") from error

    async def _join_later(self, node: Node, delay_s: float) -> None:
        await asyncio.sleep(delay_s)
        while node.name in self._coming:
            try:
                await self._join(node)
            except (KubeError, Transient):
                await asyncio.sleep(_RETRY_S)

    async def _join(self, node: Node) -> None:
        with suppress(AlreadyExists):  # we made it, and did not hear of it
            await self._client.create(node)
        if self._coming.pop(node.name, None) is None:  # it was deleted on its way
            with suppress(InstanceNotFound):
                await self.delete(node.spec.provider_id)

    async def get(self, provider_id: str) -> Instance:
        """The machine. One whose Node is being deleted is gone: nothing else keeps it."""
        node = await self._node(_name(provider_id))
        if node.metadata.deletion_timestamp is not None:
            raise InstanceNotFound(f"Node {node.name} is being deleted")
        return _instance(node)

    async def list(self) -> tuple[Instance, ...]:
        """All machines, also those that are coming or going."""
        settled = [name for name in self._reserved if name not in self._coming]
        listed = {each.name: each for each in await self._ask() if each.spec.provider_id.startswith(PREFIX)}
        for name in settled:  # only these: others came while the answer was on its way
            if name not in listed:
                self._reserved.pop(name, None)
        nodes = {**self._coming, **listed}
        for name in sorted(nodes):
            self._count(nodes[name])
        return tuple(_instance(nodes[name]) for name in sorted(nodes))

    async def delete(self, provider_id: str) -> None:
        """Delete the Node; what finalizers still hold of it is no machine. Always ends with InstanceNotFound."""
        name = _name(provider_id)
        self._coming.pop(name, None)
        try:
            await self._client.delete(Node, name)
        except NotFound:
            pass
        except KubeError as error:
            raise Transient(f"Node {name} could not be deleted: {error}") from error
        self._reserved.pop(name, None)
        raise InstanceNotFound(f"Node {name} was deleted", certain=True)

    async def reboot(self, provider_id: str, operation_id: str) -> None:
        """A new boot id is all that a reboot of nothing can show."""
        node = await self._node(_name(provider_id))
        info = replace(node.status.node_info, boot_id=f"kwok-{operation_id}")
        try:
            await self._client.patch_status(node, replace(node, status=replace(node.status, node_info=info)))
        except NotFound as error:
            raise InstanceNotFound(str(error)) from error
        except KubeError as error:
            raise Transient(f"Node {node.name} could not be changed: {error}") from error

    async def _ask(self) -> tuple[Node, ...]:
        try:
            return (await self._client.list(Node)).items
        except KubeError as error:
            raise Transient(f"Nodes could not be listed: {error}") from error

    async def _node(self, name: str) -> Node:
        if name in self._coming:
            return self._coming[name]
        try:
            node = await self._client.get(Node, name)
        except NotFound as error:
            raise InstanceNotFound(f"there is no Node {name}") from error
        except KubeError as error:
            raise Transient(f"Node {name} could not be read: {error}") from error
        self._count(node)
        return node

    def _count(self, node: Node) -> None:
        reservation = node.metadata.labels.get(DEFAULT_LABELS.id, "")
        if reservation and node.metadata.deletion_timestamp is None:
            self._reserved[node.name] = reservation
        else:
            self._reserved.pop(node.name, None)


def name_of(claim: NodeClaim) -> str:
    """The name of the Node of a claim; another claim of the same name has another one."""
    return f"kwok-{claim.name}-{_digest(claim)[:5]}"


def _digest(claim: NodeClaim) -> str:
    return hashlib.sha256(claim.metadata.uid.encode()).hexdigest()


def _name(provider_id: str) -> str:
    if not provider_id.startswith(PREFIX):
        raise InstanceNotFound(f"{provider_id!r} is not a machine of ours: those begin with {PREFIX}")
    return provider_id.removeprefix(PREFIX)


def _node(claim: NodeClaim, instance_type: InstanceType, offering: Offering) -> Node:
    name = name_of(claim)
    requests = claim.spec.resources.requests
    partition = _PARTITIONS[int(_digest(claim)[:8], 16) % len(_PARTITIONS)]
    own = {
        **claim.metadata.labels,
        **Requirements.read(claim.spec.requirements).labels(),
        **supply.settled_labels(instance_type, offering),
        claim.spec.node_class_ref.label_key: claim.spec.node_class_ref.name,
        labels.HOSTNAME: claim.name,
        PRICE: f"{offering.cost:g}",
        PARTITION: partition,
        FAKE: "fake",
    }
    annotations = {CLAIM: claim.name, CLAIM_UID: claim.metadata.uid, FAKE: "fake"}
    return Node(
        metadata=ObjectMeta(name=name, labels=own, annotations=annotations),
        spec=NodeSpec(provider_id=PREFIX + name, taints=(UNREGISTERED,)),
        status=NodeStatus(
            capacity=_quantities({**requests, **instance_type.capacity}),
            allocatable=_quantities({**requests, **instance_type.allocatable(offering)}),
            node_info=NodeSystemInfo(
                boot_id=f"kwok-{name}",
                architecture=own.get(labels.ARCH, ""),
                operating_system=own.get(labels.OS, ""),
            ),
        ),
    )


def _quantities(amounts: Resources) -> Mapping[str, Quantity]:
    return {name: Quantity(amounts[name]) for name in sorted(amounts)}


def _instance(node: Node) -> Instance:
    metadata = node.metadata
    return Instance(
        provider_id=node.spec.provider_id,
        claim_name=metadata.annotations.get(CLAIM, ""),
        claim_uid=metadata.annotations.get(CLAIM_UID, ""),
        labels=metadata.labels,
        annotations={FAKE: "fake"},
        capacity=node.status.capacity,
        allocatable=node.status.allocatable,
        launched_at=metadata.creation_timestamp,
        terminating=metadata.deletion_timestamp is not None,
    )
