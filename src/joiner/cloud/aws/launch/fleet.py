"""Launches: one CreateFleet call for each claim, with the claim's UID as token and as tag.

Karpenter gathers launches of several claims into one call and cannot say afterwards whose a machine is. Here a call that is
repeated because its answer was lost gives the machine of the first one, and a machine says by its tags whose it is.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from joiner.catalog.market import InstanceType, Offering, Option
from joiner.clock import Clock
from joiner.cloud.aws.account import ReservationAccount
from joiner.cloud.aws.api import (
    MISMATCH,
    NO_SPOT_ROLE,
    THROTTLED,
    UNFULFILLABLE,
    USED_UP,
    AwsApi,
    AwsError,
    reason_of,
    told,
)
from joiner.cloud.aws.counts import Counts
from joiner.cloud.aws.instancetypes import fits, requirements_of
from joiner.cloud.aws.launch import tags
from joiner.cloud.aws.launch.choice import BLOCK, Derive, Usable, Way, asked_of, chosen
from joiner.cloud.aws.launch.cluster import ClusterFacts
from joiner.cloud.aws.launch.templates import LaunchTemplates, Template, written
from joiner.cloud.aws.launch.tokens import Tokens
from joiner.cloud.aws.launch.userdata import boot_of, user_data
from joiner.cloud.aws.nodeclass.ec2nodeclass import EC2NodeClass, Subnet
from joiner.cloud.aws.nodeclass.placement import PlacementGroup
from joiner.cloud.aws.pace import Bucket
from joiner.cloud.errors import InsufficientCapacity, LaunchFailed, Transient
from joiner.cloud.sources.ec2 import EFA, NITRO_SANDBOX, TENANCY
from joiner.cloud.sources.reservation import DEFAULT_LABELS
from joiner.cloud.telling import Tell
from joiner.cloud.unavailable import Unavailable
from joiner.model import labels
from joiner.model.meta import Value, replace
from joiner.model.nodeclaim import NodeClaim
from joiner.model.quantity import MILLI
from joiner.model.resources import PODS

MOST_TEMPLATES: Final = 50
"""How many templates one call names at most."""
_SUBNET_FULL: Final = "InsufficientFreeAddressesInSubnet"
_NO_SPOT: Final = (
    "the account has no role AWSServiceRoleForEC2Spot, and Joiner may not make it; run: aws iam create-service-linked-role"
    " --aws-service-name spot.amazonaws.com. Spot machines are left out for three minutes"
)
_SPREAD_FULL: Final = "instances in this spread placement group"
"""What EC2 says when a group that spreads machines takes no more of them in a zone."""


class Launched(Value):
    """What was launched."""

    instance_id: str
    image_id: str
    tenancy: str
    partition: int
    """Of a placement group; 0 where EC2 chose, or where there is none."""
    way: Way


class Fleet:
    """Buys machines."""

    def __init__(
        self,
        api: AwsApi,
        clock: Clock,
        templates: LaunchTemplates,
        account: ReservationAccount,
        unavailable: Unavailable,
        cluster: Callable[[], ClusterFacts],
        counts: Counts,
        tell: Tell,
    ) -> None:
        self._api = api
        self._clock = clock
        self._templates = templates
        self._account = account
        self._unavailable = unavailable
        self._cluster = cluster
        self._counts = counts
        self._tell = tell
        self._bucket = Bucket(clock)
        self.tokens = Tokens(clock)
        self.free: dict[str, int] = {}
        """Subnet id to the addresses that are free in it, as far as was told."""
        self._asked: Counter[str] = Counter()
        """Subnet id to the addresses that launches will take which EC2 has not answered yet."""

    async def turn(self) -> None:
        """Wait until EC2 may be asked for one machine more. What is chosen afterwards knows what others found meanwhile."""
        await self._bucket.take()

    async def launch(
        self,
        claim: NodeClaim,
        node_class: EC2NodeClass,
        options: Sequence[Option],
        derive: Derive,
        group: PlacementGroup,
    ) -> Launched:
        """Buy one of the options, or raise as `CloudProvider.create` does. `derive` gives types as they are sold now."""
        ways = chosen(claim, options, derive, self._usable(node_class), self._account)
        if not ways and self.tokens.is_open(claim.metadata.uid):
            raise _untold(claim)  # a reservation may be full of this very machine
        if not ways:
            raise _nothing(claim, options, "what can be had of them now is nothing, or too little for its minValues")
        try:
            return await self._attempt(claim, node_class, ways, options, group, again=True)
        except AwsError as error:
            raise told(error, f"NodeClaim {claim.name}") from error

    def _usable(self, node_class: EC2NodeClass) -> Usable:
        """Gives the image of a way to launch, if the class has one for it, and a subnet in its zone."""
        images = [(each.id, requirements_of(each)) for each in node_class.status.amis]
        zones = {each.zone for each in node_class.status.subnets}
        known: dict[str, str | None] = {}

        def image(kind: InstanceType, offering: Offering) -> str | None:
            if kind.name not in known:
                known[kind.name] = next((identity for identity, wanted in images if fits(kind, wanted)), None)
            return known[kind.name] if offering.zone in zones else None

        return image

    async def _attempt(
        self,
        claim: NodeClaim,
        node_class: EC2NodeClass,
        ways: Sequence[Way],
        options: Sequence[Option],
        group: PlacementGroup,
        *,
        again: bool,
    ) -> Launched:
        uid = claim.metadata.uid
        own = tags.of_claim(claim, node_class, self._cluster().name, self._cluster().ca_bundle)
        groups = self._grouped(claim, node_class, ways, group)
        shared = tags.of_class(node_class, self._cluster().name)
        named = {
            await self._templates.ensure(each, node_class, shared): (each, those) for each, those in groups.items()
        }
        request = self._request(claim, node_class, named, own)
        asked = _addresses(request, ways)
        self._asked.update(asked)
        try:
            answer = await self._api.call("ec2", "create_fleet", **request)
        except AwsError as error:
            if "LaunchTemplate" in error.code and "NotFound" in error.code and again:
                self._templates.forget(named)
                return await self._attempt(claim, node_class, ways, options, group, again=False)
            if error.code == MISMATCH:
                self.tokens.mismatched(uid)
                raise _untold(claim) from error
            if error.code == USED_UP:
                self.tokens.answered(uid)
                raise Transient(f"NodeClaim {claim.name}: its machine was ended before it was told of") from error
            if error.code in THROTTLED:
                self.tokens.unanswered(uid)
            raise
        finally:
            self._asked.subtract(asked)
        errors = answer.get("Errors") or ()
        self._record(errors, ways, named, node_class)
        for each in answer.get("Instances") or ():
            for identity in each.get("InstanceIds") or ():
                return self._launched(identity, each, ways, named)
        if any("LaunchTemplate" in each.get("ErrorCode", "") for each in errors) and again:
            self._templates.forget(named)
            self.tokens.answered(uid)
            return await self._attempt(claim, node_class, ways, options, group, again=False)
        self.tokens.answered(uid)
        raise _refused(claim, options, errors)

    # -- the request -----------------------------------------------------------------------------------------------------

    def _grouped(
        self, claim: NodeClaim, node_class: EC2NodeClass, ways: Sequence[Way], group: PlacementGroup
    ) -> dict[Template, list[Way]]:
        """The ways by the template they need: image, reservation and number of pods differ."""
        groups: dict[Template, list[Way]] = {}
        wants_efa = claim.spec.resources.requests.get(EFA, 0) > 0
        asked = asked_of(claim)
        tenancy = "default" if asked.at(TENANCY).has("default") else "dedicated"
        partition = group.partition_of(asked)
        texts: dict[tuple[int, str], str] = {}
        for way in ways:
            told = way.type.capacity.get(PODS, 0) // MILLI, way.image_id
            if told not in texts:
                texts[told] = self._user_data(claim, node_class, *told)
            template = Template(
                image_id=way.image_id,
                user_data=texts[told],
                reservation_id=way.reservation(DEFAULT_LABELS.id),
                reservation_type=way.reservation(DEFAULT_LABELS.type),
                interruptible=way.reservation(DEFAULT_LABELS.interruptible) == "true",
                opts_out=bool(node_class.spec.capacity_reservation_selector_terms),
                efa=way.type.capacity.get(EFA, 0) // MILLI if wants_efa else 0,
                tenancy=tenancy,
                placement_group_id=group.id,
                partition=partition,
                enclaves=asked.at(NITRO_SANDBOX).values == {"true"},
                ipv6=":" in self._cluster().dns,
                spot=way.offering.capacity_type == labels.SPOT,
            )
            groups.setdefault(template, []).append(way)
        return dict(list(groups.items())[:MOST_TEMPLATES])

    def _user_data(self, claim: NodeClaim, node_class: EC2NodeClass, pods: int, image_id: str) -> str:
        text = user_data(
            replace(
                boot_of(node_class, self._cluster()),
                labels=claim.metadata.labels,
                taints=(*claim.spec.taints, *claim.spec.startup_taints),
                max_pods=pods,
                image_name=next((each.name for each in node_class.status.amis if each.id == image_id), ""),
            )
        )
        self._counts.user_data(node_class.name, len(text.encode()))
        return text

    def _request(
        self,
        claim: NodeClaim,
        node_class: EC2NodeClass,
        named: Mapping[str, tuple[Template, list[Way]]],
        own: Mapping[str, str],
    ) -> dict[str, Any]:
        subnets = self._subnets(node_class)
        ways = [way for _, listed in named.values() for way in listed]
        order = {id(way): number for number, way in enumerate(ways)}
        configs = [
            {
                "LaunchTemplateSpecification": {"LaunchTemplateName": name, "Version": "$Latest"},
                "Overrides": [
                    {
                        "InstanceType": way.type.name,
                        "SubnetId": subnets[way.offering.zone].id,
                        "ImageId": template.image_id,
                        "AvailabilityZone": way.offering.zone,
                        "Priority": float(order[id(way)]),
                    }
                    for way in _once_each(listed)
                ],
            }
            for name, (template, listed) in named.items()
        ]
        request: dict[str, Any] = {
            "Type": "instant",
            "ClientToken": self.tokens.of(claim.metadata.uid),
            "LaunchTemplateConfigs": configs,
            "TargetCapacitySpecification": {"TotalTargetCapacity": 1, **_market(ways[0], _repriced(ways))[0]},
            "TagSpecifications": [
                {"ResourceType": kind, "Tags": written(own)} for kind in ("instance", "volume", "fleet")
            ],
            **_market(ways[0], _repriced(ways))[1],
        }
        if node_class.spec.context and claim.metadata.annotations.get(labels.MIN_VALUES_RELAXED) != "true":
            request["Context"] = node_class.spec.context
        return request

    def _subnets(self, node_class: EC2NodeClass) -> dict[str, Subnet]:
        """The subnet of each zone with the most free addresses."""
        found: dict[str, Subnet] = {}
        for each in node_class.status.subnets:
            best = found.get(each.zone)
            if best is None or self._left(each) > self._left(best):
                found[each.zone] = each
        return found

    def _left(self, subnet: Subnet) -> int:
        return self.free.get(subnet.id, 0) - self._asked[subnet.id]

    # -- the answer ------------------------------------------------------------------------------------------------------

    def _launched(
        self,
        identity: str,
        raw: Mapping[str, Any],
        ways: Sequence[Way],
        named: Mapping[str, tuple[Template, list[Way]]],
    ) -> Launched:
        used = raw.get("LaunchTemplateAndOverrides") or {}
        overrides = used.get("Overrides") or {}
        place = (raw.get("InstanceType") or overrides.get("InstanceType", ""), overrides.get("AvailabilityZone", ""))
        template, listed = _of_template(used, place, named)
        way = next((each for each in listed if each.place == place), None)
        if way is None:
            way = next((each for each in (*listed, *ways) if each.type.name == place[0]), ways[0])
        subnet = overrides.get("SubnetId", "")
        if subnet in self.free:
            self.free[subnet] = max(0, self.free[subnet] - way.type.capacity.get(PODS, 0) // MILLI)
        image = overrides.get("ImageId") or template.image_id
        return Launched(
            instance_id=identity, image_id=image, tenancy=template.tenancy, partition=template.partition, way=way
        )

    def _record(
        self,
        errors: Iterable[Mapping[str, Any]],
        ways: Sequence[Way],
        named: Mapping[str, tuple[Template, list[Way]]],
        node_class: EC2NodeClass,
    ) -> None:
        """Remember what ran dry, also when something else was launched."""
        zone_ids = {each.zone: each.zone_id for each in node_class.status.subnets}
        for each in errors:
            code, used = each.get("ErrorCode", ""), each.get("LaunchTemplateAndOverrides") or {}
            overrides = used.get("Overrides") or {}
            name, zone = overrides.get("InstanceType", ""), overrides.get("AvailabilityZone", "")
            template, listed = _of_template(used, (name, zone), named)
            kind = ways[0].offering.capacity_type
            self._counts.launch_failed(zone, zone_ids.get(zone, ""), kind, code)
            if code == NO_SPOT_ROLE:
                self._unavailable.mark_capacity_type(labels.SPOT)
                self._tell(node_class, "SpotSLRCreationFailed", _NO_SPOT)
            if code == _SUBNET_FULL:
                self.free[overrides.get("SubnetId", "")] = 0
                if not any(self.free.get(each.id, 1) for each in node_class.status.subnets if each.zone == zone):
                    self._mark(way for way in ways if way.offering.zone == zone)
            if code not in UNFULFILLABLE or code == _SUBNET_FULL:
                continue
            if template.reservation_id:
                self._account.exhausted(template.reservation_id)
            elif template.placement_group_id and _SPREAD_FULL in each.get("ErrorMessage", ""):
                self._mark(way for way in ways if way.offering.zone == zone)
            else:
                self._mark(way for way in listed if way.place == (name, zone))

    def _mark(self, ways: Iterable[Way]) -> None:
        for way in ways:
            self._unavailable.mark(way.type.name, way.offering)


_ANY: Final = Template(image_id="", user_data="")


def _of_template(
    used: Mapping[str, Any], place: tuple[str, str], named: Mapping[str, tuple[Template, list[Way]]]
) -> tuple[Template, list[Way]]:
    """The template of an answer. EC2 names it by an id that was not asked for; type and zone say which it is."""
    name = (used.get("LaunchTemplateSpecification") or {}).get("LaunchTemplateName", "")
    if name in named:
        return named[name]
    found = [each for each in named.values() if any(way.place == place for way in each[1])]
    everything = [way for _, listed in named.values() for way in listed]
    return found[0] if len(found) == 1 else (next(iter(named.values()))[0] if len(named) == 1 else _ANY, everything)


def _addresses(request: Mapping[str, Any], ways: Iterable[Way]) -> dict[str, int]:
    """Subnet id to the fewest pods of the machines that may be launched into it."""
    pods = {way.type.name: way.type.capacity.get(PODS, 0) // MILLI for way in ways}
    found: dict[str, int] = {}
    for config in request["LaunchTemplateConfigs"]:
        for each in config["Overrides"]:
            amount = pods[each["InstanceType"]]
            found[each["SubnetId"]] = min(amount, found.get(each["SubnetId"], amount))
    return found


def _once_each(ways: Iterable[Way]) -> list[Way]:
    found: dict[tuple[str, str], Way] = {}
    for way in ways:
        found.setdefault(way.place, way)
    return list(found.values())


def _repriced(ways: Iterable[Way]) -> bool:
    """Whether a price is a user's own, so that EC2's order by its own prices is not ours."""
    return any(way.option.offering.price != way.offering.price for way in ways)


def _market(first: Way, repriced: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """The kind of capacity, and how EC2 chooses."""
    if first.offering.capacity_type == labels.SPOT:
        strategy = "capacity-optimized-prioritized" if repriced else "price-capacity-optimized"
        return {"DefaultTargetCapacityType": "spot"}, {"SpotOptions": {"AllocationStrategy": strategy}}
    if first.reservation(DEFAULT_LABELS.interruptible) == "true":
        options = {"ReservedCapacityOptions": {"ReservationTypes": ["interruptible-capacity-reservation"]}}
        return {"DefaultTargetCapacityType": "reserved-capacity"}, options
    if first.reservation(DEFAULT_LABELS.type) == BLOCK:
        return {"DefaultTargetCapacityType": BLOCK}, {}
    strategy = "prioritized" if repriced else "lowest-price"
    return {"DefaultTargetCapacityType": "on-demand"}, {"OnDemandOptions": {"AllocationStrategy": strategy}}


def _refused(claim: NodeClaim, options: Sequence[Option], errors: Sequence[Mapping[str, Any]]) -> Exception:
    codes = {each.get("ErrorCode", ""): each.get("ErrorMessage", "") for each in errors}
    other = {code: message for code, message in codes.items() if code not in UNFULFILLABLE and code != NO_SPOT_ROLE}
    if other:
        code, message = next(iter(other.items()))
        return LaunchFailed(reason_of(code, message), f"NodeClaim {claim.name}: {code}: {message}")
    why = "; ".join(sorted(codes)) or "EC2 gave no reason"
    return _nothing(claim, options, why)


def _untold(claim: NodeClaim) -> Transient:
    return Transient(f"NodeClaim {claim.name}: an earlier launch for it is not told of yet", after_s=5.0)


def _nothing(claim: NodeClaim, options: Sequence[Option], why: str) -> InsufficientCapacity:
    tried = tuple((option.name, option.offering) for option in options)
    return InsufficientCapacity(f"NodeClaim {claim.name}: none of {len(tried)} options can be bought: {why}", tried)
