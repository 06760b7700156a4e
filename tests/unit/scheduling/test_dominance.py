"""Nodes that nobody needs are left out, and no others."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joiner.bitset import UnitSet
from joiner.catalog.units import flags
from joiner.scheduling.nodes.dominance import undominated

SIZES = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 7)), max_size=40)


@given(SIZES)
def test_a_node_is_left_out_when_an_earlier_one_would_do_in_its_place(nodes: list[tuple[int, int, int]]) -> None:
    room = np.array([each[:2] for each in nodes], dtype=np.float64).reshape(len(nodes), 2)
    doors = np.array([[each[2] >> bit & 1 for bit in range(3)] for each in nodes], dtype=np.bool_).reshape(
        len(nodes), 3
    )

    needed = [
        n
        for n, (cpu, memory, open_to) in enumerate(nodes)
        if not any(a >= cpu and b >= memory and c & open_to == open_to for a, b, c in nodes[:n])
    ]

    assert undominated(room, doors).tolist() == needed


def test_many_nodes_are_compared_in_several_goes() -> None:
    room = np.arange(1000, dtype=np.float64).repeat(2)[:, None]

    assert undominated(room).tolist() == list(range(0, 2000, 2))


@pytest.mark.parametrize(("units", "count"), [(0, 0), (0b101, 3), (1 << 20, 21)])
def test_a_set_becomes_a_column(units: int, count: int) -> None:
    assert flags(UnitSet(units), count).tolist() == [bool(units >> n & 1) for n in range(count)]
