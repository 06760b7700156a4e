"""Best fit by price increase: a pod joins the open claim it makes dearer by least, unless a claim of its own costs less."""

import math

from joiner.bitset import NO_UNITS, UnitSet
from joiner.requirements import Requirements
from joiner.scheduling.engine.firstfit import FirstFit
from joiner.scheduling.engine.pricing import cheapest, compared_cost, on_the_market
from joiner.scheduling.nodes.openclaim import Claim, Fitting
from joiner.scheduling.pods.podclass import PodClass, Step


class LeastIncrease(FirstFit):
    """Looks at every open claim for every pod, so it is for small problems; `slack` says how much dearer is still fine."""

    planner = "guarded"
    weighs_prices = True
    slack = 1.0

    def on_claim(self, pod_class: PodClass, position: int, step: Step) -> bool:
        """Place the pod on the open claim it makes dearer by least, unless a claim of its own is cheaper."""
        candidates = self.candidates(pod_class, step)
        best: tuple[float, int, Fitting] | None = None
        while candidates:
            number = (candidates & -candidates).bit_length() - 1
            claim, like = self.claims[number], self.like(number, pod_class, step)
            candidates &= ~like
            found = self.openings.fitting(claim, pod_class, step, new=False)
            if not isinstance(found, Fitting):
                self.close(step, like, found)
            else:
                rise = round(self._cost(claim, found) - self._now(claim), 15)
                if best is None or rise < best[0]:
                    best = (rise, claim.number, found)
                if rise <= 0:
                    break  # nothing is cheaper than what costs nothing more
        if best is None or (best[0] > 0 and best[0] > self.slack * self._alone(pod_class, step)):
            return False
        self.commit(self.claims[best[1]], pod_class, position, step, best[2])
        return True

    def _cost(self, claim: Claim, found: Fitting) -> float:
        if found.reserved:
            return self._out_of_reservations(claim, found.requirements, found.units)
        return on_the_market(self, claim.template, found.requirements, found.units, found.min_values)

    def _now(self, claim: Claim) -> float:
        if self.reservations.holds(claim.number) is None:
            return cheapest(self, claim)
        return self._out_of_reservations(claim, claim.requirements, claim.units)

    def _out_of_reservations(self, claim: Claim, requirements: Requirements, units: UnitSet) -> float:
        """What the claim costs out of the best reservation that it can have, which is settled only at the end."""
        stock, reach = claim.template.stock, self.reservations.within_reach(claim.number)
        terms, machines = stock.terms(requirements), NO_UNITS
        for name, having in (*terms.reserved, *terms.counted):
            if self.reservations.those((name,)) & reach:
                machines |= having
        best = stock.prices(requirements, reserved=True).first(units & machines)
        return 0.0 if best is None else compared_cost(best.offering)

    def _alone(self, pod_class: PodClass, step: Step) -> float:
        """What a new claim for the pod alone would cost."""
        for template in self.templates:
            claim = Claim(len(self.claims), template)
            found = self.opened(claim, pod_class, step)
            if isinstance(found, Fitting):
                return self._cost(claim, found)
        return math.inf


class TightLeastIncrease(LeastIncrease):
    """Never makes a claim dearer if a new one costs less."""

    planner = "guarded, tight"
    slack = 0.6
