from datetime import UTC, datetime, timedelta

from tests.builders import instance_type, offering

from joiner.cloud.unavailable import Unavailable

SPOT, ON_DEMAND = offering("spot", price=0.3), offering("on-demand")
TYPES = (instance_type("small", [SPOT, ON_DEMAND]), instance_type("large"))


class TwoHands:
    """A clock whose time of day somebody sets, while real time goes on."""

    def __init__(self) -> None:
        self.day = datetime(2030, 1, 1, tzinfo=UTC)
        self.passed = 0.0

    def now(self) -> datetime:
        return self.day

    def monotonic(self) -> float:
        return self.passed


def test_a_mark_takes_away_one_offering_and_leaves_the_rest_as_it_is() -> None:
    unavailable = Unavailable(TwoHands())
    unavailable.mark("small", SPOT)

    small, large = unavailable.apply(TYPES)

    assert [each.launchable for each in small.offerings] == [False, True]
    assert large is TYPES[1]


def test_a_mark_that_is_made_again_lasts_longer() -> None:
    clock = TwoHands()
    unavailable = Unavailable(clock)
    unavailable.mark("small", SPOT)
    clock.passed = 100
    unavailable.mark("small", SPOT)
    moves = unavailable.generation()

    clock.passed = 200
    assert (unavailable.generation(), unavailable.apply(TYPES) == TYPES) == (moves, False)
    clock.passed = 280

    assert unavailable.generation() == moves + 1
    assert unavailable.apply(TYPES) is TYPES


def test_a_clock_that_is_set_back_does_not_prolong_a_shortage() -> None:
    clock = TwoHands()
    unavailable = Unavailable(clock)
    unavailable.mark("small", SPOT)

    clock.day -= timedelta(days=1)
    clock.passed = 180

    assert unavailable.apply(TYPES) is TYPES
