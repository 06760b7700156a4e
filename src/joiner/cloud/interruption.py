"""Interruption notices: what a cloud says about machines that it is going to take away, before it does.

A provider that hears of such notices has `interruptions`, which gives a NoticeQueue. The interruption controller receives the
notices, deletes the claims they are about, and acknowledges them. A provider that hears nothing leaves the method out; its
machines are then found missing when they are gone.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Final, Literal, Protocol, runtime_checkable

from joiner.model.meta import Value
from joiner.model.nodeclaim import NodeClaim

Kind = Literal[
    "spot_interrupted",
    "rebalance_recommendation",
    "scheduled_change",
    "instance_stopped",
    "instance_terminated",
    "capacity_reservation_interrupted",
    "event_status",
    "instance_status",
    "system_status",
    "no_op",
]
"""What a notice is about, in the words of Karpenter's metrics. `no_op` is one that means nothing to us."""
Action = Literal["drain", "force", "tell", "ignore"]

ACTIONS: Final[Mapping[Kind, Action]] = {
    "spot_interrupted": "drain",
    "rebalance_recommendation": "tell",
    "scheduled_change": "drain",
    "instance_stopped": "drain",
    "instance_terminated": "drain",
    "capacity_reservation_interrupted": "drain",
    "event_status": "drain",
    "instance_status": "force",
    "system_status": "force",
    "no_op": "ignore",
}
"""What is done about the claim of a machine: its deletion with a drain, one without, an event, nothing."""


class Notice(Value):
    """One notice. It may come twice, late, or about machines that are not ours."""

    id: str
    """By which it is acknowledged."""
    kind: Kind
    instances: tuple[str, ...] = ()
    """The machines it is about: their provider ids, or the last part of those (`i-0abc` of `aws:///eu-west-1a/i-0abc`)."""
    sent_at: datetime | None = None


class NoticeQueue(Protocol):
    """Where notices come from."""

    async def receive(self) -> tuple[Notice, ...]:
        """Wait for notices; gives none after a while without any. One that is not acknowledged is given again later.

        Raises CloudError.
        """
        ...

    def mark_unavailable(self, notice: Notice, claim: NodeClaim) -> None:
        """Do not offer for a while what the notice says there is no more of: a spot offering, a place in a reservation.

        Called before the claim is deleted, so that its replacement is planned without it.
        """
        ...

    async def acknowledge(self, notice: Notice) -> None:
        """Everything was done about the notice. Raises CloudError; the notice then comes again, which does no harm."""
        ...


@runtime_checkable
class HasInterruptions(Protocol):
    """A provider that may hear of interruptions."""

    def interruptions(self) -> NoticeQueue | None:
        """The queue of its notices; nothing where it is configured without one."""
        ...


def interruptions_of(provider: object) -> NoticeQueue | None:
    """The notices of a provider; nothing where it has none."""
    return provider.interruptions() if isinstance(provider, HasInterruptions) else None


def instance_id(provider_id: str) -> str:
    """The last part of a provider id, by which clouds name their machines."""
    return provider_id.rpartition("/")[2]
