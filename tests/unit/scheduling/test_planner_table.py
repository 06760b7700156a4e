"""Which planners are tried for which problems."""

import pytest

from joiner.scheduling.engine.firstfit import FirstFit
from joiner.scheduling.planners.firstfitvariants import FirstPlace
from joiner.scheduling.planners.leastincrease import LeastIncrease, TightLeastIncrease
from joiner.scheduling.planners.lprounding import LpPriced, LpRounded
from joiner.scheduling.planners.table import PLANNERS, Shape, suitable
from joiner.scheduling.planners.valuegreedy import ConstrainedFirst, ValueGreedy

BY_HAND = (ValueGreedy, ConstrainedFirst, LeastIncrease, TightLeastIncrease)
CASES: dict[str, tuple[Shape, tuple[type[FirstFit], ...]]] = {
    "one pod": (Shape(1, 1, False, False), ()),
    "one pod with a choice of domains": (Shape(1, 1, True, False), (ValueGreedy,)),
    "a few": (Shape(60, 9, False, False), BY_HAND),
    "a few whose volumes are in several places": (Shape(2, 2, False, True), (*BY_HAND, FirstPlace)),
    "hundreds": (Shape(61, 9, True, False), (*BY_HAND[:-1], LpRounded, LpPriced)),
    "many": (Shape(401, 401, True, True), (ValueGreedy, LpRounded)),
    "thousands alike": (Shape(2_000, 200, False, False), (LpRounded,)),
    "thousands that differ": (Shape(2_000, 201, False, False), (ValueGreedy,)),
}


@pytest.mark.parametrize(("shape", "planners"), CASES.values(), ids=CASES)
def test_the_size_of_a_problem_says_which_planners_are_tried(
    shape: Shape, planners: tuple[type[FirstFit], ...]
) -> None:
    assert suitable(shape) == planners


def test_every_planner_has_an_idea_and_a_name_of_its_own() -> None:
    assert all(planner.idea for planner in PLANNERS)
    assert len({planner.run.planner for planner in PLANNERS}) == len(PLANNERS)
