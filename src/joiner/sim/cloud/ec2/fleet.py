"""CreateFleet of the pretend account: finite capacity, prices, priorities, reservations, and tokens that are remembered."""

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from joiner.cloud.aws.api import Answer, AwsError
from joiner.model.labels import ON_DEMAND, SPOT
from joiner.sim.cloud.ec2.boot import ONLY
from joiner.sim.cloud.ec2.world import Account, CapacityReservation, Machine

_BY_PRIORITY: Final = ("prioritized", "capacity-optimized-prioritized")
_MARKET_OF: Final = {
    ("default", False): ON_DEMAND,
    ("default", True): "reserved-capacity",
    ("capacity-block", False): "capacity-block",
    ("capacity-block", True): "capacity-block",
}
"""Type of a reservation, and whether it may be interrupted, to the capacity type of a fleet that buys there."""


class _Candidate(NamedTuple):
    template: str
    """The id by which answers name the launch template, also where the request has its name."""
    data: Mapping[str, Any]
    override: Mapping[str, Any]

    @property
    def place(self) -> tuple[str, str]:
        return self.override["InstanceType"], self.override["AvailabilityZone"]


def create_fleet(account: Account, parameters: Mapping[str, Any]) -> Answer:
    """One machine, or the reasons why there is none."""
    token = parameters.get("ClientToken", "")
    asked = json.dumps(parameters, sort_keys=True, default=str)
    if token in account.answers:
        before, answer = account.answers[token]
        if before != asked:
            raise AwsError("IdempotentParameterMismatch", "The client token was used with other parameters")
        return answer
    candidates = _candidates(account, parameters)
    market = parameters["TargetCapacitySpecification"]["DefaultTargetCapacityType"]
    _tell(account, candidates, market, parameters)
    errors: list[dict[str, Any]] = []
    launched: list[dict[str, Any]] = []
    for candidate in _ordered(account, candidates, market, parameters):
        code = _refusal(account, candidate, market)
        if code:
            name, zone = candidate.place
            errors.append(_told(candidate, market, ErrorCode=code, ErrorMessage=f"there is no {name} in {zone} now"))
            continue
        machine = _machine(account, candidate, market, parameters)
        account.launch(machine, candidate.data)
        made = _told(candidate, market, InstanceIds=[machine.id], InstanceType=machine.type)
        launched.append(made)
        break
    answer = {"FleetId": f"fleet-{len(account.answers) + 1}", "Errors": errors, "Instances": launched}
    if token:
        account.answers[token] = (asked, answer)
    return answer


def _candidates(account: Account, parameters: Mapping[str, Any]) -> list[_Candidate]:
    found = []
    for config in parameters["LaunchTemplateConfigs"]:
        name = config["LaunchTemplateSpecification"]["LaunchTemplateName"]
        if name not in account.templates:
            raise AwsError("InvalidLaunchTemplateName.NotFoundException", f"The template {name} does not exist")
        data = account.templates[name]["data"]
        profile = data.get("IamInstanceProfile", {}).get("Name", "")
        if profile and profile not in account.profiles:
            raise AwsError(
                "InvalidParameterValue", f"Value ({profile}) for parameter: Invalid IAM Instance Profile name"
            )
        found += [_Candidate(account.templates[name]["id"], data, each) for each in config["Overrides"]]
    return found


def _ordered(
    account: Account, candidates: list[_Candidate], market: str, parameters: Mapping[str, Any]
) -> list[_Candidate]:
    options = parameters.get("SpotOptions" if market == SPOT else "OnDemandOptions") or {}
    if options.get("AllocationStrategy") in _BY_PRIORITY:
        return sorted(candidates, key=lambda each: each.override.get("Priority", 0.0))
    sold = SPOT if market == SPOT else ON_DEMAND
    return sorted(candidates, key=lambda each: account.price(sold, *each.place))


def _tell(account: Account, candidates: list[_Candidate], market: str, parameters: Mapping[str, Any]) -> None:
    """Tell who watches what would do."""
    if account.asked:
        sold = SPOT if market == SPOT else ON_DEMAND
        known = [
            account.labels_of(*each.place, sold, _target(each) if _is_targeted(each) else "")
            for each in candidates
            if each.place[0] in account.types
        ]
        for watcher in account.asked:
            watcher(_tags(parameters), known)


def _said(candidate: _Candidate) -> Mapping[str, Any]:
    said: Mapping[str, Any] = candidate.data.get("CapacityReservationSpecification") or {}
    return said


def _target(candidate: _Candidate) -> str:
    return str(_said(candidate).get("CapacityReservationTarget", {}).get("CapacityReservationId", ""))


def _is_targeted(candidate: _Candidate) -> bool:
    return _said(candidate).get("CapacityReservationPreference") == ONLY


def _reservation(account: Account, candidate: _Candidate) -> CapacityReservation | None:
    """The reservation that a machine is launched into: the one it names, or an open one that it does not stay out of."""
    if _target(candidate):
        return account.reservations.get(_target(candidate))
    preference = _said(candidate).get("CapacityReservationPreference", "open")
    return account.open_for(*candidate.place) if preference == "open" else None


def _refusal(account: Account, candidate: _Candidate, market: str) -> str:
    """Why a candidate cannot be launched, in EC2's word; empty if it can."""
    subnet = account.subnets.get(candidate.override["SubnetId"])
    if subnet is None:
        return "InvalidSubnetID.NotFound"
    if subnet["zone"] != candidate.place[1]:
        return "InvalidParameterValue"
    if subnet["free"] <= 0:
        return "InsufficientFreeAddressesInSubnet"
    if candidate.place[0] not in account.types:
        return "InvalidParameterValue"
    held = _reservation(account, candidate)
    if _is_targeted(candidate):
        fits = held is not None and (held.type, held.zone) == candidate.place and not account.ended(held)
        if held is None or not fits or not account.left(held):
            return "ReservationCapacityExceeded"
        return "" if _MARKET_OF[held.kind, held.interruptible] == market else "InvalidParameterCombination"
    if market not in (SPOT, ON_DEMAND):
        return "InvalidParameterCombination"  # these are bought by naming a reservation alone
    if held is not None and market == ON_DEMAND:
        return ""
    return "" if account.has(market, *candidate.place) else "InsufficientInstanceCapacity"


def _tags(parameters: Mapping[str, Any]) -> dict[str, str]:
    found = (each["Tags"] for each in parameters.get("TagSpecifications") or () if each["ResourceType"] == "instance")
    return {each["Key"]: each["Value"] for each in next(found, ())}


def _machine(account: Account, candidate: _Candidate, market: str, parameters: Mapping[str, Any]) -> Machine:
    data, override = candidate.data, candidate.override
    held = _reservation(account, candidate) if market != SPOT else None
    account.subnets[override["SubnetId"]]["free"] -= 1
    return Machine(
        id=f"i-{len(account.machines) + 1:017x}",
        type=override["InstanceType"],
        zone=override["AvailabilityZone"],
        subnet=override["SubnetId"],
        image=override["ImageId"],
        market=SPOT if market == SPOT else ON_DEMAND,
        launched_at=account.clock.now(),
        started=account.clock.monotonic(),
        tags=_tags(parameters),
        groups=list(data["NetworkInterfaces"][0]["Groups"]),
        profile=data.get("IamInstanceProfile", {}).get("Name", ""),
        reservation=held.id if held is not None else "",
        preference=_said(candidate).get("CapacityReservationPreference", ""),
        placement_group=data.get("Placement", {}).get("GroupId", ""),
        partition=data.get("Placement", {}).get("PartitionNumber", 0),
        tenancy=data.get("Placement", {}).get("Tenancy", "default"),
    )


def _told(candidate: _Candidate, market: str, **more: Any) -> dict[str, Any]:
    used = {
        "LaunchTemplateSpecification": {"LaunchTemplateId": candidate.template, "Version": "1"},
        "Overrides": dict(candidate.override),
    }
    return {"LaunchTemplateAndOverrides": used, "Lifecycle": SPOT if market == SPOT else ON_DEMAND, **more}
