"""`--capacity-type` and `--zones`: every NodePool may buy only that, so that "what if only spot?" needs no change of files."""

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Final

from joiner.admission.problem import nearest
from joiner.model.labels import CAPACITY_TYPE, CAPACITY_TYPES, ZONE
from joiner.model.meta import KubeObject, replace
from joiner.model.nodepool import NodePool
from joiner.model.requirement import IN, SelectorRequirementWithMinValues
from joiner.offline.catalogs import PoolCatalogs
from joiner.offline.manifests import Manifests, Unsound


@dataclasses.dataclass(frozen=True)
class Narrowing:
    """What every NodePool may buy at the most; nothing named is no limit."""

    capacity_types: tuple[str, ...] = ()
    zones: tuple[str, ...] = ()

    def of(self, manifests: Manifests) -> Manifests:
        """The same objects with NodePools that allow only what is left of their requirements."""
        added = tuple(
            SelectorRequirementWithMinValues(key=key, operator=IN, values=values)
            for key, values in ((CAPACITY_TYPE, self.capacity_types), (ZONE, self.zones))
            if values
        )
        if not added:
            return manifests
        pools: dict[str, KubeObject] = {pool.name: _with(pool, added) for pool in manifests.all(NodePool)}
        # What is said about zones that are not known offline is answered by naming them.
        unused = tuple(each for each in manifests.unused if not (self.zones and each.reason.endswith("--zones")))
        return dataclasses.replace(manifests, objects={**manifests.objects, NodePool: pools}, unused=unused)

    def check(self, opened: PoolCatalogs) -> None:
        """Raises when a zone is named that no pool could buy in."""
        if not opened.views:
            return
        known = {offering.zone for view in opened.views for each in view.catalog.types for offering in each.offerings}
        for zone in self.zones:
            if zone not in known:
                near = nearest(zone, known)
                hint = f"did you mean {near}?" if near else f"there are {', '.join(sorted(known))}"
                raise Unsound(f"--zones: no instance type is sold in zone {zone}; {hint}")

    def notes(self, opened: PoolCatalogs) -> Iterator[str]:
        """The pools that are left with nothing to buy."""
        for view in opened.views if self.capacity_types or self.zones else ():
            if not view.catalog.eligible:
                yield (
                    f"NodePool {view.pool.name} can buy nothing with {self}: see what it allows with joiner catalog --explain"
                )

    def __str__(self) -> str:
        parts = (("--capacity-type", self.capacity_types), ("--zones", self.zones))
        return " ".join(f"{option} {','.join(values)}" for option, values in parts if values)


NO_NARROWING: Final = Narrowing()


def parse(capacity_types: Iterable[str], zones: Iterable[str]) -> Narrowing:
    """From the words of the command line, which may hold several, apart by commas."""
    kinds = _words("--capacity-type", capacity_types)
    for kind in kinds:
        if kind not in CAPACITY_TYPES:
            near = nearest(kind, CAPACITY_TYPES)
            hint = f"; did you mean {near}?" if near else f"; there are {', '.join(CAPACITY_TYPES)}"
            raise Unsound(f"--capacity-type: there is no capacity type {kind}{hint}")
    return Narrowing(kinds, _words("--zones", zones))


def _words(flag: str, given: Iterable[str]) -> tuple[str, ...]:
    values = tuple(given)
    if not all(each.strip(", ") for each in values):
        raise Unsound(f"{flag}: is empty; name a value, or leave the option out")
    return tuple(dict.fromkeys(word.strip() for each in values for word in each.split(",") if word.strip()))


def _with(pool: NodePool, added: tuple[SelectorRequirementWithMinValues, ...]) -> NodePool:
    template = pool.spec.template
    spec = replace(template.spec, requirements=(*template.spec.requirements, *added))
    return replace(pool, spec=replace(pool.spec, template=replace(template, spec=spec)))
