"""What a provider may still have to do or to find out about a machine that has joined, before its node counts as registered.

A provider that has nothing of the kind leaves `registration_hooks` out.
"""

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from joiner.model.meta import Value
from joiner.model.nodeclaim import NodeClaim


class Answer(Value):
    """What a hook says about a claim."""

    again_s: float | None = None
    """In how many seconds to ask again, because it is not done yet; nothing once it is."""
    labels: Mapping[str, str] = {}
    """What was found out by now: labels for the claim and its node."""


class RegistrationHook(Protocol):
    """One thing that keeps a node from being registered."""

    @property
    def name(self) -> str:
        """What people are told the node waits for."""
        ...

    async def registered(self, claim: NodeClaim) -> Answer:
        """Whether it is done for the machine of a claim. Asked again until it is, and then perhaps once more.

        What it raises as CloudError counts as not done.
        """
        ...


@runtime_checkable
class HasHooks(Protocol):
    """A provider with something to do before nodes are registered."""

    def registration_hooks(self) -> tuple[RegistrationHook, ...]:
        """Everything that must be done; all at once, in no order."""
        ...


def hooks_of(provider: object) -> tuple[RegistrationHook, ...]:
    """What a provider has to do before nodes are registered; nothing where it does not say."""
    return provider.registration_hooks() if isinstance(provider, HasHooks) else ()
