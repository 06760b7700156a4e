"""First fit with another order, another taste in domains, or less patience."""

from collections.abc import Iterable

from joiner.scheduling.engine.firstfit import FirstFit, NothingNew
from joiner.scheduling.engine.pricing import Costs, cheapest


class CheapDomainsRun(FirstFit):
    """First fit that opens each claim in the domain where its first pod costs least."""

    planner = "first-fit, cheap domains"
    by_price = True


class FirstPlaceRun(FirstFit):
    """First fit in which volumes that can be reached from several places are only reached from the first, as Karpenter does it:
    who could be elsewhere then does not get in the way of those who cannot.
    """

    planner = "first-fit, first place"

    def place(self) -> None:
        """Place what can be placed."""
        for step in (step for each in self.classes for step in each.steps):
            step.places = step.places[:1]
        super().place()


class FavouringRun(FirstFit):
    """First fit that has a favourite among the domains."""

    planner = "first-fit, favouring"

    def favour(self, key: str, domain: str) -> None:
        """Take this domain where several are as good."""
        self.planner = f"first-fit, favouring {domain}"
        for group in {group for each in self.classes for step in each.steps for group, _ in step.groups}:
            if group.key == key:
                group.ranks = {**group.ranks, domain: -1}


class AtHome(FirstFit):
    """First fit as long as nodes that are there take everybody as they wish to be: then nobody else needs to plan.

    Pods that are too large or too choosy for everybody are no reason to plan on: a cluster may have them for weeks.
    """

    planner = "first-fit, at home"

    def place(self) -> None:
        """Place everybody, or give up at the first who might need a claim."""
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
    """First fit, everybody in turn: for when there is no room for everybody, and somebody has to stay out."""

    planner = "first-fit, in turn"
    in_turn = True


class Baseline(InTurn):
    """The same without what lets pods in that Karpenter leaves out: whoever is placed here is left out for none of those.

    Pods that keep apart do not settle for a domain each, and what was given up does not come back.
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
    """First fit in which some leave reservations to others as long as there is something to buy for them.

    A group that has to be together may not fit on a reserved machine, and limits may leave room for fewer of those.
    """

    planner = "first-fit, market first"

    def spare(self, classes: Iterable[int]) -> None:
        """Say who leaves reservations to others."""
        self.openings.market_first = frozenset(classes)

    def hand_out(self, costs: Costs) -> None:
        """Whoever was modest in vain gets what nobody took, those first who would cost most."""
        for claim in sorted(self.claims, key=lambda claim: (-cheapest(self, claim), claim.number)):
            if self.reservations.holds(claim.number) is None and (usable := self.openings.reservable(claim)):
                price = cheapest(self, claim)
                names = self.reservations.names(usable)
                cheaper = self.reservations.those(name for name in names if costs(claim.number, name) < price)
                self.reservations.hold(claim.number, cheaper)


class ImportantFirst(FirstFit):
    """First fit, important pods first: for when limits leave no room for everybody."""

    planner = "first-fit, important first"
    by_priority = True
    in_turn = True
