"""The catalogues of NodePools as plain data. An unlimited number is null, and so is a time that never comes."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from joiner.catalog import exclusions, explain
from joiner.catalog.explain import Effect
from joiner.catalog.market import UNLIMITED, InstanceType, Offering
from joiner.catalog.settings import SettingsOutcome
from joiner.cli.findings import as_data as finding_data
from joiner.cli.findings import ignored_data
from joiner.cloud.sources.catalogue import unpriced
from joiner.cloud.sources.reservation import ReservationStanding
from joiner.model import resources
from joiner.offline.catalogs import PoolCatalogs, PoolView
from joiner.offline.manifests import Manifests


def of(opened: PoolCatalogs, manifests: Manifests, explained: bool) -> dict[str, Any]:
    """Everything, as JSON-like data."""
    return {
        "nodePools": [_view(view, explained) for view in opened.views],
        "warnings": list(opened.idle),
        "notes": list(manifests.notes),
        "ignored": [ignored_data(each) for each in manifests.ignored_of_node_classes()],
        "findings": [finding_data(each) for each in manifests.warnings],
        "problems": [{"nodePool": pool, "message": message} for pool, message in opened.problems],
    }


def _view(view: PoolView, explained: bool) -> dict[str, Any]:
    catalog = view.catalog
    found: dict[str, Any] = {
        "name": view.pool.name,
        "prices": view.prices,
        "sources": list(view.details.sources),
        "typesKnown": len(catalog.types),
        "typesWithoutPrice": unpriced(catalog.types),
        "typesBuyable": catalog.eligible.bit_count(),
        "generation": view.generation,
        "moved": list(view.stats.moved),
        "conflicts": [
            {"loser": c.loser, "winner": c.winner, "field": c.field, "example": c.example} for c in catalog.conflicts
        ],
        "idleOverlays": [{"name": each.overlay, "excludedBy": each.excluded_by or None} for each in view.idle],
        "settings": [_settings(outcome) for outcome in catalog.market.settings],
        "reservations": [_reservation(view, each) for each in view.details.reservations],
        "effects": [_effect(each) for each in explain.effects(catalog)],
        "types": [_type(view, each, explained) for each in view.types],
    }
    if explained or not catalog.eligible:
        found["funnel"] = [{"types": stage.types, "after": stage.demand} for stage in exclusions.funnel(catalog)]
    return found


def _settings(outcome: SettingsOutcome) -> dict[str, Any]:
    entries = [
        {"entry": dict(e.entry), "matched": e.matched, "overlaps": list(e.overlaps), "problem": e.problem or None}
        for e in outcome.entries
    ]
    return {"name": outcome.name, "found": outcome.found, "offerings": entries}


def _reservation(view: PoolView, standing: ReservationStanding) -> dict[str, Any]:
    each, problem = standing.reservation, view.refusal(standing)
    return {
        "id": each.id,
        "instanceType": each.instance_type,
        "zone": each.zone,
        "available": each.count,
        "endTime": _time(each.end_time),
        "usable": not problem,
        "problem": problem or None,
    }


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _effect(effect: Effect) -> dict[str, Any]:
    return {
        "kind": effect.kind,
        "name": effect.name,
        "field": effect.field,
        "reserved": effect.reserved,
        "types": effect.types,
        "offerings": effect.offerings,
        "before": list(effect.before),
        "after": list(effect.after),
    }


def _type(view: PoolView, instance_type: InstanceType, explained: bool) -> dict[str, Any]:
    catalog = view.catalog
    ends = {each.reservation.id: each.reservation.end_time for each in view.details.reservations}
    excluded = exclusions.exclusions(catalog, instance_type)

    def offered(offering: Offering) -> dict[str, Any]:
        return _offering(view, instance_type, offering, ends)

    found: dict[str, Any] = {
        "name": instance_type.name,
        "buyable": not excluded,
        "excludedBy": list(excluded),
        "labels": instance_type.requirements.labels(),
        "capacity": resources.written(instance_type.capacity),
        "allocatable": resources.written(instance_type.allocatable()),
        "cheapest": {kind: offered(best) for kind, best in sorted(catalog.cheapest(instance_type).items())},
        "offerings": [offered(each) for each in instance_type.offerings],
    }
    if explained:
        found["changes"] = [
            {
                "offering": change.offering or None,
                "field": change.field,
                "before": change.before,
                "after": change.after,
                "by": {"kind": change.kind, "name": change.name},
                "buyable": change.buyable,
            }
            for change in explain.changes(catalog, instance_type)
        ]
    return found


def _offering(
    view: PoolView, instance_type: InstanceType, offering: Offering, ends: Mapping[str, datetime | None]
) -> dict[str, Any]:
    labels = offering.requirements.labels()
    found: dict[str, Any] = {
        "capacityType": offering.capacity_type,
        "zone": offering.zone,
        "labels": labels,
        "price": None if offering.price is None else offering.cost,
        "available": None if offering.available == UNLIMITED else offering.available,
        "launchable": offering.launchable,
    }
    if offering.reserved:
        found["endTime"] = _time(ends.get(labels.get(view.catalog.market.vocabulary.reservation_id, "")))
    if offering.capacity or offering.overhead:
        found["allocatable"] = resources.written(instance_type.allocatable(offering))
    return found
