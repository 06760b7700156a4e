"""Claims of a run that has ended, taken apart and put together anew.

Whatever topology has decided stays as it is: pods that any group concerns stay in the domains of the claim they come from.
Whether they may be on other hosts is for the caller to know.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from joiner.bitset import NO_UNITS
from joiner.model.pod import ContainerPort
from joiner.requirements import Requirements
from joiner.scheduling.nodes.openclaim import Claim
from joiner.scheduling.pods.podclass import PodClass, Step
from joiner.scheduling.problem import Amounts

if TYPE_CHECKING:
    from joiner.scheduling.engine.firstfit import FirstFit


class PodBundle(NamedTuple):
    """Pods of a claim that no rule can tell apart, by position."""

    pod_class: PodClass
    step: Step
    positions: list[int]

    @property
    def free(self) -> bool:
        """Whether nothing but the pods' own wishes says where they may be."""
        each, step = self.pod_class, self.step
        return not (step.groups or each.kept_out or each.counted or step.marks or any(step.places))


def bundles(claim: Claim) -> list[PodBundle]:
    """The claim's pods, the largest first."""
    found: dict[tuple[int, int], PodBundle] = {}
    for each, positions, step in claim.parties:
        found.setdefault((each.number, id(step)), PodBundle(each, step, [])).positions.extend(positions)

    def share(bundle: PodBundle) -> float:
        return max((a / of for a, of in zip(bundle.pod_class.amounts, claim.amounts, strict=True) if of), default=0.0)

    return sorted(found.values(), key=lambda bundle: (-share(bundle), bundle.pod_class.number, bundle.positions[0]))


class ClaimPart(NamedTuple):
    """Some of a claim's pods, as far as a node for them must know."""

    requirements: Requirements
    free: bool
    amounts: Amounts
    ports: tuple[ContainerPort, ...]
    attached: Mapping[str, frozenset[str]]


class ClaimSplitter:
    """Makes parts of one claim, and says what they could be bought as."""

    def __init__(self, run: "FirstFit", whole: Claim) -> None:
        self._run = run
        self._whole = whole
        self._sample = Claim(-1, whole.template)

    def nothing(self) -> ClaimPart:
        """A part without any pods."""
        return ClaimPart(self._whole.template.requirements, True, (0,) * len(self._run.names), (), {})

    def plus(self, part: ClaimPart, bundle: PodBundle, count: int) -> ClaimPart | None:
        """The part with more pods; None if no node can be what they all ask for.

        What pods ask for holds alone where topology has no say; else the part must be what the whole claim had to be.
        """
        free = part.free and bundle.free
        joined = self._run.joined.of(part.requirements, bundle.step.requirements) if free else self._whole.requirements
        if joined is None:
            return None
        each = bundle.pod_class
        amounts = tuple(own + count * more for own, more in zip(part.amounts, each.amounts, strict=True))
        attached = dict(part.attached)
        for driver, volumes in each.volumes.attachments.items():
            attached[driver] = attached.get(driver, frozenset()) | volumes
        return ClaimPart(joined, free, amounts, (*part.ports, *each.ports), attached)

    def sample(self, part: ClaimPart) -> Claim | None:
        """A claim for the part, to be looked at until the next one is asked for; nothing where it cannot be bought."""
        return self._filled(self._sample, part)

    def claim(self, part: ClaimPart) -> Claim | None:
        """A claim for the part, to keep; it still has no pods and no number of its own."""
        return self._filled(Claim(-1, self._whole.template), part)

    def _filled(self, claim: Claim, part: ClaimPart) -> Claim | None:
        claim.requirements, claim.amounts = part.requirements, part.amounts
        claim.ports, claim.attached = list(part.ports), dict(part.attached)
        claim.units, claim.min_values = NO_UNITS, self._whole.min_values
        claim.first_units = self._whole.first_units
        self._run.openings.widen(claim)
        flexible = not claim.min_values or self._is_flexible(claim)
        return claim if claim.units and flexible else None

    def _is_flexible(self, claim: Claim) -> bool:
        """Whether minValues hold; the cheapest of very many types need not be as different as all of them."""
        few = claim.units.bit_count() <= self._run.policy.types_max
        return few and not self._run.openings.short(claim, claim.units, claim.requirements)


def fresh_number(run: "FirstFit") -> int:
    """A number that no claim of the run has."""
    return max((claim.number for claim in run.claims), default=-1) + 1
