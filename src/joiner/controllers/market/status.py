"""Overlays and instance-type settings: whether each is in force, which others it contradicts, and what it does to each pool.

Both controllers ask the very catalogues that planning uses, all pools at once, whenever a spec changes.
"""

from collections.abc import Iterable, Set
from datetime import timedelta
from typing import Any, Final

from joiner.admission.problem import FieldProblem
from joiner.admission.runtime import overlay_problems, settings_problems
from joiner.catalog import explain
from joiner.catalog.build import Catalog
from joiner.catalog.settings import EntryOutcome
from joiner.cloud.errors import CloudError
from joiner.controllers.shared import Shared
from joiner.controllers.status import StatusEdit
from joiner.kube.client import Key
from joiner.kube.controller import ALONE, Change, Reconciler, Result, Watch
from joiner.model.conditions import find
from joiner.model.meta import KubeObject
from joiner.model.nodeoverlay import NodeOverlay
from joiner.model.nodepool import NodePool
from joiner.model.typesettings import InstanceTypeSettings, OfferingMatch

AGAIN_S: Final = 6 * 3600.0
NEW: Final = timedelta(minutes=1)
"""A pool younger than this has not had its effects told before."""


def _on_new_words(change: Change) -> Iterable[Key]:
    """Only what users write counts; our own status writes do not."""
    told = change.before is None or change.after is None or change.before.spec != change.after.spec
    return (ALONE,) if told else ()


class _Evaluation(Reconciler):
    """Looks at the catalogues of all pools."""

    workers = 1
    keys_at_start = (ALONE,)

    def __init__(self, shared: Shared, *, subject: type[Any]) -> None:
        self._client, self._informers, self._clock = shared.client, shared.informers, shared.clock
        self._catalogs, self._vocabulary, self._recorder = shared.catalogs, shared.vocabulary, shared.recorder
        self._managed = shared.managed
        kinds: tuple[type[KubeObject], ...] = (subject, NodePool, *shared.provider.node_classes())
        self.watches = tuple(Watch(kind, _on_new_words) for kind in kinds)

    async def _all(self) -> list[tuple[NodePool, Catalog]]:
        """Every pool that can be asked; one that cannot does not stop the others."""
        found: list[tuple[NodePool, Catalog]] = []
        for pool in self._informers.all(NodePool):
            if not self._managed.pool(pool) or pool.metadata.deletion_timestamp is not None:
                continue
            try:
                found.append((pool, await self._catalogs.get(pool)))
            except CloudError:
                continue
        return found


class OverlayStatus(_Evaluation):
    """Says on each overlay whether it is in force and what contradicts it; tells each pool when overlays change what it buys."""

    name = "nodeoverlay.controller"

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared, subject=NodeOverlay)
        self._effects: dict[str, str] = {}

    async def reconcile(self, key: Key) -> Result:
        """Judge all overlays, and tell what changed for the pools."""
        del key
        catalogs = await self._all()
        clashes: dict[str, list[str]] = {}
        for _, catalog in catalogs:
            for each in catalog.conflicts:
                where = f"on {each.field} of {each.example}"
                clashes.setdefault(each.loser, []).append(f"{each.winner} has the same weight and wins {where}")
                clashes.setdefault(each.winner, []).append(f"{each.loser} has the same weight and loses {where}")
        overlays = self._informers.all(NodeOverlay)
        unheard = {each.name for each in overlays if not _is_judged(each)}
        for pool, catalog in catalogs:
            self._tell(pool, catalog, unheard)
        self._effects = {pool.name: self._effects[pool.name] for pool, _ in catalogs}
        for overlay in overlays:
            await self._judge(overlay, clashes.get(overlay.name, []))
        return Result(AGAIN_S)

    async def _judge(self, overlay: NodeOverlay, clashes: list[str]) -> None:
        edit = StatusEdit(overlay, self._clock.now())
        _validate(edit, overlay_problems(overlay, self._vocabulary))
        if clashes:
            edit.false("ConflictFree", reason="Conflict", message="; ".join(sorted(set(clashes)))[:4096])
        else:
            edit.true("ConflictFree")
        await edit.write(self._client)

    def _tell(self, pool: NodePool, catalog: Catalog, unheard: Set[str]) -> None:
        """Tell what changed. After a start that is what new pools and overlays that were not judged yet bring."""
        effects = _effects(catalog)
        text = _summary(effects)
        known = self._effects.get(pool.name)
        self._effects[pool.name] = text
        born = pool.metadata.creation_timestamp
        is_new = born is not None and abs(self._clock.now() - born) < NEW
        is_new = is_new or any(each.name in unheard for each in effects)
        if text != known and (known is not None or (text and is_new)):
            message = text or "No overlay changes anything this pool can buy any more."
            self._recorder.publish(pool, "NodeOverlaysChanged", message, dedupe=(message,))


def _is_judged(overlay: NodeOverlay) -> bool:
    """Whether the overlay as it is written now was looked at before."""
    known = find(overlay.status.conditions, "ConflictFree")
    return known is not None and known.observed_generation == overlay.metadata.generation


def _effects(catalog: Catalog) -> list[explain.Effect]:
    """What overlays do to everything the pool can buy."""
    if not len(catalog.market.overlays):
        return []
    return [each for each in explain.effects(catalog) if each.kind == NodeOverlay.kind]


def _summary(effects: Iterable[explain.Effect]) -> str:
    """The same in a few words each."""
    parts: list[str] = []
    for each in effects:
        before, after = ("–".join(dict.fromkeys(pair)) for pair in (each.before, each.after))
        counted = f"{each.types} types, {each.offerings} offerings"
        parts.append(f"{each.name}: {each.field} of {counted} from {before} to {after}")
    return "; ".join(parts)


class SettingsStatus(_Evaluation):
    """Says on each InstanceType object whether any provider knows the type, and what became of each of its offerings."""

    name = "instancetype.controller"

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared, subject=InstanceTypeSettings)

    async def reconcile(self, key: Key) -> Result:
        """Judge all settings."""
        del key
        outcomes = [each for _, catalog in await self._all() for each in catalog.market.settings]
        for settings in self._informers.all(InstanceTypeSettings):
            found = [each.entries for each in outcomes if each.name == settings.name and each.found]
            edit = StatusEdit(settings, self._clock.now())
            _validate(edit, settings_problems(settings, self._vocabulary))
            if found:
                edit.true("InstanceTypeFound")
            else:
                message = f"no pool's provider has an instance type {settings.name}"
                edit.false("InstanceTypeFound", reason="NotFound", message=message)
            await edit.write(self._client, offerings=_matches(found))
        return Result(AGAIN_S)


def _validate(edit: StatusEdit[Any], problems: Iterable[FieldProblem]) -> None:
    wrong = [str(each) for each in problems if each.is_error]
    if wrong:
        edit.false("ValidationSucceeded", reason="RuntimeValidation", message="; ".join(wrong)[:4096])
    else:
        edit.true("ValidationSucceeded")


def _matches(found: list[tuple[EntryOutcome, ...]]) -> tuple[OfferingMatch, ...]:
    """Each entry as the pool sees it that can do most with it."""
    result: list[OfferingMatch] = []
    for index, outcomes in enumerate(zip(*found, strict=False)):
        best = max(outcomes, key=lambda each: each.matched)
        message = best.problem
        if not message and best.overlaps:
            message = f"entries {', '.join(map(str, best.overlaps))} take precedence where both cover one offering"
        result.append(OfferingMatch(index=index, matched=best.matched > 0, message=message[:1024]))
    return tuple(result)
