"""Greedy by value per dollar: one claim at a time, of the kind whose best filling is worth most for its price.

A pod's *value* is the least share of a node's price at which it could be served: over all kinds of node it may run on, the
price divided by how many like it fit. A claim is opened as the kind whose best greedy filling has most value per dollar, and
from then on takes no pod that would make it dearer by more than the pod's value. This is the greedy algorithm for set covering
(Chvátal, 1979) with a greedy knapsack as its oracle. Every pod goes through the same placement rules as anywhere else.
"""

from collections.abc import Iterator
from itertools import groupby
from operator import attrgetter

import numpy as np
import numpy.typing as npt

from joiner.catalog.units import flags
from joiner.model.labels import HOSTNAME
from joiner.requirements import Requirements
from joiner.scheduling.engine.firstfit import FirstFit, NothingNew
from joiner.scheduling.nodes.nodekinds import NodeKinds, Vector, how_many
from joiner.scheduling.nodes.openclaim import (
    MIN_VALUES,
    OFFERINGS,
    PRICE,
    REQUIREMENTS,
    RESERVATIONS,
    RESOURCES,
    TAINTS,
    Claim,
    Fitting,
    Refused,
)
from joiner.scheduling.nodes.template import Template
from joiner.scheduling.planners.podsizes import Share, Size, host_limit
from joiner.scheduling.planners.repeatclaim import repeat
from joiner.scheduling.planners.spreadquota import Spreading
from joiner.scheduling.pods.podclass import PodClass, Step
from joiner.scheduling.topology.group import Group
from joiner.scheduling.tuning import charge

_NO_ROOM = frozenset({RESOURCES, PRICE, OFFERINGS, REQUIREMENTS, TAINTS, RESERVATIONS, MIN_VALUES})
_FOR_MORE_TYPES = (1.1, 1.25, 1.5, 2.0, 3.0, 5.0)
"""How many times as dear as the best one types may be that a claim needs for its minValues."""
_TRIES = 8
"""How many classes of one size are tried on a claim before the next size has its turn."""


class ValueGreedy(FirstFit):
    """A run that buys by price."""

    planner = "worth"
    weighs_prices = buys_by_value = True
    share_of_worth = 0.9
    """Pods may make a claim dearer by this share of what they are worth, and no more."""

    def place(self) -> None:
        """Place what can be placed: on nodes that are there, then claim by claim, the rest as usual."""
        wanted = self.wanted()
        rest = [position for position in wanted if not self._stays(position)] if self.nodes else wanted
        self._unplaced: list[int] = []
        self._choices: dict[object, tuple[Template, Requirements] | None] = {}
        self._numbers: dict[tuple[tuple[Group, bool], ...], int] = {}
        self.share_of: dict[int, Share] = {}
        """The identity of a step to the pods that are at it."""
        self.charge = charge(self.problem)
        self._last: tuple[Size | None, float | None, dict[Size, int]] = (None, None, {})
        sizes = self._sizes(rest)
        self._appraise(sizes)
        self._arrange(sizes)
        leftover = {*self._buy(), *self._unplaced}
        self.settle([position for position in rest if position in leftover] if leftover else [])
        self.sound = self._spreading.balanced()

    def _arrange(self, sizes: list[Size]) -> None:
        """Put the sizes in order."""
        self._ordered = sorted(sizes, key=self._precedence)
        wanted = np.array([size.amounts for size in self._ordered]).reshape(len(sizes), len(self.names))
        self._wanted = np.ascontiguousarray(wanted.T)
        """Resource by size."""
        worths = np.array([size.worth for size in self._ordered]).reshape(len(sizes), 1)
        self._asked = np.hstack([wanted, worths])[:, :, None]
        """For each size a column: how much of each resource a pod asks for, and last what it is worth."""
        self._look_around()

    def _look_around(self) -> None:
        """Forget the sizes of which no pod waits any more."""
        self._open_sizes = np.array([n for n, size in enumerate(self._ordered) if size.left], dtype=np.int64)

    def _precedence(self, size: Size) -> tuple[float, int]:
        """Which sizes come first: what costs most is hardest to place well."""
        return (-size.worth, size.number)

    def _stays(self, position: int) -> bool:
        """Whether the pod goes to a node that is there."""
        each = self.of_pod[position]
        if each.steps[0].impossible or not self.on_node(each, position, each.steps[0]):
            return False
        self.moved()
        return True

    # -- sizes --------------------------------------------------------------------------------------------------------

    def _sizes(self, positions: list[int]) -> list[Size]:
        members: dict[int, list[int]] = {}
        for number, pods in groupby(reversed(positions), self._prepared.numbers.__getitem__):
            members.setdefault(number, []).extend(pods)
        sizes: dict[object, Size] = {}
        spreading = Spreading(self, members)
        shares: list[Share] = []
        # Pods that volumes hold somewhere choose first, and are the first to be placed: the next share is the last.
        for each in sorted(self.classes, key=attrgetter("held"), reverse=True):
            if each.number not in members:
                continue
            if each.steps[0].impossible:
                self._unplaced += members[each.number]
                continue
            shares += spreading.shares(each, members[each.number])
        if self.nodes:
            self._stay_as_meant(shares, {position: rank for rank, position in enumerate(positions)})
        for share in sorted(shares, key=lambda share: share.pod_class.held):
            if share.positions:
                self._take_share(share, sizes)
        self._unplaced += spreading.left
        self._spreading = spreading
        return list(sizes.values())

    def _stay_as_meant(self, shares: list[Share], rank: dict[int, int]) -> None:
        """Put pods on nodes that are there once it is decided which domain they go to.

        Before that, spread let a few go to each domain that has nodes, and no more until others are in the other domains.
        """
        decided = [share for share in shares if share.step is not share.pod_class.steps[0]]
        for share in sorted(decided, key=lambda share: rank[share.positions[-1]]):
            while share.positions and self.on_node(share.pod_class, share.positions[-1], share.step):
                share.positions.pop()
                self.moved()

    def _take_share(self, share: Share, sizes: dict[object, Size]) -> None:
        each = share.pod_class
        chosen = self._first_choice(each, share.step)
        if chosen is None:
            self._unplaced += share.positions
            return
        template, requirements = chosen
        group, most = host_limit(share.step)
        key = (id(template), each.amounts, requirements, id(group), most)
        size = sizes.get(key)
        if size is None:
            size = sizes[key] = Size(len(sizes), template, each.amounts, requirements)
            size.host_group, size.host_most = group, most
        share.groups = self._numbers.setdefault(share.step.groups, len(self._numbers))
        self.share_of[id(share.step)] = share
        size.take(share)

    def _first_choice(self, pod_class: PodClass, step: Step) -> tuple[Template, Requirements] | None:
        """The pool a new claim for the class would be of: the first by weight that takes it."""
        if (
            pod_class.ports
            or pod_class.kept_out
            or any(step.places)
            or any(group.key != HOSTNAME for group, _ in step.groups)
        ):
            return self._choose(pod_class, step)
        key = (pod_class.amounts, step.requirements, step.tolerations)
        if key not in self._choices:
            self._choices[key] = self._choose(pod_class, step)
        return self._choices[key]

    def _choose(self, pod_class: PodClass, step: Step) -> tuple[Template, Requirements] | None:
        """The same by asking each pool; where no pod has a place yet, all runs get the same answer."""
        if self.nodes or self.pinned:
            return self._first_pool(pod_class, step)
        known, key = self._prepared.first_choices, (pod_class.number, step.requirements, len(step.groups))
        if key not in known:
            chosen = self._first_pool(pod_class, step)
            known[key] = None if chosen is None else (self.templates.index(chosen[0]), chosen[1])
        answer = known[key]
        return None if answer is None else (self.templates[answer[0]], answer[1])

    def _first_pool(self, pod_class: PodClass, step: Step) -> tuple[Template, Requirements] | None:
        for template in self.templates:
            claim = Claim(len(self.claims), template)
            if isinstance(self.opened(claim, pod_class, step), Fitting):
                joined = self.joined.of(template.requirements, step.requirements)
                return None if joined is None else (template, joined)
        return None

    def _appraise(self, sizes: list[Size]) -> None:
        """Find out what a pod of each size is worth; those that may be on the same kinds of node are looked at together."""
        alike: dict[tuple[int, int], list[Size]] = {}
        for size in sizes:
            alike.setdefault((id(size.template), id(size.requirements)), []).append(size)
        for some in alike.values():
            kinds = self.kinds.of(some[0].template, some[0].requirements)
            most = np.array([min(size.host_most, size.left) for size in some])[:, None]
            fitting = np.minimum(how_many(kinds.room, np.array([size.amounts for size in some])), most)
            shares = np.where(fitting >= 1, (kinds.costs + self.charge) / np.maximum(fitting, 1), np.inf)
            for size, share in zip(some, np.min(shares, axis=1, initial=np.inf).tolist(), strict=True):
                size.worth = share if share < np.inf else 0.0

    # -- buying -------------------------------------------------------------------------------------------------------

    def _buy(self) -> Iterator[int]:
        """Open claims until no size has pods left; gives the pods that could not be placed this way."""
        look_at = 1
        for size in self._ordered:
            while size.left:
                share = size.shares[-1]
                if len(self.claims) >= look_at:
                    look_at = len(self.claims) * 5 // 4 + 1
                    self.end_if_too_dear()
                if not share.positions:
                    size.shares.pop()
                elif self.effort.spent():
                    yield from self._rest()
                    return
                elif not self._open(size, share):
                    # Nothing has changed, so the next one would fare the same.
                    size.left -= len(share.positions)
                    yield from reversed(share.positions)
                    share.positions.clear()

    def _rest(self) -> Iterator[int]:
        """Pods that still wait."""
        for size in self._ordered:
            size.left = 0
            for share in size.shares:
                yield from share.positions

    def _open(self, size: Size, share: Share) -> bool:
        """Open the best claim for the next pod of a size, and fill it."""
        # What is paid for is taken at any price, so it does not matter what would be best on the market.
        costs = (None,) if self._is_paid_for(size, share) else self._best_costs(size)
        for cost in costs:
            claim = Claim(len(self.claims), size.template)
            claim.cost_max = cost
            found = self.opened(claim, share.pod_class, share.step)
            if isinstance(found, Fitting):
                self.claims.append(claim)
                size.template.opened(found.units)
                self.commit(claim, share.pod_class, share.positions.pop(), share.step, found)
                size.left -= 1
                if found.reserved:
                    claim.cost_max = None
                taken = self._fill(claim)
                taken[size] = taken.get(size, 0) + 1
                if not found.reserved:  # one out of a reservation says nothing about what is best on the market
                    self._last = (size, cost, taken)
                repeat(self, claim, size.left)
                return True
        return False

    def _is_paid_for(self, size: Size, share: Share) -> bool:
        """Whether the next claim for a size would use a reservation."""
        if not self.reservations.any_free():
            return False
        found = self.opened(Claim(len(self.claims), size.template), share.pod_class, share.step)
        return isinstance(found, Fitting) and bool(found.reserved)

    def _best_costs(self, size: Size) -> Iterator[float | None]:
        """Prices to open a claim at, the most promising first; at last any."""
        last, cost, taken = self._last
        if last is size and all(each.left >= count for each, count in taken.items()):
            # Everything the last claim took is there again, so the best claim is the same once more.
            yield cost
        kinds = self.kinds.of(size.template, size.requirements)
        value = self._value(size, kinds)
        if value is not None:
            score = np.where(value > 0, value / np.maximum(kinds.costs + self.charge, 1e-12), -1.0)
            best = int(np.argmax(np.round(score, 12)))
            if score[best] > 0:
                cost = float(kinds.costs[best])
                yield cost
                if size.template.min_values:
                    # Enough different types may be a little dearer. At any price the claim would not stay near its best one,
                    # and would count as the largest of all types against limits.
                    yield from (cost * dearer for dearer in _FOR_MORE_TYPES)
        yield None

    def _value(self, size: Size, kinds: NodeKinds) -> Vector | None:
        """What the best filling of each kind would be worth, with one pod of the size in it."""
        room = kinds.room - size.amounts
        fits = np.flatnonzero((room >= 0).all(axis=1))
        if not len(fits):
            return None
        everywhere = len(fits) == len(kinds.units)
        # A row for each resource, and a last one for what the pods on each kind are worth, which counts down from nothing.
        left = np.empty((room.shape[1] + 1, len(fits)))
        left[:-1], left[-1] = room[fits].T, -size.worth
        room = left[:-1]
        used: dict[int, Vector | float] = {}
        if size.host_group is not None:
            used[id(size.host_group)] = 1.0
        self._look_around()
        for number in self._open_sizes.tolist():
            other = self._ordered[number]
            waiting = other.left - 1 if other is size else other.left
            if waiting <= 0 or other.template is not size.template:
                continue
            welcome = self.kinds.welcome(size.template, size.requirements, other.requirements, kinds)
            if welcome is None:
                continue
            count = other.often(room)
            np.minimum(count, waiting, out=count)
            if other.host_group is not None:
                before = used.get(id(other.host_group), 0.0)
                count = np.minimum(count, np.maximum(0.0, other.host_most - before))
            if other.requirements is not size.requirements:
                count *= welcome if everywhere else welcome[fits]
            if other.host_group is not None:
                used[id(other.host_group)] = before + count
            left -= count * self._asked[number]
        found = np.zeros(len(kinds.units))
        found[fits] = -left[-1]
        return found

    def _fill(self, claim: Claim) -> dict[Size, int]:
        """Put pods that are worth it on a claim, the most valuable first. Says how many of each size it took."""
        taken: dict[Size, int] = {}
        barred: set[int] = set()
        room = self._room(claim) - claim.amounts
        todo = self._fitting_sizes(room, self._open_sizes)
        while len(todo):
            for at, number in enumerate(todo.tolist()):
                size = self._ordered[number]
                if not size.left or size.template is not claim.template:
                    continue
                if size.host_group is not None and size.host_group.is_full(claim.host, True):
                    continue
                joined = self.joined.of(claim.requirements, size.requirements)
                if joined is None or self._never_pays(claim, size, joined):
                    continue
                placed = self._fill_with(claim, size, barred)
                if placed:
                    taken[size] = placed
                    room = room - placed * size.amounts
                    todo = self._fitting_sizes(room, todo[at + 1 :])
                    break
            else:
                break
        return taken

    def _room(self, claim: Claim) -> Vector:
        """The most of each resource that pods on a claim can have; with minValues, so many units must have as much."""
        template, units, least = claim.template, self.openings.to_be_had(claim), self._least_units(claim)
        if least == 1 or units.bit_count() < least:
            return np.array(template.room(units), dtype=np.float64)
        rooms = self.kinds.room(template)[flags(units, len(template.stock.units))]
        largest: Vector = np.partition(rooms, -least, axis=0)[-least]
        return largest

    def _least_units(self, claim: Claim) -> int:
        """How many units a claim must leave possible, at the least, for its minValues; what is paid for need not be flexible."""
        if not claim.min_values or self.reservations.holds(claim.number) is not None:
            return 1
        return self.flexible[claim.template.name].units_least(claim.min_values)

    def _fitting_sizes(self, room: Vector, sizes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Those of some sizes that there is room for, as far as single resources tell."""
        return sizes[np.logical_and.reduce(self._wanted.take(sizes, axis=1) <= room[:, None])]

    def _fill_with(self, claim: Claim, size: Size, barred: set[int]) -> int:
        """Put pods of one size on a claim; `barred` are the groups that want it to be elsewhere."""
        placed = tries = 0
        for share in size.waiting():
            if share.groups in barred or not self.considers(claim, share.pod_class, share.step):
                continue
            count, refused = self.put(claim, share, size.left)
            if refused is not None and refused.rule == PRICE and self._pays(claim, share, size):
                more, refused = self.put(claim, share, size.left)
                count += more
            placed += count
            tries += not count
            if tries >= _TRIES or (refused is not None and self._no_room(claim, share, refused)):
                break
            if refused is not None and refused.rule == RESERVATIONS:
                barred.add(share.groups)  # there is room: it is the domain that is not where the reservation is
        size.left -= placed
        return placed

    def _no_room(self, claim: Claim, share: Share, refused: Refused) -> bool:
        """Whether a refusal means that no pod of the same size will ever have a place there."""
        if refused.rule == MIN_VALUES and (share.pod_class.ports or share.pod_class.volumes.attachments):
            return False
        if share.step.final:
            return refused.rule in _NO_ROOM
        if refused.rule in (RESERVATIONS, MIN_VALUES):
            return not self.openings.has_room(claim, share.pod_class, share.step)
        units, amounts = self.openings.to_be_had(claim), share.pod_class.amounts
        return refused.rule == RESOURCES and not claim.template.how_many(units, claim.amounts, amounts, 1)

    def _never_pays(self, claim: Claim, size: Size, joined: Requirements) -> bool:
        """Whether a claim would become so much dearer where pods of a size can be that all of them are not worth it."""
        if claim.cost_max is None or joined is claim.requirements:
            return False
        dearer = self.share_of_worth * min(size.left, size.host_most) * size.worth
        return not self.openings.can_cost(claim, joined, claim.cost_max + dearer)

    def _pays(self, claim: Claim, share: Share, size: Size) -> bool:
        """Whether pods are worth what they would make the claim dearer by; if so, it may cost that much from now on."""
        if not self.share_of_worth:
            return False
        before = claim.cost_max
        claim.cost_max = None
        found = self.openings.fitting(claim, share.pod_class, share.step, new=False)
        claim.cost_max = before
        if before is None or not isinstance(found, Fitting) or found.reserved:
            return False
        cost = self.openings.cost(claim, found)
        most = int(min(len(share.positions), size.host_most))
        count = claim.template.how_many(found.units, claim.amounts, share.pod_class.amounts, most)
        if cost - before > self.share_of_worth * count * size.worth:
            return False
        claim.cost_max = cost
        return True

    def put(self, claim: Claim, share: Share, most: int) -> tuple[int, Refused | None]:
        """Up to so many pods of a share as the claim takes, and why it takes no more."""
        placed = 0
        while share.positions and placed < most:
            count = min(share.room_on(claim), most - placed)
            count, found = self._as_many(claim, share, count)
            if not isinstance(found, Fitting):
                return placed, found
            self.commit_all(claim, share.pod_class, share.next(count), share.step, found)
            placed += count
        return placed, None

    def _as_many(self, claim: Claim, share: Share, most: int) -> tuple[int, Fitting | Refused]:
        """The largest number of pods, up to some, that the claim takes at once, and what it would be then; or why none."""
        each, step, template = share.pod_class, share.step, claim.template
        room = most
        if most > 1:
            least = self._least_units(claim)
            room = template.how_many(self.openings.to_be_had(claim), claim.amounts, each.amounts, most, least)
            if least > 1:
                room = max(room, 1)  # why none fits is for the rules to say
        if not room:
            return 0, Refused(RESOURCES)
        found = self.openings.fitting(claim, each, step, new=False, count=room)
        if room == 1 or isinstance(found, Fitting):
            return room, found
        found = self.openings.fitting(claim, each, step, new=False)
        low, high = 1, room
        while high - low > 1 and isinstance(found, Fitting):
            middle = (low + high) // 2
            more = self.openings.fitting(claim, each, step, new=False, count=middle)
            low, high, found = (middle, high, more) if isinstance(more, Fitting) else (low, middle, found)
        return low, found


class ConstrainedFirst(ValueGreedy):
    """The same, but pods with fewer kinds of node to choose from come first, so that others fill up around them.

    Where all have the same choice it gives up: the plan would be the same.
    """

    planner = "worth, constrained first"

    def _arrange(self, sizes: list[Size]) -> None:
        super()._arrange(sizes)
        if self._ordered == sorted(sizes, key=super()._precedence):
            raise NothingNew

    def _precedence(self, size: Size) -> tuple[float, int]:
        kinds = self.kinds.of(size.template, size.requirements)
        return (float(len(kinds.units)) - size.worth / (1.0 + size.worth), size.number)
