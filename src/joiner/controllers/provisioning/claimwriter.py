"""The only place that creates NodeClaims, from plans or for pools with replicas, if the pool as it is now still allows them.

A claim counts in the state of the cluster from the moment it is written, or may have been: where answers were lost it counts
until it is known what became of it. Should no watch ever tell of it, because it was gone before the cache could see it or was
never there, it is forgotten again.
"""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import timedelta
from random import Random
from typing import Final, NamedTuple

from joiner.catalog.build import Catalog
from joiner.controllers.provisioning.launchretries import NOW, UNDECIDED, LaunchRequest, LaunchRetries
from joiner.controllers.shared import Shared
from joiner.kube.client import Key
from joiner.kube.controller import ALONE, Backoff, Reconciler, Result
from joiner.kube.errors import AlreadyExists, Invalid, KubeError, NotFound, Throttled, Unreachable
from joiner.model import labels
from joiner.model.conditions import READY, is_true
from joiner.model.labels import Vocabulary
from joiner.model.meta import ObjectMeta, OwnerReference, replace
from joiner.model.nodeclaim import NodeClaim, NodeClaimSpec, ResourceRequests
from joiner.model.nodepool import NodePool
from joiner.model.nodepoolhash import HASH_VERSION, nodepool_hash
from joiner.model.pod import Pod
from joiner.model.quantity import MILLI, Quantity
from joiner.model.requirement import IN, SelectorRequirementWithMinValues
from joiner.model.resources import NODES
from joiner.requirements import Requirements
from joiner.scheduling.plan import PlannedClaim
from joiner.scheduling.problem import PoolOption
from joiner.state.usage import most

PROVISIONED: Final = "provisioned"
"""Why claims are made, unless they replace others."""
AT_ONCE: Final = 50
"""How many claims are written at the same time."""
ATTEMPTS: Final = 6
RETRY_S_LEAST: Final = 0.5
RETRY_S_MOST: Final = 5.0
LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
"""What names end with, as an API server makes them up: no words come out, and nothing that looks like something else."""
NAME_MAX: Final = 63
UNSEEN_S: Final = 15.0
"""How long a watch may take to tell of a claim that we wrote."""


class ClaimRequest(NamedTuple):
    """A claim to write, the pool as it was planned with, and the pods it is for."""

    planned: PlannedClaim
    option: PoolOption
    pods: tuple[Pod, ...]


class WriteOutcome(NamedTuple):
    """The claim that was written, or why there is none."""

    claim: NodeClaim | None
    problem: str = ""


class ClaimWriter:
    """Creates claims."""

    def __init__(self, shared: Shared, *, retries: LaunchRetries, random: Random) -> None:
        self._client, self._cluster, self._clock = shared.client, shared.cluster, shared.clock
        self._metrics, self._vocabulary, self._random = shared.metrics, shared.vocabulary, random
        self._retries = retries
        self.deciding = asyncio.Lock()
        """Held from a look at the cluster until the claims that follow from it are written.

        Two plans made side by side would count on the same places in reservations, and on the same room under limits.
        """
        self.written = asyncio.Event()
        """Set when there are claims that no watch has told of yet."""

    async def buy(
        self, requests: Sequence[ClaimRequest], *, reason: str = PROVISIONED, replaces: Sequence[str] = ()
    ) -> tuple[WriteOutcome, ...]:
        """Write a claim for each request that its pool allows at this moment, in order.

        `replaces` are the claims that go when these are complete.
        """
        rooms: dict[str, _Room] = {}
        outcomes: list[WriteOutcome] = []
        queue = tuple(
            zip(requests, self._retries.allowed([launch_request(request) for request in requests]), strict=True)
        )
        for start in range(0, len(queue), AT_ONCE):
            batch = queue[start : start + AT_ONCE]
            for request, _ in batch:
                if request.planned.nodepool not in rooms:
                    rooms[request.planned.nodepool] = _Room(await self._live(request.planned.nodepool), request.option)
            writing: list[_Writing] = []
            for request, at in batch:
                room = rooms[request.planned.nodepool]
                problem = room.problem or (room.take(request) if at == NOW else self._waits(request, at))
                claim = None if problem or room.pool is None else dynamic_claim(request, room.pool)
                claim = claim if claim is None else _replacing(claim, replaces)
                writing.append(_Writing(claim, request.pods, problem, launch_request(request)))
            await asyncio.gather(*(self._write(each, reason) for each in writing if each.claim is not None))
            outcomes.extend(WriteOutcome(each.stored, each.problem) for each in writing)
            for each in writing:
                if each.error is not None:
                    raise each.error
        return tuple(outcomes)

    def _waits(self, request: ClaimRequest, allowed_at: float) -> str:
        what = f"NodePool {request.planned.nodepool}: claims for the same machines got none when they were last tried"
        if allowed_at == UNDECIDED:
            return f"{what}; one claim tries whether that is over"
        at = self._clock.now() + timedelta(seconds=allowed_at - self._clock.monotonic())
        return f"{what}; one claim tries again at {at:%H:%M:%S} UTC at the earliest"

    def allowance(self, pool: str, count: int) -> int:
        """How many of so many claims may be written now for a pool that keeps a number of nodes: one, if its launches fail."""
        return self._retries.allowed([LaunchRequest(pool)] * count).count(NOW)

    async def replicate(
        self, pool: NodePool, count: int, *, reason: str = PROVISIONED, replaces: Sequence[str] = ()
    ) -> tuple[NodeClaim, ...]:
        """Write so many claims of a pool that keeps a number of nodes; gives those that could be written."""
        claim = _replacing(static_claim(pool, self._vocabulary), replaces)
        writing = [_Writing(claim, (), "", LaunchRequest(pool.name)) for _ in range(count)]
        await asyncio.gather(*(self._write(each, reason) for each in writing))
        for each in writing:
            if each.error is not None:
                raise each.error
        return tuple(each.stored for each in writing if each.stored is not None)

    async def _live(self, name: str) -> NodePool | None:
        try:
            return await self._client.get(NodePool, name)
        except NotFound:
            return None

    async def _write(self, writing: "_Writing", reason: str) -> None:
        assert writing.claim is not None
        try:
            writing.stored = stored = await self._created(writing)
        except KubeError as error:
            if writing.doubted is not None:
                self._count(writing.doubted, writing, doubted=True)
                writing.error = error
            elif isinstance(error, Invalid):
                writing.problem = f"the claim could not be written: {error}"
            else:
                writing.error = error
            return
        self._count(stored, writing)
        self._metrics.nodeclaims_created_total.labels(
            reason=reason,
            nodepool=stored.metadata.labels.get(labels.NODEPOOL, ""),
            min_values_relaxed=stored.metadata.annotations.get(labels.MIN_VALUES_RELAXED, "false"),
        ).inc()

    def _count(self, claim: NodeClaim, writing: "_Writing", *, doubted: bool = False) -> None:
        self._retries.wrote(claim.name, writing.launch)
        self._cluster.created(claim, writing.pods, self._clock.now(), doubted=doubted)
        self.written.set()

    async def _created(self, writing: "_Writing") -> NodeClaim:
        """Write one claim once, also when answers are lost: it keeps its name until it is known what became of it."""
        assert writing.claim is not None
        backoff, claim = Backoff(RETRY_S_LEAST, RETRY_S_MOST), self._named(writing.claim)
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return await self._once(claim, writing)
            except AlreadyExists:
                claim = self._named(claim)
            except (Unreachable, Throttled) as error:
                if isinstance(error, Unreachable):
                    born = replace(claim.metadata, creation_timestamp=self._clock.now())
                    writing.doubted = replace(claim, metadata=born)
                if attempt == ATTEMPTS:
                    raise
                await asyncio.sleep(error.after_s if isinstance(error, Throttled) else backoff.after(attempt))
        raise AlreadyExists(f"no free name was found for a claim of {claim.metadata.generate_name}")

    async def _once(self, claim: NodeClaim, writing: "_Writing") -> NodeClaim:
        try:
            return await self._client.create(claim)
        except AlreadyExists:
            if writing.doubted is None:
                raise
            return await self._client.get(NodeClaim, claim.name)  # it was us

    def _named(self, claim: NodeClaim) -> NodeClaim:
        prefix = claim.metadata.generate_name
        ending = "".join(self._random.choice(LETTERS) for _ in range(5))
        return replace(claim, metadata=replace(claim.metadata, name=prefix[: NAME_MAX - 5] + ending))


class _Writing:
    """One claim on its way."""

    def __init__(self, claim: NodeClaim | None, pods: tuple[Pod, ...], problem: str, launch: LaunchRequest) -> None:
        self.claim = claim
        self.pods = pods
        self.problem = problem
        self.launch = launch
        self.stored: NodeClaim | None = None
        self.doubted: NodeClaim | None = None
        """The claim under its name, if it is not known whether it was written."""
        self.error: KubeError | None = None


class _Room:
    """A pool as it is now, and what its limits leave while claims are written."""

    def __init__(self, pool: NodePool | None, option: PoolOption) -> None:
        self.pool = pool
        self._catalog = option.catalog
        limits: Mapping[str, int] = pool.spec.limits if pool is not None else {}
        self._left = {name: amount - option.used.get(name, 0) for name, amount in limits.items()}
        self.problem = _unusable(pool, option.pool.name)

    def take(self, request: ClaimRequest) -> str:
        """Count a claim against the limits; gives why that cannot be."""
        takes = {NODES: MILLI, **most(self._catalog, (each.name for each in request.planned.options), self._left)}
        over = sorted(name for name in self._left if takes[name] > self._left[name])
        if over:
            return f"NodePool {request.planned.nodepool}: its limits leave no room any more ({', '.join(over)})"
        for name in self._left:
            self._left[name] -= takes[name]
        return ""


def _unusable(pool: NodePool | None, name: str) -> str:
    if pool is None:
        return f"NodePool {name} is gone"
    if pool.metadata.deletion_timestamp is not None:
        return f"NodePool {name} is being deleted"
    return "" if is_true(pool.status.conditions, READY) else f"NodePool {name} is not ready"


class Unseen(Reconciler):
    """Forgets claims that are gone before any watch told of them, or were never written."""

    name = "state.nodeclaimgc"
    workers = 1
    keys_at_start = (ALONE,)

    def __init__(self, shared: Shared, *, claims: ClaimWriter) -> None:
        self._client, self._cluster, self._clock, self._claims = shared.client, shared.cluster, shared.clock, claims

    async def reconcile(self, key: Key) -> Result:
        """Wait until something was written, give the watches time, and ask for what they did not tell of."""
        await self._claims.written.wait()
        await asyncio.sleep(UNSEEN_S)
        for name in self._cluster.unseen(self._clock.now(), timedelta(seconds=UNSEEN_S)):
            try:
                await self._client.get(NodeClaim, name)
            except NotFound:
                self._cluster.forget_unseen(name)
        if not self._cluster.unseen(self._clock.now(), timedelta(0)):
            self._claims.written.clear()
        return Result(0.0)


def launch_request(request: ClaimRequest) -> LaunchRequest:
    """As what the claim of a request may be launched."""
    return LaunchRequest(request.planned.nodepool, request.planned, request.option.catalog)


# -- what is written --------------------------------------------------------------------------------------------------


def dynamic_claim(request: ClaimRequest, pool: NodePool) -> NodeClaim:
    """The claim of a plan: the types it may be, cheapest first, and everything that the pool's template says."""
    planned, catalog = request.planned, request.option.catalog
    requirements = planned.requirements.without(labels.HOSTNAME)
    settled = _custom_labels(requirements, catalog.market.vocabulary)
    return _claim(
        pool,
        extra_labels=settled,
        annotations={labels.MIN_VALUES_RELAXED: str(planned.min_values_relaxed).lower(), **_overlaid(planned, catalog)},
        requirements=_written(planned, requirements, catalog),
        requests={name: Quantity(amount) for name, amount in sorted(planned.requests.items())},
    )


def static_claim(pool: NodePool, vocabulary: Vocabulary) -> NodeClaim:
    """A claim of a pool that keeps a number of nodes: any machine the template allows will do."""
    template = pool.spec.template
    own = Requirements.of_labels({**template.metadata.labels, **_belonging(pool)}, vocabulary)
    requirements = Requirements.read(template.spec.requirements, vocabulary) & own
    return _claim(
        pool,
        extra_labels=_custom_labels(requirements, vocabulary),
        annotations={labels.MIN_VALUES_RELAXED: "false"},
        requirements=requirements.written(),
        requests={},
    )


def _claim(
    pool: NodePool,
    *,
    extra_labels: Mapping[str, str],
    annotations: Mapping[str, str],
    requirements: tuple[SelectorRequirementWithMinValues, ...],
    requests: Mapping[str, Quantity],
) -> NodeClaim:
    template = pool.spec.template
    owner = OwnerReference(
        api_version=pool.api_version(),
        kind=pool.kind,
        name=pool.name,
        uid=pool.metadata.uid,
        block_owner_deletion=True,
    )
    return NodeClaim(
        metadata=ObjectMeta(
            generate_name=f"{pool.name}-",
            labels={**extra_labels, **template.metadata.labels, **_belonging(pool)},
            annotations={
                **template.metadata.annotations,
                labels.NODEPOOL_HASH: nodepool_hash(pool),
                labels.NODEPOOL_HASH_VERSION: HASH_VERSION,
                **annotations,
            },
            owner_references=(owner,),
        ),
        spec=NodeClaimSpec(
            taints=template.spec.taints,
            startup_taints=template.spec.startup_taints,
            requirements=requirements,
            resources=ResourceRequests(requests=requests),
            node_class_ref=template.spec.node_class_ref,
            expire_after=template.spec.expire_after,
            termination_grace_period=template.spec.termination_grace_period,
        ),
    )


def _replacing(claim: NodeClaim, replaces: Sequence[str]) -> NodeClaim:
    if not replaces:
        return claim
    noted = {**claim.metadata.annotations, labels.REPLACES: ",".join(sorted(replaces))}
    return replace(claim, metadata=replace(claim.metadata, annotations=noted))


def _belonging(pool: NodePool) -> dict[str, str]:
    """The labels that say where a claim belongs."""
    reference = pool.spec.template.spec.node_class_ref
    return {labels.NODEPOOL: pool.name, reference.label_key: reference.name}


def _written(
    planned: PlannedClaim, requirements: Requirements, catalog: Catalog
) -> tuple[SelectorRequirementWithMinValues, ...]:
    """The requirements with the types that are left, and the capacity types in which some of them can be bought."""
    reserved = bool(planned.reservations)
    names = tuple(option.name for option in planned.options)
    kinds = (labels.RESERVED,) if reserved else catalog.market.stock.capacity_types(requirements, names)
    chosen = {labels.INSTANCE_TYPE: names, **({labels.CAPACITY_TYPE: kinds} if kinds else {})}
    rest = requirements.without(*chosen).written()
    entries = [
        *rest,
        *(
            SelectorRequirementWithMinValues(
                key=key, operator=IN, values=values, min_values=requirements.at(key).min_values
            )
            for key, values in chosen.items()
        ),
    ]
    if reserved:  # paid-for capacity needs no choice, and has none
        entries = [SelectorRequirementWithMinValues(key=e.key, operator=e.operator, values=e.values) for e in entries]
    return tuple(sorted(entries, key=lambda each: each.key))


def _custom_labels(requirements: Requirements, vocabulary: Vocabulary) -> dict[str, str]:
    """The users' own labels, each with the least value that is allowed; what the provider knows it settles at the launch."""
    found = (
        (key, requirement.any())
        for key, requirement in requirements.items()
        if key not in vocabulary.well_known and not vocabulary.is_restricted(key)
    )
    return {key: value for key, value in found if value is not None}


def _overlaid(planned: PlannedClaim, catalog: Catalog) -> dict[str, str]:
    names = {option.name for option in planned.options}
    found: dict[str, str] = {}
    if any(option.offering.price_overlaid for option in planned.options):
        found[labels.PRICE_OVERLAY_APPLIED] = "true"
    chosen = (each for each in catalog.types if each.name in names) if len(catalog.market.overlays) else ()
    if any(offering.capacity or offering.overhead for each in chosen for offering in each.offerings):
        found[labels.CAPACITY_OVERLAY_APPLIED] = "true"
    return found
