"""`joiner catalog`: what each NodePool can buy, at which price, and which object made it so."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import click

from joiner.admission.problem import nearest
from joiner.catalog import explain
from joiner.catalog.build import Catalog
from joiner.catalog.explain import price_text
from joiner.catalog.market import InstanceType, Offering
from joiner.cli import inputs, output
from joiner.cli.world import Unsound, World, load
from joiner.clock import SystemClock
from joiner.cloud import plugins
from joiner.cloud.cached import CacheStats, Catalogs
from joiner.cloud.provider import CloudProvider
from joiner.cloud.sources.catalogue import unpriced
from joiner.model import labels, resources
from joiner.model.nodepool import NodePool
from joiner.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS

EPILOG = """\b
Examples:
  joiner catalog -f examples/01-what-a-pool-can-buy
  joiner catalog -f pools.yaml -f overlays/ --nodepool default --explain
  joiner catalog -f pools.yaml --type m5.large --type c5.large --explain
  joiner catalog -f pools.yaml -o json | jq '.nodePools[].types[].name'
"""

CAPACITY_TYPES = (labels.ON_DEMAND, labels.SPOT, labels.RESERVED)
_SHOWN_ELSEWHERE = (CPU, MEMORY, EPHEMERAL_STORAGE, PODS)


@dataclass(frozen=True)
class View:
    """One pool's catalogue with everything that is told about it."""

    pool: NodePool
    catalog: Catalog
    stats: CacheStats
    prices: str
    types: tuple[InstanceType, ...]
    """The types to show, cheapest first."""


@click.command("catalog", short_help="Show what NodePools can buy, at which price, and why.", epilog=EPILOG)
@inputs.option
@click.option("--nodepool", metavar="NAME", help="Only this NodePool; all of the files otherwise.")
@click.option("--type", "names", multiple=True, metavar="NAME", help="Only this instance type; may be repeated.")
@click.option("--explain", "explained", is_flag=True, help="Show why types are left out and which object changed what.")
@click.option(
    "--limit", default=20, show_default=True, metavar="N", type=click.IntRange(min=0), help="Rows per table; 0 for all."
)
@output.option()
def command(
    filenames: tuple[str, ...], nodepool: str | None, names: tuple[str, ...], explained: bool, limit: int, form: str
) -> None:
    """Show what NodePools can buy: the instance types that are left after requirements, settings and overlays.

    Reads NodePools, their NodeClasses, InstanceType settings and NodeOverlays; other objects are passed over. Sizes are what
    pods can use on a node. Prices are dollars an hour, with the date of the data they come from.
    """
    if not filenames:
        raise click.UsageError("Name manifests with -f: a file, a folder, or - for standard input.")
    world = load(filenames)
    views = asyncio.run(_views(world, nodepool, names))
    if form == output.TABLE:
        for number, view in enumerate(views):
            _print(view, explained, limit, first=not number)
    else:
        output.data({"nodePools": [_as_data(view, explained) for view in views]}, form)


async def _views(world: World, nodepool: str | None, names: tuple[str, ...]) -> list[View]:
    clock = SystemClock()
    adjustments = world.adjustments()
    caches: dict[str, tuple[CloudProvider, Catalogs]] = {}
    views: list[View] = []
    for pool in world.pools(nodepool):
        provider_name = _provider_name(pool)
        if provider_name not in caches:
            provider = plugins.find(provider_name)(node_classes=world, clock=clock)
            caches[provider_name] = (provider, Catalogs(provider, lambda: adjustments, clock))
        provider, catalogs = caches[provider_name]
        catalog = await catalogs.get(pool)
        stats = next(each for each in catalogs.stats() if each.nodepool == pool.name)
        views.append(View(pool, catalog, stats, provider.prices(pool), _chosen(catalog, names)))
    return views


def _provider_name(pool: NodePool) -> str:
    """The provider that reads the pool's kind of NodeClass."""
    reference = pool.spec.template.spec.node_class_ref
    known: dict[tuple[str, str], str] = {}
    for name in plugins.names():
        provider = plugins.find(name)(node_classes=World(), clock=SystemClock())
        known.update({(kind.group, kind.kind): name for kind in provider.node_classes()})
    found = known.get((reference.group, reference.kind))
    if found is None:
        kinds = ", ".join(f"{kind} of {group}" for group, kind in sorted(known))
        raise Unsound(
            f"NodePool {pool.name}: no installed provider reads a {reference.kind} of {reference.group}; they read {kinds}"
        )
    return found


def _chosen(catalog: Catalog, names: tuple[str, ...]) -> tuple[InstanceType, ...]:
    members = tuple(catalog.members())
    if names:
        known = {each.name: each for each in catalog.types}
        for name in names:
            if name not in known:
                near = nearest(name, known)
                raise Unsound(f"there is no instance type {name}{f'; did you mean {near}?' if near else ''}")
        members = tuple(known[name] for name in dict.fromkeys(names))
    return tuple(sorted(members, key=lambda each: (_cost(catalog, each), each.name)))


def _cost(catalog: Catalog, instance_type: InstanceType) -> tuple[int, float]:
    best = catalog.cheapest(instance_type).values()
    return min((offering.order for offering in best), default=(2, 0.0))


# -- for people ------------------------------------------------------------------------------------------------------


def _print(view: View, explained: bool, limit: int, *, first: bool) -> None:
    if not first:
        click.echo()
    catalog = view.catalog
    buyable = catalog.eligible.bit_count()
    click.echo(
        output.bold(f"NodePool {view.pool.name}: {buyable} of {len(catalog.types)} instance types can be bought")
    )
    click.echo(f"  prices: {view.prices}{_without_price(catalog)}")
    click.echo(f"  generation: {_generation(view.stats)} ({', '.join(view.stats.moved)})")
    for line in (*_conflicts(catalog), *_settings(catalog)):
        click.echo(f"  {output.styled('warning', 'yellow')}: {line}")
    if explained:
        _section("How the choice narrows", _funnel(catalog))
    _section("What can be bought, cheapest first", _types(view, limit))
    _more(len(view.types), limit, "types")
    _section("What settings and overlays did", _effects(catalog))
    if explained:
        changes = [change for each in view.types[: limit or None] for change in explain.changes(catalog, each)]
        _section("Every change to the types above", _changes(changes[: limit * 5 or None]))
        _more(len(changes), limit * 5, "changes")


def _section(title: str, table: output.Table) -> None:
    if table.rows:
        click.echo(f"\n{output.bold(title)}")
        output.table(table)


def _more(count: int, limit: int, noun: str) -> None:
    if limit and count > limit:
        click.echo(f"… and {count - limit} more {noun}; show them with --limit 0, or pick with --type")


def _without_price(catalog: Catalog) -> str:
    count = unpriced(catalog.types)
    return f"; {count} types have no price and cannot be bought" if count else ""


def _generation(stats: CacheStats) -> str:
    parts = stats.generation
    names = getattr(parts, "_fields", None)
    if isinstance(parts, tuple) and names:
        return ", ".join(f"{name} {_part(part)}" for name, part in zip(names, parts, strict=True))
    return str(parts)


def _part(part: object) -> str:
    return "@".join(map(str, part)) if isinstance(part, tuple) else str(part)


def _conflicts(catalog: Catalog) -> Iterable[str]:
    for each in catalog.market.conflicts:
        yield (
            f"NodeOverlays {each.loser} and {each.winner} have the same weight and both set {each.field}, for example on"
            f" {each.example}; {each.winner} wins. Give one of them a higher weight"
        )


def _settings(catalog: Catalog) -> Iterable[str]:
    for outcome in catalog.market.settings:
        if not outcome.found:
            yield f"InstanceType {outcome.name} names no type of this provider; its settings have no effect here"
        for number, entry in enumerate(outcome.entries):
            where = f"InstanceType {outcome.name}: spec.offerings[{number}]"
            if entry.problem:
                yield f"{where} can never be bought: {entry.problem}"
            for other in entry.overlaps:
                yield f"{where} overlaps with spec.offerings[{other}], which comes first where both cover an offering"


def _funnel(catalog: Catalog) -> output.Table:
    columns = (output.Column("TYPES LEFT", right=True), output.Column("AFTER"))
    return output.Table(columns, tuple((str(each.types), each.demand) for each in explain.funnel(catalog)))


def _types(view: View, limit: int) -> output.Table:
    columns = (
        output.Column("TYPE"),
        output.Column("CPU", right=True),
        output.Column("MEMORY", right=True),
        output.Column("PODS", right=True),
        *(output.Column(f"{kind.upper()} $/h", right=True) for kind in CAPACITY_TYPES),
        output.Column("CHEAPEST IN"),
        output.Column("OTHER RESOURCES"),
    )
    return output.Table(columns, tuple(_row(view.catalog, each) for each in view.types[: limit or None]))


def _row(catalog: Catalog, instance_type: InstanceType) -> tuple[str | output.Cell, ...]:
    cheapest = catalog.cheapest(instance_type)
    best = min(cheapest.values(), key=lambda offering: offering.order, default=None)
    left = instance_type.allocatable(best)
    # Several sizes of node under one name: overlays add capacity or overhead to some offerings only.
    mixed = (
        "*" if len({tuple(sorted(instance_type.allocatable(o).items())) for o in instance_type.offerings}) > 1 else ""
    )
    return (
        instance_type.name + mixed,
        resources.text(CPU, left.get(CPU, 0)),
        resources.text(MEMORY, left.get(MEMORY, 0)),
        resources.text(PODS, left.get(PODS, 0)),
        *(_price_cell(cheapest.get(kind)) for kind in CAPACITY_TYPES),
        explain.place(best) if best is not None else output.Cell("cannot be bought", "red"),
        ", ".join(f"{name}: {text}" for name, text in _other(left).items()),
    )


def _price_cell(offering: Offering | None) -> str | output.Cell:
    if offering is None:
        return output.Cell("-", "dim")
    text = price_text(offering.cost)
    return output.Cell(text, "cyan") if offering.price_overlaid else text


def _other(left: resources.Resources) -> dict[str, str]:
    return {
        name: resources.text(name, left[name]) for name in sorted(left) if name not in _SHOWN_ELSEWHERE and left[name]
    }


def _effects(catalog: Catalog) -> output.Table:
    names = ("OBJECT", "FIELD", "TYPES", "OFFERINGS", "BEFORE", "AFTER")
    columns = tuple(output.Column(name, right=name in ("TYPES", "OFFERINGS")) for name in names)
    rows = tuple(
        (
            f"{each.kind}/{each.name}",
            each.field,
            str(each.types),
            str(each.offerings or "all"),
            _span(each.before),
            _span(each.after),
        )
        for each in explain.effects(catalog)
    )
    return output.Table(columns, rows)


def _span(values: tuple[str, str]) -> str:
    return values[0] if values[0] == values[1] else f"{values[0]} … {values[1]}"


def _changes(changes: Iterable[explain.Change]) -> output.Table:
    columns = tuple(output.Column(name) for name in ("TYPE", "OFFERING", "FIELD", "BEFORE", "AFTER", "BY"))
    rows = tuple(
        (c.instance_type, c.offering or "all", c.field, c.before, c.after, f"{c.kind}/{c.name}") for c in changes
    )
    return output.Table(columns, rows)


# -- for machines ----------------------------------------------------------------------------------------------------


def _as_data(view: View, explained: bool) -> dict[str, Any]:
    catalog = view.catalog
    found: dict[str, Any] = {
        "name": view.pool.name,
        "prices": view.prices,
        "typesKnown": len(catalog.types),
        "typesWithoutPrice": unpriced(catalog.types),
        "typesBuyable": catalog.eligible.bit_count(),
        "generation": _generation(view.stats),
        "moved": list(view.stats.moved),
        "conflicts": [
            {"loser": c.loser, "winner": c.winner, "field": c.field, "example": c.example}
            for c in catalog.market.conflicts
        ],
        "settings": [_settings_data(outcome) for outcome in catalog.market.settings],
        "effects": [_effect_data(each) for each in explain.effects(catalog)],
        "types": [_type_data(catalog, each, explained) for each in view.types],
    }
    if explained:
        found["funnel"] = [{"types": stage.types, "after": stage.demand} for stage in explain.funnel(catalog)]
    return found


def _settings_data(outcome: Any) -> dict[str, Any]:
    entries = [
        {"entry": dict(e.entry), "matched": e.matched, "overlaps": list(e.overlaps), "problem": e.problem or None}
        for e in outcome.entries
    ]
    return {"name": outcome.name, "found": outcome.found, "offerings": entries}


def _effect_data(each: explain.Effect) -> dict[str, Any]:
    return {
        "kind": each.kind,
        "name": each.name,
        "field": each.field,
        "types": each.types,
        "offerings": each.offerings,
        "before": list(each.before),
        "after": list(each.after),
    }


def _type_data(catalog: Catalog, instance_type: InstanceType, explained: bool) -> dict[str, Any]:
    cheapest = catalog.cheapest(instance_type)
    found: dict[str, Any] = {
        "name": instance_type.name,
        "labels": instance_type.requirements.labels(),
        "capacity": resources.written(instance_type.capacity),
        "allocatable": resources.written(instance_type.allocatable()),
        "cheapest": {kind: _offering_data(instance_type, offering) for kind, offering in sorted(cheapest.items())},
        "offerings": [_offering_data(instance_type, offering) for offering in instance_type.offerings],
    }
    if explained:
        found["changes"] = [
            {
                "offering": change.offering or None,
                "field": change.field,
                "before": change.before,
                "after": change.after,
                "by": {"kind": change.kind, "name": change.name},
            }
            for change in explain.changes(catalog, instance_type)
        ]
    return found


def _offering_data(instance_type: InstanceType, offering: Offering) -> dict[str, Any]:
    found: dict[str, Any] = {
        "capacityType": offering.capacity_type,
        "zone": offering.zone,
        "labels": offering.requirements.labels(),
        "price": None if offering.price is None else offering.cost,
        "available": offering.available,
        "launchable": offering.launchable,
    }
    if offering.capacity or offering.overhead:
        found["allocatable"] = resources.written(instance_type.allocatable(offering))
    return found
