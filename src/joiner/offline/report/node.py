"""`NodeReport`: why a node stays or goes, or why it went, from files or from a live cluster that was read as files are."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from joiner.admission.problem import nearest
from joiner.disruption.situation import Rules
from joiner.disruption.verdict import NodeVerdict, verdict
from joiner.model.clusterobjects import Event
from joiner.model.codec import DecodeError, decode
from joiner.model.meta import replace
from joiner.model.node import Node
from joiner.model.nodeclaim import NodeClaim
from joiner.offline.manifests import Manifests, Unsound
from joiner.offline.problem import NO_PODS
from joiner.offline.report.plan import PlanOptions, pose
from joiner.offline.report.situation import situation, snapshot_of

_KINDS: Final = (Node.kind, NodeClaim.kind)
_MADE_UP: Final = (
    "its NodeClaim is not in these files: it counts as one that pods have neither come to nor left for long"
)
_SHOWN: Final = 5


@dataclass(frozen=True)
class NodeReport:
    """What there is to say about a node."""

    name: str
    verdict: NodeVerdict | None
    """Nothing where the node is not there any more."""
    events: tuple[Event, ...]
    """What was told about it and its claim, the latest last."""
    notes: tuple[str, ...]


def node_report(manifests: Manifests, now: datetime, name: str, rules: Rules) -> NodeReport:
    """The verdict on a node, with its events. Raises Unsound where neither says anything."""
    posed = pose(manifests, now, PlanOptions(policy=rules.policy))
    told = _events(manifests, {name})
    seen = posed.question.snapshot if told else snapshot_of(posed)
    rules = replace(rules, vocabulary=posed.question.problem.vocabulary)
    found = None if seen is None else verdict(situation(manifests, posed, seen, now, rules), name)
    notes = [*posed.missed, *(each for each in posed.question.notes if each != NO_PODS)]
    if found is not None:
        node, claim = found.state.node, found.state.claim
        told = _events(manifests, {thing.name for thing in (node, claim) if thing is not None})
        if claim is not None and manifests.get(NodeClaim, claim.name) is None:
            notes.append(_MADE_UP)
    elif not told and seen is not None:
        known = sorted(each.name for each in seen.nodes)
        near = nearest(name, known)
        hint = (
            f"did you mean {near}?"
            if near
            else f"there are {', '.join(known[:_SHOWN])}{' …' if len(known) > _SHOWN else ''}"
        )
        raise Unsound(f"there is no Node {name}, and no Event tells of one; {hint}")
    return NodeReport(name, found, told, tuple(notes))


def _events(manifests: Manifests, names: Collection[str]) -> tuple[Event, ...]:
    """Those about a node and its claim, the latest last."""
    return tuple(sorted(_about(manifests, names), key=lambda each: (_moment(each), each.name)))


def _about(manifests: Manifests, names: Collection[str]) -> Iterator[Event]:
    for data in manifests.others:
        about = data.get("involvedObject")
        if data.get("kind") != Event.kind or not isinstance(about, dict):
            continue
        if about.get("kind") in _KINDS and about.get("name") in names:
            try:
                yield decode(data, Event)
            except DecodeError:
                continue  # of another writer, in a shape of its own


def _moment(event: Event) -> datetime:
    found = event.last_timestamp or event.first_timestamp or event.metadata.creation_timestamp
    return found or datetime.min.replace(tzinfo=UTC)
