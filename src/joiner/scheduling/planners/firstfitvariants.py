"""First fit with another order of the queue, another preference among domains, or on existing nodes only."""

from collections.abc import Iterable

from joiner.scheduling.engine.firstfit import FirstFit, NothingNew
from joiner.scheduling.engine.pricing import Costs, cheapest


class FirstPlace(FirstFit):
    """First fit in which volumes that can be reached from several places are only reached from the first, as Karpenter does it:
    pods that could be elsewhere then leave room for those that cannot.
    """

    planner = "first-fit, first place"

    def place(self) -> None:
        """Place what can be placed."""
        for step in (step for each in self.classes for step in each.steps):
            step.places = step.places[:1]
        super().place()


class Favouring(FirstFit):
    """First fit that prefers one domain where several are as good."""

    planner = "first-fit, favouring"

    def favour(self, key: str, domain: str) -> None:
        """Take this domain where several are as good."""
        self.planner = f"first-fit, favouring {domain}"
        for group in {group for each in self.classes for step in each.steps for group, _ in step.groups}:
            if group.key == key:
                group.ranks = {**group.ranks, domain: -1}


class AtHome(FirstFit):
    """First fit as long as existing nodes take every pod with all its preferences: then no other planner is needed.

    Pods that fit on no node at all do not count: a cluster may have them for weeks.
    """

    planner = "first-fit, at home"

    def place(self) -> None:
        """Place every pod, or give up at the first that might need a claim."""
        hopeless: dict[int, list[int]] = {}
        for position in self.wanted():
            each = self.of_pod[position]
            if each.number in hopeless:
                hopeless[each.number].append(position)
            elif not each.steps[0].impossible and self.on_node(each, position, each.steps[0]):
                self.moved()
            elif self.has_hope(each):
                raise NothingNew
            else:
                hopeless[each.number] = [position]
        self.settle([position for positions in hopeless.values() for position in positions])


class InTurn(FirstFit):
    """First fit, pod by pod instead of class by class: for when there is no room for all, and some are left over."""

    planner = "first-fit, in turn"
    in_turn = True


class Baseline(InTurn):
    """The same without what lets pods in that Karpenter leaves out: no pod that is placed here is left out for one of those.

    Pods that keep apart do not settle for a domain each, and preferences that were given up do not come back.
    """

    planner = "first-fit, baseline"

    def place(self) -> None:
        """Place what can be placed."""
        groups = {group for each in self.classes for step in each.steps for group, _ in step.groups if group.pins}
        if not groups and not any(step.again for each in self.classes for step in each.steps):
            raise NothingNew
        for group in groups:
            group.pins = False
        for each in self.classes:
            each.steps = [step for step in each.steps if not step.again]
        super().place()


class MarketFirst(FirstFit):
    """First fit in which some classes leave reservations to others as long as there is something to buy for them.

    A group that has to be together may not fit on a reserved machine, and limits may leave room for fewer of those.
    """

    planner = "first-fit, market first"

    def spare(self, classes: Iterable[int]) -> None:
        """Name the classes that leave reservations to others."""
        self.openings.market_first = frozenset(classes)

    def hand_out(self, costs: Costs) -> None:
        """Claims that bought in vain get what was not taken, those first that would cost most."""
        for claim in sorted(self.claims, key=lambda claim: (-cheapest(self, claim), claim.number)):
            if self.reservations.holds(claim.number) is None and (usable := self.openings.reservable(claim)):
                self.reservations.hold(claim.number, usable)


class ImportantFirst(FirstFit):
    """First fit by pod priority: for when limits leave no room for all."""

    planner = "first-fit, important first"
    by_priority = True
    in_turn = True
