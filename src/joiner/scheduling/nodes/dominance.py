"""Pareto filter of node kinds: a kind is dropped if another one is no dearer, as large, and open to as many pods."""

from typing import Final

import numpy as np
import numpy.typing as npt

_AT_ONCE: Final = (16, 256)
"""How many are compared with those that are kept, and then with each other, in one go: few at first, later more."""


def first_of_each(numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Where each of some small numbers stands first, in order of place."""
    first = np.full(int(numbers.max(initial=-1)) + 1, len(numbers), dtype=np.int64)
    first[numbers[::-1]] = np.arange(len(numbers) - 1, -1, -1)
    return np.sort(first[first < len(numbers)])


def numbered(table: npt.NDArray[np.generic]) -> npt.NDArray[np.int64]:
    """A number for each row, the same for equal ones."""
    rows, width = np.ascontiguousarray(table).tobytes(), table.shape[1] * table.itemsize
    known: dict[bytes, int] = {}
    starts = range(0, len(rows), width) if width else [0] * len(table)
    return np.array([known.setdefault(rows[at : at + width], len(known)) for at in starts], dtype=np.int64)


def undominated(room: npt.NDArray[np.float64], open_to: npt.NDArray[np.bool_] | None = None) -> npt.NDArray[np.int64]:
    """Which rows to keep of nodes that are ordered by price: those that no earlier one dominates.

    An earlier one dominates if it has as much room in every column, and is open to every pod that the later one is open to.
    """
    if len(room) < 2:
        return np.arange(len(room))
    doors = np.zeros((len(room), 0), dtype=np.uint8) if open_to is None else np.packbits(open_to, axis=1)
    kept = np.zeros(0, dtype=np.int64)
    start, some = 0, _AT_ONCE[0]
    while start < len(room):
        block = np.arange(start, min(start + some, len(room)))
        left = block[~_covers(room, doors, kept, block).any(axis=0)]
        earlier = left[:, None] < left
        left = left[~(_covers(room, doors, left, left) & earlier).any(axis=0)]
        kept = np.concatenate([kept, left])
        start, some = start + some, min(2 * some, _AT_ONCE[1])
    return kept


def _covers(
    room: npt.NDArray[np.float64],
    doors: npt.NDArray[np.uint8],
    some: npt.NDArray[np.int64],
    others: npt.NDArray[np.int64],
) -> npt.NDArray[np.bool_]:
    """Which of some nodes would do in the place of which others."""
    found = np.ones((len(some), len(others)), dtype=np.bool_)
    for column in room.T:
        found &= column[some][:, None] >= column[others]
    for byte in doors.T:
        found &= byte[some][:, None] & byte[others] == byte[others]
    return found
