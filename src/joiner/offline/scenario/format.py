"""Scenario files as they are written: the shape of the JSON, and where in a file one scenario ends and the next begins.

Nothing is filled in or judged here. Specs of pods stay bytes, so that pods which are written the same can share one; types stay
bytes, so that only one at a time is there in both forms; pools and overlays do, so that one that cannot be read can be left out.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Literal, TypeVar

import msgspec
from msgspec import Raw

from joiner.model import fieldpath, quantity
from joiner.model.duration import Duration
from joiner.model.meta import ObjectMeta, Value
from joiner.model.node import Node
from joiner.model.nodeclaim import NodeClaim
from joiner.model.pod import PodStatus
from joiner.model.quantity import Quantity
from joiner.model.requirement import SelectorRequirement
from joiner.model.workload import DaemonSet

_BLANK: Final = b" \t\r\n"
_NOTHING: Final = Raw(b"{}")

_NOT_JSON: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

T = TypeVar("T")


class Malformed(ValueError):
    """The bytes do not have the shape they should have."""


class WireOffering(Value):
    """One way to buy a type."""

    requirements: tuple[SelectorRequirement, ...] = ()
    price: float = 0.0
    available: bool = False
    reservation_capacity: int = 0


class WireOverhead(Value):
    """What pods cannot use."""

    kube_reserved: Mapping[str, Quantity] = {}
    system_reserved: Mapping[str, Quantity] = {}
    eviction_threshold: Mapping[str, Quantity] = {}


class WireType(Value):
    """An instance type."""

    name: str
    requirements: tuple[SelectorRequirement, ...] = ()
    offerings: tuple[WireOffering, ...] = ()
    capacity: Mapping[str, Quantity] = {}
    overhead: WireOverhead = WireOverhead()


class WireTypes(Value):
    """A file of instance types."""

    instance_types: tuple[Raw, ...] = ()
    """Each a `WireType`."""


class WirePod(Value):
    """A pod whose spec is left as it is written, to be compared before it is read."""

    metadata: ObjectMeta = ObjectMeta()
    spec: Raw = _NOTHING
    status: PodStatus = PodStatus()


class ScenarioOptions(Value):
    """The knobs. Those that only concern time and workers have no meaning here: effort is counted in work."""

    preference_policy: Literal["", "Respect", "Ignore"] = ""
    min_values_policy: Literal["", "Strict", "BestEffort"] = ""
    reserved_capacity: bool = True
    reserved_offering_mode: Literal["", "Strict", "Fallback"] = ""
    node_overlay: bool | None = None
    max_instance_types: int = 0
    well_known_labels: tuple[str, ...] = ()
    reservation_id_label: str = msgspec.field(default="", name="reservationIDLabel")


class WireScenario(Value):
    """A scenario as it is written."""

    name: str = ""
    node_pools: tuple[Raw, ...] = ()
    """Each a `NodePool`."""
    instance_types: tuple[Raw, ...] = ()
    """Each a `WireType`."""
    instance_types_file: str = ""
    instance_types_by_node_pool: Mapping[str, tuple[str, ...]] = {}
    node_overlays: tuple[Raw, ...] = ()
    """Each a `NodeOverlay`."""
    pods: tuple[WirePod, ...] = ()
    daemon_sets: tuple[DaemonSet, ...] = ()
    nodes: tuple[Node, ...] = ()
    node_claims: tuple[NodeClaim, ...] = ()
    bound_pods: tuple[WirePod, ...] = ()
    deleting_nodes: tuple[str, ...] = ()
    objects: tuple[Raw, ...] = ()
    options: ScenarioOptions = ScenarioOptions()


_READERS: Final[dict[type, Callable[[Any], Any]]] = {Quantity: quantity.parse, Duration: Duration.parse}


def _hook(kind: type, raw: Any) -> Any:
    return _READERS[kind](raw)


def decoded(data: bytes | Raw, kind: type[T], where: str = "") -> T:
    """The typed value. Null is absence, as everywhere in the API; only a value that holds one is read a second time.

    Errors say where in the value; `where` says where in the document the value stands.
    """
    try:
        return msgspec.json.decode(data, type=kind, dec_hook=_hook)
    except msgspec.ValidationError as problem:
        if b"null" not in bytes(data):
            raise Malformed(_at(where, problem) + _allowed(problem, kind)) from None
    except _NOT_JSON as problem:
        raise Malformed(_at(where, problem)) from None
    cleaned = msgspec.json.encode(_without_nulls(msgspec.json.decode(data)))
    try:
        return msgspec.json.decode(cleaned, type=kind, dec_hook=_hook)
    except msgspec.ValidationError as problem:
        raise Malformed(_at(where, problem) + _allowed(problem, kind)) from None


def _at(where: str, problem: Exception) -> str:
    said, inside, rest = str(problem).rpartition(" - at `$")
    if not where:
        return str(problem)
    return f"{said}{inside}.{where}{rest}" if inside else f"{rest} - at `$.{where}`"


def _allowed(problem: Exception, kind: Any) -> str:
    """The words that would have been right, where one of a few was asked for."""
    said, _, path = str(problem).rpartition(" - at `$")
    words = fieldpath.allowed(kind, path.removesuffix("`")) if said.startswith("Invalid enum value") else ()
    return f"; allowed: {', '.join(words)}" if words else ""


def _without_nulls(raw: Any) -> Any:
    if isinstance(raw, dict):
        return {key: _without_nulls(value) for key, value in raw.items() if value is not None}
    return [_without_nulls(item) for item in raw] if isinstance(raw, list) else raw


# -- several in one file ---------------------------------------------------------------------------------------------------


def split(data: bytes) -> Iterator[bytes]:
    """The documents of a file, one after the other. What is not JSON comes as a piece of its own, to be refused later."""
    here = 0
    while (here := _past_blanks(data, here)) < len(data):
        end = _end(data, here)
        yield data[here:end]
        here = end


def _past_blanks(data: bytes, here: int) -> int:
    while here < len(data) and data[here] in _BLANK:
        here += 1
    return here


def _end(data: bytes, here: int) -> int:
    """Where the document that begins here ends."""
    # Most files are one document, have one on each line, or have pretty ones, which end where a line begins with a brace.
    for end in (len(data), data.find(b"\n", here), data.find(b"\n}", here) + 2):
        if end > here and _is_json(memoryview(data)[here:end]):
            return end
    import json

    try:
        text = data[here:].decode()
        return here + len(text[: json.JSONDecoder().raw_decode(text)[1]].encode())
    except (ValueError, RecursionError):
        # Beyond repair. The next one begins where a line does.
        following = data.find(b"\n{", here)
        return len(data) if following < 0 else following


def _is_json(piece: memoryview) -> bool:
    try:
        msgspec.json.decode(piece, type=Raw)
    except _NOT_JSON:
        return False
    return True
