"""Keeps the status of EC2NodeClasses: what was found in the account, and conditions with the cause and the fix where nothing was.

A class is looked at when it changes and every minute. What cannot be asked for now leaves what was found before.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, Final, Literal

from joiner.clock import Clock
from joiner.cloud.aws.account import ReservationAccount
from joiner.cloud.aws.api import NOT_FOUND, THROTTLED, AwsApi, AwsError, ReadOnly, is_denied
from joiner.cloud.aws.launch.cluster import ClusterFacts
from joiner.cloud.aws.launch.templates import LaunchTemplates
from joiner.cloud.aws.nodeclass import hash as classhash
from joiner.cloud.aws.nodeclass import resolve
from joiner.cloud.aws.nodeclass.dryruns import Denied, DryRuns
from joiner.cloud.aws.nodeclass.ec2nodeclass import (
    AMIS_READY,
    CAPACITY_RESERVATIONS_READY,
    FINALIZER,
    INSTANCE_PROFILE_READY,
    PLACEMENT_GROUP_READY,
    SECURITY_GROUPS_READY,
    SUBNETS_READY,
    VALIDATION_SUCCEEDED,
    CapacityReservation,
    EC2NodeClass,
)
from joiner.cloud.aws.nodeclass.placement import PlacementGroup, placement_group
from joiner.cloud.aws.nodeclass.problems import invalid, unsupported
from joiner.cloud.aws.nodeclass.profiles import InstanceProfiles, NoRole
from joiner.cloud.aws.reservations import with_state
from joiner.cloud.aws.settings import AwsSettings
from joiner.cloud.errors import CloudError
from joiner.cloud.telling import Tell
from joiner.kube.client import Client
from joiner.kube.errors import KubeError
from joiner.model import codec
from joiner.model.conditions import Condition, find
from joiner.model.meta import KubeObject, Value, replace
from joiner.model.nodeclaim import NodeClaim

EVERY_S: Final = 60.0
_LOOK_S: Final = 5.0
_MOST_LISTED: Final = 100
_NAMED: Final = 5
_NEEDED: Final = (AMIS_READY, SUBNETS_READY, SECURITY_GROUPS_READY, INSTANCE_PROFILE_READY)


class _Failed(Exception):
    """A condition that is not met, with the reason in one word and the cause and fix in a sentence."""

    status: Literal["False", "Unknown"] = "False"

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason, self.message = reason, message


class NodeClassController:
    """Finds out what classes mean."""

    def __init__(
        self,
        api: AwsApi,
        clock: Clock,
        settings: AwsSettings,
        account: ReservationAccount,
        templates: LaunchTemplates,
        cluster: Callable[[], Awaitable[ClusterFacts]],
    ) -> None:
        self._api = api
        self._clock = clock
        self._settings = settings
        self._account = account
        self._templates = templates
        self._cluster = cluster
        self.reservations: dict[str, tuple[CapacityReservation, ...]] = {}
        """Name of a class to all of its reservations, also those beyond what a status lists."""
        self.groups: dict[str, PlacementGroup] = {}
        """Name of a class to its placement group, as far as it was looked up."""
        self.free: dict[str, int] = {}
        """Subnet id to its free addresses."""
        self.profiles = InstanceProfiles(api, clock, settings)
        asks = not settings.disable_dry_run and not isinstance(api, ReadOnly)
        self._dry_runs = DryRuns(api, clock, templates) if asks else None
        self._every = {AMIS_READY: settings.ami_refresh_s, SUBNETS_READY: settings.subnet_refresh_s}
        self._looked: dict[tuple[str, str], tuple[int, float]] = {}
        """Class and condition to the generation that was looked at last, and when."""
        self.tell: Tell = _silent

    async def resolved(self, node_class: EC2NodeClass) -> EC2NodeClass:
        """The class with the status it should have."""
        steps: tuple[tuple[str, Callable[[EC2NodeClass], Awaitable[EC2NodeClass]]], ...] = (
            (AMIS_READY, self._amis),
            (CAPACITY_RESERVATIONS_READY, self._reservations),
            (PLACEMENT_GROUP_READY, self._placement_group),
            (SUBNETS_READY, self._subnets),
            (SECURITY_GROUPS_READY, self._security_groups),
            (INSTANCE_PROFILE_READY, self._instance_profile),
            (VALIDATION_SUCCEEDED, self._validated),
        )
        made = node_class
        for kind, step in steps:
            if self._is_fresh(made, kind):
                continue
            try:
                made = await step(made)
                self._looked[made.metadata.uid, kind] = (made.metadata.generation, self._clock.monotonic())
                wanted = Condition(type=kind, status="True", reason=kind)
            except _Failed as failed:
                made = failed.made if isinstance(failed, _NotFound) else made
                wanted = Condition(type=kind, status=failed.status, reason=failed.reason, message=failed.message)
            except AwsError as error:
                wanted = _told(kind, error)
            except (LookupError, TypeError, ValueError) as error:  # one odd answer must not end the look at all classes
                message = f"AWS answered something that cannot be read: {error!r}"
                wanted = Condition(type=kind, status="Unknown", reason="UnreadableAnswer", message=message)
            conditions = made.condition_set.initialised(made.status.conditions, made.metadata, self._clock.now())
            conditions, _ = made.condition_set.set(conditions, wanted, made.metadata, self._clock.now())
            made = replace(made, status=replace(made.status, conditions=conditions))
        return made

    def _is_fresh(self, node_class: EC2NodeClass, kind: str) -> bool:
        """Whether a setting says that what was found need not be asked for again yet."""
        every, now = self._every.get(kind, EVERY_S), self._clock.monotonic()
        generation, at = self._looked.get((node_class.metadata.uid, kind), (-1, 0.0))
        known = find(node_class.status.conditions, kind)
        holds = known is not None and known.status == "True" and generation == node_class.metadata.generation
        return every > EVERY_S and holds and now - at < every

    async def _amis(self, made: EC2NodeClass) -> EC2NodeClass:
        cluster = await self._cluster()
        aliased = [term.alias for term in made.spec.ami_selector_terms if term.alias]
        if aliased and not cluster.kubernetes:
            _raise_if_refused(cluster)
            raise _Failed(
                "KubernetesVersionUnknown",
                f"EKS does not say the version of the cluster: {cluster.problem}; check CLUSTER_NAME and AWS_REGION",
            )
        if any(alias.startswith("al2@") for alias in aliased) and _minor(cluster.kubernetes) >= 33:
            raise _Failed("UnsupportedAlias", "there are no images of AL2 for Kubernetes 1.33 and newer; use al2023@…")
        found = await resolve.amis(self._api, made.spec, cluster.kubernetes, self._clock.now())
        made = replace(made, status=replace(made.status, amis=found))
        if not found:
            version = f" for Kubernetes {cluster.kubernetes}" if aliased else ""
            where = self._by(made.spec.ami_selector_terms)
            message = f"no image{version} was found {where}: check name, version and owner"
            raise _NotFound("AMINotFound", message, made)
        return made

    async def _reservations(self, made: EC2NodeClass) -> EC2NodeClass:
        now = self._clock.now()
        found = await resolve.capacity_reservations(self._api, made.spec)
        held = tuple(with_state(each, now) for each in found)
        held = tuple(each for each in held if each.end_time is None or each.end_time > now)
        self._account.synced(held, now, self._clock.now())
        self.reservations[made.name] = held
        count = len(held) if len(held) > _MOST_LISTED else None
        status = replace(made.status, capacity_reservations=held[:_MOST_LISTED], capacity_reservation_count=count)
        return replace(made, status=status)

    async def _placement_group(self, made: EC2NodeClass) -> EC2NodeClass:
        found = await placement_group(self._api, made.spec)
        wanted = made.spec.placement_group_selector
        if wanted is not None and found is None:
            raise _Failed("PlacementGroupNotFound", f"there is no placement group {wanted.name or wanted.id}")
        found = found or PlacementGroup()
        if found.state != "available":
            message = (
                f"placement group {found.id} is {found.state}; machines can be launched into one that is available"
            )
            raise _Failed("PlacementGroupResolutionFailed", message)
        self.groups[made.name] = found
        return made

    async def _subnets(self, made: EC2NodeClass) -> EC2NodeClass:
        found = await resolve.subnets(self._api, made.spec)
        self.free.update({each.subnet.id: each.free for each in found})
        made = replace(made, status=replace(made.status, subnets=tuple(each.subnet for each in found)))
        if not found:
            where = self._by(made.spec.subnet_selector_terms)
            message = f"no subnet was found {where}: correct subnetSelectorTerms, or tag the subnets"
            raise _NotFound("SubnetsNotFound", message, made)
        return made

    async def _security_groups(self, made: EC2NodeClass) -> EC2NodeClass:
        found = await resolve.security_groups(self._api, made.spec)
        made = replace(made, status=replace(made.status, security_groups=found))
        if not found:
            where = self._by(made.spec.security_group_selector_terms)
            message = f"no security group was found {where}: correct securityGroupSelectorTerms, or tag the groups"
            raise _NotFound("SecurityGroupsNotFound", message, made)
        return made

    def _by(self, terms: Sequence[Value]) -> str:
        """What was looked for, and where."""
        more = f" or {len(terms) - _NAMED} more" if len(terms) > _NAMED else ""
        return f"in {self._settings.region} by {' or '.join(map(_looked_for, terms[:_NAMED]))}{more}"

    async def _instance_profile(self, made: EC2NodeClass) -> EC2NodeClass:
        name = made.spec.instance_profile
        if name and self._settings.isolated_vpc:
            pass  # IAM has no endpoint in a VPC: a profile that is missing shows at a launch
        elif name:
            try:
                await self._api.call("iam", "get_instance_profile", InstanceProfileName=name)
            except AwsError as error:
                if error.code in NOT_FOUND:
                    raise _Failed("InstanceProfileNotFound", f"there is no instance profile {name}") from None
                raise
        else:
            try:
                name = await self.profiles.ensure(made)
            except NoRole as error:
                raise _Failed("RoleNotFound", f"there is no role {error}: make it, or correct spec.role") from None
        return replace(made, status=replace(made.status, instance_profile=name))

    async def _validated(self, made: EC2NodeClass) -> EC2NodeClass:
        for reason, found in (
            ("InvalidKubeletConfiguration", invalid(made.spec)),
            ("UnsupportedKubeletConfiguration", unsupported(made.spec)),
        ):
            wrong = [str(each) for each in found if each.is_error]
            if wrong:
                raise _Failed(reason, "; ".join(wrong))
        cluster = await self._cluster()
        if made.spec.family == "AL2023" and not cluster.service_cidr:
            _raise_if_refused(cluster)
            message = f"AL2023 needs the range of service addresses, which EKS does not tell: {cluster.problem}"
            raise _Failed("ClusterCIDRResolutionFailed", message)
        standing = {kind: find(made.status.conditions, kind) for kind in _NEEDED}
        missing = [kind for kind, known in standing.items() if known is None or known.status != "True"]
        if missing:
            refused = any(known is not None and known.status == "False" for known in standing.values())
            wanted = _Failed if refused else _Unsure
            raise wanted("DependenciesNotReady", f"not before {', '.join(missing)}")
        if self._dry_runs is not None:
            try:
                await self._dry_runs.check(made, cluster)
            except Denied as denied:
                raise _Failed(denied.reason, denied.message) from None
        return made

    # -- in a cluster ----------------------------------------------------------------------------------------------------

    async def run(self, client: Client) -> None:
        """Look at every class when it has changed, and every minute. Never ends by itself."""
        looked: dict[str, tuple[int, bool, float]] = {}
        while True:
            for node_class in await _all(client):
                with suppress(KubeError, AwsError, CloudError):
                    deleted = node_class.metadata.deletion_timestamp is not None
                    seen = looked.get(node_class.metadata.uid, (-1, False, 0.0))
                    now = self._clock.monotonic()
                    if seen[:2] != (node_class.metadata.generation, deleted) or now - seen[2] >= EVERY_S:
                        looked[node_class.metadata.uid] = (node_class.metadata.generation, deleted, now)
                        await self.reconcile(client, node_class)
            await asyncio.sleep(_LOOK_S)

    async def reconcile(self, client: Client, node_class: EC2NodeClass) -> None:
        """Write finalizer, hash and status of a class, or let it go once no claim needs it."""
        claims = (await client.list(NodeClaim)).items
        mine = [each for each in claims if _refers(each, node_class)]
        if node_class.metadata.deletion_timestamp is not None:
            if mine:
                names = ", ".join(sorted(each.name for each in mine)[:_NAMED])
                self.tell(node_class, "WaitingOnNodeClaimTermination", f"{len(mine)} NodeClaims use it still: {names}")
            elif FINALIZER in node_class.metadata.finalizers:
                await self._clean_up(node_class)
                kept = tuple(each for each in node_class.metadata.finalizers if each != FINALIZER)
                await client.patch(node_class, _with_metadata(node_class, finalizers=kept), locked=True)
            return
        node_class = await self._stamped(client, node_class, mine)
        made = await self.resolved(node_class)
        if _worth_writing(node_class, made):
            await client.patch_status(node_class, made, locked=True)

    async def _stamped(self, client: Client, node_class: EC2NodeClass, claims: Iterable[NodeClaim]) -> EC2NodeClass:
        """Finalizer and hash. A hash of another version, Karpenter's too, is rewritten on claims first, so that none drifts."""
        cluster, metadata = await self._cluster(), node_class.metadata
        annotations = metadata.annotations
        if (
            cluster.is_known
        ):  # its certificates are part of the hash: without them every machine would seem to have drifted
            current = classhash.node_class_hash(node_class, cluster.ca_bundle)
            if annotations.get(classhash.HASH_VERSION) != classhash.VERSION:
                await self._rewrite(client, claims, current)
            annotations = {**annotations, classhash.HASH: current, classhash.HASH_VERSION: classhash.VERSION}
        finalizers = metadata.finalizers if FINALIZER in metadata.finalizers else (*metadata.finalizers, FINALIZER)
        wanted = _with_metadata(node_class, annotations=annotations, finalizers=finalizers)
        return node_class if wanted == node_class else await client.patch(node_class, wanted, locked=True)

    async def _rewrite(self, client: Client, claims: Iterable[NodeClaim], current: str) -> None:
        for claim in claims:
            if claim.metadata.annotations.get(classhash.HASH_VERSION) != classhash.VERSION:
                drifted = find(claim.status.conditions, "Drifted")
                kept = {} if drifted is not None and drifted.status == "True" else {classhash.HASH: current}
                own = {**claim.metadata.annotations, classhash.HASH_VERSION: classhash.VERSION, **kept}
                await client.patch(claim, replace(claim, metadata=replace(claim.metadata, annotations=own)))

    async def _clean_up(self, node_class: EC2NodeClass) -> None:
        self.reservations.pop(node_class.name, None)
        self.groups.pop(node_class.name, None)
        await self._templates.delete_all(node_class.name)
        if self._settings.isolated_vpc or node_class.spec.instance_profile:
            return
        await self.profiles.delete_of(node_class)


def _looked_for(term: Value) -> str:
    """A selector term in a few words."""
    written = codec.encode(term)
    tags = [f"{key}={value}" for key, value in sorted(written.pop("tags", {}).items())]
    return " and ".join([*tags, *(f"{key} {value}" for key, value in sorted(written.items()))])


def _silent(thing: KubeObject, reason: str, message: str) -> None:
    """Nothing is told until there is somewhere to tell it."""


async def _all(client: Client) -> tuple[EC2NodeClass, ...]:
    try:
        return (await client.list(EC2NodeClass)).items
    except KubeError:
        return ()  # it is asked again in a few seconds


class _Unsure(_Failed):
    """A condition of which nothing can be said now."""

    status = "Unknown"


class _NotFound(_Failed):
    """Nothing was found; the status then says so, too."""

    def __init__(self, reason: str, message: str, made: EC2NodeClass) -> None:
        super().__init__(reason, message)
        self.made = made


def _with_metadata(node_class: EC2NodeClass, **changes: Any) -> EC2NodeClass:
    return replace(node_class, metadata=replace(node_class.metadata, **changes))


def _refers(claim: NodeClaim, node_class: EC2NodeClass) -> bool:
    reference = claim.spec.node_class_ref
    return (reference.group, reference.kind, reference.name) == (
        EC2NodeClass.group,
        EC2NodeClass.kind,
        node_class.name,
    )


def _told(kind: str, error: AwsError) -> Condition:
    if error.code in THROTTLED:
        return Condition(type=kind, status="Unknown", reason="AWSUnavailable", message=str(error))
    denied = is_denied(error)
    advice = "; check the credentials, the clock and the IAM policy of Joiner" if denied else ""
    reason = "Unauthorized" if denied else "AWSError"
    return Condition(type=kind, status="False", reason=reason, message=f"{error}{advice}")


def _raise_if_refused(cluster: ClusterFacts) -> None:
    """What a missing permission or a busy service keeps from being known is told as such."""
    error = AwsError(cluster.code, cluster.message)
    if error.code in THROTTLED or is_denied(error):
        raise error


def _minor(version: str) -> int:
    _, _, minor = version.partition(".")
    return int(minor) if minor.isdigit() else 0


def _worth_writing(before: EC2NodeClass, after: EC2NodeClass) -> bool:
    return before.status != after.status
