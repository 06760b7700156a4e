"""The controller that takes a claim through the steps of its life and writes what they decided, once."""

from collections.abc import Iterable

from joiner.controllers.nodeclaim.lifecycle.deletion import Deletion
from joiner.controllers.nodeclaim.lifecycle.draft import Draft, RegistrationOutcomes
from joiner.controllers.nodeclaim.lifecycle.initialization import Initialization
from joiner.controllers.nodeclaim.lifecycle.launch import GivenUp, Launch, PlannedPods
from joiner.controllers.nodeclaim.lifecycle.liveness import Liveness
from joiner.controllers.nodeclaim.lifecycle.registration import Registration
from joiner.controllers.shared import Shared
from joiner.kube.client import Key
from joiner.kube.controller import DONE, Change, Reconciler, Result, Watch, soonest
from joiner.kube.errors import Invalid, KubeError, NotFound
from joiner.model import claimconditions, labels
from joiner.model.claimconditions import LAUNCHED
from joiner.model.conditions import find
from joiner.model.meta import replace
from joiner.model.node import Node
from joiner.model.nodeclaim import NodeClaim
from joiner.observe.claims import count_disrupted


class Lifecycle(Reconciler):
    """Launch, registration, initialization and liveness of every claim of ours; at the end, its deletion."""

    name = "nodeclaim.lifecycle"
    workers = 1000

    def __init__(
        self, shared: Shared, *, health: RegistrationOutcomes, planned_pods: PlannedPods = lambda claim: ()
    ) -> None:
        self._client, self._informers, self._clock = shared.client, shared.informers, shared.clock
        self._metrics, self._managed = shared.metrics, shared.managed
        self._launch = Launch(shared, planned_pods=planned_pods)
        self._registration = Registration(shared, health=health)
        self._initialization = Initialization(shared)
        self._liveness = Liveness(shared.clock, health=health)
        self._deletion = Deletion(shared, launch=self._launch)
        self.watches = (Watch(NodeClaim, self._claim), Watch(Node, self._claims_of_node))

    def _claim(self, change: Change) -> Iterable[Key]:
        if change.after is None:
            self._launch.forget(change.before.metadata.uid)
            return ()
        if change.before is not None and _concerns_us(change.before) == _concerns_us(change.after):
            return ()
        return (Key("", change.after.name),)

    def _claims_of_node(self, change: Change) -> Iterable[Key]:
        provider_id = change.latest.spec.provider_id
        claims = self._informers.by(NodeClaim, "provider-id", provider_id) if provider_id else ()
        return [Key("", claim.name) for claim in claims]

    async def reconcile(self, key: Key) -> Result:
        """Take a claim as far as it will go now."""
        claim = self._informers.get(NodeClaim, key.name)
        if claim is None or not self._managed.claim(claim):
            return DONE
        if not claimconditions.is_leaving(claim):
            claim = await self._fresh(claim)
        if claimconditions.is_leaving(claim):
            return await self._deletion.step(claim)
        draft = Draft(claim, self._clock.now())
        try:
            launching = await self._launch.step(draft)
            joining, problem = await self._joining(draft)
            # Given up only where nothing went wrong on the way: the node may be open by now, with pods on it. What the API
            # server does not accept, it will not accept later either.
            failed = problem is not None and not isinstance(problem, Invalid)
            living = DONE if failed else self._liveness.step(draft)
        except GivenUp as end:
            await self._give_up(claim, end.reason)
            return DONE
        await draft.write(self._client)
        if problem is not None:
            raise problem
        return soonest(launching, joining, living)

    async def _fresh(self, claim: NodeClaim) -> NodeClaim:
        """The claim with our finalizer; before a launch as the server has it, because a machine costs money."""
        metadata = claim.metadata
        if labels.TERMINATION_FINALIZER not in metadata.finalizers:
            held = replace(metadata, finalizers=(*metadata.finalizers, labels.TERMINATION_FINALIZER))
            self._launch.begins(metadata.uid)
            return await self._client.patch(claim, replace(claim, metadata=held), locked=True)
        launched = find(claim.status.conditions, LAUNCHED)
        if launched is None or launched.status == "Unknown":
            found = await self._client.get(NodeClaim, claim.name)
            if found.metadata.uid != metadata.uid:
                raise NotFound(f"NodeClaim {claim.name} is another one by now")
            return found
        return claim

    async def _joining(self, draft: Draft) -> tuple[Result, KubeError | None]:
        """Register and initialise; gives what went wrong. What was launched is written all the same."""
        try:
            waiting = await self._registration.step(draft)
            await self._initialization.step(draft)
        except KubeError as problem:
            return DONE, problem
        return waiting, None

    async def _give_up(self, claim: NodeClaim, reason: str) -> None:
        try:
            await self._client.delete(NodeClaim, claim.name, uid=claim.metadata.uid)
        except NotFound:
            return
        count_disrupted(self._metrics, claim, reason)


def _concerns_us(claim: NodeClaim) -> tuple[object, ...]:
    """What may make a step decide differently; when a pod last came is not among it, and changes most often."""
    metadata = claim.metadata
    written = (metadata.labels, metadata.annotations, metadata.finalizers, metadata.deletion_timestamp)
    return (*written, claim.status.conditions, claim.status.provider_id)
