"""Sets of numbered things as integers with one bit each, told apart by the type checker.

Each is a plain `int` when the program runs, so that it costs nothing. For the type checker they are classes of their own: a set
of units cannot be intersected with a set of claims, and neither is taken for a number. Made of bits: `UnitSet(1 << number)`.
"""

from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from typing import Self

    class _BitSet:
        """What can be done with a set: the operators of `int` that give a set of the same kind."""

        def __init__(self, bits: "int | _BitSet", /) -> None: ...
        def __and__(self, other: Self, /) -> Self: ...
        def __or__(self, other: Self, /) -> Self: ...
        def __xor__(self, other: Self, /) -> Self: ...
        def __invert__(self) -> Self: ...
        def __neg__(self) -> Self: ...
        def __rshift__(self, number: int, /) -> int: ...
        def __bool__(self) -> bool: ...
        def bit_count(self) -> int: ...
        def bit_length(self) -> int: ...
        def to_bytes(self, length: int, byteorder: Literal["little"]) -> bytes: ...

    class TypeSet(_BitSet):
        """Instance types of a market, by their number in its index."""

    class UnitSet(_BitSet):
        """Units of a stock: instance types, split where offerings of one type give different kinds of node."""

    class ShapeSet(_BitSet):
        """Shapes of the offerings of a stock: sets of labels that offerings have."""

    class OverlaySet(_BitSet):
        """NodeOverlays, by weight."""

    class ClaimSet(_BitSet):
        """Open claims of a run, and so the hosts that they stand for."""

    class NodeSet(_BitSet):
        """Existing nodes, by the order in which they are tried."""

    class ReservationSet(_BitSet):
        """Reservations, by the order of their names."""

else:
    TypeSet = UnitSet = ShapeSet = OverlaySet = ClaimSet = NodeSet = ReservationSet = int

NO_TYPES: Final = TypeSet(0)
NO_UNITS: Final = UnitSet(0)
NO_CLAIMS: Final = ClaimSet(0)
NO_RESERVATIONS: Final = ReservationSet(0)
