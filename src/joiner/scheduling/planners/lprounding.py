"""LP rounding: the linear relaxation is solved approximately, its whole nodes are bought first, the rest by value per dollar.

A fractional plan is nearly the cheapest there can be, and it knows what no look at a single claim can tell: which pods belong
together because one leaves what the other needs, and which kinds of node are not worth buying. Rounding a fractional bin packing
down and packing the rest greedily goes back to Fernandez de la Vega and Lueker (1981).
"""

from collections.abc import Iterator
from typing import Final

import numpy as np

from joiner.requirements import Requirements
from joiner.scheduling.bound.dualprices import FractionalPlan, fractional_plan
from joiner.scheduling.bound.relaxation import Demand, Floats, Relaxation, RelaxedRow, charging, of_demands
from joiner.scheduling.nodes.openclaim import Claim, Fitting
from joiner.scheduling.planners.podsizes import Share, Size
from joiner.scheduling.planners.repeatclaim import repeat
from joiner.scheduling.planners.valuegreedy import ValueGreedy

_STEPS: Final = 60
"""More steps make the fractional plan cheaper, but not what is left of it when it is rounded."""
_WORK: Final = 1e8
"""How many numbers may be looked at on the way; larger problems take fewer steps."""
_DIGITS: Final = 6
"""Numbers of nodes and pods are rounded to so many, so that no decision hangs on the last bit of a float."""
_TRIES: Final = 8
_PATTERNS: Final = 3
"""How many different fillings are tried for nodes of one kind."""


class LpPriced(ValueGreedy):
    """Greedy by value, with the dual values of the linear relaxation as the values of the pods."""

    planner = "repriced"

    def _buy(self) -> Iterator[int]:
        sizes = list(self._ordered)
        relaxation, fractions = self._relaxed(sizes)
        if fractions is not None:
            plain = [size.worth for size in sizes]
            for number, worth in zip(relaxation.pods, fractions.worth, strict=True):
                sizes[int(number)].worth = round(float(worth), 12) if np.isfinite(worth) else sizes[int(number)].worth
            self._arrange(sizes)
            self._begin([sizes[int(number)] for number in relaxation.pods], relaxation, fractions)
            self._go_on(sizes, plain)
        yield from super()._buy()

    def _relaxed(self, sizes: list[Size]) -> tuple[Relaxation, FractionalPlan | None]:
        """The relaxation and a solution of it, which does not depend on how a planner uses it: both planners share one."""
        groups = list(dict.fromkeys(size.host_group for size in sizes))
        asked = [
            (size.template.name, size.requirements, size.amounts.tobytes(), size.left, size.shares[0].step.tolerations)
            for size in sizes
        ]
        hosts = [(groups.index(size.host_group), size.host_most) for size in sizes]
        key = (tuple(asked), tuple(hosts))
        known = self._prepared.relaxed
        if key not in known:
            known[key] = of_demands(self, [_demand(n, size) for n, size in enumerate(sizes)], to_plan=True)
        relaxation: Relaxation = known[key]
        if (self.charge, key) not in known:
            fractions: FractionalPlan | None = None
            if relaxation.parts.size:
                steps = int(np.clip(_WORK / relaxation.parts.size, _STEPS // 3, _STEPS))
                fractions = fractional_plan(charging(relaxation, self.charge), steps)
            known[self.charge, key] = fractions
        return relaxation, known[self.charge, key]

    def _begin(self, sizes: list[Size], relaxation: Relaxation, fractions: FractionalPlan) -> None:
        """What is bought before anything else."""

    def _go_on(self, sizes: list[Size], plain: list[float]) -> None:
        """Set the worth of what is left."""


class LpRounded(LpPriced):
    """Buys the whole nodes of the fractional plan, then greedily by value."""

    planner = "rounded"
    share_of_worth = 0.0  # who belongs on dearer nodes is known from the fractional plan; others only fill them up

    def _go_on(self, sizes: list[Size], plain: list[float]) -> None:
        for size, worth in zip(sizes, plain, strict=True):
            size.worth = worth
        self._arrange(sizes)

    def _begin(self, sizes: list[Size], relaxation: Relaxation, fractions: FractionalPlan) -> None:
        kinds, nodes = relaxation.kinds, np.round(fractions.nodes, _DIGITS)
        rest: dict[object, float] = {}
        for kind in sorted(np.flatnonzero(nodes), key=lambda kind: (-kinds.prices[kind], kind)):
            price, limited = float(kinds.prices[kind]), kinds.limits[kind] >= 0
            # Pieces of nodes that differ only in who may be there, in two zones say, make a whole one in the last of them.
            alike = kind if limited else (price, *kinds.room[kind].tolist())
            due = rest.get(alike, 0.0) + float(nodes[kind])
            count = int(due + 10**-_DIGITS)
            rest[alike] = due - count
            if count:
                each = np.round(fractions.pods[:, kind] / nodes[kind], _DIGITS)
                self._fill_nodes(sizes, each, count, None if limited else price)

    def _fill_nodes(self, sizes: list[Size], on_each: Floats, count: int, cost: float | None) -> None:
        """Open so many claims at a price, each with its part of the pods; what a claim cannot take the next one is offered."""
        pattern = sorted(
            np.flatnonzero(on_each > 0).tolist(),
            key=lambda n: (-round(float(on_each[n]) * sizes[n].worth, 9), sizes[n].number),
        )
        due = np.zeros(len(sizes))
        alike = max(1, count // _PATTERNS)
        while count > 0:
            wanted = np.floor(due / alike + on_each + 10**-_DIGITS).astype(np.int64).tolist()
            claim, taken = self._filled(sizes, [(n, wanted[n]) for n in pattern if wanted[n]], cost)
            made = 1 if claim is None else 1 + repeat(self, claim, min(alike, count) - 1)
            due += (on_each - taken) * made
            count -= made

    def _filled(
        self, sizes: list[Size], pattern: list[tuple[int, int]], cost: float | None
    ) -> tuple[Claim | None, Floats]:
        """A claim with so many pods of each size, as far as it takes them, filled up with others; and how many it took."""
        taken = np.zeros(len(sizes))
        claim: Claim | None = None
        together: list[tuple[int, int]] = []
        for number, most in pattern:
            size = sizes[number]
            if claim is None:
                claim = self._started(size, cost)
                taken[number] = started = int(claim is not None)
                most -= started
            if claim is None:
                continue
            alike = size.template is claim.template and size.alike
            # Where a pod counts depends on what the claim is when it comes: who narrows it does not come with those before.
            if not alike or self.joined.of(claim.requirements, size.requirements) is not claim.requirements:
                self._some_of_each(claim, sizes, together, taken)
                together = []
            if alike:
                together.append((number, most))
            else:
                taken[number] += self._some(claim, size, most)
        if claim is not None:
            self._some_of_each(claim, sizes, together, taken)
            self._fill(claim)
        return claim, taken

    def _started(self, size: Size, cost: float | None) -> Claim | None:
        """A new claim with one pod of the size; nothing if there is no such pod any more, or no such claim."""
        share = next(size.waiting(), None)
        if share is None:
            return None
        claim = Claim(len(self.claims), size.template)
        claim.cost_max = cost
        found = self.opened(claim, share.pod_class, share.step)
        if not isinstance(found, Fitting):
            return None
        self.claims.append(claim)
        size.template.opened(found.units)
        self.commit(claim, share.pod_class, share.positions.pop(), share.step, found)
        size.left -= 1
        if found.reserved:
            claim.cost_max = None
        return claim

    def _some_of_each(self, claim: Claim, sizes: list[Size], wanted: list[tuple[int, int]], taken: Floats) -> None:
        """Put up to so many pods of several sizes on a claim, all at once if it takes them all, and note how many went.

        The same as `_some` for one size after the other, for pods of whom nothing but their size matters to a node, and of whom
        none but the first narrow the claim: if there is room for all of them, there was for each.
        """
        drawn: list[tuple[int, Share, int]] = []
        requirements = claim.requirements
        for number, most in wanted:
            left, tries = most, 0
            for share in sizes[number].waiting():
                if not left or tries == _TRIES:
                    break
                if not self.considers(claim, share.pod_class, share.step):
                    continue
                joined = self.joined.of(requirements, share.step.requirements)
                if joined is None:
                    tries += 1
                    continue
                requirements, count = joined, min(left, len(share.positions))
                drawn.append((number, share, count))
                left -= count
        if not drawn:
            return
        asked = [[count * amount for amount in share.pod_class.amounts] for _, share, count in drawn]
        amounts = tuple([sum(column) for column in zip(claim.amounts, *asked, strict=True)])
        found = self.openings.together(claim, drawn[0][1].pod_class, requirements, amounts)
        if not isinstance(found, Fitting):
            for number, most in wanted:
                taken[number] += self._some(claim, sizes[number], most)
            return
        for number, share, count in drawn:
            share.size.left -= count
            taken[number] += count
        self.commit_whole(claim, [(share.pod_class, share.next(count), share.step) for _, share, count in drawn], found)

    def _some(self, claim: Claim, size: Size, most: int) -> int:
        """Put up to so many pods of a size on a claim; says how many went."""
        placed = tries = 0
        for share in size.waiting():
            if placed == most or tries == _TRIES:
                break
            if self.considers(claim, share.pod_class, share.step):
                count, refused = self.put(claim, share, most - placed)
                placed += count
                tries += not count
                if refused is not None and self._no_room(claim, share, refused):
                    break
        size.left -= placed
        return placed


def _demand(number: int, size: Size) -> Demand:
    """A size as the relaxation sees it: its requirements know the pool, the place of its volumes is left to the rules."""
    rule = RelaxedRow((size.requirements,), (Requirements(),), size.shares[0].step.tolerations)
    groups = frozenset(() if size.host_group is None else (size.host_group,))
    demand = Demand(str(number), tuple(int(amount) for amount in size.amounts), rule, groups)
    demand.count = size.left
    return demand
