"""What is decided about nodes: moves, notices for users, and what must be remembered until the next decision."""

from collections.abc import Mapping
from typing import Final

from joiner.disruption.eligibility import Candidate, Objection
from joiner.disruption.simulate import SimulatedPlan
from joiner.model.meta import Value
from joiner.model.nodepool import NodePool
from joiner.scheduling.plan import PlannedClaim

EMPTY: Final = "Empty"
DRIFTED: Final = "Drifted"
UNDERUTILIZED: Final = "Underutilized"

REPLACE: Final = "replace"
DELETE: Final = "delete"
TERMINATE_FIRST: Final = "terminate-first"


class Payback(Value):
    """The arithmetic of a move: what it saves by the hour, what it costs once, and when that is paid back."""

    nodes: tuple[str, ...]
    """The instance types that go."""
    before: float
    """Dollars an hour of what goes."""
    new: tuple[str, ...]
    """The instance types that would be bought."""
    after: float
    saved: float
    """Dollars an hour."""
    pods: int
    worth: float
    """Dollars an hour that the evicted pods are worth together."""
    eviction: float
    """Dollars that their eviction counts as."""
    start: float
    """Dollars that the new nodes cost until they are ready."""
    eviction_s: float
    horizon_s: float

    @property
    def cost(self) -> float:
        """Dollars, once."""
        return self.eviction + self.start

    @property
    def pays(self) -> bool:
        """Whether the costs are paid back within the horizon."""
        # To a billionth of a dollar: what differs less is the same on every machine.
        saved = round(self.saved * (self.horizon_s / 3600.0), 9)
        return saved > 0 and saved > round(self.cost, 9)

    @property
    def paid_back_s(self) -> float:
        """After how many seconds the costs are paid back."""
        return self.cost / self.saved * 3600.0 if self.saved > 0 else float("inf")

    @property
    def margin(self) -> float:
        """How many times as dear the evictions could be for the move to pay just the same; infinite where they cost nothing."""
        left = self.saved * self.horizon_s / 3600.0 - self.start
        return left / self.eviction if self.eviction > 0 else float("inf")

    @property
    def pays_below_s(self) -> float:
        """The price of an eviction, in seconds of the pods' own price, below which the move would pay."""
        return max(0.0, self.eviction_s * self.margin) if self.eviction > 0 else 0.0


class Move(Value):
    """Nodes that go together, and what must be there before they do."""

    reason: str
    """`Empty`, `Drifted`, `Underutilized`."""
    decision: str
    """`delete`, `replace`, `terminate-first`."""
    candidates: tuple[Candidate, ...]
    consolidation_type: str = ""
    """`empty`, `single`, `multi`; nothing for drift."""
    tried: SimulatedPlan | None = None
    claims: tuple[PlannedClaim, ...] = ()
    """What is bought before they go."""
    replicas: NodePool | None = None
    """A pool that keeps a number of nodes: one new claim of its template takes the place of each."""
    first_because: str = ""
    """Why they go before their replacements are there."""
    avoided: frozenset[str] = frozenset()
    """Nodes that were no places in the plan, because they should go themselves sooner or later."""
    payback: Payback | None = None
    scores: Mapping[str, float] = {}
    """Pool with the policy Balanced to the score of this move."""

    @property
    def nodes(self) -> tuple[str, ...]:
        """The names of the nodes that go."""
        return tuple(each.name for each in self.candidates)


class JudgedMove(Value):
    """A move that was looked at, for metrics: whether it was approved, and how it scored."""

    decision: str
    """`approved` or `rejected`."""
    nodepool: str
    policy: str
    score: float | None = None


class Decision(Value):
    """What to do now."""

    moves: tuple[Move, ...] = ()
    objections: tuple[Objection, ...] = ()
    judged: tuple[JudgedMove, ...] = ()
    eligible: Mapping[str, int] = {}
    """Reason to how many nodes could go for it."""
