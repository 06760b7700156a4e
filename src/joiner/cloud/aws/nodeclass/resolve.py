"""What the selector terms of an EC2NodeClass mean in the account: subnets, security groups, images, reservations.

Terms are alternatives. All ids of a list are one question, every term with tags is one of its own; what is found twice counts
once.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from joiner.cloud.aws.api import NOT_FOUND, AwsApi, AwsError, pages
from joiner.cloud.aws.nodeclass.ec2nodeclass import (
    AMI,
    AMIRequirement,
    CapacityReservation,
    EC2NodeClassSpec,
    SecurityGroup,
    Subnet,
)
from joiner.cloud.aws.nodeclass.selectors import ANY_VALUE, AMISelectorTerm, CapacityReservationSelectorTerm
from joiner.cloud.aws.reservations import described, selected
from joiner.cloud.sources.ec2 import PREFIX
from joiner.cloud.sources.ec2describe import ARCHITECTURES
from joiner.model import labels
from joiner.model.meta import Value

_GPU: Final = f"{PREFIX}instance-gpu-count"
_ACCELERATOR: Final = f"{PREFIX}instance-accelerator-count"
_STANDARD: Final = (
    AMIRequirement(key=_GPU, operator="DoesNotExist"),
    AMIRequirement(key=_ACCELERATOR, operator="DoesNotExist"),
)
_NVIDIA: Final = (AMIRequirement(key=_GPU, operator="Exists"),)
_NEURON: Final = (AMIRequirement(key=_ACCELERATOR, operator="Exists"),)
Variant = tuple[str, tuple[AMIRequirement, ...]]
"""The name of a parameter that has the id of an image, and what the image asks of a type beyond its architecture."""


class FoundSubnet(Value):
    """A subnet with what only launches need to know."""

    subnet: Subnet
    free: int


def _tags(tags: Mapping[str, str]) -> list[dict[str, Any]]:
    return [
        {"Name": "tag-key", "Values": [key]} if value == ANY_VALUE else {"Name": f"tag:{key}", "Values": [value]}
        for key, value in tags.items()
    ]


def _questions(terms: Iterable[Any], id_filter: str, **by_name: str) -> list[list[dict[str, Any]]]:
    """The lists of filters to ask with: one for all ids, one for all names, one for each term with tags."""
    known = tuple(terms)
    ids = [term.id for term in known if term.id]
    asked = [[{"Name": id_filter, "Values": ids}]] if ids else []
    for field, name in by_name.items():
        values = [getattr(term, field) for term in known if getattr(term, field)]
        if values:
            asked.append([{"Name": name, "Values": values}])
    return [*asked, *(_tags(term.tags) for term in known if term.tags)]


async def subnets(api: AwsApi, spec: EC2NodeClassSpec) -> tuple[FoundSubnet, ...]:
    """The subnets of a class, those with the most free addresses first."""
    found: dict[str, FoundSubnet] = {}
    for filters in _questions(spec.subnet_selector_terms, "subnet-id"):
        for raw in await pages(api, "ec2", "describe_subnets", "Subnets", Filters=filters, MaxResults=500):
            made = Subnet(id=raw["SubnetId"], zone=raw["AvailabilityZone"], zone_id=raw.get("AvailabilityZoneId", ""))
            found[made.id] = FoundSubnet(subnet=made, free=raw.get("AvailableIpAddressCount", 0))
    return tuple(sorted(found.values(), key=lambda each: (-each.free, each.subnet.id)))


async def security_groups(api: AwsApi, spec: EC2NodeClassSpec) -> tuple[SecurityGroup, ...]:
    """The security groups of a class, by id."""
    found: dict[str, SecurityGroup] = {}
    for filters in _questions(spec.security_group_selector_terms, "group-id", name="group-name"):
        for raw in await pages(
            api, "ec2", "describe_security_groups", "SecurityGroups", Filters=filters, MaxResults=500
        ):
            found[raw["GroupId"]] = SecurityGroup(id=raw["GroupId"], name=raw.get("GroupName", ""))
    return tuple(found[identity] for identity in sorted(found))


async def capacity_reservations(api: AwsApi, spec: EC2NodeClassSpec) -> tuple[CapacityReservation, ...]:
    """The active reservations of a class, by id."""
    terms = spec.capacity_reservation_selector_terms
    return selected(spec, [described(raw) for term in terms for raw in await _reservations_of(api, term)])


async def reservation(api: AwsApi, identity: str) -> CapacityReservation | None:
    """A reservation that is active, whatever terms select it."""
    for raw in await _reservations_of(api, CapacityReservationSelectorTerm(id=identity)):
        return described(raw).reservation
    return None


async def _reservations_of(api: AwsApi, term: CapacityReservationSelectorTerm) -> list[Any]:
    active = {"Name": "state", "Values": ["active"]}
    key = "CapacityReservations"
    if term.id:
        try:
            asked: dict[str, Any] = {"CapacityReservationIds": [term.id], "Filters": [active]}
            return await pages(api, "ec2", "describe_capacity_reservations", key, **asked)
        except AwsError as error:
            if error.code in NOT_FOUND:
                return []
            raise
    named = (
        ("owner-id", term.owner_id),
        ("instance-type", term.instance_type),
        ("instance-match-criteria", term.criteria),
    )
    filters = [active, *({"Name": name, "Values": [value]} for name, value in named if value), *_tags(term.tags)]
    return await pages(api, "ec2", "describe_capacity_reservations", key, Filters=filters, MaxResults=1000)


# -- images --------------------------------------------------------------------------------------------------------------


async def amis(api: AwsApi, spec: EC2NodeClassSpec, kubernetes: str, now: datetime) -> tuple[AMI, ...]:
    """The images of a class, the newest first; of those that ask for the same only the best is kept."""
    variants: dict[str, list[tuple[AMIRequirement, ...]]] = {}
    images: dict[str, Mapping[str, Any]] = {}
    for term in spec.ami_selector_terms:
        if term.alias:
            for identity, requirements in await _of_alias(api, term, kubernetes):
                variants.setdefault(identity, []).append(requirements)
        elif term.ssm_parameter:
            identity = await _parameter(api, term.ssm_parameter)
            if identity.startswith("ami-"):
                variants.setdefault(identity, []).append(())
        else:
            for raw in await _by_term(api, term):
                images[raw["ImageId"]] = raw
    if variants:
        for raw in await _described(api, [{"Name": "image-id", "Values": sorted(variants)}]):
            images[raw["ImageId"]] = raw
    made = [
        (raw, _ami(raw, requirements, now))
        for identity, raw in images.items()
        if raw.get("Architecture") in ARCHITECTURES
        for requirements in variants.get(identity, [()])
    ]
    return _best(made)


def _best(made: list[tuple[Mapping[str, Any], AMI]]) -> tuple[AMI, ...]:
    by_goodness = sorted(made, key=lambda each: (str(each[0].get("CreationDate", "")), each[1].name), reverse=True)
    by_goodness.sort(key=lambda each: each[1].deprecated)
    best: dict[tuple[AMIRequirement, ...], tuple[str, AMI]] = {}
    for raw, ami in by_goodness:
        best.setdefault(ami.requirements, (str(raw.get("CreationDate", "")), ami))
    found = sorted(best.values(), key=lambda each: each[1].id)
    return tuple(ami for _, ami in sorted(found, key=lambda each: each[0], reverse=True))


def _ami(raw: Mapping[str, Any], requirements: tuple[AMIRequirement, ...], now: datetime) -> AMI:
    arch = AMIRequirement(key=labels.ARCH, operator="In", values=(ARCHITECTURES[raw["Architecture"]],))
    ends = raw.get("DeprecationTime")
    return AMI(
        id=raw["ImageId"],
        name=raw.get("Name", ""),
        deprecated=ends is not None and _moment(ends) <= now,
        requirements=tuple(sorted((arch, *requirements), key=lambda each: (len(each.key), each.key))),
    )


def _moment(text: str | datetime) -> datetime:
    return datetime.fromisoformat(text) if isinstance(text, str) else text


async def _by_term(api: AwsApi, term: AMISelectorTerm) -> list[Any]:
    if term.id:
        return await _described(api, [{"Name": "image-id", "Values": [term.id]}])
    owners = [term.owner] if term.owner else (["self", "amazon"] if term.name else [])
    filters = [*([{"Name": "name", "Values": [term.name]}] if term.name else []), *_tags(term.tags)]
    return await _described(api, filters, owners)


async def _described(api: AwsApi, filters: list[dict[str, Any]], owners: Iterable[str] = ()) -> list[Any]:
    asked: dict[str, Any] = {
        "Filters": [*filters, {"Name": "state", "Values": ["available"]}],
        "IncludeDeprecated": True,
    }
    if owners:
        asked["Owners"] = list(owners)
    return await pages(api, "ec2", "describe_images", "Images", MaxResults=1000, **asked)


async def _of_alias(
    api: AwsApi, term: AMISelectorTerm, kubernetes: str
) -> list[tuple[str, tuple[AMIRequirement, ...]]]:
    found = []
    for name, requirements in parameters(term.family, term.version, kubernetes):
        identity = await _parameter(api, name)
        if identity:
            found.append((identity, requirements))
    return found


async def _parameter(api: AwsApi, name: str) -> str:
    try:
        answer = await api.call("ssm", "get_parameter", Name=name)
    except AwsError as error:
        if error.code in NOT_FOUND:
            return ""
        raise
    return str(answer.get("Parameter", {}).get("Value", ""))


def parameters(family: str, version: str, kubernetes: str) -> tuple[Variant, ...]:
    """Where the Systems Manager keeps the ids of the images of a family, with what each image asks of a type."""
    if family == "AL2023":
        return tuple(_al2023(version, kubernetes))
    if family == "AL2":
        return tuple(_al2(version, kubernetes))
    if family == "Bottlerocket":
        return tuple(_bottlerocket(version, kubernetes))
    return ()


def _al2023(version: str, kubernetes: str) -> Iterable[Variant]:
    for arch, variants in (("x86_64", ("standard", "nvidia", "neuron")), ("arm64", ("standard", "nvidia"))):
        for variant in variants:
            name = "recommended"
            if version != "latest":
                name = f"amazon-eks-node-al2023-{arch}-{variant}-{kubernetes}-{version}"
            path = f"/aws/service/eks/optimized-ami/{kubernetes}/amazon-linux-2023/{arch}/{variant}/{name}/image_id"
            yield path, {"standard": _STANDARD, "nvidia": _NVIDIA, "neuron": _NEURON}[variant]


def _al2(version: str, kubernetes: str) -> Iterable[Variant]:
    variants = (
        ("", "node", (_STANDARD,)),
        ("-arm64", "arm64-node", (_STANDARD,)),
        ("-gpu", "gpu-node", (_NVIDIA, _NEURON)),
    )
    for suffix, word, asked in variants:
        name = "recommended" if version == "latest" else f"amazon-eks-{word}-{kubernetes}-{version}"
        for requirements in asked:
            yield f"/aws/service/eks/optimized-ami/{kubernetes}/amazon-linux-2{suffix}/{name}/image_id", requirements


def _bottlerocket(version: str, kubernetes: str) -> Iterable[Variant]:
    for suffix, requirements in (("", _STANDARD), ("-nvidia", _NVIDIA)):
        for arch in ("x86_64", "arm64"):
            named = "latest" if version == "latest" else version.removeprefix("v")
            yield f"/aws/service/bottlerocket/aws-k8s-{kubernetes}{suffix}/{arch}/{named}/image_id", requirements
