"""AWS calls, answered out of the pretend account in the shapes of AWS."""

import asyncio
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from joiner.cloud.aws.api import Answer, AwsError
from joiner.cloud.errors import Transient
from joiner.model import labels
from joiner.sim.cloud.ec2 import checks, fleet, queue
from joiner.sim.cloud.ec2.descriptions import description
from joiner.sim.cloud.ec2.world import ACCOUNT, Account, CapacityReservation, Machine

Parameters = Mapping[str, Any]
WORDS: Final[Mapping[str, str]] = {
    "create_fleet": "create",
    "describe_instances": "list",
    "terminate_instances": "delete",
    "reboot_instances": "reboot",
    "describe_instance_types": "types",
    "describe_instance_type_offerings": "types",
    "receive_message": "receive",
    "delete_message": "acknowledge",
}
"""What those who make calls fail call an operation; everything else is `other`."""


class Ec2Face:
    """Answers in the place of AWS. Every call takes a moment, and can be made to fail."""

    def __init__(self, account: Account) -> None:
        self.account = account
        self.calls: list[tuple[str, str, Parameters]] = []
        """Everything that was asked."""
        self.before: Callable[[str, Parameters], None] = _nothing
        """May raise in the place of an effect."""
        self.after: Callable[[str, Parameters], None] = _nothing
        """May raise in the place of an answer, although the effect has taken place."""

    @staticmethod
    def judge(service: str, operation: str, parameters: Parameters, answer: Answer | None) -> str:
        """What is wrong with a request or an answer. Tests ask the models of the SDK, which users may not have installed."""
        return ""

    async def call(self, service: str, operation: str, /, **parameters: Any) -> Answer:
        """One call."""
        self.calls.append((service, operation, parameters))
        if problem := self.judge(service, operation, parameters, None):
            raise AwsError("InvalidParameter", problem)
        cloud, word = self.account.cloud, WORDS.get(operation, "other")
        await self._way(word, cloud.interceptor.before)
        self.before(operation, parameters)
        known = _OPERATIONS.get((service, operation))
        if known is None:
            raise AwsError("InvalidAction", f"the pretend account does not answer {service} {operation}")
        account = self.account
        if code := account.refused.get(operation) or account.refused.get("*"):
            raise AwsError(code, f"AWS refuses {service}:{operation} to arn:aws:iam::{ACCOUNT}:role/joiner")
        if parameters.get("DryRun"):
            raise AwsError("DryRunOperation", "Request would have succeeded, but DryRun flag is set.")
        if operation == "receive_message":
            await queue.arrival(self.account, parameters)
        answer = known(self.account, parameters)
        self.judge(service, operation, parameters, answer)
        cloud.trace.record(cloud.clock.monotonic(), "cloud", operation, "call", _about(parameters))
        await self._way(word, cloud.interceptor.after)
        self.after(operation, parameters)
        return answer

    async def _way(self, word: str, intercept: Callable[[str, str], float]) -> None:
        """Half of the way there and back; it takes its time, and may lead nowhere."""
        cloud = self.account.cloud
        usual = cloud.random.uniform(*cloud.pace.call_s) if word == "create" else self.account.timing.call
        try:
            more = intercept(word, "")
        except Transient as error:
            there = intercept == cloud.interceptor.before
            raise AwsError("RequestLimitExceeded" if there else "Unreachable", str(error)) from None
        await asyncio.sleep(usual / 2 + more)


def _about(parameters: Parameters) -> str:
    """What a call is about, as far as a line of the trace has to say it."""
    return str(parameters.get("ClientToken") or ",".join(parameters.get("InstanceIds") or ()))


def _nothing(operation: str, parameters: Parameters) -> None:
    """Nothing happens."""


def _filters(parameters: Parameters) -> dict[str, list[str]]:
    return {each["Name"]: list(each["Values"]) for each in parameters.get("Filters") or ()}


def _tagged(
    filters: Mapping[str, list[str]], tags: Mapping[str, str], listed: Iterable[Mapping[str, Any]] = ()
) -> bool:
    for each in listed:
        name, values = each["Name"], each["Values"]
        if name == "tag-key" and not any(value in tags for value in values):
            return False
    return all(tags.get(name[4:]) in values for name, values in filters.items() if name.startswith("tag:"))


def _written(tags: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in sorted(tags.items())]


def _types(account: Account, parameters: Parameters) -> Answer:
    size = parameters.get("MaxResults") or 100
    start = int(parameters.get("NextToken") or 0)
    found = account.facts.types[start : start + size]
    more = {"NextToken": str(start + size)} if start + size < len(account.facts.types) else {}
    return {"InstanceTypes": [description(each) for each in found], **more}


def _type_offerings(account: Account, parameters: Parameters) -> Answer:
    kind = parameters["LocationType"]
    sold = account.facts.regions[account.region].types
    sells = account.cloud.market.sells
    rows = [
        {"InstanceType": name, "LocationType": kind, "Location": zone}
        for name, each in sorted(sold.items())
        for zone in each.zones
        if sells(name, zone, labels.ON_DEMAND) or sells(name, zone, labels.SPOT)
    ]
    return {"InstanceTypeOfferings": rows}


def _spot_prices(account: Account, parameters: Parameters) -> Answer:
    rows = []
    for name, sold in sorted(account.facts.regions[account.region].types.items()):
        for zone in sold.zones:
            price = account.price(labels.SPOT, name, zone)
            if (sold.spot_by_zone.get(zone) or sold.spot) and account.cloud.market.sells(name, zone, labels.SPOT):
                rows.append({"InstanceType": name, "AvailabilityZone": zone, "SpotPrice": f"{price:.6f}"})
    return {"SpotPriceHistory": rows}


def _products(account: Account, parameters: Parameters) -> Answer:
    wanted = {each["Field"]: each["Value"] for each in parameters["Filters"]}
    if wanted["tenancy"] != "Shared":
        return {"PriceList": []}
    listed = []
    for name, sold in sorted(account.facts.regions[account.region].types.items()):
        if sold.on_demand is not None:
            price = {"pricePerUnit": {"USD": str(account.price(labels.ON_DEMAND, name, sold.zones[0]))}}
            terms = {"OnDemand": {"a": {"priceDimensions": {"b": price}}}}
            listed.append(json.dumps({"product": {"attributes": {"instanceType": name}}, "terms": terms}))
    return {"PriceList": listed}


def _subnets(account: Account, parameters: Parameters) -> Answer:
    filters, listed = _filters(parameters), parameters.get("Filters") or ()
    found = [
        {
            "SubnetId": identity,
            "AvailabilityZone": each["zone"],
            "AvailabilityZoneId": each["zone_id"],
            "AvailableIpAddressCount": each["free"],
            "Tags": _written(each["tags"]),
        }
        for identity, each in account.subnets.items()
        if identity in filters.get("subnet-id", [identity]) and _tagged(filters, each["tags"], listed)
    ]
    return {"Subnets": found}


def _groups(account: Account, parameters: Parameters) -> Answer:
    filters, listed = _filters(parameters), parameters.get("Filters") or ()
    found = [
        {"GroupId": identity, "GroupName": each["name"], "Tags": _written(each["tags"])}
        for identity, each in account.groups.items()
        if identity in filters.get("group-id", [identity])
        and each["name"] in filters.get("group-name", [each["name"]])
        and _tagged(filters, each["tags"], listed)
    ]
    return {"SecurityGroups": found}


def _images(account: Account, parameters: Parameters) -> Answer:
    filters, listed, owners = _filters(parameters), parameters.get("Filters") or (), parameters.get("Owners")
    found = []
    for identity, each in account.images.items():
        named = filters.get("name", [each["name"]])
        if (
            identity in filters.get("image-id", [identity])
            and any(_like(pattern, each["name"]) for pattern in named)
            and (not owners or each["owner"] in owners)
            and _tagged(filters, each["tags"], listed)
        ):
            found.append(
                {
                    "ImageId": identity,
                    "Name": each["name"],
                    "Architecture": each["architecture"],
                    "CreationDate": each["created"],
                    "State": "available",
                    **({"DeprecationTime": each["deprecated"]} if each.get("deprecated") else {}),
                }
            )
    return {"Images": found}


def _like(pattern: str, name: str) -> bool:
    first, star, last = pattern.partition("*")
    return name == pattern if not star else name.startswith(first) and name.endswith(last)


def _reservations(account: Account, parameters: Parameters) -> Answer:
    filters, listed = _filters(parameters), parameters.get("Filters") or ()
    ids = parameters.get("CapacityReservationIds")
    strange = [identity for identity in ids or () if identity not in account.reservations]
    if strange:
        raise AwsError("InvalidCapacityReservationId.NotFound", f"The reservation {strange[0]} does not exist")
    found = [each for each in account.reservations.values() if not ids or each.id in ids]
    return {
        "CapacityReservations": [
            _reservation(account, each)
            for each in found
            if _state(account, each) in filters.get("state", [_state(account, each)])
            and each.owner in filters.get("owner-id", [each.owner])
            and each.type in filters.get("instance-type", [each.type])
            and each.criteria in filters.get("instance-match-criteria", [each.criteria])
            and _tagged(filters, each.tags, listed)
        ]
    }


def _state(account: Account, reservation: CapacityReservation) -> str:
    return "cancelled" if reservation.cancelled else "expired" if account.ended(reservation) else "active"


def _reservation(account: Account, reservation: CapacityReservation) -> dict[str, Any]:
    return {
        "CapacityReservationId": reservation.id,
        "OwnerId": reservation.owner,
        "InstanceType": reservation.type,
        "InstancePlatform": "Linux/UNIX",
        "AvailabilityZone": reservation.zone,
        "Tenancy": "default",
        "TotalInstanceCount": reservation.count,
        "AvailableInstanceCount": account.left(reservation),
        "State": _state(account, reservation),
        "InstanceMatchCriteria": reservation.criteria,
        "ReservationType": reservation.kind,
        "Interruptible": reservation.interruptible,
        "Tags": _written(reservation.tags),
        **({"EndDate": reservation.end, "EndDateType": "limited"} if reservation.end else {"EndDateType": "unlimited"}),
    }


def _placement_groups(account: Account, parameters: Parameters) -> Answer:
    wanted = [*(parameters.get("GroupNames") or ()), *(parameters.get("GroupIds") or ())]
    found = [each for each in account.placement_groups.values() if {each["GroupName"], each["GroupId"]} & set(wanted)]
    if not found:
        raise AwsError("InvalidPlacementGroup.Unknown", f"The Placement Group {wanted[0]} is unknown")
    return {"PlacementGroups": found}


def _create_template(account: Account, parameters: Parameters) -> Answer:
    name = parameters["LaunchTemplateName"]
    if name in account.templates:
        raise AwsError("InvalidLaunchTemplateName.AlreadyExistsException", f"{name} is in use already")
    tags = {each["Key"]: each["Value"] for each in parameters["TagSpecifications"][0]["Tags"]}
    identity = f"lt-{hashlib.sha256(name.encode()).hexdigest()[:17]}"
    account.templates[name] = {"id": identity, "data": parameters["LaunchTemplateData"], "tags": tags}
    return {"LaunchTemplate": {"LaunchTemplateId": identity, "LaunchTemplateName": name}}


def _templates(account: Account, parameters: Parameters) -> Answer:
    names, filters = parameters.get("LaunchTemplateNames"), _filters(parameters)
    strange = [name for name in names or () if name not in account.templates]
    if strange:
        raise AwsError("InvalidLaunchTemplateName.NotFoundException", f"The template {strange[0]} does not exist")
    found = [
        {"LaunchTemplateId": each["id"], "LaunchTemplateName": name, "Tags": _written(each["tags"])}
        for name, each in account.templates.items()
        if (not names or name in names) and _tagged(filters, each["tags"])
    ]
    return {"LaunchTemplates": found}


def _delete_template(account: Account, parameters: Parameters) -> Answer:
    name = parameters["LaunchTemplateName"]
    if account.templates.pop(name, None) is None:
        raise AwsError("InvalidLaunchTemplateName.NotFoundException", f"The template {name} does not exist")
    return {"LaunchTemplate": {"LaunchTemplateName": name}}


def _instances(account: Account, parameters: Parameters) -> Answer:
    ids, filters, listed = parameters.get("InstanceIds"), _filters(parameters), parameters.get("Filters") or ()
    seen = {each.id: each for each in account.machines.values() if account.tells_of(each)}
    strange = [identity for identity in ids or () if identity not in seen]
    if strange:
        raise AwsError("InvalidInstanceID.NotFound", f"The instance ID '{strange[0]}' does not exist")
    found = [
        each
        for each in seen.values()
        if (not ids or each.id in ids)
        and account.state(each) in filters.get("instance-state-name", [account.state(each)])
        and each.id in filters.get("instance-id", [each.id])
        and _tagged(filters, each.tags, listed)
    ]
    start = int(parameters.get("NextToken") or 0)
    end = start + (parameters.get("MaxResults") or len(account.machines) + 1)
    more = {"NextToken": str(end)} if end < len(found) else {}
    return {"Reservations": [{"Instances": [_instance(account, each)]} for each in found[start:end]], **more}


_LIFECYCLES: Final = {"block": "capacity-block", "interruptible": "interruptible-capacity-reservation"}


def _kind(reservation: CapacityReservation | None) -> str:
    if reservation is None or (reservation.kind == "default" and not reservation.interruptible):
        return ""
    return "block" if reservation.kind == "capacity-block" else "interruptible"


def _instance(account: Account, machine: Machine) -> dict[str, Any]:
    reservation = account.reservations.get(machine.reservation)
    inside = reservation is not None and not account.ended(reservation)
    return {
        "InstanceId": machine.id,
        "InstanceType": machine.type,
        "ImageId": machine.image,
        "SubnetId": machine.subnet,
        "LaunchTime": machine.launched_at,
        "Placement": {
            "AvailabilityZone": machine.zone,
            "Tenancy": machine.tenancy,
            **({"GroupId": machine.placement_group} if machine.placement_group else {}),
            **({"PartitionNumber": machine.partition} if machine.partition else {}),
        },
        "State": {"Name": account.state(machine)},
        "SecurityGroups": [{"GroupId": group} for group in machine.groups],
        "IamInstanceProfile": {"Arn": f"arn:aws:iam::123456789012:instance-profile/{machine.profile}"},
        "Tags": _written(machine.tags),
        **(
            {"InstanceLifecycle": "spot", "SpotInstanceRequestId": f"sir-{machine.id}"}
            if machine.market == "spot"
            else {}
        ),
        **(
            {"InstanceLifecycle": _LIFECYCLES[_kind(reservation)]}
            if inside and _kind(reservation) in _LIFECYCLES
            else {}
        ),
        **({"CapacityReservationId": machine.reservation} if inside else {}),
        **(
            {"CapacityReservationSpecification": {"CapacityReservationPreference": machine.preference}}
            if machine.preference
            else {}
        ),
    }


def _terminate(account: Account, parameters: Parameters) -> Answer:
    changed = []
    for identity in parameters["InstanceIds"]:
        machine = account.machines.get(identity)
        if machine is None:
            raise AwsError("InvalidInstanceID.NotFound", f"The instance ID '{identity}' does not exist")
        if account.state(machine) in ("pending", "running"):
            account.subnets[machine.subnet]["free"] += 1
            account.cloud.machines.stop(machine.provider_id)
        changed.append({"InstanceId": identity, "CurrentState": {"Name": account.state(machine)}})
    return {"TerminatingInstances": changed}


def _reboot(account: Account, parameters: Parameters) -> Answer:
    for identity in parameters["InstanceIds"]:
        if identity not in account.machines:
            raise AwsError("InvalidInstanceID.NotFound", f"The instance ID '{identity}' does not exist")
        found = account.machines[identity]
        room = account.cloud.machines
        known = room.get(found.provider_id)
        if known is not None and known.birth.refuses_reboot:
            raise AwsError("UnsupportedOperation", f"The instance '{identity}' cannot be rebooted")
        found.boots += 1
        room.reboot(found.provider_id, f"reboot {found.boots}")
    return {}


def _run(account: Account, parameters: Parameters) -> Answer:
    raise AwsError("UnsupportedOperation", "the pretend account launches with CreateFleet; RunInstances is a dry run")


def _create_tags(account: Account, parameters: Parameters) -> Answer:
    for identity in parameters["Resources"]:
        if identity not in account.machines:
            raise AwsError("InvalidInstanceID.NotFound", f"The instance ID '{identity}' does not exist")
        account.machines[identity].tags |= {each["Key"]: each["Value"] for each in parameters["Tags"]}
    return {}


def _parameter(account: Account, parameters: Parameters) -> Answer:
    name = parameters["Name"]
    if name not in account.parameters:
        raise AwsError("ParameterNotFound", f"Parameter {name} not found.")
    return {"Parameter": {"Name": name, "Value": account.parameters[name]}}


def _cluster(account: Account, parameters: Parameters) -> Answer:
    if parameters["name"] != account.cluster.get("name"):
        raise AwsError("ResourceNotFoundException", f"No cluster found for name: {parameters['name']}.")
    return {"cluster": account.cluster}


def _profile(account: Account, parameters: Parameters) -> Answer:
    name = parameters["InstanceProfileName"]
    if name not in account.profiles:
        raise AwsError("NoSuchEntity", f"Instance Profile {name} cannot be found.")
    return {"InstanceProfile": account.profiles[name]}


def _profiles(account: Account, parameters: Parameters) -> Answer:
    prefix = parameters.get("PathPrefix", "/")
    found = [each for each in account.profiles.values() if each["Path"].startswith(prefix)]
    return {"InstanceProfiles": found, "IsTruncated": False}


def _create_profile(account: Account, parameters: Parameters) -> Answer:
    name = parameters["InstanceProfileName"]
    if name in account.profiles:
        raise AwsError("EntityAlreadyExists", f"Instance Profile {name} already exists.")
    made = {
        "Path": parameters.get("Path", "/"),
        "InstanceProfileName": name,
        "InstanceProfileId": "AIPA0123456789ABCDEF",
        "Arn": f"arn:aws:iam::123456789012:instance-profile/{name}",
        "CreateDate": account.clock.now(),
        "Roles": [],
    }
    account.profiles[name] = made
    return {"InstanceProfile": made}


def _add_role(account: Account, parameters: Parameters) -> Answer:
    role = parameters["RoleName"]
    if role not in account.roles:
        raise AwsError("NoSuchEntity", f"The role with name {role} cannot be found.")
    profile = account.profiles[parameters["InstanceProfileName"]]
    profile["Roles"] = [
        {
            "Path": "/",
            "RoleName": role,
            "RoleId": "AROA0123456789ABCDEF",
            "Arn": f"arn:aws:iam::123456789012:role/{role}",
            "CreateDate": account.clock.now(),
        }
    ]
    return {}


def _remove_role(account: Account, parameters: Parameters) -> Answer:
    account.profiles[parameters["InstanceProfileName"]]["Roles"] = []
    return {}


def _delete_profile(account: Account, parameters: Parameters) -> Answer:
    if account.profiles.pop(parameters["InstanceProfileName"], None) is None:
        raise AwsError("NoSuchEntity", "Instance Profile cannot be found.")
    return {}


_OPERATIONS: Final[Mapping[tuple[str, str], Callable[[Account, Parameters], Answer]]] = {
    ("ec2", "describe_instance_types"): _types,
    ("ec2", "describe_instance_type_offerings"): _type_offerings,
    ("ec2", "describe_spot_price_history"): _spot_prices,
    ("ec2", "describe_subnets"): _subnets,
    ("ec2", "describe_security_groups"): _groups,
    ("ec2", "describe_images"): _images,
    ("ec2", "describe_capacity_reservations"): _reservations,
    ("ec2", "describe_placement_groups"): _placement_groups,
    ("ec2", "create_launch_template"): _create_template,
    ("ec2", "describe_launch_templates"): _templates,
    ("ec2", "delete_launch_template"): _delete_template,
    ("ec2", "create_fleet"): fleet.create_fleet,
    ("ec2", "run_instances"): _run,
    ("ec2", "describe_instances"): _instances,
    ("ec2", "describe_instance_status"): checks.describe,
    ("ec2", "terminate_instances"): _terminate,
    ("ec2", "reboot_instances"): _reboot,
    ("ec2", "create_tags"): _create_tags,
    ("ssm", "get_parameter"): _parameter,
    ("eks", "describe_cluster"): _cluster,
    ("iam", "get_instance_profile"): _profile,
    ("iam", "list_instance_profiles"): _profiles,
    ("iam", "create_instance_profile"): _create_profile,
    ("iam", "add_role_to_instance_profile"): _add_role,
    ("iam", "remove_role_from_instance_profile"): _remove_role,
    ("iam", "delete_instance_profile"): _delete_profile,
    ("pricing", "get_products"): _products,
    ("sqs", "get_queue_url"): queue.url,
    ("sqs", "receive_message"): queue.receive,
    ("sqs", "delete_message"): queue.delete,
}
