"""Reservations: how many instances each has left, and a matching that gives one to every open claim that counts on one.

While claims are open it is not decided which reservation a claim will be launched into; a matching with counts is kept, so
that at any moment all of them could be. It is settled at the end. A set of reservations is an integer with one bit each, in
order of name.
"""

from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from typing import Final

from joiner.bitset import NO_RESERVATIONS, ReservationSet

_NEWCOMER: Final = -1
"""Stands for every claim that holds nothing yet: all of them could be given the same."""


class Reservations:
    """A matching of claims to reservations that never gives out more than there is."""

    def __init__(self, counts: Mapping[str, int]) -> None:
        self._names = sorted(counts)
        self._bits = {name: ReservationSet(1 << number) for number, name in enumerate(self._names)}
        self._left = {self._bits[name]: counts[name] for name in self._names}
        self._free = self.those(name for name in self._names if counts[name] > 0)
        """Reservations with a rest."""
        self._wanted: dict[int, ReservationSet] = {}
        self._given: dict[int, ReservationSet] = {}
        self._holders: dict[ReservationSet, set[int]] = {}
        self._state = 0
        """Changes whenever some claim wants less, or wants one at all."""
        self._within_reach: dict[int, tuple[int, ReservationSet]] = {}
        """Claim to the state at which it was asked about, and what it could be given then; later it can only be less."""

    def any_free(self) -> bool:
        """Whether some reservation has one that no claim counts on."""
        return bool(self._free)

    def those(self, names: Iterable[str]) -> ReservationSet:
        """Reservations by name, as a set; names that were not counted are left out."""
        found = NO_RESERVATIONS
        for name in names:
            found |= self._bits.get(name, NO_RESERVATIONS)
        return found

    def names(self, some: ReservationSet) -> tuple[str, ...]:
        """The names of some reservations, in order."""
        return tuple(self._name(bit) for bit in _each(some))

    def _name(self, bit: ReservationSet) -> str:
        return self._names[bit.bit_length() - 1]

    def holds(self, claim: int) -> str | None:
        """The reservation that the claim would get as things stand."""
        given = self._given.get(claim)
        return None if given is None else self._name(given)

    def can_hold(self, claim: int, usable: ReservationSet) -> bool:
        """Whether the claim could be given one of these, moving others about if need be. Nothing is changed."""
        if usable & (self._free | self._given.get(claim, NO_RESERVATIONS)):
            return True
        _, before = self._within_reach.get(self._who(claim), (0, ~NO_RESERVATIONS))
        return bool(usable & before) and bool(usable & self.within_reach(claim))

    def _who(self, claim: int) -> int:
        return claim if claim in self._given else _NEWCOMER

    def within_reach(self, claim: int) -> ReservationSet:
        """The reservations of which the claim could be given one, if others make room where they can."""
        found = self._free | self._given.get(claim, NO_RESERVATIONS)
        if not found:
            return NO_RESERVATIONS
        who = self._who(claim)
        state, known = self._within_reach.get(who, (-1, NO_RESERVATIONS))
        if state == self._state:
            return known
        stuck = [(self._given[other], wanted) for other, wanted in self._wanted.items() if other != claim]
        seen = NO_RESERVATIONS
        while seen != found:
            seen = found
            for given, wanted in stuck:
                if wanted & found:
                    found |= given
        self._within_reach[who] = (self._state, found)
        return found

    def hold(self, claim: int, usable: ReservationSet) -> bool:
        """Give the claim one of these; others keep one each, perhaps another. False if that cannot be done."""
        if not usable:
            self.release(claim)
            return False
        if self._given.get(claim, NO_RESERVATIONS) & usable:
            self._want(claim, usable)
            return True
        moves = self._path(claim, usable)
        if moves is None:
            return False
        before = self._given.get(claim)
        if before is not None:
            self._return(before)
        self._want(claim, usable)
        self._take(moves[-1][1])
        for who, what in moves:
            self._give(who, what)
        return True

    def _want(self, claim: int, usable: ReservationSet) -> None:
        before = self._wanted.get(claim)
        if usable == before:
            return
        self._wanted[claim] = usable
        if before is not None and usable & ~before:
            self._within_reach.clear()  # it may make room where it could not before
        state, own = self._within_reach.get(claim, (-1, NO_RESERVATIONS))
        if state == self._state:
            self._within_reach[claim] = (state + 1, own)  # what it could be given does not hang on what it wants
        self._state += 1

    def _take(self, bit: ReservationSet) -> None:
        self._left[bit] -= 1
        if not self._left[bit]:
            self._free &= ~bit

    def _return(self, bit: ReservationSet) -> None:
        self._left[bit] += 1
        self._free |= bit

    def _give(self, claim: int, bit: ReservationSet) -> None:
        before = self._given.get(claim)
        if before is not None:
            self._holders[before].discard(claim)
        self._given[claim] = bit
        self._holders.setdefault(bit, set()).add(claim)

    def release(self, claim: int) -> None:
        """The claim wants none any more."""
        self._wanted.pop(claim, None)
        given = self._given.pop(claim, None)
        if given is not None:
            self._holders[given].discard(claim)
            self._return(given)
            self._within_reach.clear()

    def cheapen(self, cost: Callable[[int, str], float], even: Container[str] = ()) -> None:
        """Settle which claim gets which reservation: claims change to cheaper ones, alone or by swapping, while that pays.

        `even` are reservations that cost every claim the same: two claims gain nothing by swapping two of these.
        """
        uneven = self.those(name for name in self._names if name not in even)
        room: dict[ReservationSet, tuple[float, int, ReservationSet] | None] = {}
        changed = True
        while changed:
            changed = False
            for claim in sorted(self._given):
                if self._moved(claim, cost) or self._swapped(claim, cost, uneven) or self._made_room(claim, cost, room):
                    room.clear()
                    changed = True

    def _cheapest_free(self, claim: int, cost: Callable[[int, str], float]) -> ReservationSet | None:
        free = _each(self._wanted[claim] & self._free)
        return min(free, key=lambda bit: (cost(claim, self._name(bit)), bit), default=None)

    def _moved(self, claim: int, cost: Callable[[int, str], float]) -> bool:
        own, best = self._given[claim], self._cheapest_free(claim, cost)
        if best is None or cost(claim, self._name(best)) >= cost(claim, self._name(own)):
            return False
        self._return(own)
        self._take(best)
        self._give(claim, best)
        return True

    def _swapped(self, claim: int, cost: Callable[[int, str], float], uneven: ReservationSet) -> bool:
        own, wanted = self._given[claim], self._wanted[claim]
        wanted &= ~own if own & uneven else uneven
        if not wanted:
            return False
        for other, theirs in sorted(self._given.items()):
            if other <= claim or not theirs & wanted or not own & self._wanted[other]:
                continue
            mine, its = self._name(own), self._name(theirs)
            if cost(claim, its) + cost(other, mine) < cost(claim, mine) + cost(other, its) - 1e-15:
                self._give(claim, theirs)
                self._give(other, own)
                return True
        return False

    def _made_room(
        self,
        claim: int,
        cost: Callable[[int, str], float],
        room: dict[ReservationSet, tuple[float, int, ReservationSet] | None],
    ) -> bool:
        """Whether a claim changes to a cheaper reservation in the place of another, which loses less than the claim gains.

        `room` remembers who makes room in a reservation at the least loss.
        """
        if not self._free:
            return False
        own = self._given[claim]
        for bit in _each(self._wanted[claim] & ~self._free & ~own):
            gain = cost(claim, self._name(own)) - cost(claim, self._name(bit))
            if gain <= 0:
                continue
            if bit not in room:
                room[bit] = min(self._ways_out(bit, cost), default=None)
            found = room[bit]
            if found is not None and found[0] < gain - 1e-15:
                _, other, best = found
                self._return(own)
                self._take(best)
                self._give(other, best)
                self._give(claim, bit)
                return True
        return False

    def _ways_out(
        self, bit: ReservationSet, cost: Callable[[int, str], float]
    ) -> Iterator[tuple[float, int, ReservationSet]]:
        """What each claim would lose that changes from a reservation to the best free one, who it is, and which one that is."""
        for other in sorted(self._holders.get(bit, ())):
            best = self._cheapest_free(other, cost)
            if best is not None:
                yield cost(other, self._name(best)) - cost(other, self._name(bit)), other, best

    def _path(self, claim: int, usable: ReservationSet) -> list[tuple[int, ReservationSet]] | None:
        """An augmenting path: the claim, then the claims that make room for it, up to a reservation with one left."""
        goal = self._free | self._given.get(claim, NO_RESERVATIONS)
        if usable & goal:
            return [(claim, next(_each(usable & goal)))]
        came_from: dict[ReservationSet, tuple[int, ReservationSet | None]] = dict.fromkeys(_each(usable), (claim, None))
        queue = deque(came_from)
        seen = usable
        while queue:
            bit = queue.popleft()
            if bit & goal:
                return _walked(bit, came_from)
            for other in sorted(self._holders.get(bit, ())):
                more = self._wanted[other] & ~seen if other != claim else NO_RESERVATIONS
                came_from.update((each, (other, bit)) for each in _each(more))
                queue.extend(_each(more))
                seen |= more
        return None


def _each(some: ReservationSet) -> Iterator[ReservationSet]:
    """The bits of a set, one by one."""
    while some:
        bit = some & -some
        yield bit
        some ^= bit


def _walked(
    bit: ReservationSet, came_from: Mapping[ReservationSet, tuple[int, ReservationSet | None]]
) -> list[tuple[int, ReservationSet]]:
    moves: list[tuple[int, ReservationSet]] = []
    at: ReservationSet | None = bit
    while at is not None:
        who, before = came_from[at]
        moves.append((who, at))
        at = before
    return moves[::-1]
