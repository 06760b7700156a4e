"""Settings of the cluster that the AWS provider needs: names and defaults are Karpenter's environment variables."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from joiner.cloud.errors import CloudError
from joiner.model.duration import Duration, DurationError

_TRUE: Final = ("true", "1", "t")
_FALSE: Final = ("false", "0", "f")
_MINUTE_S: Final = 60.0
_QUEUE: Final = re.compile(r"[A-Za-z0-9_-]{1,80}(\.fifo)?")
_ENDPOINT: Final = re.compile(r"https?://[^\s/]+(/\S*)?")


class BadSetting(CloudError):
    """Environment variables that cannot be used. All problems are told at once."""


@dataclass(frozen=True, kw_only=True)
class AwsSettings:
    """What is the same for every EC2NodeClass of the cluster."""

    cluster_name: str = ""
    cluster_endpoint: str = ""
    cluster_ca_bundle: str = ""
    region: str = ""
    endpoint_url: str = ""
    """Where AWS is, if it is not AWS: a test server."""
    isolated_vpc: bool = False
    disable_dry_run: bool = False
    vm_memory_overhead_percent: float = 0.075
    interruption_queue: str = ""
    reserved_enis: int = 0
    ami_refresh_s: float = _MINUTE_S
    subnet_refresh_s: float = _MINUTE_S


def read(environment: Mapping[str, str]) -> AwsSettings:
    """The settings of the environment. Raises `BadSetting` with everything that is wrong."""
    reader = _Reader(environment)
    if reader.flag("ENABLE_ZONAL_SHIFT"):
        reader.problems.append("ENABLE_ZONAL_SHIFT: zonal shift is not supported; leave it out, and move pods by hand")
    if environment.get("EKS_CONTROL_PLANE", "").lower() in _FALSE:
        reader.problems.append(
            "EKS_CONTROL_PLANE: version and addresses of the cluster are always asked of EKS; leave it out, or write true"
        )
    made = AwsSettings(
        cluster_name=environment.get("CLUSTER_NAME", ""),
        cluster_endpoint=environment.get("CLUSTER_ENDPOINT", ""),
        cluster_ca_bundle=environment.get("CLUSTER_CA_BUNDLE", ""),
        region=environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION", ""),
        endpoint_url=environment.get("AWS_ENDPOINT_URL", ""),
        isolated_vpc=reader.flag("ISOLATED_VPC"),
        disable_dry_run=reader.flag("DISABLE_DRY_RUN"),
        vm_memory_overhead_percent=reader.number("VM_MEMORY_OVERHEAD_PERCENT", 0.075),
        interruption_queue=environment.get("INTERRUPTION_QUEUE", ""),
        reserved_enis=int(reader.number("RESERVED_ENIS", 0)),
        ami_refresh_s=reader.interval("AMI_REFRESH_INTERVAL"),
        subnet_refresh_s=reader.interval("SUBNET_REFRESH_INTERVAL"),
    )
    if made.interruption_queue and not _QUEUE.fullmatch(made.interruption_queue):
        reader.problems.append(
            f"INTERRUPTION_QUEUE: {made.interruption_queue!r} is not the name of a queue of SQS: letters, digits, - and _;"
            " write the name alone, without address or ARN"
        )
    if made.endpoint_url and not _ENDPOINT.fullmatch(made.endpoint_url):
        reader.problems.append(f"AWS_ENDPOINT_URL: {made.endpoint_url!r} is no address like https://host:port")
    if reader.problems:
        raise BadSetting("\n".join(reader.problems))
    return made


class _Reader:
    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self.problems: list[str] = []

    def flag(self, name: str) -> bool:
        return self._environment.get(name, "").lower() in _TRUE

    def number(self, name: str, default: float) -> float:
        text = self._environment.get(name, "")
        try:
            number = float(text) if text else default
        except ValueError:
            number = -1.0
        if not 0 <= number < float("inf"):
            self.problems.append(f"{name}: {text!r} is not a number of 0 or more")
            return default
        return number

    def interval(self, name: str) -> float:
        text = self._environment.get(name, "")
        try:
            seconds = Duration.parse(text).seconds if text else _MINUTE_S
        except DurationError:
            seconds = 0.0
        if seconds < _MINUTE_S:
            self.problems.append(f"{name}: {text!r} is not a duration of one minute or more, like 5m")
            return _MINUTE_S
        return seconds
