"""Notes what is wrong with how Joiner writes, in every test that has a pretend API server.

A merge patch carries a list whole: taints, finalizers, owners, conditions. What another client added to it since it was read is
lost, unless the write is locked to the version that was read. And an object that is deleted or evicted by its name alone may be
another one of that name by then.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from joiner.cloud.kwok.fleet import PREFIX
from joiner.model import codec, patch
from joiner.model.meta import KubeObject
from joiner.model.node import Node
from joiner.sim.apiserver.client import SimClient
from joiner.sim.world import JOINER

FOUND: list[str] = []
"""What was wrong in this test."""


def watch(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on."""
    for name in ("patch", "patch_status"):
        monkeypatch.setattr(SimClient, name, _locked(getattr(SimClient, name)))
    for name in ("delete", "evict"):
        monkeypatch.setattr(SimClient, name, _meant(name, getattr(SimClient, name)))


def _locked(write: Any) -> Any:
    async def noted(self: SimClient, before: KubeObject, after: KubeObject, *, locked: bool = False) -> Any:
        if self.actor == JOINER and not locked:
            lists = _lists(patch.changes(before, after), codec.encode(before))
            FOUND.extend(f"{before.kind} {before.name}: {path} is written whole and not locked" for path in lists)
        return await write(self, before, after, locked=locked)

    return noted


def _lists(changes: Mapping[str, Any], before: Any, above: str = "") -> Iterator[str]:
    for key, value in changes.items():
        had = before.get(key) if isinstance(before, Mapping) else None
        if isinstance(value, list) or (value is None and isinstance(had, list)):
            yield f"{above}{key}"
        elif isinstance(value, Mapping):
            yield from _lists(value, had, f"{above}{key}.")


def _meant(verb: str, write: Any) -> Any:
    async def noted(self: SimClient, *named: Any, uid: str = "", **more: Any) -> Any:
        if self.actor == JOINER and not uid and not _is_machine_of_kwok(self, *named):
            FOUND.append(f"{verb} of {named} without a UID")
        return await write(self, *named, uid=uid, **more)

    return noted


def _is_machine_of_kwok(client: SimClient, kind: Any, name: str, *rest: str) -> bool:
    """Whether it is a Node that is the machine at the same time, or is not there: its name holds the UID of its claim."""
    node = client.server.find(Node, name, "") if kind is Node else None
    return kind is Node and (node is None or node.spec.provider_id.startswith(PREFIX))
