"""Dry runs: whether Joiner may launch machines of a class is asked of EC2 before the first claim needs one.

A launch template is really made, because a fleet cannot be asked for without one; it goes like every other that is idle. Then
CreateFleet and RunInstances are asked as dry runs. A yes is believed for half an hour, a no for five minutes, or until the class
changes.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

from joiner.clock import Clock
from joiner.cloud.aws.api import EXPIRED, THROTTLED, AwsApi, AwsError, is_denied
from joiner.cloud.aws.launch import tags
from joiner.cloud.aws.launch.cluster import ClusterFacts
from joiner.cloud.aws.launch.templates import LaunchTemplates, Template, data, written
from joiner.cloud.aws.launch.userdata import boot_of, user_data
from joiner.cloud.aws.nodeclass.ec2nodeclass import AMI, EC2NodeClass
from joiner.cloud.errors import LaunchFailed
from joiner.model import codec, labels

BELIEVED_S: Final = 1800.0
DENIED_S: Final = 300.0
_DONE: Final = "DryRunOperation"
_TYPES: Final = {"amd64": "m5.large", "arm64": "m6g.large"}
"""A type for each architecture that is sold nearly everywhere."""


class Denied(Exception):
    """Why machines of the class could not be launched: the reason in one word, then cause and fix."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason, self.message = reason, message


class DryRuns:
    """What EC2 would say to a launch."""

    def __init__(self, api: AwsApi, clock: Clock, templates: LaunchTemplates) -> None:
        self._api, self._clock, self._templates = api, clock, templates
        self._known: dict[str, tuple[str, float, Denied | None]] = {}

    async def check(self, node_class: EC2NodeClass, cluster: ClusterFacts) -> None:
        """Raises `Denied`, and `AwsError` where EC2 cannot be asked now."""
        now, asked = self._clock.monotonic(), _digest(node_class)
        known = self._known.get(node_class.name)
        if known is None or known[0] != asked or now - known[1] >= (BELIEVED_S if known[2] is None else DENIED_S):
            known = self._known[node_class.name] = (asked, now, await self._asked(node_class, cluster))
        if known[2] is not None:
            raise known[2]

    def forget(self, name: str) -> None:
        """The class is gone, or its permissions should be asked for again."""
        self._known.pop(name, None)

    async def _asked(self, node_class: EC2NodeClass, cluster: ClusterFacts) -> Denied | None:
        ami = _probe(node_class)
        try:
            text = user_data(boot_of(node_class, cluster))
        except LaunchFailed as error:
            return Denied(error.reason, f"{error}; shorten or correct spec.userData")
        template = Template(image_id=ami.id, user_data=text)
        kind, shared = _TYPES.get(_architecture(ami), "m5.large"), tags.of_class(node_class, cluster.name)
        try:
            name = await self._templates.ensure(template, node_class, shared)
        except AwsError as error:
            return _told("CreateLaunchTemplate", error)
        fleet = {
            "Type": "instant",
            "LaunchTemplateConfigs": [
                {
                    "LaunchTemplateSpecification": {"LaunchTemplateName": name, "Version": "$Latest"},
                    "Overrides": [
                        {"InstanceType": kind, "SubnetId": each.id, "ImageId": ami.id}
                        for each in node_class.status.subnets
                    ],
                }
            ],
            "TargetCapacitySpecification": {"TotalTargetCapacity": 1, "DefaultTargetCapacityType": "on-demand"},
            "TagSpecifications": [
                {"ResourceType": each, "Tags": written(shared)} for each in ("instance", "volume", "fleet")
            ],
        }
        denied = await self._dry("CreateFleet", "create_fleet", fleet)
        if denied is not None:
            return denied
        first, *others = data(template, node_class, shared)["NetworkInterfaces"]
        for subnet in node_class.status.subnets:
            machine = {
                "MinCount": 1,
                "MaxCount": 1,
                "InstanceType": kind,
                "LaunchTemplate": {"LaunchTemplateName": name, "Version": "$Latest"},
                "NetworkInterfaces": [{**first, "SubnetId": subnet.id}, *others],
                "TagSpecifications": [
                    {"ResourceType": each, "Tags": written(shared)} for each in ("instance", "volume")
                ],
            }
            denied = await self._dry("RunInstances", "run_instances", machine)
            if denied is None:
                return None  # one subnet that can be launched into is enough
        return denied

    async def _dry(self, action: str, operation: str, parameters: Mapping[str, Any]) -> Denied | None:
        try:
            await self._api.call("ec2", operation, DryRun=True, **parameters)
        except AwsError as error:
            return None if error.code == _DONE else _told(action, error)
        return None


def _told(action: str, error: AwsError) -> Denied | None:
    """A permission that is missing. What else may be wrong shows at a launch, which knows type and zone."""
    if error.code in THROTTLED | EXPIRED:
        raise error
    if not is_denied(error):
        return None
    message = (
        f"{error}; the role of Joiner needs ec2:{action}, iam:PassRole and ec2:CreateTags for machines of this class:"
        " see the IAM policy in the guide. DISABLE_DRY_RUN=true leaves this check out"
    )
    return Denied(f"{action}AuthCheckFailed", message)


def _probe(node_class: EC2NodeClass) -> AMI:
    """An image for ordinary machines, if there is one."""
    amis = node_class.status.amis
    return next((each for each in amis if all(r.operator != "Exists" for r in each.requirements)), amis[0])


def _architecture(ami: AMI) -> str:
    return next((r.values[0] for r in ami.requirements if r.key == labels.ARCH and r.values), "")


def _digest(node_class: EC2NodeClass) -> str:
    status: Mapping[str, Any] = codec.encode(node_class.status)
    kept = {key: status.get(key) for key in ("subnets", "securityGroups", "amis", "instanceProfile")}
    text = json.dumps([codec.encode(node_class.spec), kept], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()
