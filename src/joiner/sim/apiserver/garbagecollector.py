"""The garbage collector of the pretend server: what belongs to an owner goes when the owner has gone."""

import asyncio
from typing import TYPE_CHECKING, Final

from joiner.kube.client import Key, key_of
from joiner.model.meta import KubeObject, replace

if TYPE_CHECKING:
    from joiner.sim.apiserver.server import ApiServer

ACTOR: Final = "garbage-collector"
COLLECT_S: Final = 0.5
"""How long after the owner its dependents are looked at."""

_Place = tuple[type[KubeObject], Key]


class OwnerGarbageCollector:
    """Knows by UID who is there and who belongs to whom, so that only what concerns an owner is ever looked at."""

    def __init__(self, server: "ApiServer") -> None:
        self._server = server
        self._present: set[str] = set()
        self._dependents: dict[str, dict[_Place, None]] = {}

    def heard(self, before: KubeObject | None, after: KubeObject | None) -> None:
        """An object came, changed or went."""
        if before is None or after is None or before.metadata.owner_references != after.metadata.owner_references:
            self._refer(before, after)
        if before is None and after is not None:
            self._present.add(after.metadata.uid)
        elif after is None and before is not None:
            self._present.discard(before.metadata.uid)
            if before.metadata.uid in self._dependents:
                self._look_at(before.metadata.uid)

    def _refer(self, before: KubeObject | None, after: KubeObject | None) -> None:
        for owner in before.metadata.owner_references if before is not None else ():
            dependents = self._dependents.get(owner.uid, {})
            dependents.pop((type(before), key_of(before)), None)  # type: ignore[arg-type]
            if not dependents:
                self._dependents.pop(owner.uid, None)
        for owner in after.metadata.owner_references if after is not None else ():
            self._dependents.setdefault(owner.uid, {})[type(after), key_of(after)] = None  # type: ignore[arg-type, index]
            if owner.uid not in self._present:
                self._look_at(owner.uid)

    def _look_at(self, owner: str) -> None:
        asyncio.get_running_loop().call_later(COLLECT_S, self._collect, owner)

    def _collect(self, owner: str) -> None:
        for kind, key in tuple(self._dependents.get(owner, ())):
            thing = self._server.find(kind, key.name, key.namespace)
            if thing is not None and thing.metadata.deletion_timestamp is None:
                self._let_go(thing)

    def _let_go(self, thing: KubeObject) -> None:
        owners = thing.metadata.owner_references
        alive = tuple(each for each in owners if each.uid in self._present)
        if alive:
            kept = replace(thing, metadata=replace(thing.metadata, owner_references=alive))
            self._server.patch(ACTOR, thing, kept)
        else:
            self._server.delete(ACTOR, type(thing), thing.metadata.name, thing.metadata.namespace)
