"""Planning by price: one claim at a time, of the kind that gives the most for its money, filled while it stays worth it.

What a pod is *worth* is the smallest share of a node's price at which it could be served: over all kinds of node it may run on,
the price divided by how many like it fit. A claim is opened as the kind whose best filling is worth most per dollar, and from
then on takes nobody who would make it dearer by more than they are worth. Every pod goes through the same rules as anywhere
else.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from joiner.model.labels import HOSTNAME
from joiner.requirements import Requirement, Requirements
from joiner.scheduling.claims import OFFERINGS, PRICE, REQUIREMENTS, RESOURCES, TAINTS, Claim, Fitting, Refused
from joiner.scheduling.classes import PodClass, Step
from joiner.scheduling.run import Run
from joiner.scheduling.template import Template
from joiner.scheduling.topology import ANTI_AFFINITY, SPREAD, Group

Vector = npt.NDArray[np.float64]

_PLENTY = 1e18
_NO_ROOM = frozenset({RESOURCES, PRICE, OFFERINGS, REQUIREMENTS, TAINTS})
_SHARE_OF_WORTH = 0.9
"""Pods may make a claim dearer by this share of what they are worth, and no more."""
_TRIES = 8
"""How many classes of one size are tried on a claim before the next size has its turn."""


class Share:
    """Pods of one class that ask for the same, and wait."""

    __slots__ = ("each", "positions", "step")

    def __init__(self, each: PodClass, step: Step, positions: list[int]) -> None:
        self.each = each
        self.step = step
        self.positions = positions
        """The next one is the last."""

    @property
    def plain(self) -> bool:
        """Whether many can be placed at once: nothing that is counted one by one concerns them."""
        each, step = self.each, self.step
        return not (
            step.groups or each.kept_out or each.counted or step.marks or each.ports or each.volumes.attachments
        )


class Size:
    """Pods that cost the same: equal amounts, equal node rules, one pool; labels may differ."""

    def __init__(self, number: int, template: Template, amounts: tuple[int, ...], requirements: Requirements) -> None:
        self.number = number
        self.template = template
        self.amounts = np.array(amounts, dtype=np.float64)
        self.requirements = requirements
        """What pool and pod demand together."""
        self.shares: list[Share] = []
        self.left = 0
        self.worth = 0.0
        self.host_group: Group | None = None
        self.host_most = _PLENTY
        """How many of them one node takes, if spread or anti-affinity by host say so."""


class Kinds:
    """The kinds of node a size can be bought as, without those that are dearer and smaller than another."""

    def __init__(self, units: npt.NDArray[np.int64], costs: Vector, room: npt.NDArray[np.float64]) -> None:
        self.units = units
        self.costs = costs
        self.room = room
        """What is left for pods on each, by resource."""


class PricedRun(Run):
    """A run that buys by price."""

    planner = "worth"

    def place(self) -> None:
        """Place what can be placed: on nodes that are there, then claim by claim, the rest as usual."""
        waiting = [position for position in self.queue() if self.of_pod[position].number not in self.ignored]
        rest = [position for position in waiting if not self._stays(position)]
        self._unplaced: list[int] = []
        self._last: tuple[Size | None, float | None, dict[Size, int]] = (None, None, {})
        sizes = self._sizes(rest)
        self._rooms = {id(template): self._room(template) for template in self.templates}
        self._kinds = _KindTable(self, self._rooms)
        for size in sizes:
            size.worth = self._worth(size)
        self._ordered = sorted(sizes, key=self._precedence)
        leftover = [*self._buy(), *self._unplaced]
        order = {position: rank for rank, position in enumerate(rest)}
        self.settle(sorted(leftover, key=order.__getitem__))
        self.sound = self._spreading.balanced()

    def _precedence(self, size: Size) -> tuple[float, int]:
        """Which sizes come first: what costs most is hardest to place well."""
        return (-size.worth, size.number)

    def _stays(self, position: int) -> bool:
        """Whether the pod goes to a node that is there."""
        each = self.of_pod[position]
        if not self.nodes or each.steps[0].impossible or not self.on_node(each, position, each.steps[0]):
            return False
        self.moved()
        return True

    # -- sizes --------------------------------------------------------------------------------------------------------

    def _sizes(self, positions: list[int]) -> list[Size]:
        members: dict[int, list[int]] = {}
        for position in reversed(positions):
            members.setdefault(self.of_pod[position].number, []).append(position)
        sizes: dict[object, Size] = {}
        spreading = Spreading(self)
        for each in self.classes:
            if each.number not in members:
                continue
            if each.steps[0].impossible:
                self._unplaced += members[each.number]
                continue
            for share in spreading.shares(each, members[each.number]):
                self._take_share(share, sizes)
        self._unplaced += spreading.left
        self._spreading = spreading
        return list(sizes.values())

    def _take_share(self, share: Share, sizes: dict[object, Size]) -> None:
        each = share.each
        chosen = self._first_choice(each, share.step)
        if chosen is None:
            self._unplaced += share.positions
            return
        template, requirements = chosen
        group, most = _host_limit(share.step)
        key = (id(template), each.amounts, requirements, id(group), most)
        size = sizes.get(key)
        if size is None:
            size = sizes[key] = Size(len(sizes), template, each.amounts, requirements)
            size.host_group, size.host_most = group, most
        size.shares.append(share)
        size.left += len(share.positions)

    def _first_choice(self, each: PodClass, step: Step) -> tuple[Template, Requirements] | None:
        """The pool a new claim for the class would be of: the first by weight that takes it."""
        for template in self.templates:
            claim = Claim(len(self.claims), template)
            if isinstance(self.opened(claim, each, step), Fitting):
                joined = self.joined.of(template.requirements, step.requirements)
                return None if joined is None else (template, joined)
        return None

    def _room(self, template: Template) -> npt.NDArray[np.float64]:
        """What units of the pool have left beside their daemons."""
        stock = template.stock
        room = np.array([[each.get(name, 0) for name in self.names] for each in stock.allocatable], dtype=np.float64)
        for group in template.daemons:
            if any(group.amounts):
                room[_flags(group.units, len(room))] -= np.array(group.amounts, dtype=np.float64)
        return room

    def _worth(self, size: Size) -> float:
        kinds = self._kinds.of(size.template, size.requirements)
        fitting = np.minimum(_how_many(kinds.room, size.amounts), min(size.host_most, size.left))
        possible = fitting >= 1
        if not possible.any():
            return 0.0
        return float(np.min(kinds.costs[possible] / fitting[possible]))

    # -- buying -------------------------------------------------------------------------------------------------------

    def _buy(self) -> Iterator[int]:
        """Open claims until no size has pods left; gives the pods that could not be placed this way."""
        for size in self._ordered:
            while size.left:
                share = size.shares[-1]
                if not share.positions:
                    size.shares.pop()
                elif self.effort.spent():
                    yield from self._rest()
                    return
                elif not self._open(size, share):
                    size.left -= 1
                    yield share.positions.pop()

    def _rest(self) -> Iterator[int]:
        """Whoever still waits."""
        for size in self._ordered:
            size.left = 0
            for share in size.shares:
                yield from share.positions

    def _open(self, size: Size, share: Share) -> bool:
        """Open the best claim for the next pod of a size, and fill it."""
        for cost in self._best_costs(size):
            claim = Claim(len(self.claims), size.template)
            claim.cost_max = cost
            found = self.opened(claim, share.each, share.step)
            if isinstance(found, Fitting):
                self.claims.append(claim)
                size.template.opened(found.units)
                self.commit(claim, share.each, share.positions.pop(), share.step, found)
                size.left -= 1
                if found.reserved:
                    claim.cost_max = None
                taken = self._fill(claim)
                taken[size] = taken.get(size, 0) + 1
                self._last = (size, cost, taken)
                return True
        return False

    def _best_costs(self, size: Size) -> Iterator[float | None]:
        """Prices to open a claim at, the most promising first; at last any."""
        last, cost, taken = self._last
        if last is size and all(each.left >= count for each, count in taken.items()):
            # Everything the last claim took is there again, so the best claim is the same once more.
            yield cost
        kinds = self._kinds.of(size.template, size.requirements)
        value = self._value(size, kinds)
        if value is not None:
            score = np.where(value > 0, value / np.maximum(kinds.costs, 1e-12), -1.0)
            best = int(np.argmax(np.round(score, 12)))
            if score[best] > 0:
                yield float(kinds.costs[best])
        yield None

    def _value(self, size: Size, kinds: Kinds) -> Vector | None:
        """What the best filling of each kind would be worth, with one pod of the size in it."""
        if not len(kinds.units):
            return None
        room = kinds.room - size.amounts
        fits = (room >= 0).all(axis=1)
        if not fits.any():
            return None
        value = np.where(fits, size.worth, 0.0)
        used: dict[int, Vector] = {}
        if size.host_group is not None:
            used[id(size.host_group)] = np.where(fits, 1.0, 0.0)
        for other in self._ordered:
            waiting = other.left - 1 if other is size else other.left
            if waiting <= 0 or other.template is not size.template:
                continue
            welcome = self._kinds.welcome(size, other, kinds)
            if welcome is None:
                continue
            count = np.minimum(_how_many(room, other.amounts), waiting)
            if other.host_group is not None:
                taken = used.get(id(other.host_group))
                count = np.minimum(count, other.host_most if taken is None else np.maximum(0, other.host_most - taken))
            count = np.where(welcome & fits, np.maximum(count, 0), 0.0)
            if not count.any():
                continue
            if other.host_group is not None:
                used[id(other.host_group)] = used.get(id(other.host_group), 0.0) + count
            room = room - count[:, None] * other.amounts
            value = value + count * other.worth
        return value

    def _fill(self, claim: Claim) -> dict[Size, int]:
        """Put whatever is worth it on a claim, the most valuable first. Says how many of each size it took."""
        taken: dict[Size, int] = {}
        room = self._largest(claim) - np.array(claim.amounts, dtype=np.float64)
        for size in self._ordered:
            if not size.left or size.template is not claim.template or (size.amounts > room).any():
                continue
            if self.joined.of(claim.requirements, size.requirements) is None:
                continue
            placed = self._fill_with(claim, size)
            if placed:
                taken[size] = placed
                room = room - placed * size.amounts
        return taken

    def _fill_with(self, claim: Claim, size: Size) -> int:
        """Put pods of one size on a claim."""
        placed = tries = 0
        for share in reversed(size.shares):
            if not share.positions or not self.candidates(share.each, share.step) >> claim.number & 1:
                continue
            count, refused = self._put(claim, share)
            if refused is not None and refused.rule == PRICE and self._pays(claim, share, size):
                more, refused = self._put(claim, share)
                count += more
            placed += count
            tries += not count
            if tries >= _TRIES or (refused is not None and refused.rule in _NO_ROOM and share.step.final):
                break  # there is no room for any pod of this size
        size.left -= placed
        return placed

    def _pays(self, claim: Claim, share: Share, size: Size) -> bool:
        """Whether pods are worth what they would make the claim dearer by; if so, it may cost that much from now on."""
        before = claim.cost_max
        claim.cost_max = None
        found = self.openings.fitting(claim, share.each, share.step, new=False)
        claim.cost_max = before
        if before is None or not isinstance(found, Fitting) or found.reserved:
            return False
        best = claim.template.stock.prices(found.requirements).best
        cost = next((each.offering.cost for each in best if found.units >> each.unit & 1), None)
        if cost is None:
            return False
        room = self._rooms[id(claim.template)][
            [n for n in range(len(claim.template.stock.units)) if found.units >> n & 1]
        ]
        left = room - np.array(claim.amounts, dtype=np.float64)
        count = min(len(share.positions), size.host_most, float(_how_many(left, size.amounts).max()))
        if cost - before > _SHARE_OF_WORTH * count * size.worth:
            return False
        claim.cost_max = cost
        return True

    def _largest(self, claim: Claim) -> Vector:
        """For each resource the most that any node the claim may still be has for pods."""
        room = self._rooms[id(claim.template)]
        largest: Vector = room[_flags(claim.units, len(room))].max(axis=0)
        return largest

    def _put(self, claim: Claim, share: Share) -> tuple[int, Refused | None]:
        """As many pods of a share as the claim takes, and why it takes no more."""
        placed = 0
        many = share.plain
        while share.positions:
            count = self._most(claim, share) if many else 1
            found = self.openings.fitting(claim, share.each, share.step, new=False, count=max(count, 1))
            if not isinstance(found, Fitting):
                return placed, found
            if not count:
                return placed, Refused(RESOURCES)
            for _ in range(count):
                self.commit(claim, share.each, share.positions.pop(), share.step, found)
            placed += count
        return placed, None

    def _most(self, claim: Claim, share: Share) -> int:
        """The largest number of pods that the claim takes at once."""

        def takes(count: int) -> bool:
            found = self.openings.fitting(claim, share.each, share.step, new=False, count=count)
            return isinstance(found, Fitting)

        low, high, waiting = 0, 1, len(share.positions)
        while high <= waiting and takes(high):
            low, high = high, high * 2
        high = min(high, waiting + 1)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if takes(middle) else (low, middle)
        return low


class ConstrainedFirstRun(PricedRun):
    """The same, but pods with fewer kinds of node to choose from come first, so that others fill up around them."""

    planner = "worth, constrained first"

    def _precedence(self, size: Size) -> tuple[float, int]:
        kinds = self._kinds.of(size.template, size.requirements)
        return (float(len(kinds.units)) - size.worth / (1.0 + size.worth), size.number)


class Spreading:
    """Decides beforehand how many pods of a spread class go to each domain, so that claims can be filled one at a time.

    A claim that is filled to the brim in one zone would be out of balance until the next zone has its share. Where every pod
    that a group counts is bound by it, the end is known: counts that are as even as can be.
    """

    def __init__(self, run: "PricedRun") -> None:
        self._run = run
        self._counts: dict[Group, dict[str, int]] = {}
        self._before: dict[Group, dict[str, int]] = {}
        self._decided: list[tuple[Group, Requirement]] = []
        self._owners: dict[Group, bool] = {}
        self.left: list[int] = []
        """Pods that would bring their group out of balance wherever they went."""
        for each in run.classes:
            if each.number in run.ignored:
                continue
            own = {group for group, chosen in each.steps[0].groups if chosen}
            for group in each.counted:
                self._owners[group] = self._owners.get(group, True) and group in own

    def shares(self, each: PodClass, positions: list[int]) -> Iterator[Share]:
        """The pods of a class by the domain they are meant for; in one piece where nothing has to be decided."""
        step = each.steps[0]
        groups = [group for group, _ in step.groups if group.key != HOSTNAME]
        chosen = dict(step.groups)
        if len(groups) != 1 or groups[0].kind != SPREAD or not chosen[groups[0]] or not self._owners.get(groups[0]):
            yield Share(each, step, positions)
            return
        group = groups[0]
        self._decided.append((group, step.strict.at(group.key)))
        for domain, members in self._apportioned(group, step, each, positions).items():
            there = self._run.joined.only(Requirement(group.key, (domain,)))
            narrowed = self._run.joined.of(step.requirements, there) if step.requirements else there
            strict = self._run.joined.of(step.strict, there) if step.strict else there
            assert narrowed is not None
            assert strict is not None
            rest = tuple((other, counted) for other, counted in step.groups if other is not group)
            pinned = Step(narrowed, strict, step.tolerations, rest, step.marks, step.places)
            pinned.final = all(other.key == HOSTNAME for other, _ in rest) and step.final
            yield Share(each, pinned, members)

    def balanced(self) -> bool:
        """Whether the end is what was decided: pods that found no place may have left a group out of balance."""
        return all(
            count - group.least(pod) <= group.max_skew
            for group, pod in self._decided
            for domain, count in group.domains.items()
            if pod.has(domain) and count > self._before[group].get(domain, 0)
        )

    def _apportioned(self, group: Group, step: Step, each: PodClass, positions: list[int]) -> dict[str, list[int]]:
        """Domain to pods: each pod goes to the emptiest domain that can be bought, the cheaper one where two are equal."""
        counts = self._counts.setdefault(group, dict(group.domains))
        self._before.setdefault(group, dict(group.domains))
        pod = step.strict.at(group.key)
        reachable = [domain for domain in counts if pod.has(domain)]
        costs = {domain: cost for domain in reachable if (cost := self._cost(group, step, each, domain)) is not None}
        meant: dict[str, list[int]] = {}
        while positions:
            least = min((counts[domain] for domain in reachable), default=0)
            if group.min_domains is not None and len(reachable) < group.min_domains:
                least = 0
            best = min(costs, key=lambda domain: (counts[domain], costs[domain], domain), default=None)
            if best is None or counts[best] + 1 - least > group.max_skew:
                self.left.extend(positions)
                break
            counts[best] += 1
            meant.setdefault(best, []).append(positions.pop())
        return {domain: members[::-1] for domain, members in meant.items()}

    def _cost(self, group: Group, step: Step, each: PodClass, domain: str) -> float | None:
        """What the smallest new node for a pod would cost in a domain; nothing if there can be none."""
        there = self._run.joined.only(Requirement(group.key, (domain,)))
        for template in self._run.templates:
            joined = self._run.joined.of(template.requirements, step.requirements)
            narrowed = self._run.joined.of(joined, there) if joined is not None else None
            if narrowed is None or not self._run.openings.tolerates(template, step):
                continue
            units = template.usable & template.stock.described(narrowed) & template.fits.large_enough(each.amounts)
            for priced in template.stock.prices(narrowed).best:
                if units >> priced.unit & 1:
                    return priced.offering.cost
        return None


class _KindTable:
    """Kinds of node by pool and requirements, and who may join whom without making a claim dearer."""

    def __init__(self, run: PricedRun, rooms: dict[int, npt.NDArray[np.float64]]) -> None:
        self._run = run
        self._rooms = rooms
        self._kinds: dict[tuple[int, Requirements], Kinds] = {}
        self._welcome: dict[tuple[int, int], npt.NDArray[np.bool_] | None] = {}
        self._cost_tables: dict[tuple[int, Requirements], Vector] = {}

    def of(self, template: Template, requirements: Requirements) -> Kinds:
        """The undominated kinds under some requirements, cheapest first."""
        key = (id(template), requirements)
        found = self._kinds.get(key)
        if found is None:
            found = self._kinds[key] = self._undominated(template, requirements)
        return found

    def _undominated(self, template: Template, requirements: Requirements) -> Kinds:
        stock = template.stock
        allowed = template.usable & stock.described(requirements)
        best = [each for each in stock.prices(requirements).best if allowed >> each.unit & 1]
        units = np.array([each.unit for each in best], dtype=np.int64)
        costs = np.array([each.offering.cost for each in best], dtype=np.float64)
        room = self._rooms[id(template)][units] if len(units) else np.zeros((0, len(self._run.names)))
        kept: list[int] = []
        for number in range(len(units)):
            if not kept or not (room[kept] >= room[number]).all(axis=1).any():
                kept.append(number)
        return Kinds(units[kept], costs[kept], room[kept])

    def welcome(self, size: Size, other: Size, kinds: Kinds) -> npt.NDArray[np.bool_] | None:
        """On which kinds of a size's claims another size may join without raising the price; nothing if on none."""
        key = (size.number, other.number)
        if key not in self._welcome:
            self._welcome[key] = self._judge(size, other, kinds)
        return self._welcome[key]

    def _judge(self, size: Size, other: Size, kinds: Kinds) -> npt.NDArray[np.bool_] | None:
        if other.requirements == size.requirements:
            return np.ones(len(kinds.units), dtype=np.bool_)
        joined = self._run.joined.of(size.requirements, other.requirements)
        if joined is None:
            return None
        joint = self._costs(size.template, joined)[kinds.units]
        same: npt.NDArray[np.bool_] = joint <= kinds.costs * (1 + 1e-9)
        return same if same.any() else None

    def _costs(self, template: Template, requirements: Requirements) -> Vector:
        """What each unit costs under the requirements; infinite where it cannot be bought."""
        key = (id(template), requirements)
        found = self._cost_tables.get(key)
        if found is None:
            stock = template.stock
            described = stock.described(requirements)
            found = np.full(len(stock.units), np.inf, dtype=np.float64)
            for each in stock.prices(requirements).best:
                if described >> each.unit & 1:
                    found[each.unit] = each.offering.cost
            self._cost_tables[key] = found
        return found


def _flags(units: int, count: int) -> npt.NDArray[np.bool_]:
    """A set of units as a column of yes and no."""
    packed = np.frombuffer(units.to_bytes((count + 7) // 8, "little"), dtype=np.uint8)
    return np.unpackbits(packed, count=count, bitorder="little").astype(np.bool_)


def _how_many(room: npt.NDArray[np.float64], amounts: Vector) -> Vector:
    """How often the amounts go into each row."""
    wanted = amounts > 0
    if not wanted.any():
        return np.full(len(room), _PLENTY)
    often: Vector = np.floor((room[:, wanted] / amounts[wanted]).min(axis=1))
    return often


def _host_limit(step: Step) -> tuple[Group | None, float]:
    """The tightest limit by host that pods have on their own kind."""
    limits = [
        (group.max_skew if group.kind == SPREAD else 1, group)
        for group, chosen in step.groups
        if chosen and group.key == HOSTNAME and group.kind in (SPREAD, ANTI_AFFINITY)
    ]
    if not limits:
        return None, _PLENTY
    most, group = min(limits, key=lambda limit: limit[0])
    return group, float(most)
