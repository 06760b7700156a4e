"""The step that watches the clock: a claim whose machine is not bought, or does not join, in time has to go."""

from datetime import timedelta
from typing import Final

from joiner.clock import Clock
from joiner.controllers.nodeclaim.lifecycle.draft import Draft, RegistrationOutcomes, pool_of
from joiner.controllers.nodeclaim.lifecycle.launch import GivenUp
from joiner.controllers.waits import Waits
from joiner.kube.controller import DONE, Result
from joiner.model.claimconditions import LAUNCHED, REGISTERED

LAUNCH_TIMEOUT: Final = timedelta(minutes=5)
REGISTRATION_TIMEOUT: Final = timedelta(minutes=15)


class Liveness:
    """Gives up on claims that take too long. Being initialised has no limit: it depends on what prepares the node."""

    def __init__(self, clock: Clock, *, health: RegistrationOutcomes) -> None:
        self._health = health
        self._waits = Waits(clock)

    def step(self, draft: Draft) -> Result:
        """When to look again; raises GivenUp when the time is over."""
        if draft.status.is_true(REGISTERED):
            return DONE
        if not draft.status.is_true(LAUNCHED):
            left = self._left(draft, LAUNCHED, LAUNCH_TIMEOUT)
            if left <= 0:
                self._give_up(draft, "launch_timeout")
            return Result(left)
        left = self._left(draft, REGISTERED, REGISTRATION_TIMEOUT)
        if left <= 0:
            self._give_up(draft, "registration_timeout")
        return Result(left)

    def _left(self, draft: Draft, kind: str, timeout: timedelta) -> float:
        # A condition is there from the first look at a claim: what it waits for may have begun later.
        begins = (draft.status.find(each) for each in (kind, LAUNCHED))
        since = max((each.last_transition_time or draft.now for each in begins if each is not None), default=draft.now)
        return self._waits.left((draft.claim.metadata.uid, kind), since, timeout)

    def _give_up(self, draft: Draft, reason: str) -> None:
        launched = draft.status.find(LAUNCHED)
        if launched is not None and launched.status != "True":
            self._health.failure(*pool_of(draft.claim), launched.reason, launched.message)
        else:
            message = f"NodeClaim {draft.claim.name} was launched, and its node did not join in time"
            self._health.failure(*pool_of(draft.claim), "RegistrationFailed", message)
        raise GivenUp(reason)
