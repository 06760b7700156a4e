"""The first step: a machine is bought."""

from collections.abc import Callable, Iterable
from typing import Final, NoReturn

from joiner.catalog import launchoptions
from joiner.catalog.build import Catalog
from joiner.cloud.errors import CloudError, InsufficientCapacity, LaunchFailed, NodeClassNotReady, Transient
from joiner.cloud.provider import UNLISTED_S, Instance
from joiner.controllers.nodeclaim.lifecycle.draft import Draft
from joiner.controllers.shared import Shared
from joiner.kube.controller import DONE, Backoff, Result
from joiner.model import labels
from joiner.model.claimconditions import LAUNCHED
from joiner.model.conditions import find
from joiner.model.labels import Vocabulary
from joiner.model.meta import replace
from joiner.model.nodeclaim import NodeClaim
from joiner.model.nodepool import NodePool
from joiner.model.pod import Pod
from joiner.requirements import Requirements

MESSAGE_MOST: Final = 1024
LOOK_AGAIN_S: Final = 5.0
"""How soon the provider is asked again for a machine that may have been bought."""
PlannedPods = Callable[[str], Iterable[Pod]]
"""Claim name to the pods that were planned for it and have no node yet."""


class GivenUp(Exception):
    """The claim cannot be bought and has to go, so that its pods are planned anew."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class _Attempts:
    """What we know of the launches of a claim."""

    def __init__(self, doubted_until: float = 0.0) -> None:
        self.failures = 0
        self.not_before = 0.0
        self.doubted_until = doubted_until
        """Until then a machine may have been bought that the provider does not tell of yet."""


class Launch:
    """Buys the machine of a claim. Asked again after a lost answer, it finds the machine that was bought before."""

    def __init__(self, shared: Shared, *, planned_pods: PlannedPods) -> None:
        self._informers, self._provider, self._catalogs = shared.informers, shared.provider, shared.catalogs
        self._clock, self._recorder, self._vocabulary = shared.clock, shared.recorder, shared.vocabulary
        self._planned_pods = planned_pods
        self._strict = shared.options.min_values_policy == "Strict"
        self._backoff = Backoff()
        self._bought: dict[str, Instance] = {}
        self._refused: set[str] = set()
        self._attempts: dict[str, _Attempts] = {}

    def begins(self, uid: str) -> None:
        """The claim gets our finalizer: no process has tried to buy a machine for it before."""
        self._attempts[uid] = _Attempts()

    def doubts(self, claim: NodeClaim) -> bool:
        """Whether a machine may have been bought for the claim that the provider does not tell of yet."""
        return self._clock.monotonic() < self._attempt(claim).doubted_until

    def _attempt(self, claim: NodeClaim) -> _Attempts:
        """What we know of a claim's launches. For one that is new to us, a process before us may just have bought a machine."""
        uid = claim.metadata.uid
        if uid not in self._attempts:
            launched = find(claim.status.conditions, LAUNCHED)
            since = launched.last_transition_time if launched is not None and launched.status == "True" else None
            known = since is not None and abs(self._clock.now() - since).total_seconds() >= UNLISTED_S
            self._attempts[uid] = _Attempts(0.0 if known else self._clock.monotonic() + UNLISTED_S)
        return self._attempts[uid]

    def machine_of(self, uid: str) -> str | None:
        """The machine that was bought for a claim, as far as we remember; empty if we know that none was."""
        if uid in self._bought:
            return self._bought[uid].provider_id
        return "" if uid in self._refused else None

    def forget(self, uid: str) -> None:
        """The claim is gone."""
        self._bought.pop(uid, None)
        self._refused.discard(uid)
        self._attempts.pop(uid, None)

    async def step(self, draft: Draft) -> Result:
        """Buy, or say on the claim why not. Raises GivenUp when another claim should be made instead."""
        launched = draft.status.find(LAUNCHED)
        if launched is not None and launched.status != "Unknown":
            return DONE
        claim = draft.claim
        attempts = self._attempt(claim)
        wait = attempts.not_before - self._clock.monotonic()
        if wait > 0:
            return Result(wait)
        try:
            instance = self._bought.get(claim.metadata.uid) or await self._buy(claim, attempts)
        except (InsufficientCapacity, NodeClassNotReady) as error:
            if self.doubts(claim):
                attempts.not_before = self._clock.monotonic() + LOOK_AGAIN_S
                return Result(LOOK_AGAIN_S)
            self._give_up(claim, error)
        except CloudError as error:  # also an unknown one: it is reported, and the timeout runs on
            return self._failed(draft, attempts, error)
        draft.pass_time(self._clock.now())
        self._bought[claim.metadata.uid] = instance
        _copy(draft, instance, self._vocabulary)
        return DONE

    async def _buy(self, claim: NodeClaim, attempts: _Attempts) -> Instance:
        """Buy, or find what was bought before: a reservation may be full of this very machine."""
        catalog: Catalog | None = None
        try:
            catalog = await self._catalog(claim)
            instance = await self._bought_anew(claim, catalog, attempts)
        except (InsufficientCapacity, NodeClassNotReady):
            found = await self._found(claim) if claim.metadata.uid not in self._refused else None
            if found is None:
                raise
            instance = found
        promise = launchoptions.promised(catalog, instance.labels) if catalog is not None else None
        return replace(instance, capacity=promise[0], allocatable=promise[1]) if promise is not None else instance

    async def _found(self, claim: NodeClaim) -> Instance | None:
        """The machine that the provider says was bought for the claim."""
        uid = claim.metadata.uid
        return next(
            (each for each in await self._provider.list() if each.claim_uid == uid and not each.terminating), None
        )

    async def _catalog(self, claim: NodeClaim) -> Catalog:
        pool = self._informers.get(NodePool, claim.metadata.labels.get(labels.NODEPOOL, ""))
        buyer = launchoptions.buyer(claim, pool)
        try:
            return await self._catalogs.get(buyer)
        finally:
            if buyer is not pool:
                self._catalogs.forget(buyer.name)

    async def _bought_anew(self, claim: NodeClaim, catalog: Catalog, attempts: _Attempts) -> Instance:
        wanted = launchoptions.requirements_of(claim, catalog.market.vocabulary)
        options = launchoptions.options(catalog, wanted, claim.spec.resources.requests)
        if not options:
            raise InsufficientCapacity(f"nothing can be bought now that has {wanted or 'no requirement at all'}")
        short = launchoptions.shortfall(catalog, wanted, options) if self._strict else {}
        if short:
            counts = ", ".join(f"{key} {count} of {wanted[key].min_values}" for key, count in sorted(short.items()))
            raise InsufficientCapacity(f"what can be bought now does not leave the values minValues asks for: {counts}")
        asked = True
        try:
            return await self._provider.create(claim, options)
        except InsufficientCapacity:
            self._refused.add(claim.metadata.uid)
            attempts.doubted_until = 0.0
            raise
        except NodeClassNotReady:
            asked = False  # the provider looks at the class before it buys: only an earlier attempt may have bought
            raise
        finally:
            if asked and claim.metadata.uid not in self._refused:
                attempts.doubted_until = self._clock.monotonic() + UNLISTED_S

    def _give_up(self, claim: NodeClaim, error: InsufficientCapacity | NodeClassNotReady) -> NoReturn:
        if isinstance(error, InsufficientCapacity):
            self._tell(claim, str(error))
            raise GivenUp("insufficient_capacity") from error
        self._recorder.publish(claim, "NodeClassNotReady", _cut(str(error)))
        raise GivenUp("nodeclass_not_ready") from error

    def _failed(self, draft: Draft, attempts: _Attempts, error: CloudError) -> Result:
        attempts.failures += 1
        asked = error.after_s if isinstance(error, Transient) else 0.0
        wait = max(asked, self._backoff.after(attempts.failures))
        attempts.not_before = self._clock.monotonic() + wait
        reason = error.reason if isinstance(error, LaunchFailed) else "LaunchFailed"
        draft.status.unknown(LAUNCHED, reason=reason, message=_cut(str(error)))
        return Result(wait)

    def _tell(self, claim: NodeClaim, why: str) -> None:
        self._recorder.publish(claim, "InsufficientCapacityError", _cut(why))
        for pod in self._planned_pods(claim.name):
            message = _cut(f"NodeClaim {claim.name} could not be launched: {why}")
            self._recorder.publish(pod, "InsufficientCapacityError", message)


def _cut(message: str) -> str:
    return message if len(message) <= MESSAGE_MOST else f"{message[: MESSAGE_MOST - 3]}..."


def _copy(draft: Draft, instance: Instance, vocabulary: Vocabulary) -> None:
    """What the provider says about the machine, onto the claim."""
    settled = Requirements.read(draft.claim.spec.requirements, vocabulary).labels()
    known = {key: value for key, value in settled.items() if not vocabulary.is_restricted(key)}
    draft.labels = {**instance.labels, **known, **draft.labels}
    draft.annotations = {**draft.annotations, **instance.annotations}
    draft.fields.update(
        provider_id=instance.provider_id,
        image_id=instance.image_id,
        capacity=instance.capacity,
        allocatable=instance.allocatable,
    )
    draft.status.true(LAUNCHED)
