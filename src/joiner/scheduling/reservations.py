"""Reservations: how many instances each has left, and a standing proof that every open claim that counts on one gets one.

While claims are open nobody decides which reservation a claim will be launched into; a matching with counts is kept, so
that at any moment all of them could be. It is settled at the end.
"""

from collections import deque
from collections.abc import Callable, Mapping


class Reservations:
    """A matching of claims to reservations that never gives out more than there is."""

    def __init__(self, counts: Mapping[str, int]) -> None:
        self._left = dict(counts)
        self._wanted: dict[int, tuple[str, ...]] = {}
        self._given: dict[int, str] = {}
        self._holders: dict[str, set[int]] = {}
        self._gone: set[str] = set()
        """Reservations that are given out, and whose holders cannot make room: nobody else gets one while they hold on."""
        self.version = 0
        """Changes whenever more or less is known to be gone."""

    def holds(self, claim: int) -> str | None:
        """The reservation that the claim would get as things stand."""
        return self._given.get(claim)

    def can_hold(self, claim: int, usable: tuple[str, ...]) -> bool:
        """Whether the claim could be given one of these, moving others about if need be. Nothing is changed."""
        if self._given.get(claim) in usable:
            return True
        if claim not in self._given and self._gone.issuperset(usable):
            return False
        return self._path(claim, usable) is not None

    def hold(self, claim: int, usable: tuple[str, ...]) -> bool:
        """Give the claim one of these; others keep one each, perhaps another. False if that cannot be done."""
        if not usable:
            self.release(claim)
            return False
        if self._given.get(claim) in usable:
            if not set(self._wanted[claim]).issuperset(usable):
                self._forget()
            self._wanted[claim] = usable
            return True
        moves = self._path(claim, usable)
        if moves is None:
            return False
        self.release(claim)
        self._wanted[claim] = usable
        self._left[moves[-1][1]] -= 1
        for who, what in moves:
            self._give(who, what)
        return True

    def gone(self, name: str) -> bool:
        """Whether it is known that no claim that holds nothing yet can be given one of a reservation."""
        return name in self._gone

    def _forget(self) -> None:
        self._gone.clear()
        self.version += 1

    def _give(self, claim: int, name: str) -> None:
        before = self._given.get(claim)
        if before is not None:
            self._holders[before].discard(claim)
        self._given[claim] = name
        self._holders.setdefault(name, set()).add(claim)

    def release(self, claim: int) -> None:
        """The claim wants none any more."""
        self._wanted.pop(claim, None)
        given = self._given.pop(claim, None)
        if given is not None:
            self._holders[given].discard(claim)
            self._left[given] += 1
            self._forget()

    def cheapen(self, cost: Callable[[int, str], float]) -> None:
        """Settle who gets what: claims change to cheaper reservations, by themselves or with one another, while that pays."""
        changed = True
        while changed:
            changed = False
            for claim in sorted(self._given):
                changed |= self._moved(claim, cost) or self._swapped(claim, cost)

    def _moved(self, claim: int, cost: Callable[[int, str], float]) -> bool:
        own = self._given[claim]
        free = [name for name in self._wanted[claim] if self._left[name] > 0]
        best = min(free, key=lambda name: (cost(claim, name), name), default=None)
        if best is None or cost(claim, best) >= cost(claim, own):
            return False
        self._left[own] += 1
        self._left[best] -= 1
        self._forget()
        self._give(claim, best)
        return True

    def _swapped(self, claim: int, cost: Callable[[int, str], float]) -> bool:
        own, wanted = self._given[claim], set(self._wanted[claim])
        for other, theirs in sorted(self._given.items()):
            if other <= claim or theirs == own or theirs not in wanted or own not in self._wanted[other]:
                continue
            if cost(claim, theirs) + cost(other, own) < cost(claim, own) + cost(other, theirs) - 1e-15:
                self._give(claim, theirs)
                self._give(other, own)
                return True
        return False

    def _path(self, claim: int, usable: tuple[str, ...]) -> list[tuple[int, str]] | None:
        """Who takes what, so that the claim gets one: it, then whoever makes room for it, and so on to one with a rest."""
        own = self._given.get(claim)
        for name in usable:
            if name == own or self._left.get(name, 0) > 0:
                return [(claim, name)]
        if own is not None and own not in self._gone and self._gone.issuperset(usable):
            return None  # from what is gone nothing leads to what is not
        came_from: dict[str, tuple[int, str | None]] = {name: (claim, None) for name in usable if name in self._left}
        queue = deque(came_from)
        unseen = self._left.keys() - came_from.keys()
        while queue:
            name = queue.popleft()
            if self._left[name] > 0 or name == own:
                return _walked(name, came_from)
            for other in sorted(self._holders.get(name, ())) if unseen else ():
                if other != claim and not unseen.isdisjoint(self._wanted[other]):
                    more = [each for each in self._wanted[other] if each in unseen]
                    came_from.update((each, (other, name)) for each in more)
                    queue.extend(more)
                    unseen.difference_update(more)
        if own is None and not self._gone.issuperset(came_from):
            self._gone.update(came_from)
            self.version += 1
        return None


def _walked(name: str, came_from: Mapping[str, tuple[int, str | None]]) -> list[tuple[int, str]]:
    moves: list[tuple[int, str]] = []
    at: str | None = name
    while at is not None:
        who, before = came_from[at]
        moves.append((who, at))
        at = before
    return moves[::-1]
