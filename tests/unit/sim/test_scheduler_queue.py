from datetime import UTC, datetime, timedelta

from tests.builders import pod

from joiner.kube.client import Key, key_of
from joiner.sim.scheduler.queue import Lines, Waiting

DAWN = datetime(2030, 1, 7, tzinfo=UTC)


def waiting(name: str, like: bytes = b"web", priority: int = 0, age_s: int = 0) -> Waiting:
    made = pod(name)
    return Waiting(made, like, (-priority, DAWN - timedelta(seconds=age_s), key_of(made)))


def lines(*entries: Waiting) -> Lines:
    made = Lines()
    for each in entries:
        made.put(each)
    return made


def names(made: Lines, like: bytes = b"web") -> list[str]:
    return [each.name for each in made.line(like)]


def test_a_line_has_the_important_first_and_then_the_oldest() -> None:
    made = lines(waiting("new"), waiting("old", age_s=10), waiting("important", priority=5), waiting("x", b"other"))

    assert names(made) == ["important", "old", "new"]
    assert {order[2].name for order, _ in made.heads()} == {"important", "x"}


def test_who_leaves_is_in_no_line_any_more() -> None:
    made = lines(waiting("a"), waiting("b"))
    made.pop(Key("default", "a"))
    made.pop(Key("default", "a"))

    assert (names(made), len(made), Key("default", "a") in made) == (["b"], 1, False)


def test_a_pod_that_becomes_another_changes_lines() -> None:
    made = lines(waiting("a"), waiting("b"))
    made.put(waiting("a", b"other"))

    assert (names(made), names(made, b"other")) == (["b"], ["a"])


def test_after_each_comes_the_next_also_when_it_has_left_meanwhile() -> None:
    made = lines(waiting("a", age_s=3), waiting("b", age_s=2), waiting("c", age_s=1))
    first, second = made.heads()[0][0], made[Key("default", "b")].order
    made.pop(first[2])

    assert made.after(first, b"web") == second
    assert made.after(made[Key("default", "c")].order, b"web") is None


def test_a_line_stirs_when_a_pod_comes_or_changes() -> None:
    made = lines(waiting("a"))
    made.stirred.clear()
    made.put(waiting("a"))

    assert made.stirred == {b"web"}
