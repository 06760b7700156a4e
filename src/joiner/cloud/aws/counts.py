"""What the AWS provider counts: calls, launches that failed, calls that were gathered, sizes of user data."""

from collections.abc import Callable
from typing import Any, Final

from joiner.clock import Clock
from joiner.cloud.aws.api import Answer, AwsApi, AwsError
from joiner.cloud.counts import Counted, Tally

_SECONDS: Final = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_TOGETHER: Final = (1.0, 2.0, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0)
_BYTES: Final = (1024.0, 2048.0, 4096.0, 8192.0, 12288.0, 14336.0, 16384.0)
FAMILIES: Final = (
    Counted(
        "karpenter_cloudprovider_instance_launch_failures_total", "counter", ("zone", "zone_id", "capacity_type", "reason"),
        "Ways to launch a machine that EC2 refused, by EC2's own code; a launch may have succeeded in another way.",
    ),
    Counted(
        "karpenter_cloudprovider_instance_termination_failures_total", "counter", ("zone", "zone_id"),
        "Machines that EC2 refused to end.",
    ),
    Counted(
        "karpenter_cloudprovider_batcher_batch_time_seconds", "histogram", ("batcher",),
        "How long calls about single machines waited for each other.", _SECONDS,
    ),
    Counted(
        "karpenter_cloudprovider_batcher_batch_size", "histogram", ("batcher",),
        "How many calls about single machines became one.", _TOGETHER,
    ),
    Counted(
        "karpenter_ec2nodeclasses_userdata_bytes", "histogram", ("nodeclass",),
        "Bytes of the user data of launches; EC2 takes 16384.", _BYTES,
    ),
    Counted(
        "karpenter_interruption_instance_status_unhealthy_total", "counter", ("category",),
        "Machines that DescribeInstanceStatus says are not well, or will be worked on.",
    ),
    Counted(
        "joiner_aws_requests_total", "counter", ("service", "action", "code"),
        "Calls of AWS by their outcome: 200, or the code of the error.",
    ),
    Counted(
        "joiner_aws_request_seconds", "histogram", ("service", "action"),
        "How long calls of AWS took, retries included.", _SECONDS,
    ),
)  # fmt: skip
"""Names that begin with karpenter_ are those of Karpenter's AWS provider, with their labels."""


class Counts:
    """The numbers of one process."""

    def __init__(self) -> None:
        self._all = {each.name: Tally(each) for each in FAMILIES}

    def tallies(self) -> tuple[Tally, ...]:
        """Everything that is counted."""
        return tuple(self._all.values())

    def launch_failed(self, zone: str, zone_id: str, capacity_type: str, reason: str) -> None:
        """EC2 refused one way to launch."""
        self._all["karpenter_cloudprovider_instance_launch_failures_total"].add(zone, zone_id, capacity_type, reason)

    def termination_failed(self, zone: str, zone_id: str) -> None:
        """EC2 refused to end a machine."""
        self._all["karpenter_cloudprovider_instance_termination_failures_total"].add(zone, zone_id)

    def gathered(self, name: str) -> Callable[[int, float], None]:
        """Takes how many calls became one, and how long they waited."""

        def take(size: int, seconds: float) -> None:
            self._all["karpenter_cloudprovider_batcher_batch_size"].add(name, amount=float(size))
            self._all["karpenter_cloudprovider_batcher_batch_time_seconds"].add(name, amount=seconds)

        return take

    def user_data(self, node_class: str, size: int) -> None:
        """User data was made."""
        self._all["karpenter_ec2nodeclasses_userdata_bytes"].add(node_class, amount=float(size))

    def unhealthy(self, category: str) -> None:
        """EC2 says that a machine is not well."""
        self._all["karpenter_interruption_instance_status_unhealthy_total"].add(category)

    def called(self, service: str, action: str, code: str, seconds: float) -> None:
        """AWS was asked."""
        self._all["joiner_aws_requests_total"].add(service, action, code)
        self._all["joiner_aws_request_seconds"].add(service, action, amount=seconds)


class CountedApi:
    """An API whose calls are counted."""

    def __init__(self, api: AwsApi, clock: Clock, counts: Counts) -> None:
        self._api, self._clock, self._counts = api, clock, counts

    async def call(self, service: str, operation: str, /, **parameters: Any) -> Answer:
        """The call of the other one."""
        started, code = self._clock.monotonic(), "200"
        try:
            return await self._api.call(service, operation, **parameters)
        except AwsError as error:
            code = error.code
            raise
        finally:
            self._counts.called(service, operation, code, self._clock.monotonic() - started)
