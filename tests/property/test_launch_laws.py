"""What is written and could be launched is what was planned; no wrong refusal; weights are kept.

Many more problems: `python -m tests.property.launchscenarios 10000`.
"""

import pytest
from tests.property.launchscenarios import complaints, misplaced, scenario

EACH = 40
"""How many problems one test looks at."""


@pytest.mark.parametrize("first", range(0, 160, EACH))
def test_what_is_launched_is_what_was_planned(first: int) -> None:
    assert [(seed, text) for seed in range(first, first + EACH) for text in complaints(scenario(seed))] == []


FOUND = (700953,)
"""Seeds whose claims were narrowed to a label that one of their types is not sold with."""


@pytest.mark.parametrize("seed", FOUND)
def test_a_problem_that_once_failed_holds(seed: int) -> None:
    assert [*complaints(scenario(seed))] == []


@pytest.mark.parametrize("first", range(0, 160, EACH))
def test_no_pod_is_refused_or_on_a_lighter_pool_in_vain(first: int) -> None:
    found = [(seed, text) for seed in range(first, first + EACH) for text in misplaced(scenario(seed, single=True))]

    assert found == []
