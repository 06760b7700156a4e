"""The AWS provider over an account: catalogues from EC2's answers, launches, machines, drift, and what runs in the background."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace as replace_settings
from datetime import datetime
from typing import Any, Final

from joiner.catalog.market import InstanceType, Option
from joiner.clock import Clock
from joiner.cloud.aws.account import ReservationAccount
from joiner.cloud.aws.api import NOT_FOUND, AwsApi, AwsError, ReadOnly, told
from joiner.cloud.aws.counts import CountedApi, Counts
from joiner.cloud.aws.interruptions import SqsNotices
from joiner.cloud.aws.inventory import REFRESH_S, LiveInventory
from joiner.cloud.aws.launch import cluster as clusterfacts
from joiner.cloud.aws.launch import tags
from joiner.cloud.aws.launch.choice import Derive
from joiner.cloud.aws.launch.cluster import ClusterFacts
from joiner.cloud.aws.launch.fleet import Fleet, Launched
from joiner.cloud.aws.launch.joined import Joined, Memory, looked_after
from joiner.cloud.aws.launch.machines import Machines, instance_id, provider_id, reservation_of, settled
from joiner.cloud.aws.launch.templates import LaunchTemplates
from joiner.cloud.aws.nodeclass import drift, resolve
from joiner.cloud.aws.nodeclass.controller import NodeClassController
from joiner.cloud.aws.nodeclass.ec2nodeclass import EC2NodeClass
from joiner.cloud.aws.nodeclass.hash import HASH, HASH_VERSION, VERSION, node_class_hash
from joiner.cloud.aws.nodeclass.placement import PARTITION, PartitionHook, PlacementGroup
from joiner.cloud.aws.nodeclass.profiles import USED
from joiner.cloud.aws.nodeclass.selectors import CUSTOM
from joiner.cloud.aws.notices import AwsNotices, InstanceStatus, polled
from joiner.cloud.aws.provider import AwsProvider, why_not_ready
from joiner.cloud.aws.reservations import is_expiring, offered
from joiner.cloud.aws.settings import AwsSettings, BadSetting
from joiner.cloud.counts import Tally
from joiner.cloud.errors import CloudError, InstanceNotFound, LaunchFailed, NodeClassNotReady, RebootRefused, Transient
from joiner.cloud.interruption import Notice, NoticeQueue
from joiner.cloud.provider import Instance, NodeClasses
from joiner.cloud.registration import RegistrationHook
from joiner.cloud.sources.reservation import DEFAULT_LABELS, Reservation
from joiner.cloud.telling import Tell
from joiner.kube.client import Client
from joiner.kube.dryrun import DryRunClient
from joiner.kube.errors import KubeError
from joiner.kube.tasks import Tasks
from joiner.model import labels
from joiner.model.conditions import READY, find
from joiner.model.meta import replace
from joiner.model.nodeclaim import NodeClaim

_REBOOT: Final = "karpenter.k8s.aws/reboot-operation"
_RETRY_S: Final = 30.0
_SWEEP_S: Final = 60.0
_CLUSTER_S: Final = 300.0
_PROFILES_S: Final = 1800.0


class LiveAwsProvider(AwsProvider):
    """EC2 through an account."""

    def __init__(
        self,
        node_classes: NodeClasses,
        clock: Clock,
        known: AwsSettings,
        api: AwsApi,
        inventory: LiveInventory,
        counts: Counts | None = None,
    ) -> None:
        super().__init__(node_classes, clock, known, inventory)
        self._api = api
        self._counts = counts = counts or Counts()
        self._live = inventory
        self.account = ReservationAccount()
        self.templates = LaunchTemplates(api, clock, known.cluster_name)
        self._facts: tuple[float, ClusterFacts] | None = None
        self.classes = NodeClassController(api, clock, known, self.account, self.templates, self.cluster)
        self._fleet = Fleet(
            api,
            clock,
            self.templates,
            self.account,
            self.unavailable,
            self._known_cluster,
            counts,
            lambda *event: self.classes.tell(*event),
        )
        self._fleet.free = self.classes.free
        self._machines = Machines(api, clock, known.cluster_name, self._described, counts)
        self._memory = Memory(clock)
        self._joined = Joined(api, self._memory, lambda name: self._node_classes.get(EC2NodeClass, name))
        self._inside: dict[str, tuple[str, datetime]] = {}
        """Instance id to the reservation it was seen in, and to when EC2 was asked last that said it was there."""
        self._launching: dict[str, asyncio.Lock] = {}

    # -- what is known ---------------------------------------------------------------------------------------------------

    async def cluster(self) -> ClusterFacts:
        """The cluster as EKS describes it, asked for again after five minutes."""
        now = self._clock.monotonic()
        if self._facts is None or now - self._facts[0] >= _CLUSTER_S or self._facts[1].problem:
            before = self._facts[1] if self._facts is not None else None
            self._facts = (now, await clusterfacts.describe(self._api, self._settings, before))
        return self._facts[1]

    def _known_cluster(self) -> ClusterFacts:
        return self._facts[1] if self._facts is not None else ClusterFacts(name=self._settings.cluster_name)

    def _memory_version(self) -> int:
        return self._memory.version()

    def _discovered_memory(self, node_class: EC2NodeClass) -> Mapping[str, int]:
        return self._memory.of(node_class)

    def _placement_group(self, node_class: EC2NodeClass) -> PlacementGroup:
        return self.classes.groups.get(node_class.name, PlacementGroup())

    def _group_to_launch_into(self, node_class: EC2NodeClass) -> PlacementGroup:
        """The placement group of the class. Raises `Transient`."""
        group = self._placement_group(node_class)
        if node_class.spec.placement_group_selector is not None and not group.id:
            raise Transient(f"EC2NodeClass {node_class.name}: its placement group was not looked up yet", after_s=5.0)
        return group

    def _reservations(self, node_class: EC2NodeClass) -> tuple[Reservation, ...]:
        """All reservations of the class with what is left of them; before the first look at EC2, those of the status."""
        held = self.classes.reservations.get(node_class.name, node_class.status.capacity_reservations)
        now = self._clock.now()
        return tuple(
            offered(
                each,
                self.account.left(each.id) if self.account.knows(each.id) else each.available_instance_count or 0,
                now,
            )
            for each in held
        )

    def _described(self, name: str, instance_type: str) -> tuple[EC2NodeClass | None, InstanceType | None]:
        node_class = self._node_classes.get(EC2NodeClass, name)
        if node_class is None:
            return None, None
        with suppress(CloudError):
            return node_class, next(iter(self._types(node_class, (instance_type,))), None)
        return node_class, None

    # -- machines --------------------------------------------------------------------------------------------------------

    async def create(self, claim: NodeClaim, options: Sequence[Option]) -> Instance:
        """Launch one of the options; asked again for the same claim, the machine that is there."""
        node_class = self.ready(claim.spec.node_class_ref, f"NodeClaim {claim.name}")
        _launchable(node_class)
        lock = self._launching.setdefault(claim.metadata.uid, asyncio.Lock())
        try:
            async with lock:
                await self._fleet.turn()
                known, ended = await self._machines.of_claim(claim.metadata.uid)
                if known is not None:
                    self._fleet.tokens.forget(claim.metadata.uid)
                    return self._read(known)
                _joinable(node_class, await self.cluster())
                group = self._group_to_launch_into(node_class)
                self._fleet.tokens.ended(claim.metadata.uid, ended)
                launched = await self._fleet.launch(claim, node_class, options, self._sold(node_class), group)
                self._fleet.tokens.forget(claim.metadata.uid)
                return self._bought(claim, node_class, launched)
        finally:
            if not lock.locked():
                self._launching.pop(claim.metadata.uid, None)

    def _sold(self, node_class: EC2NodeClass) -> Derive:
        def derive(names: Collection[str]) -> dict[str, InstanceType]:
            """The types of these names as EC2 sells them now; what is marked or full is not available."""
            return {each.name: each for each in self.unavailable.apply(self._types(node_class, names))}

        return derive

    def _bought(self, claim: NodeClaim, node_class: EC2NodeClass, launched: Launched) -> Instance:
        way = launched.way
        identity = way.reservation(DEFAULT_LABELS.id)
        placed = {PARTITION: str(launched.partition)} if launched.partition else {}
        self._takes(launched.instance_id, identity, self._clock.now())
        zone = way.offering.zone
        return Instance(
            provider_id=provider_id(zone, launched.instance_id),
            claim_name=claim.name,
            claim_uid=claim.metadata.uid,
            image_id=launched.image_id,
            labels={
                **settled(way.type, node_class, way.type.name, zone, launched.tenancy),
                **way.offering.requirements.labels(),
                **placed,
                **_pool(claim),
            },
            annotations=self._annotations(node_class),
            capacity=way.type.capacity,
            allocatable=way.type.allocatable(),
            launched_at=self._clock.now(),
        )

    def _annotations(self, node_class: EC2NodeClass) -> Mapping[str, str]:
        return {
            HASH: node_class_hash(node_class, self._known_cluster().ca_bundle),
            HASH_VERSION: VERSION,
            USED: node_class.status.instance_profile,
        }

    def _read(self, raw: Mapping[str, Any]) -> Instance:
        made = self._machines.read(raw)
        identity = made.labels.get(DEFAULT_LABELS.id, "")
        if not made.terminating:
            self._takes(raw["InstanceId"], identity, made.launched_at)
        own = tags.read(raw.get("Tags"))
        return replace(made, annotations={key: own[key] for key in (HASH, HASH_VERSION) if key in own})

    def _takes(self, instance: str, reservation: str, launched_at: datetime | None) -> None:
        """A machine takes a place in a reservation. It counts once, also where only a list tells of it."""
        if reservation and instance not in self._inside:
            self._inside[instance] = reservation, launched_at or self._clock.now()
            if launched_at is not None:
                self.account.launched(reservation, launched_at)

    async def get(self, provider_id: str) -> Instance:
        """The machine as EC2 describes it now."""
        return self._read(await self._machines.get(provider_id))

    async def list(self) -> tuple[Instance, ...]:
        """All machines of the cluster, by provider id."""
        found = [self._read(each) for each in await self._machines.all()]
        return tuple(sorted(found, key=lambda each: each.provider_id))

    async def delete(self, provider_id: str) -> None:
        """End the machine; once it is gone, its place in a reservation is free."""
        identity, asked_at = instance_id(provider_id), self._clock.now()
        try:
            await self._machines.terminate(provider_id)
        except InstanceNotFound:
            if identity in self._inside:
                self.account.ended(*self._inside.pop(identity))
            raise
        if identity in self._inside:
            self._inside[identity] = self._inside[identity][0], asked_at

    async def reboot(self, claim: NodeClaim, operation_id: str) -> None:
        """Restart the machine, once for each operation: a tag remembers which was the last."""
        raw = await self._machines.get(claim.status.provider_id)
        identity = instance_id(claim.status.provider_id)
        if tags.read(raw.get("Tags")).get(_REBOOT) == operation_id:
            return
        try:
            await self._api.call("ec2", "reboot_instances", InstanceIds=[identity])
            await self._api.call(
                "ec2", "create_tags", Resources=[identity], Tags=[{"Key": _REBOOT, "Value": operation_id}]
            )
        except AwsError as error:
            if error.code in NOT_FOUND:
                raise InstanceNotFound(f"there is no machine {identity}") from None
            if error.code in ("UnsupportedOperation", "IncorrectInstanceState"):
                raise RebootRefused(f"machine {identity} cannot be restarted: {error.message}") from None
            raise told(error, f"machine {identity}") from error

    async def drift_reason(self, claim: NodeClaim) -> str:
        """The first way in which the machine is no longer what its class asks for."""
        node_class = self._node_classes.get(EC2NodeClass, claim.spec.node_class_ref.name)
        if node_class is None or not claim.status.provider_id:
            return ""
        static = drift.static(claim, node_class)
        if static:
            return static
        raw = await self._machines.get(claim.status.provider_id)
        _, kind = self._described(node_class.name, raw.get("InstanceType", ""))
        identity = reservation_of(raw)
        selected = True
        if identity and node_class.name in self.classes.reservations:
            selected = any(each.id == identity for each in self.classes.reservations[node_class.name])
            selected = selected or await self._is_over(identity)
        reason = drift.of_machine(raw, node_class, kind, selected)
        group = self.classes.groups.get(node_class.name)
        return reason or (drift.of_placement(raw, group.id) if group is not None else "")

    async def _is_over(self, reservation: str) -> bool:
        """Whether a reservation has ended: EC2 then takes its machines out of it one by one, and they stay."""
        try:
            found = await resolve.reservation(self._api, reservation)
        except (LookupError, TypeError, ValueError):  # an answer that cannot be read is no reason to replace a machine
            return True
        except AwsError as error:
            raise told(error, f"reservation {reservation}") from error
        return found is None or (found.end_time is not None and found.end_time <= self._clock.now())

    # -- interruptions ---------------------------------------------------------------------------------------------------

    def interruptions(self) -> NoticeQueue | None:
        """The queue that INTERRUPTION_QUEUE names, and what EC2 says by itself.

        A dry run receives nothing: what it took would be hidden from others.
        """
        if isinstance(self._api, ReadOnly):
            return None
        name, mark = self._settings.interruption_queue, self._mark_unavailable
        status = InstanceStatus(self._api, self._clock, self._counts)
        queue = SqsNotices(self._api, name, mark) if name else None
        return AwsNotices(self._clock, queue, (status.poll, self._ending_blocks), mark)

    async def _ending_blocks(self) -> tuple[Notice, ...]:
        """The machines in capacity blocks that end soon: EC2 ends them half an hour before, so they are drained earlier."""
        now = self._clock.now()
        ending = {each.id for held in self.classes.reservations.values() for each in held if is_expiring(each, now)}
        found = await self.list() if ending else ()
        return tuple(
            polled("capacity_reservation_interrupted", instance_id(each.provider_id))
            for each in found
            if not each.terminating and each.labels.get(DEFAULT_LABELS.id) in ending
        )

    def tell_with(self, tell: Tell) -> None:
        """Events are told this way."""
        self.classes.tell = tell

    def counts(self) -> tuple[Tally, ...]:
        """What is counted of launches, machines and calls."""
        return self._counts.tallies()

    def registration_hooks(self) -> tuple[RegistrationHook, ...]:
        """What is found out about machines that have joined."""
        return (PartitionHook(self._machines, self._placement_group_of),)

    def _placement_group_of(self, claim: NodeClaim) -> PlacementGroup:
        return self.classes.groups.get(claim.spec.node_class_ref.name, PlacementGroup())

    def _mark_unavailable(self, notice: Notice, claim: NodeClaim) -> None:
        own = claim.metadata.labels
        if notice.kind == "capacity_reservation_interrupted":
            self.account.exhausted(own.get(DEFAULT_LABELS.id, ""))
        if notice.kind != "spot_interrupted":
            return
        name, zone = own.get(labels.INSTANCE_TYPE, ""), own.get(labels.ZONE, "")
        _, kind = self._described(claim.spec.node_class_ref.name, name)
        for offering in kind.offerings if kind is not None else ():
            if (offering.zone, offering.capacity_type) == (zone, labels.SPOT):
                self.unavailable.mark(name, offering)

    # -- in the background -----------------------------------------------------------------------------------------------

    async def refresh(self) -> None:
        """Ask for types, zones and prices, as far as they can be had."""
        await self._live.refresh_types()
        for step in (self._live.refresh_spot, self._live.refresh_on_demand):
            if not (self._settings.isolated_vpc and step == self._live.refresh_on_demand):
                with suppress(AwsError):
                    await step()

    def start(self, client: Client, tasks: Tasks) -> None:
        """Keep classes, types and prices current, and templates tidy, until everything ends."""
        tasks.start("aws nodeclasses", self.classes.run(client))
        tasks.start("aws inventory", _every(REFRESH_S, self.refresh))
        tasks.start("aws launch templates", _every(_SWEEP_S, self.templates.sweep))
        tasks.start("aws instance profiles", _every(_PROFILES_S, lambda: self.classes.profiles.collect(client)))
        tasks.start("aws joined machines", looked_after(self._joined, client, self._machines.all, _SWEEP_S))


async def _every(seconds: float, work: Callable[[], Awaitable[None]]) -> None:
    """Do something again and again; what AWS refuses is tried again soon."""
    while True:
        wait = seconds
        try:
            await work()
        except (AwsError, CloudError, KubeError):
            wait = min(seconds, _RETRY_S)
        await asyncio.sleep(wait)


def _pool(claim: NodeClaim) -> dict[str, str]:
    name = claim.metadata.labels.get(tags.NODEPOOL, "")
    return {tags.NODEPOOL: name} if name else {}


def _joinable(node_class: EC2NodeClass, cluster: ClusterFacts) -> None:
    """A machine that is not told where the cluster is never joins it. Raises `Transient`."""
    if not cluster.is_known or (not cluster.endpoint and node_class.spec.family != CUSTOM):
        raise Transient(f"EKS has not told endpoint and certificates of cluster {cluster.name} yet: {cluster.problem}")


def _launchable(node_class: EC2NodeClass) -> None:
    """A class whose conditions are not of its own generation says nothing about itself. Raises `NodeClassNotReady`."""
    if node_class.metadata.deletion_timestamp is not None:
        raise NodeClassNotReady(node_class.name, "it is being deleted")
    ready = find(node_class.status.conditions, READY)
    if ready is not None and ready.status == "Unknown":
        raise LaunchFailed("NodeClassReadinessUnknown", f"EC2NodeClass {node_class.name}: {why_not_ready(node_class)}")
    if ready is None or ready.status != "True":
        reason = why_not_ready(node_class) if ready is not None else "it was not looked at yet"
        raise NodeClassNotReady(node_class.name, reason)
    if ready.observed_generation != node_class.metadata.generation:
        raise NodeClassNotReady(node_class.name, "it was changed, and was not looked at since")


def connect(
    node_classes: NodeClasses, clock: Clock, known: AwsSettings, client: Client, tasks: Tasks
) -> LiveAwsProvider:
    """The provider over the account that the environment names, with everything it does in the background."""
    from joiner.cloud.aws.boto import BotoApi

    if not known.cluster_name:
        raise BadSetting("CLUSTER_NAME is missing: the name of the EKS cluster, by which machines are tagged")
    boto, counts = BotoApi(known.region, known.endpoint_url), Counts()
    if not boto.region:
        raise BadSetting("AWS_REGION is missing: the region of the cluster")
    settled_in = replace_settings(known, region=boto.region)
    api: AwsApi = CountedApi(boto, clock, counts)
    if isinstance(client, DryRunClient):
        api = ReadOnly(api)
    return LiveAwsProvider(node_classes, clock, settled_in, api, LiveInventory(api, clock, boto.region), counts)
