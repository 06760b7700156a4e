"""First fit with an eye on the price: a pod joins the claim that it makes dearer by least, if it is worth that."""

import math

from joiner.scheduling.engine.firstfit import FirstFit
from joiner.scheduling.engine.pricing import cheapest, on_the_market
from joiner.scheduling.nodes.openclaim import Claim, Fitting
from joiner.scheduling.pods.podclass import PodClass, Step


class LeastIncrease(FirstFit):
    """Looks at every open claim for every pod, so it is for small problems; `slack` says how much dearer is still fine."""

    planner = "guarded"
    slack = 1.0

    def on_claim(self, each: PodClass, position: int, step: Step) -> bool:
        """Place the pod on the open claim it makes dearer by least, unless a claim of its own is cheaper."""
        candidates = self.candidates(each, step)
        best: tuple[float, int, Fitting] | None = None
        while candidates:
            number = (candidates & -candidates).bit_length() - 1
            claim, like = self.claims[number], self.like(number, each, step)
            candidates &= ~like
            found = self.openings.fitting(claim, each, step, new=False)
            if not isinstance(found, Fitting):
                self.close(step, like, found)
            else:
                rise = round(self._cost(claim, found) - cheapest(self, claim), 12)
                if best is None or rise < best[0]:
                    best = (rise, claim.number, found)
                if rise <= 0:
                    break  # nothing is cheaper than what costs nothing more
        if best is None or (best[0] > 0 and best[0] > self.slack * self._alone(each, step)):
            return False
        self.commit(self.claims[best[1]], each, position, step, best[2])
        return True

    def _cost(self, claim: Claim, found: Fitting) -> float:
        if found.reserved:
            return cheapest(self, claim)
        return on_the_market(self, claim.template, found.requirements, found.units)

    def _alone(self, each: PodClass, step: Step) -> float:
        """What a new claim for the pod alone would cost."""
        for template in self.templates:
            claim = Claim(len(self.claims), template)
            found = self.opened(claim, each, step)
            if isinstance(found, Fitting):
                return self._cost(claim, found) if not found.reserved else 0.0
        return math.inf


class TightGuardedRun(LeastIncrease):
    """Never makes a claim dearer if a new one costs less."""

    planner = "guarded, tight"
    slack = 0.6
