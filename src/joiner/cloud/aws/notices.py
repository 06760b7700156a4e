"""All notices of AWS: messages of the queue, and every minute what DescribeInstanceStatus and the ends of capacity blocks say.

One that was polled is told until it is acknowledged, and again only when it was gone meanwhile.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from joiner.clock import Clock
from joiner.cloud.aws.api import EXPIRED, AwsApi, AwsError, is_denied, pages, told
from joiner.cloud.aws.counts import Counts
from joiner.cloud.aws.interruptions import Mark, SqsNotices
from joiner.cloud.errors import CloudError
from joiner.cloud.interruption import Kind, Notice
from joiner.model.nodeclaim import NodeClaim

EVERY_S: Final = 60.0
FAILED_FOR: Final = timedelta(minutes=2)
"""So long a check of a machine must have failed before the machine is given up."""
_EVENTS: Final = ("instance-reboot", "system-reboot", "system-maintenance", "instance-retirement", "instance-stop")
_OVER: Final = ("[Completed]", "[Canceled]")
_CHECKS: Final[tuple[tuple[Kind, str, str], ...]] = (
    ("instance_status", "instance-status.status", "InstanceStatus"),
    ("system_status", "system-status.status", "SystemStatus"),
)
Poll = Callable[[], Awaitable[Iterable[Notice]]]


class AwsNotices:
    """The queue, if there is one, and what is polled."""

    def __init__(self, clock: Clock, queue: SqsNotices | None, polls: Iterable[Poll], mark: Mark) -> None:
        self._clock, self._queue, self._polls, self._mark = clock, queue, tuple(polls), mark
        self._due = 0.0
        self._polled: dict[str, bool] = {}
        """Ids of polled notices that still hold, and whether they were acknowledged."""

    async def receive(self) -> tuple[Notice, ...]:
        """The next messages, and once a minute what is polled. Raises `CloudError`."""
        found: tuple[Notice, ...] = ()
        failure: CloudError | None = None
        try:
            if self._queue is not None:
                found = await self._queue.receive()
            else:
                await asyncio.sleep(max(0.0, self._due - self._clock.monotonic()))
        except CloudError as error:  # what is polled must not wait for a queue that is gone
            failure = error
        if self._clock.monotonic() >= self._due:
            self._due = self._clock.monotonic() + EVERY_S
            try:
                found = (*found, *await self._asked())
            except CloudError as error:
                failure = failure or error
        if failure is not None and not found:
            raise failure
        return found

    async def _asked(self) -> tuple[Notice, ...]:
        holding = {each.id: each for poll in self._polls for each in await poll()}
        self._polled = {identity: self._polled.get(identity, False) for identity in holding}
        return tuple(each for identity, each in holding.items() if not self._polled[identity])

    def mark_unavailable(self, notice: Notice, claim: NodeClaim) -> None:
        """Do not offer for a while what the machine of the claim was bought as."""
        self._mark(notice, claim)

    async def acknowledge(self, notice: Notice) -> None:
        """Delete the message, or do not tell of it again. Raises `CloudError`."""
        if notice.id in self._polled:
            self._polled[notice.id] = True
        elif self._queue is not None:
            await self._queue.acknowledge(notice)


class InstanceStatus:
    """What EC2 finds out about machines by itself: failed checks, and maintenance that is planned."""

    def __init__(self, api: AwsApi, clock: Clock, counts: Counts) -> None:
        self._api, self._clock, self._counts = api, clock, counts
        self._refused = False
        self._counted: set[str] = set()

    async def poll(self) -> tuple[Notice, ...]:
        """Every machine that is not well. Without the permission nothing is found, and nothing is asked any more."""
        if self._refused:
            return ()
        try:
            found = tuple([each async for each in self._notices()])
        except AwsError as error:
            if is_denied(error) and error.code not in EXPIRED:
                self._refused = True
                return ()
            raise told(error, "checks of machines") from error
        for each in found:
            if each.id not in self._counted:
                self._counts.unhealthy(each.kind)
        self._counted = {each.id for each in found}
        return found

    async def _notices(self) -> Any:
        for kind, name, field in _CHECKS:
            for raw in await self._ask(name, "impaired"):
                if self._failed_for_long(raw.get(field) or {}):
                    yield _notice(kind, raw)
        for raw in await self._ask("event.code", *_EVENTS):
            if any(not str(each.get("Description", "")).startswith(_OVER) for each in raw.get("Events") or ()):
                yield _notice("event_status", raw)

    async def _ask(self, name: str, *values: str) -> list[Any]:
        filters = [{"Name": name, "Values": list(values)}]
        return await pages(
            self._api, "ec2", "describe_instance_status", "InstanceStatuses", Filters=filters, MaxResults=1000
        )

    def _failed_for_long(self, check: Mapping[str, Any]) -> bool:
        since = [
            each["ImpairedSince"]
            for each in check.get("Details") or ()
            if each.get("Status") == "failed" and isinstance(each.get("ImpairedSince"), datetime)
        ]
        return bool(since) and self._clock.now() - min(since) >= FAILED_FOR


def _notice(kind: Kind, raw: Mapping[str, Any]) -> Notice:
    return polled(kind, str(raw["InstanceId"]))


def polled(kind: Kind, instance: str) -> Notice:
    """A notice that no message brought."""
    return Notice(id=f"{kind}/{instance}", kind=kind, instances=(instance,))
