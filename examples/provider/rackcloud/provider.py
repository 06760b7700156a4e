"""A provider for machines of your own: one file lists them, another says which NodeClaim has taken which of them."""

import json
import os
from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import Annotated, Any, ClassVar, NamedTuple

from joiner.catalog.market import InstanceType, Offering, Option
from joiner.cloud.errors import InstanceNotFound, InsufficientCapacity, NodeClassNotReady
from joiner.cloud.provider import CloudProvider, Instance, NodeClasses
from joiner.model import labels, quantity
from joiner.model.customobject import CustomObject
from joiner.model.labels import Vocabulary
from joiner.model.meta import KubeObject, Value, replace
from joiner.model.nodeclaim import NodeClaim
from joiner.model.nodeclass import NodeClassReference
from joiner.model.nodepool import NodePool
from joiner.model.rules import Field
from joiner.requirements import Requirement, Requirements


class RackNodeClassSpec(Value):
    machines: Annotated[str, "A JSON file with the machines there are.", Field(min_length=1)] = "machines.json"
    pods: Annotated[int, "How many pods a node takes.", Field(minimum=1)] = 110


class RackNodeClass(CustomObject):
    group: ClassVar[str] = "rack.example.com"
    version: ClassVar[str] = "v1"
    kind: ClassVar[str] = "RackNodeClass"
    plural: ClassVar[str] = "racknodeclasses"
    namespaced: ClassVar[bool] = False
    title: ClassVar[str] = "Machines in our own racks."
    spec: Annotated[RackNodeClassSpec, "Which machines there are."] = RackNodeClassSpec()

    def written_in(self, folder: PurePath) -> "RackNodeClass":  # relative paths are seen from the manifest
        return replace(self, spec=replace(self.spec, machines=str(folder / self.spec.machines)))


class Generation(NamedTuple):
    node_class: RackNodeClassSpec | None
    machines: tuple[int, int] | None
    leases: tuple[int, int] | None


class RackProvider(CloudProvider):
    name = "rack"

    # An agent watches the leases, and starts and stops machines. Their kubelets register as `rack://<machine>`.
    def __init__(self, node_classes: NodeClasses, leases: Path) -> None:
        self._classes, self._leases = node_classes, leases

    def node_classes(self) -> tuple[type[KubeObject], ...]:
        return (RackNodeClass,)

    def vocabulary(self) -> Vocabulary:
        return Vocabulary().with_node_classes("rack.example.com/racknodeclass")

    def generation(self, pool: NodePool) -> Generation:
        found = self._classes.get(RackNodeClass, pool.spec.template.spec.node_class_ref.name)
        spec = found.spec if found is not None else None
        return Generation(spec, _stamp(Path(spec.machines)) if spec else None, _stamp(self._leases))

    async def instance_types(self, pool: NodePool) -> tuple[InstanceType, ...]:
        pods, machines = self._machines(pool.spec.template.spec.node_class_ref)
        leases, names = _read(self._leases, {}), sorted({each["type"] for each in machines})
        return tuple(_type([m for m in machines if m["type"] == name], leases, pods) for name in names)

    def prices(self, pool: NodePool) -> str:
        return "our own racks (no date)"

    async def create(self, claim: NodeClaim, options: Sequence[Option]) -> Instance:
        (pods, machines), leases = self._machines(claim.spec.node_class_ref), _read(self._leases, {})
        for name, lease in leases.items():
            if lease["claim_uid"] == claim.metadata.uid:  # taken before, and the answer was lost
                return Instance(provider_id=f"rack://{name}", **lease)
        for option in options:
            place = {labels.INSTANCE_TYPE: option.name, labels.ZONE: option.offering.zone}
            free = [m for m in machines if m["name"] not in leases and [m["type"], m["rack"]] == [*place.values()]]
            if free:
                has = _capacity(free[0], pods)
                lease = {"claim_uid": claim.metadata.uid, "claim_name": claim.name, "capacity": has, "allocatable": has}
                lease["labels"] = {**place, labels.CAPACITY_TYPE: labels.ON_DEMAND}
                _write(self._leases, {**leases, free[0]["name"]: lease})
                return Instance(provider_id=f"rack://{free[0]['name']}", **lease)
        tried = [(option.name, option.offering) for option in options]
        raise InsufficientCapacity(f"NodeClaim {claim.name}: every machine of {len(tried)} options is taken", tried)

    async def get(self, provider_id: str) -> Instance:
        found = [each for each in await self.list() if each.provider_id == provider_id]
        if not found:
            raise InstanceNotFound(f"no machine {provider_id} is taken")
        return found[0]

    async def list(self) -> tuple[Instance, ...]:
        leases = sorted(_read(self._leases, {}).items())
        return tuple(Instance(provider_id=f"rack://{name}", **lease) for name, lease in leases)

    async def delete(self, provider_id: str) -> None:
        gone, leases = await self.get(provider_id), _read(self._leases, {})
        _write(self._leases, {name: lease for name, lease in leases.items() if lease["claim_uid"] != gone.claim_uid})

    def _machines(self, reference: NodeClassReference) -> tuple[int, Any]:
        found = self._classes.get(RackNodeClass, reference.name)
        if found is None:
            raise NodeClassNotReady(reference.name, "there is no RackNodeClass of that name")
        try:
            return found.spec.pods, _read(Path(found.spec.machines))
        except (OSError, ValueError) as error:
            raise NodeClassNotReady(found.name, f"spec.machines: {error}") from error


def _type(machines: list[Any], leases: dict[str, Any], pods: int) -> InstanceType:
    racks, first = sorted({each["rack"] for each in machines}), machines[0]
    left = [each["rack"] for each in machines if each["name"] not in leases]
    common = {labels.INSTANCE_TYPE: (first["type"],), labels.ARCH: (first["arch"],), labels.OS: ("linux",)}
    ways = {rack: _all({labels.ZONE: (rack,), labels.CAPACITY_TYPE: (labels.ON_DEMAND,)}) for rack in racks}
    return InstanceType(
        name=first["type"],
        requirements=_all({**common, labels.ZONE: racks, labels.CAPACITY_TYPE: (labels.ON_DEMAND,)}),
        offerings=tuple(Offering(requirements=ways[r], price=first["price"], available=left.count(r)) for r in racks),
        capacity=_capacity(first, pods),
    )


def _capacity(machine: Any, pods: int) -> dict[str, int]:
    return {name: quantity.parse(machine.get(name, pods)) for name in ("cpu", "memory", "pods")}


def _all(values: dict[str, Sequence[str]]) -> Requirements:
    return Requirements(Requirement.of(key, "In", *each) for key, each in values.items())


def _stamp(path: Path) -> tuple[int, int] | None:
    return (path.stat().st_mtime_ns, path.stat().st_size) if path.exists() else None


def _read(path: Path, otherwise: Any = None) -> Any:
    return otherwise if otherwise is not None and not path.exists() else json.loads(path.read_text(encoding="utf-8"))


def _write(path: Path, leases: dict[str, Any]) -> None:
    path.with_suffix(".new").write_text(json.dumps(leases, indent=1), encoding="utf-8")
    path.with_suffix(".new").replace(path)  # whole or not at all


def connect(*, node_classes: NodeClasses, **others: Any) -> CloudProvider:
    return RackProvider(node_classes, Path(os.environ.get("RACKCLOUD_LEASES", "leases.json")))
