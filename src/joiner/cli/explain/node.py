"""Draws why a node goes or stays."""

from collections.abc import Iterator
from typing import Any

from joiner.cli import output
from joiner.cli.findings import load
from joiner.cli.inputs import Given
from joiner.cli.output import Cell, Table, TableColumn
from joiner.clock import SystemClock
from joiner.disruption.consolidation.payback import why
from joiner.disruption.decision import Move, Payback
from joiner.disruption.eligibility import GOING
from joiner.disruption.situation import Rules
from joiner.disruption.verdict import NodeVerdict
from joiner.model import labels
from joiner.model.clusterobjects import Event
from joiner.offline import instancetypes
from joiner.offline.report.node import NodeReport, node_report

_EVENTS = 10


def show(name: str, given: Given, rules: Rules, form: str) -> None:
    """Find out, and show."""
    manifests = instancetypes.stand_in(load(given.filenames, given.live), given.catalogue, given.reservations)
    report = node_report(manifests, SystemClock().now(), name, rules)
    for note in report.notes:
        output.echo(Cell("note", "yellow"), f": {note}", err=True)
    if form != output.TABLE:
        output.data(_as_data(report), form, "NodeReport")
        return
    for line in _told(report):
        output.echo(line)


def _told(report: NodeReport) -> Iterator[str | Cell]:
    found = report.verdict
    if found is None:
        yield Cell(f"Node {report.name} is gone", "bold")
    elif found.move is not None:
        yield from _goes(report.name, found, found.move)
    elif _is_going(found):
        yield Cell(f"Node {report.name} goes already", "bold")
        yield _facts(found)
        yield "its NodeClaim or the Node is deleted; what keeps it is told in the events"
    else:
        yield from _stays(report.name, found)
    if report.events:
        yield Cell("\nWhat was told about it", "bold")
        rows = [(_at(each), each.involved_object.kind, each.reason, each.message) for each in report.events]
        columns = tuple(map(TableColumn, ("WHEN", "ABOUT", "REASON", "MESSAGE")))
        yield from output.plain(Table(columns, tuple(rows[-_EVENTS:])))
        if len(rows) > _EVENTS:
            yield f"and {len(rows) - _EVENTS} earlier ones; -o json tells of each"


def _goes(name: str, found: NodeVerdict, move: Move) -> Iterator[str | Cell]:
    yield Cell(f"Node {name} goes: {move.decision}, for reason {move.reason}", "bold")
    yield _facts(found)
    if others := [each for each in move.nodes if each != found.state.name]:
        yield f"together with: {', '.join(others)}"
    if move.claims:
        bought = ", ".join(f"{claim.options[0].name} of NodePool {claim.nodepool}" for claim in move.claims)
        yield f"bought before it goes: {bought}"
    if because := why(move):
        yield f"why: {because}"
    for each in found.before:
        yield f"first: {each.decision} {', '.join(each.nodes)} for reason {each.reason}; then it is decided again"


def _is_going(found: NodeVerdict) -> bool:
    return any(each.message == GOING for each in found.hindrances)


def _stays(name: str, found: NodeVerdict) -> Iterator[str | Cell]:
    yield Cell(f"Node {name} stays", "bold")
    yield _facts(found)
    for each in found.hindrances:
        yield f"{each.reason or 'for every reason'}: {each.message}"
        if each.change:
            yield f"  until: {each.change}"
    if found.alone is not None and found.alone.most != float("inf"):
        yield f"no plan without it saves more than {max(0.0, found.alone.most):.4f} $/h, evictions counted"
    if found.alone is not None and found.alone.targeted:
        yield "a cheapest cluster for these pods would be without it"


def _facts(found: NodeVerdict) -> str:
    own = found.state.labels
    said = [own.get(key, "") for key in (labels.INSTANCE_TYPE, labels.CAPACITY_TYPE, labels.ZONE)]
    price = f"{found.price.bill:.4f} $/h" if found.price.known else "its price is not known"
    pods = "1 pod needs" if len(found.pods) == 1 else f"{len(found.pods)} pods need"
    pool = f"NodePool {found.state.nodepool}" if found.state.nodepool else "no NodePool"
    return f"{', '.join(filter(None, (pool, *said, price)))}; {pods} another place when it goes"


def _at(event: Event) -> str:
    found = event.last_timestamp or event.first_timestamp or event.metadata.creation_timestamp
    return f"{found:%Y-%m-%dT%H:%M:%SZ}" if found is not None else ""


def _as_data(report: NodeReport) -> dict[str, Any]:
    found, events = report.verdict, [_event_data(each) for each in report.events]
    if found is None:
        return {"node": report.name, "goes": None, "events": events}
    own, alone = found.state.labels, found.alone
    return {
        "node": report.name,
        "nodePool": found.state.nodepool or None,
        "instanceType": own.get(labels.INSTANCE_TYPE),
        "hourly": round(found.price.bill, 6) if found.price.known else None,
        "pods": list(found.pods),
        "goes": found.move is not None or _is_going(found),
        "move": None if found.move is None else _move_data(found.move),
        "before": [_move_data(each) for each in found.before],
        "stays": [{"reason": each.reason, "why": each.message, "until": each.change} for each in found.hindrances],
        "savesAtMost": None if alone is None or alone.most == float("inf") else max(0.0, round(alone.most, 6)),
        "target": None if alone is None else alone.targeted,
        "alone": None if alone is None or alone.answer.payback is None else _payback_data(alone.answer.payback),
        "events": events,
    }


def _move_data(move: Move) -> dict[str, Any]:
    return {
        "reason": move.reason,
        "decision": move.decision,
        "nodes": list(move.nodes),
        "buys": [{"nodePool": each.nodepool, "instanceType": each.options[0].name} for each in move.claims],
        "why": why(move),
        "payback": None if move.payback is None else _payback_data(move.payback),
    }


def _payback_data(found: Payback) -> dict[str, Any]:
    return {
        "saves": round(found.saved, 6),
        "costs": round(found.cost, 6),
        "evictions": round(found.eviction, 6),
        "starts": round(found.start, 6),
        "pays": found.pays,
        "paidBackSeconds": None if found.saved <= 0 else round(found.paid_back_s, 1),
        "horizonSeconds": found.horizon_s,
        "paysWithEvictionCostBelowSeconds": None if found.eviction <= 0 else round(found.pays_below_s, 1),
    }


def _event_data(event: Event) -> dict[str, Any]:
    return {"at": _at(event), "kind": event.involved_object.kind, "reason": event.reason, "message": event.message}
