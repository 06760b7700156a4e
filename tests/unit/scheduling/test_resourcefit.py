"""How many pods the units of a stock hold: the largest of them, or as many of them as minValues ask for."""

import pytest
from tests.builders import pool_option

from joiner.model.resources import CPU, MEMORY, of
from joiner.scheduling.nodes.resourcefit import FitIndex

NAMES = (CPU, MEMORY)
POD = tuple(of(cpu=1, memory="1Gi")[name] for name in NAMES)


@pytest.mark.parametrize(("least", "pods"), [(1, 16), (2, 8), (3, 4), (5, 1), (6, 0)])
def test_so_many_units_hold_the_pods(least: int, pods: int) -> None:
    stock = pool_option().catalog.market.stock

    assert FitIndex(stock, NAMES).how_many(stock.everyone, (0, 0), POD, 100, least) == pods
