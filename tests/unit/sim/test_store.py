import pytest

from joiner.kube.client import ADDED, DELETED
from joiner.kube.errors import Gone
from joiner.model.meta import ObjectMeta
from joiner.model.node import Node
from joiner.sim.apiserver.store import ObjectStore


def shelf(count: int, history: int) -> ObjectStore[Node]:
    """A shelf on which that many nodes were put, one a version from 1 on."""
    result = ObjectStore(Node, history)
    for version in range(1, count + 1):
        result.put(version, ADDED, Node(metadata=ObjectMeta(name=f"n-{version}")))
    return result


def name_at(full: ObjectStore[Node], place: int) -> str | None:
    entry = full.at(place)
    return None if entry is None else entry.event.object.name


def test_a_watch_begins_right_after_its_version() -> None:
    full = shelf(5, 10)

    assert [name_at(full, full.place_after(version)) for version in (0, 2, 5)] == ["n-1", "n-3", None]


def test_history_is_kept_at_least_as_long_as_was_said() -> None:
    full = shelf(1000, 10)

    assert name_at(full, full.place_after(990)) == "n-991"
    with pytest.raises(Gone, match="too old"):
        full.place_after(900)


def test_the_oldest_version_is_the_last_that_can_be_resumed_from() -> None:
    full = shelf(10, 100)
    full.forget(keep=4)

    assert name_at(full, full.place_after(6)) == "n-7"
    with pytest.raises(Gone, match="the oldest still known is 6"):
        full.place_after(5)


def test_who_is_too_slow_finds_its_place_gone() -> None:
    full = shelf(10, 100)
    place = full.place_after(3)
    full.forget(keep=2)

    with pytest.raises(Gone, match="too slow"):
        full.at(place)


def test_the_past_can_be_looked_at_as_far_as_it_is_remembered() -> None:
    full = shelf(3, 100)
    full.put(4, DELETED, Node(metadata=ObjectMeta(name="n-1")))
    full.bookmark(5)
    full.put(6, ADDED, Node(metadata=ObjectMeta(name="n-1")))

    pictures = {version: sorted(key.name for key in full.as_of(version, 6)[0]) for version in (2, 3, 4, 6)}
    assert pictures == {
        2: ["n-1", "n-2"],
        3: ["n-1", "n-2", "n-3"],
        4: ["n-2", "n-3"],
        6: ["n-1", "n-2", "n-3"],
    }
