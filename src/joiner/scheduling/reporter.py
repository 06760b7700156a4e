"""The attempts at a plan, as they happen: each planner that is tried, and its outcome."""

from typing import Final, Protocol

from joiner.model.meta import Value

COMPLETE: Final = "complete"
LEFT_OVER: Final = "pods left over"
UNSOUND: Final = "breaks a rule"
NOTHING_NEW: Final = "nothing new"
DEARER: Final = "dearer"


class Attempt(Value):
    """One way of planning, and what came of it."""

    planner: str
    outcome: str
    """One of the words above. Of what was given up no more is told."""
    nodes: int = 0
    """Those it would buy."""
    price: float = 0.0
    """What they cost by the hour."""
    left_over: int = 0

    @property
    def given_up(self) -> bool:
        """Whether there is no plan to tell of."""
        return self.outcome not in (COMPLETE, LEFT_OVER)


class Reporter(Protocol):
    """A listener to the planning of one problem. Nothing that it does can change the plan."""

    def trying(self, planner: str) -> None:
        """A way of planning begins."""
        ...

    def tried(self, attempt: Attempt) -> None:
        """It has come to its end."""
        ...
