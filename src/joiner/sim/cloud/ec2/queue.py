"""Queues of the pretend account, as SQS has them: a message that was received is hidden for a while, until it is deleted."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from joiner.cloud.aws.api import Answer, AwsError
from joiner.sim.cloud.ec2.world import ACCOUNT, Account


@dataclass
class Queue:
    """Messages by receipt handle, and from when on each is given."""

    messages: dict[str, tuple[str, float]] = field(default_factory=dict)
    sent: int = 0
    _waiting: list[asyncio.Future[None]] = field(default_factory=list)

    def send(self, body: Any) -> None:
        """Put in a message; what is not text is written as JSON."""
        self.sent += 1
        text = body if isinstance(body, str) else json.dumps(body)
        self.messages[f"handle-{self.sent}"] = (text, 0.0)
        for each in self._waiting:
            _settle(each)

    def ready(self, now: float) -> list[str]:
        """The handles of what can be given."""
        return [handle for handle, (_, moment) in self.messages.items() if moment <= now]

    async def message(self, seconds: float) -> None:
        """Wait until one is sent, at most so long."""
        loop = asyncio.get_running_loop()
        arrived: asyncio.Future[None] = loop.create_future()
        self._waiting.append(arrived)
        timer = loop.call_later(seconds, _settle, arrived)
        try:
            await arrived
        finally:
            timer.cancel()
            self._waiting.remove(arrived)


def _settle(arrived: asyncio.Future[None]) -> None:
    if not arrived.done():
        arrived.set_result(None)


def _found(account: Account, parameters: Mapping[str, Any]) -> Queue:
    name = parameters.get("QueueName") or parameters["QueueUrl"].rpartition("/")[2]
    found = account.queues.get(name)
    if not isinstance(found, Queue):
        raise AwsError("AWS.SimpleQueueService.NonExistentQueue", "The specified queue does not exist.")
    return found


async def arrival(account: Account, parameters: Mapping[str, Any]) -> None:
    """Wait for a first message as long as a caller is willing to."""
    queue, until = _found(account, parameters), account.clock.monotonic() + parameters.get("WaitTimeSeconds", 0)
    while not queue.ready(now := account.clock.monotonic()) and now < until:
        hidden = min((moment for _, moment in queue.messages.values()), default=until)
        await queue.message(min(hidden, until) - now)
    _found(account, parameters)


def url(account: Account, parameters: Mapping[str, Any]) -> Answer:
    """The address of a queue."""
    _found(account, parameters)
    return {"QueueUrl": f"https://sqs.{account.region}.amazonaws.com/{ACCOUNT}/{parameters['QueueName']}"}


def receive(account: Account, parameters: Mapping[str, Any]) -> Answer:
    """The next messages, hidden from now on for a while."""
    queue, now = _found(account, parameters), account.clock.monotonic()
    handles = queue.ready(now)[: parameters.get("MaxNumberOfMessages", 1)]
    answer = [{"MessageId": each, "ReceiptHandle": each, "Body": queue.messages[each][0]} for each in handles]
    for each in handles:
        queue.messages[each] = (queue.messages[each][0], now + parameters.get("VisibilityTimeout", 30))
    return {"Messages": answer} if answer else {}


def delete(account: Account, parameters: Mapping[str, Any]) -> Answer:
    """Never give a message again."""
    _found(account, parameters).messages.pop(parameters["ReceiptHandle"], None)
    return {}
