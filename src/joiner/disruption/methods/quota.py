"""What the budgets of NodePools still allow for one reason, while nodes are chosen."""

from collections.abc import Iterable

from joiner.disruption import budgets
from joiner.disruption.eligibility import Candidate, Objection
from joiner.disruption.situation import Situation
from joiner.model.budget import remaining


class Quota:
    """Counts down as nodes are taken. The only mutable thing of a decision, and gone with it."""

    def __init__(self, situation: Situation, reason: str) -> None:
        self._situation, self.reason = situation, reason
        self._left: dict[str, int] = {}

    def left(self, pool: str) -> int:
        """How many more nodes of a pool may go."""
        found = self._left.get(pool)
        if found is None:
            known = self._situation.pools[pool]
            seen = self._situation
            found = self._left[pool] = budgets.left(known, seen.snapshot.nodes, self.reason, seen.now, seen.queued)
        return found

    def is_used_up(self, pool: str) -> bool:
        """Whether no node of a pool may go only because others are away at the moment."""
        if self.left(pool) > 0:
            return False
        known, seen = self._situation.pools[pool], self._situation
        total = sum(each.nodepool == pool and budgets.counts(each) for each in seen.snapshot.nodes)
        return remaining(known.spec.disruption.budgets, self.reason, total, 0, seen.now) > 0

    def take(self, *candidates: Candidate) -> None:
        """These go."""
        for each in candidates:
            self._left[each.pool.name] = self.left(each.pool.name) - 1

    def allows(self, candidates: Iterable[Candidate]) -> bool:
        """Whether all of these may go together."""
        wanted: dict[str, int] = {}
        for each in candidates:
            wanted[each.pool.name] = wanted.get(each.pool.name, 0) + 1
        return all(count <= self.left(pool) for pool, count in wanted.items())

    def within(self, candidates: Iterable[Candidate]) -> list[Candidate]:
        """As many of these as may go together, the first ones first."""
        taken: dict[str, int] = {}
        found: list[Candidate] = []
        for each in candidates:
            pool = each.pool.name
            if taken.get(pool, 0) < self.left(pool):
                taken[pool] = taken.get(pool, 0) + 1
                found.append(each)
        return found

    def objections(self, candidates: Iterable[Candidate]) -> list[Objection]:
        """What to tell of the pools whose nodes could go and may not."""
        pools = sorted({each.pool.name for each in candidates if self.left(each.pool.name) <= 0})
        message = f"its budgets let no node go for reason {self.reason} now"
        return [Objection(message=message, pool=pool, dedupe=(self.reason,)) for pool in pools]
