"""Interruption notices of AWS: messages that EventBridge puts into a queue of SQS, read as notices.

A message that cannot be read, or that is about nothing of ours, is a notice of kind `no_op`: it is counted, and deleted like the
others, so that it does not come again for days.
"""

import json
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

from joiner.cloud.aws.api import NOT_FOUND, AwsApi, AwsError, told
from joiner.cloud.errors import CloudError
from joiner.cloud.interruption import Kind, Notice
from joiner.model.nodeclaim import NodeClaim

MOST: Final = 10
"""How many messages are received at once; SQS gives no more."""
WAIT_S: Final = 20
"""How long SQS waits for a first message; it waits no longer."""
VISIBILITY_S: Final = 20
"""After so long a message that was not deleted is given again."""

_VERSION: Final = "0"
_EC2: Final[Mapping[str, Kind]] = {
    "EC2 Spot Instance Interruption Warning": "spot_interrupted",
    "EC2 Instance Rebalance Recommendation": "rebalance_recommendation",
    "EC2 Capacity Reservation Instance Interruption Warning": "capacity_reservation_interrupted",
}
_STATE_CHANGE: Final = "EC2 Instance State-change Notification"
_STATES: Final[Mapping[str, Kind]] = {
    "stopping": "instance_stopped",
    "stopped": "instance_stopped",
    "shutting-down": "instance_terminated",
    "terminated": "instance_terminated",
}
_HEALTH: Final = "AWS Health Event"
_INSTANCE: Final = re.compile(r"i-[0-9a-z]+")

Mark = Callable[[Notice, NodeClaim], None]
"""What is done so that a replacement is planned without what the notice says there is no more of."""


class SqsNotices:
    """The notices in a queue."""

    def __init__(self, api: AwsApi, queue: str, mark: Mark) -> None:
        self._api = api
        self._queue = queue
        self._mark = mark
        self._url = ""

    async def receive(self) -> tuple[Notice, ...]:
        """The next messages, waited for up to 20 seconds. Raises `CloudError`."""
        answer = await self._call(
            "sqs", "receive_message", MaxNumberOfMessages=MOST, VisibilityTimeout=VISIBILITY_S, WaitTimeSeconds=WAIT_S
        )
        return tuple(
            read(each["ReceiptHandle"], each.get("Body", ""))
            for each in answer.get("Messages") or ()
            if each.get("ReceiptHandle")
        )

    def mark_unavailable(self, notice: Notice, claim: NodeClaim) -> None:
        """Do not offer for a while what the machine of the claim was bought as."""
        self._mark(notice, claim)

    async def acknowledge(self, notice: Notice) -> None:
        """Delete the message. Raises `CloudError`."""
        await self._call("sqs", "delete_message", ReceiptHandle=notice.id)

    async def _call(self, service: str, operation: str, /, **parameters: Any) -> Mapping[str, Any]:
        try:
            if not self._url:
                found = await self._api.call("sqs", "get_queue_url", QueueName=self._queue)
                self._url = found["QueueUrl"]
            return await self._api.call(service, operation, QueueUrl=self._url, **parameters)
        except AwsError as error:
            if error.code in NOT_FOUND:
                self._url = ""
                raise CloudError(
                    f"INTERRUPTION_QUEUE: there is no queue {self._queue} in this account and region;"
                    " make it, or correct the name"
                ) from None
            raise told(error, f"INTERRUPTION_QUEUE {self._queue}") from error


def read(identity: str, body: str) -> Notice:
    """The notice that a message is, whatever is in it."""
    event = _mapping(_parsed(body))
    detail = _mapping(event.get("detail"))
    kind = _kind(event, detail)
    instances = _instances(detail) if kind != "no_op" else ()
    return Notice(
        id=identity, kind=kind if instances else "no_op", instances=instances, sent_at=_moment(event.get("time"))
    )


def _parsed(body: str) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _kind(event: Mapping[str, Any], detail: Mapping[str, Any]) -> Kind:
    source, about = _text(event.get("source")), _text(event.get("detail-type"))
    if event.get("version") != _VERSION:
        return "no_op"
    if source == "aws.health" and about == _HEALTH:
        planned = (detail.get("service"), detail.get("eventTypeCategory")) == ("EC2", "scheduledChange")
        return "scheduled_change" if planned else "no_op"
    if source != "aws.ec2":
        return "no_op"
    if about == _STATE_CHANGE:
        return _STATES.get(_text(detail.get("state")).lower(), "no_op")
    return _EC2.get(about, "no_op")


def _instances(detail: Mapping[str, Any]) -> tuple[str, ...]:
    """EC2 names one instance; AWS Health names everything that is affected."""
    entities = detail.get("affectedEntities")
    affected = [_mapping(each).get("entityValue") for each in entities] if isinstance(entities, list) else []
    named = (_text(each).rpartition("/")[2] for each in (detail.get("instance-id"), *affected))
    return tuple(dict.fromkeys(each for each in named if _INSTANCE.fullmatch(each)))


def _moment(value: Any) -> datetime | None:
    try:
        moment = datetime.fromisoformat(_text(value))
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else None
