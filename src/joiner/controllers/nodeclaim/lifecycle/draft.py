"""What the steps of a claim's life share: the claim while it is worked on, and what they tell others."""

from collections.abc import Callable
from datetime import datetime
from typing import Any, Protocol

from joiner.controllers.status import StatusEdit
from joiner.kube.client import Client
from joiner.model.meta import replace
from joiner.model.nodeclaim import NodeClaim


class RegistrationOutcomes(Protocol):
    """Who keeps count of how well the nodes of a pool join."""

    def success(self, pool: str, pool_uid: str) -> None:
        """A node of the pool joined."""
        ...

    def failure(self, pool: str, pool_uid: str, reason: str, message: str) -> None:
        """A node of the pool did not join in time; why, as it can be told on the pool."""
        ...


class Draft:
    """A claim while the steps decide about it. What they changed is written once, at the end: metadata, then status.

    In that order: a claim that says it is launched has its labels.
    """

    def __init__(self, claim: NodeClaim, now: datetime) -> None:
        self.claim = claim
        self.now = now
        self.status = StatusEdit(claim, now)
        self.fields: dict[str, Any] = {}
        """Other fields of the status that changed."""
        self.afterwards: list[Callable[[], None]] = []
        """What is told once everything is written, so that it is told once."""
        self.labels = dict(claim.metadata.labels)
        self.annotations = dict(claim.metadata.annotations)

    @property
    def provider_id(self) -> str:
        """The machine, as far as it is known by now."""
        return str(self.fields.get("provider_id", self.claim.status.provider_id))

    def pass_time(self, now: datetime) -> None:
        """It is later by now: what is decided from here on happens then."""
        later = StatusEdit(self.claim, now)
        later.conditions = self.status.conditions
        self.status, self.now = later, now

    async def write(self, client: Client) -> None:
        """Send what changed, if anything did."""
        metadata = replace(self.claim.metadata, labels=self.labels, annotations=self.annotations)
        stored = self.claim
        if metadata != self.claim.metadata:
            # Locked, so that what follows is said of the claim that was looked at.
            stored = await client.patch(self.claim, replace(self.claim, metadata=metadata), locked=True)
        changed = replace(stored.status, conditions=self.status.conditions, **self.fields)
        if changed != stored.status:
            await client.patch_status(stored, replace(stored, status=changed), locked=True)
        for tell in self.afterwards:
            tell()


def pool_of(claim: NodeClaim) -> tuple[str, str]:
    """Name and UID of the pool the claim was made for; empty if it was made for none."""
    owners = ((owner.name, owner.uid) for owner in claim.metadata.owner_references if owner.kind == "NodePool")
    return next(owners, ("", ""))
