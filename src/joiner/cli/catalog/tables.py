"""The catalogues of NodePools as tables."""

from collections.abc import Iterable, Iterator
from datetime import UTC

from joiner.catalog import exclusions, explain
from joiner.catalog.build import Catalog
from joiner.catalog.market import InstanceType, Offering
from joiner.cli import output
from joiner.cli.output import Cell, Table, TableColumn
from joiner.cloud.sources.catalogue import unpriced
from joiner.cloud.sources.reservation import ReservationStanding
from joiner.model import labels, resources
from joiner.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from joiner.offline import catalognotes
from joiner.offline.catalogs import PoolCatalogs, PoolView

CAPACITY_TYPES = (labels.ON_DEMAND, labels.SPOT, labels.RESERVED)
_COLUMNS = (CPU, MEMORY, PODS)
_LEGEND = (
    "* nodes of this type differ by how they are bought: the row shows the cheapest way, and in brackets other ways"
)
_PLACES_SHOWN = 3


def show(opened: PoolCatalogs, names: tuple[str, ...], explained: bool, limit: int) -> None:
    """Print every pool, then what concerns all of them."""
    for number, view in enumerate(opened.views):
        if number:
            output.echo()
        _show(view, names, explained, limit)
    if opened.idle:
        output.echo()
    for line in opened.idle:
        output.echo(output.Cell("warning", "yellow"), f": {line}")
    if explained:
        known = dict.fromkeys((view.prices, source) for view in opened.views for source in view.details.sources)
        columns = (TableColumn("CATALOGUE"), TableColumn("WHAT, FROM WHERE, OF WHEN"))
        _section("Where types and prices come from", Table(columns, tuple(known)))


def _show(view: PoolView, names: tuple[str, ...], explained: bool, limit: int) -> None:
    catalog = view.catalog
    buyable = catalog.eligible.bit_count()
    output.echo(
        output.Cell(
            f"NodePool {view.pool.name}: {buyable} of {len(catalog.types)} instance types can be bought", "bold"
        )
    )
    output.echo(f"  catalogue: {view.prices}{_without_price(catalog)}")
    output.echo(f"  generation: {view.generation} ({', '.join(view.stats.moved)})")
    for line in catalognotes.of_pool(view):
        output.echo("  ", output.Cell("warning", "yellow"), f": {line}")
    for line in _overlaps(catalog) if explained else ():
        output.echo(f"  note: {line}")
    if not buyable:
        output.echo("  ", output.Cell("nothing can be bought", "red"), ": see which of its requirements leaves no type")
    if explained or not buyable:
        _section("How the choice narrows", _funnel(catalog))
    _types_section(view, limit)
    for line in _left_out(view, names):
        output.echo(line)
    shown = view.details.reservations[: limit or None]
    _section("Reservations", _reservations(view, shown))
    _more(len(view.details.reservations), limit, "reservations")
    _section("What settings and overlays did", _effects(catalog))
    if explained:
        found = (change for each in view.types[: limit or None] for change in explain.changes(catalog, each))
        changes = [change for change in found if change.buyable]
        _section("Every change to the types above", _changes(changes[: limit * 5 or None]))
        _more(len(changes), limit * 5, "changes")


def _section(title: str, table: Table) -> None:
    if table.rows:
        output.echo(output.Cell(f"\n{title}", "bold"))
        output.table(table)


def _more(count: int, limit: int, noun: str) -> None:
    if limit and count > limit:
        output.echo(f"… and {count - limit} more {noun}; show them with --limit 0, or pick with --type")


# -- the head --------------------------------------------------------------------------------------------------------


def _without_price(catalog: Catalog) -> str:
    count = unpriced(catalog.types)
    return f"; {count} types have no price and cannot be bought" if count else ""


def _overlaps(catalog: Catalog) -> Iterator[str]:
    for outcome in catalog.market.settings:
        for number, entry in enumerate(outcome.entries):
            for other in () if entry.problem else entry.overlaps:
                yield (
                    f"InstanceType {outcome.name}: spec.offerings[{number}] gives way to spec.offerings[{other}]"
                    " where both cover an offering"
                )


def _funnel(catalog: Catalog) -> Table:
    columns = (TableColumn("TYPES LEFT", right=True), TableColumn("AFTER"))
    return Table(columns, tuple((str(each.types), each.demand) for each in exclusions.funnel(catalog)))


# -- the types -------------------------------------------------------------------------------------------------------


def _types_section(view: PoolView, limit: int) -> None:
    columns = (
        TableColumn("TYPE"),
        TableColumn("CPU", right=True),
        TableColumn("MEMORY", right=True),
        TableColumn("PODS", right=True),
        *(TableColumn(f"{kind.upper()} $/h", right=True) for kind in CAPACITY_TYPES),
        TableColumn("CHEAPEST IN"),
        TableColumn("OTHER RESOURCES"),
    )
    rows = tuple(_row(view.catalog, each) for each in view.types[: limit or None])
    spare = ("OTHER RESOURCES", "CHEAPEST IN", "PODS")
    _section("What can be bought, cheapest first", Table(columns, rows, spare))
    _more(len(view.types), limit, "types")
    if any(str(row[0]).endswith("*") for row in rows):
        output.echo(_LEGEND)


def _row(catalog: Catalog, instance_type: InstanceType) -> tuple[str | Cell, ...]:
    cheapest = catalog.cheapest(instance_type)
    best = min(cheapest.values(), key=lambda offering: offering.order, default=None)
    left = instance_type.allocatable(best)
    others = list(_other_ways(instance_type, left, tuple(catalog.offerings(instance_type))))
    own = (f"{name}: {text}" for name, text in _extended(left))
    return (
        instance_type.name + ("*" if others else ""),
        *(resources.text(name, left.get(name, 0)) for name in _COLUMNS),
        *(_price_cell(cheapest.get(kind)) for kind in CAPACITY_TYPES),
        explain.place(best) if best is not None else Cell("cannot be bought", "red"),
        ", ".join([*own, *others]),
    )


def _extended(left: resources.Resources) -> Iterator[tuple[str, str]]:
    for name in sorted(left):
        if left[name] and name not in (*_COLUMNS, EPHEMERAL_STORAGE):
            yield name, resources.text(name, left[name])


def _other_ways(instance_type: InstanceType, left: resources.Resources, ways: tuple[Offering, ...]) -> Iterator[str]:
    """What nodes have that are bought in other ways than the cheapest, where it differs."""
    differing: dict[tuple[str, int], list[Offering]] = {}
    for way in ways:
        there = instance_type.allocatable(way)
        for name in sorted({*left, *there}):
            if there.get(name, 0) != left.get(name, 0):
                differing.setdefault((name, there.get(name, 0)), []).append(way)
    for (name, amount), found in sorted(differing.items(), key=lambda each: each[0]):
        shown = resources.text(name, amount) if amount or name in _COLUMNS else "none"
        yield f"{name}: {shown} ({_places(found, ways)})"


def _places(found: list[Offering], among: tuple[Offering, ...]) -> str:
    """Where some offerings are, by capacity type if that says it all."""
    kinds = {offering.capacity_type for offering in found}
    if len(found) == sum(offering.capacity_type in kinds for offering in among):
        return ", ".join(kind for kind in CAPACITY_TYPES if kind in kinds)
    names = [explain.place(offering) for offering in found]
    more = f" and {len(names) - _PLACES_SHOWN} more" if len(names) > _PLACES_SHOWN else ""
    return ", ".join(names[:_PLACES_SHOWN]) + more


def _price_cell(offering: Offering | None) -> str | Cell:
    if offering is None:
        return Cell("-", "dim")
    text = explain.bill_text(offering)
    return Cell(text, "cyan") if offering.price_overlaid else text


def _left_out(view: PoolView, names: tuple[str, ...]) -> Iterator[str]:
    """Why the pool cannot buy types that were asked for by name."""
    known = {each.name: each for each in view.types}
    for name in dict.fromkeys(names):
        if name not in known:
            yield f"{name} is not in the catalogue of NodePool {view.pool.name}"
        elif reasons := exclusions.exclusions(view.catalog, known[name]):
            yield f"NodePool {view.pool.name} cannot buy {name}: {'; '.join(reasons)}"


# -- what else there is ----------------------------------------------------------------------------------------------


def _reservations(view: PoolView, standings: Iterable[ReservationStanding]) -> Table:
    names = ("RESERVATION", "TYPE", "ZONE", "LEFT", "ENDS", "USABLE BY THE POOL")
    return Table(
        tuple(TableColumn(name, right=name == "LEFT") for name in names),
        tuple(_reservation(view, each) for each in standings),
    )


def _reservation(view: PoolView, standing: ReservationStanding) -> tuple[str | Cell, ...]:
    each, problem = standing.reservation, view.refusal(standing)
    ends = "-" if each.end_time is None else f"{each.end_time.astimezone(UTC):%Y-%m-%d %H:%M %Z}"
    return (
        each.id,
        each.instance_type,
        each.zone,
        str(each.count),
        ends,
        Cell(f"no: {problem}", "yellow") if problem else "yes",
    )


def _effects(catalog: Catalog) -> Table:
    names = ("OBJECT", "FIELD", "TYPES", "OFFERINGS", "BEFORE", "AFTER")
    columns = tuple(TableColumn(name, right=name in ("TYPES", "OFFERINGS")) for name in names)
    rows = tuple(
        (
            f"{each.kind}/{each.name}",
            each.field + (" (reserved)" if each.reserved else ""),
            str(each.types),
            str(each.offerings or "all"),
            _span(each.before),
            _span(each.after),
        )
        for each in explain.effects(catalog)
    )
    return Table(columns, rows, spare=("OFFERINGS", "TYPES"))


def _span(values: tuple[str, str]) -> str:
    return values[0] if values[0] == values[1] else f"{values[0]} … {values[1]}"


def _changes(changes: Iterable[explain.Change]) -> Table:
    columns = tuple(TableColumn(name) for name in ("TYPE", "OFFERING", "FIELD", "BEFORE", "AFTER", "BY"))
    rows = tuple(
        (c.instance_type, c.offering or "all", c.field, c.before, c.after, f"{c.kind}/{c.name}") for c in changes
    )
    return Table(columns, rows)
