"""The arithmetic of a move, and its words."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from joiner.disruption.consolidation.payback import told
from joiner.disruption.decision import Payback


def arithmetic(
    saved: float = 0.749, eviction: float = 0.057, start: float = 0.04, eviction_s: float = 600.0
) -> Payback:
    return Payback(
        nodes=("m5.2xlarge",) * 3,
        before=1.152,
        new=("m7i.2xlarge",),
        after=0.403,
        saved=saved,
        pods=14,
        worth=0.34,
        eviction=eviction,
        start=start,
        eviction_s=eviction_s,
        horizon_s=3600.0,
    )


def test_a_move_that_pays_says_when() -> None:
    assert told(arithmetic()) == (
        "3 × m5.2xlarge (1.152 $/h) → m7i.2xlarge (0.403 $/h) saves 0.749 $/h; 14 pods worth 0.340 $/h at 10m: 0.057 $;"
        " starting nodes: 0.040 $; paid back after 8m (limit 1h)"
    )


def test_one_that_does_not_says_at_which_setting_it_would() -> None:
    assert "it would pay with joiner.dev/eviction-cost below 1m" in told(arithmetic(saved=0.05, eviction=0.1))
    assert "no setting makes it pay" in told(arithmetic(saved=0.03))


@given(some.floats(-1, 2), some.floats(0, 1), some.floats(0, 1))
def test_a_move_pays_exactly_if_it_is_paid_back_within_the_horizon(saved: float, eviction: float, start: float) -> None:
    found = arithmetic(saved, eviction, start)

    assert found.pays == (round(saved, 9) > 0 and round(saved, 9) > round(eviction + start, 9))
    assert not found.pays or found.paid_back_s <= 3600.0 * (1 + 1e-6)


def test_where_evictions_cost_nothing_any_saving_will_do() -> None:
    assert arithmetic(saved=1e-6, eviction=0.0, start=0.0, eviction_s=0.0).pays
    assert arithmetic(saved=0.0, eviction=0.0, start=0.0).pays is False
    assert arithmetic(saved=0.0).paid_back_s == pytest.approx(float("inf"))
