import pytest

from joiner.kube.client import Key
from joiner.kube.controller import DONE, Backoff, Change, Result, own_key, soonest
from joiner.model.meta import ObjectMeta
from joiner.model.node import Node

NODE = Node(metadata=ObjectMeta(name="a"))


@pytest.mark.parametrize(
    ("failures", "seconds"), [(1, 2), (2, 4), (3, 8), (5, 30), (1000, 30)], ids=lambda value: str(value)
)
def test_back_off_doubles_up_to_the_most(failures: int, seconds: float) -> None:
    assert Backoff(2, 30).after(failures) == seconds


@pytest.mark.parametrize(
    ("results", "wanted"),
    [
        ((), DONE),
        ((DONE, DONE), DONE),
        ((DONE, Result(5), Result(3)), Result(3)),
        ((Result(0), Result(3)), Result(0)),
    ],
    ids=["none", "never", "the sooner", "at once"],
)
def test_of_several_results_the_soonest_counts(results: tuple[Result, ...], wanted: Result) -> None:
    assert soonest(*results) == wanted


@pytest.mark.parametrize("change", [Change(None, NODE), Change(NODE, NODE), Change(NODE, None)], ids=str)
def test_an_object_wakes_its_own_key_even_when_it_has_gone(change: Change) -> None:
    assert own_key(change) == (Key("", "a"),)
