"""What is learned of machines once their nodes have joined, and what is written on them then.

The memory that a node reports replaces the share that the hypervisor is assumed to take: of its type, as long as the class boots
the same images. The machine is given its node's name as the tag `Name`, and the tags of its claim where another version left
them out.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from joiner.clock import Clock
from joiner.cloud.aws.api import AwsApi, AwsError
from joiner.cloud.aws.launch import tags
from joiner.cloud.aws.launch.machines import provider_id, state
from joiner.cloud.aws.launch.templates import written
from joiner.cloud.aws.nodeclass.ec2nodeclass import EC2NodeClass
from joiner.cloud.errors import CloudError
from joiner.kube.client import Client
from joiner.kube.errors import KubeError, NotFound
from joiner.model.node import Node
from joiner.model.nodeclaim import NodeClaim
from joiner.model.resources import MEMORY

NAME_TAG: Final = "Name"
REMEMBERED_S: Final = 60 * 86_400.0
PAUSE_S: Final = 1.0
"""Between two calls of CreateTags."""
_MANY: Final = 20
"""So many nodes are asked for one by one; more are listed."""
Images = tuple[str, ...]


class Memory:
    """What nodes of a type showed of their memory, by the images of their class."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seen: dict[Images, dict[str, tuple[int, float]]] = {}
        self._version = 0

    def version(self) -> int:
        """Moves whenever something was learned or forgotten."""
        now = self._clock.monotonic()
        for images, types in list(self._seen.items()):
            kept = {name: each for name, each in types.items() if now - each[1] < REMEMBERED_S}
            if len(kept) < len(types):
                self._version += 1
                self._seen[images] = kept
        return self._version

    def of(self, node_class: EC2NodeClass) -> Mapping[str, int]:
        """Type to memory, for machines with the images that the class has now."""
        return {name: amount for name, (amount, _) in self._seen.get(images_of(node_class), {}).items()}

    def learn(self, node_class: EC2NodeClass, instance_type: str, image: str, amount: int) -> None:
        """A node reports its memory. More than another one reported is not believed: pods may be planned for either."""
        images = images_of(node_class)
        if image not in images or amount <= 0:
            return
        types = self._seen.setdefault(images, {})
        known = types.get(instance_type)
        if known is None or amount <= known[0]:
            types[instance_type] = (amount, self._clock.monotonic())
            self._version += known is None or amount < known[0]


def images_of(node_class: EC2NodeClass) -> Images:
    """The ids of the images of a class, whatever their order."""
    return tuple(sorted({each.id for each in node_class.status.amis}))


class Joined:
    """Looks after machines whose nodes have joined, each once."""

    def __init__(self, api: AwsApi, memory: Memory, classes: Callable[[str], EC2NodeClass | None]) -> None:
        self._api, self._memory, self._classes = api, memory, classes
        self._done: set[str] = set()

    async def look(self, client: Client, machines: Iterable[Mapping[str, Any]]) -> None:
        """Look at machines as EC2 describes them. What cannot be asked now is looked at the next time."""
        known = [each for each in machines if state(each) == "running"]
        self._done &= {each["InstanceId"] for each in known}
        new = [each for each in known if each["InstanceId"] not in self._done]
        if not new:
            return
        claims = {each.status.provider_id: each for each in (await client.list(NodeClaim, latest=False)).items}
        nodes = await self._nodes(client, len(new))
        for raw in new:
            claim = claims.get(provider_id((raw.get("Placement") or {}).get("AvailabilityZone", ""), raw["InstanceId"]))
            if claim is None or not claim.status.node_name:
                continue
            try:
                node = nodes.get(claim.status.node_name) or await client.get(Node, claim.status.node_name)
            except NotFound:
                continue
            self._learn(raw, claim, node)
            await self._tag(raw, claim, node)
            self._done.add(raw["InstanceId"])

    async def _nodes(self, client: Client, wanted: int) -> dict[str, Node]:
        if wanted <= _MANY:
            return {}
        return {each.name: each for each in (await client.list(Node, latest=False)).items}

    def _learn(self, raw: Mapping[str, Any], claim: NodeClaim, node: Node) -> None:
        node_class = self._classes(claim.spec.node_class_ref.name)
        if node_class is not None:
            amount = node.status.capacity.get(MEMORY, 0)
            self._memory.learn(node_class, raw.get("InstanceType", ""), raw.get("ImageId", ""), amount)

    async def _tag(self, raw: Mapping[str, Any], claim: NodeClaim, node: Node) -> None:
        has = tags.read(raw.get("Tags"))
        wanted = {NAME_TAG: node.name, tags.NODECLAIM: claim.name, tags.NODECLAIM_UID: claim.metadata.uid}
        missing = {key: value for key, value in wanted.items() if key not in has}
        if missing:
            await self._api.call("ec2", "create_tags", Resources=[raw["InstanceId"]], Tags=written(missing))
            await asyncio.sleep(PAUSE_S)


async def looked_after(joined: Joined, client: Client, machines: Callable[[], Any], every_s: float) -> None:
    """Look at all machines again and again. Never ends by itself."""
    while True:
        await asyncio.sleep(every_s)
        try:
            await joined.look(client, await machines())
        except (AwsError, CloudError, KubeError):
            continue  # the next time
