"""Notes on InstanceType settings, overlays and reservations that are not in force or have no effect."""

from collections.abc import Iterator
from typing import Final

from joiner.admission.problem import nearest
from joiner.catalog.build import Catalog
from joiner.model.labels import CAPACITY_TYPE
from joiner.model.requirement import IN
from joiner.offline.catalogs import PoolCatalogs, PoolView
from joiner.offline.ignored import listed
from joiner.requirements import Requirements

_SHOWN_VALUES: Final = 8


def of_pool(view: PoolView) -> Iterator[str]:
    """What is odd where one pool buys."""
    yield from _conflicts(view.catalog)
    for name in _strange(view.catalog):
        yield _no_type(name, view)
    yield from _never_bought(view.catalog)
    yield from _misplaced(view)
    yield from _values_of_no_type(view)
    yield from _labels_of_no_type(view)


def of_all(opened: PoolCatalogs) -> Iterator[str]:
    """What is odd for all pools together, each once: settings may be meant for the types of one pool only."""
    for name in sorted(
        set.intersection(*(set(_strange(view.catalog)) for view in opened.views)) if opened.views else ()
    ):
        yield _no_type(name, *opened.views)
    found = (
        (
            *_conflicts(view.catalog),
            *_never_bought(view.catalog),
            *_misplaced(view),
            *_values_of_no_type(view),
            *_labels_of_no_type(view),
        )
        for view in opened.views
    )
    yield from dict.fromkeys(line for lines in found for line in lines)
    yield from opened.idle


def _conflicts(catalog: Catalog) -> Iterator[str]:
    for each in catalog.conflicts:
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


def _values_of_no_type(view: PoolView) -> Iterator[str]:
    """Values that the pool lists and no instance type has: misspelt, or not sold here."""
    vocabulary = view.catalog.market.vocabulary
    for requirement in view.pool.spec.template.spec.requirements:
        key = vocabulary.normal_key(requirement.key)
        if requirement.operator != IN or key in (*view.pool.spec.template.metadata.labels, CAPACITY_TYPE):
            continue
        there = _values(view.catalog, key)
        wanted = {vocabulary.normal_value(key, value): value for value in requirement.values}
        strange = [value for normal, value in wanted.items() if normal not in there]
        if there and strange:
            near = nearest(strange[0], there)
            shown = f"there are {', '.join(sorted(there))}" if len(there) <= _SHOWN_VALUES else ""
            hint = shown or (f"did you mean {near}?" if near else "")
            yield (
                f"NodePool {view.pool.name}: no instance type has {requirement.key} {listed(strange)}"
                f"{'; ' if hint else ''}{hint}"
            )


def _labels_of_no_type(view: PoolView) -> Iterator[str]:
    """Labels that the provider knows and none of these types has: requirements on them leave no type out."""
    vocabulary, template = view.catalog.market.vocabulary, view.pool.spec.template
    wanted = Requirements.read(template.spec.requirements, vocabulary)
    own = {*template.metadata.labels, *vocabulary.given}
    keys = [key for key, each in wanted.items() if not each.allows_absence and key in vocabulary.well_known - own]
    strange = [key for key in keys if not any(key in described for described in _described(view.catalog))]
    if strange and view.catalog.types:
        yield (
            f"NodePool {view.pool.name}: no instance type of this catalogue says anything of {listed(strange)}:"
            " requirements on such labels leave no type out"
        )


def _described(catalog: Catalog) -> Iterator[Requirements]:
    """What is said of the labels of types and of offerings."""
    for each in catalog.types:
        yield from (each.requirements, *(offering.requirements for offering in each.offerings))


def _values(catalog: Catalog, key: str) -> frozenset[str]:
    """The values of a label that types or offerings have; none where one of them leaves it open."""
    found: set[str] = set()
    for described in _described(catalog):
        requirement = described.get(key)
        if requirement is not None:
            if requirement.complement:
                return frozenset()
            found |= requirement.values
    return frozenset(found)
