"""Instance profiles: one for a class and its role, made where a class names a role, deleted when nothing uses it any more."""

import hashlib
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, Final

from joiner.clock import Clock
from joiner.cloud.aws.api import ALREADY_EXISTS, NOT_FOUND, AwsApi, AwsError, pages
from joiner.cloud.aws.launch import tags
from joiner.cloud.aws.launch.templates import written
from joiner.cloud.aws.nodeclass.ec2nodeclass import EC2NodeClass
from joiner.cloud.aws.settings import AwsSettings
from joiner.kube.client import Client
from joiner.model.nodeclaim import NodeClaim

USED: Final = "karpenter.k8s.aws/instance-profile-name"
"""The annotation of a claim that names the profile its machine was launched with."""
_LOOK_S: Final = 900.0
"""After so long a profile is looked at again: users may have deleted it, or its role."""
_SETTLED: Final = timedelta(hours=1)
"""A profile younger than this may belong to a status that was not written yet."""


class NoRole(Exception):
    """There is no such role."""


class InstanceProfiles:
    """The profiles of the cluster."""

    def __init__(self, api: AwsApi, clock: Clock, settings: AwsSettings) -> None:
        self._api, self._clock, self._settings = api, clock, settings
        self._looked: dict[str, float] = {}

    async def ensure(self, node_class: EC2NodeClass) -> str:
        """The name of the profile of a class, which is made where it is not there. Raises `NoRole`, `AwsError`."""
        name, now = profile_name(node_class, self._settings), self._clock.monotonic()
        looked = self._looked.get(name)
        if node_class.status.instance_profile != name or looked is None or now - looked >= _LOOK_S:
            await self._make(node_class, name)
            self._looked[name] = now
        return name

    async def _make(self, node_class: EC2NodeClass, name: str) -> None:
        role = node_class.spec.role.rpartition("/")[2]
        roles = await self._roles(name)
        if roles is None:
            await self._create(node_class, name)
            roles = []
        if role in roles:
            return
        try:
            await self._api.call("iam", "add_role_to_instance_profile", InstanceProfileName=name, RoleName=role)
        except AwsError as error:
            if error.code not in NOT_FOUND:
                raise
            with suppress(AwsError):
                await self._api.call("iam", "delete_instance_profile", InstanceProfileName=name)
            raise NoRole(role) from None

    async def _roles(self, name: str) -> list[str] | None:
        """The roles of a profile; nothing where there is no such profile."""
        try:
            known = await self._api.call("iam", "get_instance_profile", InstanceProfileName=name)
        except AwsError as error:
            if error.code in NOT_FOUND:
                return None
            raise
        return [each["RoleName"] for each in known["InstanceProfile"].get("Roles") or ()]

    async def _create(self, node_class: EC2NodeClass, name: str) -> None:
        own = tags.of_class(node_class, self._settings.cluster_name)
        try:
            await self._api.call(
                "iam",
                "create_instance_profile",
                InstanceProfileName=name,
                Path=profile_path(node_class, self._settings),
                Tags=written({**own, "topology.kubernetes.io/region": self._settings.region}),
            )
        except AwsError as error:
            if error.code not in ALREADY_EXISTS:
                raise

    async def delete_of(self, node_class: EC2NodeClass) -> None:
        """Delete the profiles of a class that goes. Raises `AwsError`."""
        path = profile_path(node_class, self._settings)
        for profile in await self._listed(path):
            if profile["Path"] == path:
                await self._delete(profile)

    async def collect(self, client: Client) -> None:
        """Delete the profiles of the cluster that no class names and no machine was launched with. Raises `AwsError`."""
        if self._settings.isolated_vpc:
            return
        classes, claims = (await client.list(EC2NodeClass)).items, (await client.list(NodeClaim)).items
        used = {each.metadata.annotations.get(USED, "") for each in claims}
        used |= {each.status.instance_profile for each in classes}
        used |= {profile_name(each, self._settings) for each in classes}
        for profile in await self._listed(_root(self._settings)):
            if profile["InstanceProfileName"] not in used and self._is_settled(profile.get("CreateDate")):
                await self._delete(profile)

    def _is_settled(self, made: Any) -> bool:
        return isinstance(made, datetime) and self._clock.now() - made >= _SETTLED

    async def _listed(self, prefix: str) -> list[Any]:
        """Those under a path. A server that ignores the path must not cost another cluster its profiles."""
        found = await pages(self._api, "iam", "list_instance_profiles", "InstanceProfiles", PathPrefix=prefix)
        return [each for each in found if each.get("Path", "").startswith(prefix)]

    async def _delete(self, profile: Any) -> None:
        name = profile["InstanceProfileName"]
        for role in profile.get("Roles") or ():
            await self._api.call(
                "iam", "remove_role_from_instance_profile", InstanceProfileName=name, RoleName=role["RoleName"]
            )
        await self._api.call("iam", "delete_instance_profile", InstanceProfileName=name)


def _root(settings: AwsSettings) -> str:
    return f"/karpenter/{settings.region}/{settings.cluster_name}/"


def profile_path(node_class: EC2NodeClass, settings: AwsSettings) -> str:
    """Where the instance profiles of a class lie."""
    return f"{_root(settings)}{node_class.metadata.uid}/"


def profile_name(node_class: EC2NodeClass, settings: AwsSettings) -> str:
    """The instance profile of a class: the same for the same role, another one for another."""
    text = "\n".join((settings.region, node_class.metadata.uid, node_class.spec.role))
    return f"{settings.cluster_name}_{hashlib.sha256(text.encode()).hexdigest()[:20]}"
