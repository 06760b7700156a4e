import pytest

from joiner.controllers.nodepool.outcomes import Outcomes


@pytest.mark.parametrize(
    ("joined", "healthy"),
    [
        pytest.param([], None, id="nothing yet"),
        pytest.param([True], True, id="one joined"),
        pytest.param([False], True, id="one failed"),
        pytest.param([False, False], False, id="two failed"),
        pytest.param([False, True, False], False, id="two of three failed"),
        pytest.param([True, True, True, True], True, id="all joined"),
        pytest.param([False, False, True, True, True], True, id="an old failure is forgotten"),
    ],
)
def test_two_failures_of_the_last_four_are_too_many(joined: list[bool], healthy: bool | None) -> None:
    outcomes = Outcomes()
    for each in joined:
        outcomes.add(each)

    assert outcomes.healthy is healthy


@pytest.mark.parametrize("known", [True, False, None])
def test_what_was_known_before_a_restart_still_holds(known: bool | None) -> None:
    assert Outcomes(known).healthy is known
