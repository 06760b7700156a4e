"""Notes on InstanceType settings, overlays and reservations that are not in force or have no effect."""

from collections.abc import Iterator

from joiner.admission.problem import nearest
from joiner.catalog.build import Catalog
from joiner.offline.catalogs import PoolCatalogs, PoolView


def of_pool(view: PoolView) -> Iterator[str]:
    """What is odd where one pool buys."""
    yield from _conflicts(view.catalog)
    for name in _strange(view.catalog):
        yield _no_type(name, view)
    yield from _never_bought(view.catalog)
    yield from _misplaced(view)


def of_all(opened: PoolCatalogs) -> Iterator[str]:
    """What is odd for all pools together, each once: settings may be meant for the types of one pool only."""
    for name in sorted(
        set.intersection(*(set(_strange(view.catalog)) for view in opened.views)) if opened.views else ()
    ):
        yield _no_type(name, *opened.views)
    found = ((*_conflicts(view.catalog), *_never_bought(view.catalog), *_misplaced(view)) for view in opened.views)
    yield from dict.fromkeys(line for lines in found for line in lines)
    yield from opened.idle


def _conflicts(catalog: Catalog) -> Iterator[str]:
    for each in catalog.market.conflicts:
        yield (
            f"NodeOverlays {each.loser} and {each.winner} have the same weight and both set {each.field}, for example on"
            f" {each.example}; {each.winner} wins. Give one of them a higher weight"
        )


def _strange(catalog: Catalog) -> Iterator[str]:
    """Settings of types that the provider does not know."""
    return (outcome.name for outcome in catalog.market.settings if not outcome.found)


def _no_type(name: str, *views: PoolView) -> str:
    near = nearest(name, {each.name for view in views for each in view.catalog.types})
    hint = f"; did you mean {near}?" if near else ""
    return f"InstanceType {name} names no type of this provider; its settings have no effect here{hint}"


def _never_bought(catalog: Catalog) -> Iterator[str]:
    for outcome in catalog.market.settings:
        for number, entry in enumerate(outcome.entries):
            if entry.problem:
                yield f"InstanceType {outcome.name}: spec.offerings[{number}] can never be bought: {entry.problem}"


def _misplaced(view: PoolView) -> Iterator[str]:
    name = view.pool.spec.template.spec.node_class_ref.name
    for each in view.details.reservations:
        if each.misplaced:
            yield f"NodeClass {name}: capacity reservation {each.reservation.id} fits nothing: {each.problem}"
