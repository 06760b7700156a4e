"""First fit: the order in which pods are tried, and the places they are tried on.

Pods go largest first. Each is tried on nodes that are there, then on open claims, then on a new claim of each pool by weight;
where it finds no place it gives up one preference after the other. Nothing is decided by chance.
"""

from collections import Counter, deque
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from joiner.bitset import NO_CLAIMS, NO_UNITS, ClaimSet, NodeSet, UnitSet
from joiner.model.labels import HOSTNAME
from joiner.requirements import Requirements
from joiner.scheduling.effort import Effort
from joiner.scheduling.engine.prepared import PreparedProblem
from joiner.scheduling.engine.pricing import Costs, cheapest, compared
from joiner.scheduling.engine.volumepinned import VolumePinnedQueue
from joiner.scheduling.nodes.openclaim import (
    LIMITS,
    NOWHERE,
    PASSING,
    Claim,
    Fitting,
    PlacedPods,
    Refused,
    record,
    settle_waiting,
)
from joiner.scheduling.nodes.placementrules import PlacementRules
from joiner.scheduling.nodes.reservations import Reservations
from joiner.scheduling.pods.podclass import PodClass, Step
from joiner.scheduling.problem import Problem
from joiner.scheduling.topology.group import AFFINITY, ANTI_AFFINITY, Group

_LOOK_AT_COST: Final = 4
"""After how many pods, at the least, a run looks at what it costs by now; with many claims, that is work in itself."""


class TooDear(Exception):
    """The run would end in a dearer plan than one that is known already."""


class NothingNew(Exception):
    """The run would end in the plan of a simpler way of planning."""


def _minds_no_host(pod_class: PodClass, step: Step) -> bool:
    """Whether all that a pod asks of a claim that is not ruled out for it can be told by what the claim may be and holds."""
    if pod_class.ports or pod_class.volumes.attachments:
        return False
    return not any(group.kind == AFFINITY and group.key == HOSTNAME for group, _ in step.groups)


class FirstFit:
    """One attempt at a problem, with everything that changes on the way."""

    planner = "first-fit"
    sound = True
    """Whether the outcome keeps every rule; a way of planning that looks ahead may find out at the end that it does not."""
    by_priority = False
    """Whether important pods go first, whatever their size."""
    weighs_prices = False
    """Whether prices say which pods go on which claim."""
    buys_by_value = False
    """Whether it looks for the node first, then for the pods on it."""
    in_turn = False
    """Whether pods of one size and age go one after the other, and not class by class; the refused wait for the next round."""

    def __init__(
        self,
        problem: Problem,
        effort: Effort,
        prepared: "PreparedProblem | None" = None,
        *,
        cost_max: float | None = None,
        without: frozenset[int] = frozenset(),
        order: list[int] | None = None,
        pinned: bool = False,
    ) -> None:
        self.problem = problem
        self._order = order
        self._cost_max = cost_max
        self._without = without
        self.effort = effort
        self.policy = problem.policy
        self.vocabulary = problem.vocabulary
        self._prepared = prepared or PreparedProblem(problem)
        self.names = self._prepared.names
        self.joined = self._prepared.joined
        self.kinds = self._prepared.kinds
        self.classes, self.of_pod = self._prepared.cast()
        self.pinned = pinned
        """Whether it is settled at once where pods go that others keep away from, so that more of them have a place.

        That makes nodes dearer than they need be, so it is only for when pods are left over.
        """
        if pinned:
            self._pin()
        self.templates = self._prepared.templates()
        self.ignored = self._prepared.ignored
        self.nodes = self._prepared.nodes()
        self._left_on_nodes = self._prepared.left()
        self.claims: list[Claim] = []
        self.market: dict[tuple[str, Requirements, UnitSet], float] = {}
        """What units of a pool cost under some requirements, as far as it was asked for."""
        self._by_size: dict[int, ClaimSet] = {}
        """Number of pods to the open claims that have so many."""
        self._in_order: dict[int, deque[int]] = {}
        """The same, in the order in which they are asked."""
        self._changed: set[int] = set()
        """Open claims that took pods since claims like them were last looked for."""
        self._likeness: dict[int, tuple[object, ...]] = {}
        """What each of them may be and holds, as it was then."""
        self._alike: dict[tuple[object, ...], ClaimSet] = {}
        """What claims may be and hold to the open claims of which that is true."""
        self._settled_at: dict[tuple[str, str], ClaimSet] = {}
        """Label and value to the open claims that must have it."""
        self._watched = self._prepared.watched
        self._state = 0
        self.given_up: Counter[int] = Counter()
        """How much of what they ask for the pods of each class gave up, as far as they were placed one by one."""
        self.modest: dict[int, int] = {}
        """The same pod by pod: which of its steps it was placed at, if it was not the first."""
        self.left: list[int] = []
        """The pods that found no place."""
        self.not_attempted: list[int] = []
        """The pods that were not tried before the effort was spent."""
        self.reservations = Reservations(self._reserved_counts())
        self.flexible, self.launch_terms = self._prepared.flexible, self._prepared.launch_terms
        self.disliked = self._prepared.disliked
        self.openings = PlacementRules(
            self.joined,
            self.reservations,
            self.flexible,
            self.launch_terms,
            best_effort=problem.policy.min_values == "BestEffort",
        )

    def _reserved_counts(self) -> dict[str, int]:
        """Reservation to how many of its machines are left for us."""
        counts: dict[str, int] = {}
        # Also of pools that have nothing to sell: their catalogue may be the later one.
        for option in self.problem.pools:
            for name, count in option.catalog.market.stock.reservations().items():
                used = self.policy.reserved_capacity or name in option.catalog.market.stock.counted_names
                left = max(0, count - self.problem.promised.get(name, 0)) if used else 0
                counts[name] = min(left, counts.get(name, left))
        return counts

    def _pin(self) -> None:
        groups = {group for each in self.classes for group in each.kept_out}
        groups |= {group for each in self.classes for step in each.steps for group, _ in step.groups}
        apart = [group for group in groups if group.kind == ANTI_AFFINITY and group.key != HOSTNAME]
        if not apart:
            raise NothingNew
        for group in apart:
            group.pins_all = True

    # -- the queue ----------------------------------------------------------------------------------------------------

    def queue(self) -> list[int]:
        """The pods in the order in which they are tried: largest first, then the oldest, unless another is asked for."""
        return self._order or self._prepared.queue(self.by_priority, self.in_turn)

    def wanted(self) -> list[int]:
        """The queue without ignored pods and without pods held back for this run (`without`)."""
        if not self.ignored and not self._without:
            return list(self.queue())
        return [at for at in self.queue() if self.of_pod[at].number not in self.ignored and at not in self._without]

    def place(self) -> None:
        """Place what can be placed."""
        self.settle(self.wanted())

    def again(self, order: list[int], cost_max: float | None = None) -> "FirstFit | None":
        """The same with another order of the queue; nothing if that would cost more than so much."""
        run = type(self)(
            self.problem,
            self.effort,
            self._prepared,
            cost_max=cost_max,
            without=self._without,
            order=order,
            pinned=self.pinned,
        )
        try:
            run.place()
        except TooDear:
            return None
        return run

    def settle(self, waiting: list[int]) -> None:
        """Place these pods one after the other, again and again while that helps, and end the run.

        A run that was told what another plan costs gives up once it is sure to cost more: claims only ever get dearer.
        """
        stopped: list[int] = []
        while waiting:
            before = self._state
            left: dict[int, None] = {}
            held = VolumePinnedQueue()
            look_at = 0
            for at, position in enumerate(waiting):
                if at >= look_at:
                    look_at = at + max(_LOOK_AT_COST, len(self.claims) // 4)
                    self.end_if_too_dear()
                if self.effort.spent():
                    stopped = waiting[at:]
                    break
                each = self.of_pod[position]
                if each.refused_at == self._state or not self._place(each, position):
                    each.refused_at = self._state
                    left[position] = None
                    held.wait(each, position)
                elif left and not self.in_turn:
                    self._call_back(each, held, left)
            waiting = list(left)
            if stopped or self._state == before:
                break
        self.left, self.not_attempted = [*waiting, *sorted(self._without)], stopped
        costs = Costs(self)
        self.hand_out(costs)
        self.reservations.cheapen(costs, costs.even)
        for claim in self.claims:
            # A price kept pods out that would have made the claim dearer; a launch may fall back to dearer types.
            if claim.cost_max is not None and self.reservations.holds(claim.number) is None:
                self.openings.widen(claim)
            if claim.waiting:
                self._settle_company(claim)

    def hand_out(self, costs: Costs) -> None:
        """Give away what is left in reservations. Here nothing is: claims take what they can when they are opened."""

    def _settle_company(self, claim: Claim) -> None:
        """Pods that stay with others may go to any of several domains where those are. A launch could not tell which of them
        count on these pods in turn, so the claim settles for the domain where it is cheapest.
        """
        owned = {group for _, _, step in claim.parties for group, _ in step.groups}
        for group in [group for group in claim.waiting if group in owned]:
            best = claim.template.stock.prices(claim.requirements).first(claim.units)
            there = best.offering.requirements.get(group.key) if best is not None else None
            if there is None or self.reservations.holds(claim.number) is not None:
                continue
            settled = self.joined.of(claim.requirements, self.joined.only(there))
            units = claim.units & claim.template.stock.terms(settled).for_sale if settled is not None else NO_UNITS
            if settled is not None and units and not self.openings.short(claim, units, settled):
                claim.requirements, claim.units = settled, units
                settle_waiting(claim)

    def _call_back(self, placed: PodClass, held: VolumePinnedQueue, left: dict[int, None]) -> None:
        """Try pods again that could not be where their volumes are before one of their group was placed."""
        evened_out = [placed]
        while held and evened_out:
            for position in held.beside(evened_out.pop()):
                each = self.of_pod[position]
                if each.refused_at != self._state and self._place(each, position):
                    del left[position]
                    held.go(each, position)
                    evened_out.append(each)
                else:
                    each.refused_at = self._state

    def _place(self, pod_class: PodClass, position: int) -> bool:
        for number, step in enumerate(pod_class.steps):
            if step.impossible or step.hopeless or step.waits:
                continue
            if (
                self.on_node(pod_class, position, step)
                or self.on_claim(pod_class, position, step)
                or self._on_new_claim(pod_class, position, step)
            ):
                if number:
                    self.given_up[pod_class.number] += number
                    self.modest[position] = number
                self.moved()
                return True
            if len(pod_class.steps) > 1:
                step.hopeless = not self._has_hope_at(pod_class, step)
        return False

    def end_if_too_dear(self) -> None:
        """Give up a run that is sure to cost more than it may."""
        if self._cost_max is not None and self.cost() > self._cost_max:
            raise TooDear

    def cost(self) -> float:
        """What the open claims cost at least, whatever else they take: those in a reservation may end up cheaper still."""
        return sum(cheapest(self, claim) for claim in self.claims if self.reservations.holds(claim.number) is None)

    def moved(self) -> None:
        """A pod was placed: pods that were refused before may be tried again."""
        self._state += 1

    # -- places -------------------------------------------------------------------------------------------------------

    def on_node(self, pod_class: PodClass, position: int, step: Step) -> bool:
        """Place the pod on a node that is there, if one takes it."""
        for number in self._likely_nodes(pod_class, step) if self.nodes else ():
            node = self.nodes[number]
            if step.closed_nodes >> node.number & 1:
                continue
            refused = node.refused(pod_class, step)
            if refused is None:
                if not node.members:
                    node = self.nodes[number] = node.fresh()
                node.take(pod_class, position, step)
                self._left_on_nodes[:, number] = node.left
                return True
            if refused.rule not in PASSING:
                step.closed_nodes |= NodeSet(1 << node.number)
        return False

    def could_be_on_node(self, pod_class: PodClass, step: Step) -> bool:
        """Whether a node that is there would take the pod if it came first and topology had no say."""
        nodes = self._prepared.nodes()
        refused = (
            nodes[at].refused(pod_class, step)
            for at in np.flatnonzero(self._roomy(self._prepared.left(), pod_class, step))
        )
        return any(why is None or why.rule in PASSING for why in refused)

    def has_hope(self, pod_class: PodClass) -> bool:
        """Whether a node or pool might take the pod if it came first and topology had no say. Limits and room only shrink."""
        return any(self._has_hope_at(pod_class, step) for step in pod_class.steps if not step.impossible)

    def _has_hope_at(self, pod_class: PodClass, step: Step) -> bool:
        return any(
            self.openings.could_take(template, pod_class, step) for template in self.templates
        ) or self.could_be_on_node(pod_class, step)

    def _roomy(self, left_on_nodes: npt.NDArray[np.float64], pod_class: PodClass, step: Step) -> npt.NDArray[np.bool_]:
        """The nodes that have the labels and the room."""
        roomy = self._prepared.nodes_agreeing(step.requirements).copy()
        for left, wanted in zip(left_on_nodes, pod_class.amounts, strict=True):
            if wanted:
                roomy &= left >= float(wanted)
        return roomy

    def _likely_nodes(self, pod_class: PodClass, step: Step) -> Iterable[int]:
        """The nodes that have the labels and the room, and are in no domain that is out of the question."""
        likely = self._roomy(self._left_on_nodes, pod_class, step)
        for group, chosen in (*step.groups, *((group, False) for group in pod_class.kept_out)):
            if group.key != HOSTNAME:
                there = self._prepared.nodes_in(group.key)
                for domain in group.forbidden(step.strict.at(group.key), chosen):
                    if domain in there:
                        likely &= ~there[domain]
        return np.flatnonzero(likely)

    def on_claim(self, pod_class: PodClass, position: int, step: Step) -> bool:
        """Place the pod on an open claim, the one with the fewest pods that takes it."""
        candidates = self.candidates(pod_class, step)
        if not candidates:
            return False
        elsewhere: set[tuple[int, Requirements]] = set()
        """What claims are that count on reservations, and that the pod cannot join because it has to be elsewhere."""
        for size in sorted(self._by_size):
            here = self._by_size[size] & candidates
            for number in tuple(self._in_order[size]) if here.bit_count() > 1 else (here.bit_length() - 1,):
                if not here:
                    break
                if not here >> number & 1:
                    continue
                claim = self.claims[number]
                kind = (id(claim.template), claim.requirements)
                if kind in elsewhere and self.reservations.holds(number) is not None:
                    continue
                found = self.openings.fitting(claim, pod_class, step, new=False)
                if isinstance(found, Fitting):
                    self.commit(claim, pod_class, position, step, found)
                    return True
                if found.detail is NOWHERE and len(step.places) == 1:
                    elsewhere.add(kind)
                like = self.like(number, pod_class, step)
                candidates, here = candidates & ~like, here & ~like
                self.close(step, like, found)
        return False

    def close(self, step: Step, claims: ClaimSet, refused: Refused) -> None:
        """Open claims refuse a pod: if they do so for ever, they need not be asked again."""
        if step.final and refused.rule not in PASSING:
            step.closed_claims |= claims

    def like(self, number: int, pod_class: PodClass, step: Step) -> ClaimSet:
        """The open claims that differ from one in their host alone, with itself: what it says to the pod they say too."""
        if not _minds_no_host(pod_class, step):
            return ClaimSet(1 << number)
        for changed in self._changed:
            claim, bit = self.claims[changed], ClaimSet(1 << changed)
            before = self._likeness.get(changed)
            if before is not None:
                self._alike[before] &= ~bit
                if not self._alike[before]:
                    del self._alike[before]
            alone = changed if self.reservations.holds(changed) is not None else None
            likeness = self._likeness[changed] = (alone, *claim.likeness())
            self._alike[likeness] = self._alike.get(likeness, NO_CLAIMS) | bit
        self._changed.clear()
        return self._alike[self._likeness[number]]

    def candidates(self, pod_class: PodClass, step: Step) -> ClaimSet:
        """Open claims that nothing known about the class rules out."""
        candidates = ClaimSet((1 << len(self.claims)) - 1) & ~step.closed_claims
        for group, chosen in step.groups:
            candidates &= ~self._ruled_out(group, step, chosen)
        for group in pod_class.kept_out:
            candidates &= ~self._ruled_out(group, step, False)
        return candidates

    def considers(self, claim: Claim, pod_class: PodClass, step: Step) -> bool:
        """Whether nothing known about the class rules out one claim."""
        if step.closed_claims >> claim.number & 1:
            return False
        for group, chosen in step.groups:
            if self._keeps_out(group, claim, step, chosen):
                return False
        return not any(self._keeps_out(group, claim, step, False) for group in pod_class.kept_out)

    def _keeps_out(self, group: Group, claim: Claim, step: Step, chosen: bool) -> bool:
        if group.key == HOSTNAME:
            return group.is_full(claim.host, chosen)
        settled = claim.requirements.get(group.key)
        if settled is None or settled.complement or len(settled.values) != 1:
            return False
        return min(settled.values) in group.forbidden(step.strict.at(group.key), chosen)

    def _ruled_out(self, group: Group, step: Step, chosen: bool) -> ClaimSet:
        """Open claims that cannot take a pod of the group, as far as that is known without looking at them."""
        if group.key == HOSTNAME:
            return group.full_hosts(chosen) if group.kind != AFFINITY else NO_CLAIMS
        found = NO_CLAIMS
        for domain in group.forbidden(step.strict.at(group.key), chosen):
            found |= self._settled_at.get((group.key, domain), NO_CLAIMS)
        return found

    def _on_new_claim(self, pod_class: PodClass, position: int, step: Step) -> bool:
        for template in self.templates:
            claim = Claim(len(self.claims), template)
            found = self.opened(claim, pod_class, step)
            if isinstance(found, Fitting):
                self.claims.append(claim)
                template.opened(found.units)
                self.commit(claim, pod_class, position, step, found)
                return True
        return False

    def opened(self, claim: Claim, pod_class: PodClass, step: Step) -> Fitting | Refused:
        """What a new claim would be with a pod of the class, or which rule forbids it."""
        template = claim.template
        if template.left:
            claim.units &= template.within_limits()
            if not claim.units:
                return Refused(LIMITS)
        return self.openings.fitting(claim, pod_class, step, new=True)

    def commit(self, claim: Claim, pod_class: PodClass, position: int, step: Step, found: Fitting) -> None:
        """A claim takes a pod, and is from now on what `found` says."""
        self.commit_all(claim, pod_class, [position], step, found)

    def commit_all(self, claim: Claim, pod_class: PodClass, positions: list[int], step: Step, found: Fitting) -> None:
        """A claim takes pods of one class, and is from now on what `found` says."""
        self.commit_whole(claim, [(pod_class, positions, step)], found)

    def commit_whole(self, claim: Claim, parties: Sequence[PlacedPods], found: Fitting) -> None:
        """A claim takes pods of several classes at once, and is from now on what `found` says."""
        bit, size = ClaimSet(1 << claim.number), claim.size
        if not size:
            claim.first_units = found.units
        if claim.requirements is not found.requirements or not size:
            self._note_domains(bit, found.requirements)
        claim.requirements, claim.units, claim.amounts = found.requirements, found.units, found.amounts
        claim.min_values = found.min_values
        claim.take(parties)
        for each, _, _ in parties:
            if each.ports:
                claim.ports.extend(each.ports)
            for driver, volumes in each.volumes.attachments.items():
                claim.attached[driver] = claim.attached.get(driver, frozenset()) | volumes
        self._grow(claim.number, bit, size, claim.size - size)
        self._changed.add(claim.number)
        if found.reserved:
            held = self.reservations.hold(claim.number, found.reserved)
            assert held, "a claim was promised a reservation that is gone"
        if claim.waiting:
            settle_waiting(claim)
        for each, positions, step in parties:
            if each.counted or step.marks:
                record(claim, each, step, bool(found.reserved), len(positions))

    def _grow(self, number: int, bit: ClaimSet, size: int, count: int) -> None:
        """A claim has more pods. Among claims of one size, new ones are asked last and the latest to grow first."""
        if size:
            self._by_size[size] &= ~bit
            self._in_order[size].remove(number)
            if not self._by_size[size]:
                del self._by_size[size], self._in_order[size]
        self._by_size[size + count] = self._by_size.get(size + count, NO_CLAIMS) | bit
        order = self._in_order.setdefault(size + count, deque())
        if size:
            order.appendleft(number)
        else:
            order.append(number)

    def _note_domains(self, bit: ClaimSet, requirements: Requirements) -> None:
        """Remember where a claim must lie, for the labels that groups watch."""
        for key in self._watched:
            settled = requirements.get(key)
            if settled is not None and not settled.complement and len(settled.values) == 1:
                where = (key, min(settled.values))
                self._settled_at[where] = self._settled_at.get(where, NO_CLAIMS) | bit

    def key(self, position: int) -> str:
        """The name of the pod at a position."""
        return self._prepared.keys[position]

    def names_of(self, positions: Iterable[int]) -> tuple[str, ...]:
        """The names of some pods, in order."""
        keys = self._prepared.keys
        return tuple(sorted([keys[position] for position in positions]))

    # -- the answer ---------------------------------------------------------------------------------------------------

    def least_refused(self) -> list[int]:
        """The priorities of pods that found no place, most important first: the smaller, the better."""
        pods = self.problem.pods
        return sorted((pods[position].spec.priority or 0 for position in self.waiting()), reverse=True)

    def reserved(self) -> int:
        """How many claims use capacity that is paid for already."""
        return sum(map(self.in_reservation, self.claims))

    def in_reservation(self, claim: Claim) -> bool:
        """Whether the claim is launched into a reservation."""
        held = self.reservations.holds(claim.number)
        return held is not None and held not in claim.template.stock.counted_names

    def demoted(self) -> int:
        """How many pods are on claims of a lighter pool that none of them needs: heavier ones would take them all, one by one.

        A pod that joins a claim which another pod needs does as it should, whatever its pool.
        """
        best = self._prepared.best_weights(self.openings)
        if not best:
            return 0
        return sum(
            claim.size
            for claim in self.claims
            if all(best.get(each.number, 0) > claim.template.weight for each, _, _ in claim.parties)
        )

    def limited(self) -> bool:
        """Whether, after what was bought, limits rule out nodes that could have been bought before."""
        pairs = zip(self.templates, self._prepared.templates(), strict=True)
        return any(now.usable & then.within_limits() & ~now.within_limits() for now, then in pairs if now.left)

    @property
    def stopped(self) -> bool:
        """Whether its effort was spent before every pod was tried."""
        return bool(self.not_attempted)

    def waiting(self) -> frozenset[int]:
        """The pods that found no place."""
        return frozenset((*self.left, *self.not_attempted))

    def left_over(self) -> Counter[int]:
        """How many pods of each class found no place."""
        return Counter(self.of_pod[position].number for position in self.waiting())

    def price(self) -> float:
        """What the claims cost, each bought as cheaply as it can be."""
        return sum(cheapest(self, claim) for claim in self.claims)

    def compared_price(self) -> float:
        """The same for comparing plans: reserved capacity comes before every other, also where it was given a price."""
        return sum(compared(self, claim) for claim in self.claims)

    def reserved_price(self) -> float:
        """The part of that which is for reserved capacity: large machines are left to those that need them."""
        return sum(compared(self, claim) for claim in self.claims if self.in_reservation(claim))
