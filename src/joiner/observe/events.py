"""Events: what happened to an object, for users who look at it.

Reasons are an interface. Each has a time within which the same event is not told again; some have a rate that all keep together.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Final, NamedTuple

from joiner.clock import Clock
from joiner.kube.client import Writer
from joiner.kube.errors import KubeError
from joiner.model.clusterobjects import Event, EventSource, ObjectReference
from joiner.model.conditions import Condition
from joiner.model.meta import KubeObject, ObjectMeta, replace

COMPONENT: Final = "karpenter"
RECENT: Final = 10_000
"""How many events are remembered for a second look, and for counting repetitions."""
BACKLOG: Final = 10_000
"""How many events wait to be written at most; what comes then is let go."""
MESSAGE_MOST: Final = 1024


class Reason(NamedTuple):
    """Why something is told, and how often it may be."""

    name: str
    about: str
    meaning: str
    warning: bool = False
    quiet_s: float = 120.0
    """How long the same thing is not told again."""
    pool_quiet_s: float | None = None
    """The same for pools, where it differs."""
    per_second: float | None = None
    """How often it may be told of pods, all of them together."""
    burst: int = 10

    def quiet_for(self, kind: str) -> float:
        """How long the same thing is not told again about an object of that kind."""
        return self.pool_quiet_s if self.pool_quiet_s is not None and kind == "NodePool" else self.quiet_s


_WARNINGS: Final = (
    Reason("FailedScheduling", "Pod", "No node could be found or bought for the pod.", quiet_s=300.0),
    Reason("NoCompatibleInstanceTypes", "NodePool", "The pool can buy nothing at all.", quiet_s=60.0),
    Reason("InsufficientCapacityError", "NodeClaim, Pod", "The cloud has none of the machines wanted.", per_second=5.0),
    Reason("NodeClassNotReady", "NodeClaim", "The NodeClass cannot be launched from."),
    Reason("UnregisteredTaintMissing", "NodeClaim", "The node joined without the taint that keeps pods off."),
    Reason("FailedConsistencyCheck", "NodeClaim", "The node is not what was bought."),
    Reason("NodeRepairBlocked", "Node, NodeClaim, NodePool", "Too many nodes are broken to repair any.", quiet_s=900.0),
    Reason("RebootFailed", "NodeClaim", "The node could not be restarted.", quiet_s=1800.0),
    Reason("TerminationGracePeriodExpiring", "Node, NodeClaim", "All pods will be deleted at the moment told."),
    Reason("FailedDraining", "Node", "Pods are left on a node that goes."),
    Reason("SpotInterrupted", "Node, NodeClaim", "The cloud takes the spot machine back."),
    Reason(
        "CapacityReservationInterrupted", "Node, NodeClaim", "The cloud takes the machine back from its reservation."
    ),
    Reason("InstanceStopping", "Node, NodeClaim", "The cloud says that the machine is being stopped."),
    Reason("InstanceTerminating", "Node, NodeClaim", "The cloud says that the machine is being terminated."),
    Reason("InstanceUnhealthy", "Node, NodeClaim", "The cloud reports a failed check or planned maintenance."),
    Reason("TerminatingOnInterruption", "Node, NodeClaim", "The node is removed because of an interruption notice."),
    Reason("SpotSLRCreationFailed", "EC2NodeClass", "The account lacks the role with which EC2 sells spot machines."),
    Reason("InvalidDoNotDisruptAnnotation", "Pod", "The do-not-disrupt annotation cannot be understood."),
)
_NEWS: Final = (
    Reason("Nominated", "Pod", "The pod has a place on a node that is there or on its way.", per_second=5.0),
    Reason("NodeOverlaysChanged", "NodePool", "Overlays changed what the pool can buy, or its prices.", quiet_s=10.0),
    Reason("DriftExpected", "NodePool", "An edit of the pool will have so many of its nodes replaced.", quiet_s=900.0),
    Reason("DisruptionBlocked", "Node, NodeClaim, NodePool", "The node cannot be removed now.", pool_quiet_s=60.0),
    Reason("DisruptionLaunching", "NodeClaim", "A replacement is being launched."),
    Reason("DisruptionWaitingReadiness", "NodeClaim", "A replacement is not ready yet."),
    Reason("DisruptionTerminating", "Node, NodeClaim", "The node is being removed for the reason told."),
    Reason("Unconsolidatable", "Node, NodeClaim", "The node cannot be consolidated.", quiet_s=900.0),
    Reason("ConsolidationCandidate", "Node, NodeClaim", "The node may be consolidated."),
    Reason("ConsolidationRejected", "Node, NodeClaim", "A consolidation did not hold at the second look."),
    Reason(
        "ConsolidationApproved", "Node, NodeClaim, NodePool", "What a consolidation saves is worth the disturbance."
    ),
    Reason("SpotRebalanceRecommendation", "Node, NodeClaim", "The spot machine is likely to be taken back."),
    Reason("WaitingOnNodeClaimTermination", "EC2NodeClass", "The NodeClass goes once its last claim has gone."),
    Reason("RebootObserved", "NodeClaim", "The node came back with a new boot.", quiet_s=1800.0),
    Reason("Evicted", "Pod", "The pod was evicted from a node that goes."),
    Reason("Disrupted", "Pod", "The pod was deleted by force because its node's time is over."),
    Reason("AwaitingVolumeDetachment", "Node", "Volumes are still attached to a node that goes."),
    Reason("DoNotDisruptUntil", "Pod", "The pod may not be disrupted before the moment told."),
    Reason("DoNotDisruptGracePeriodElapsed", "Pod", "The pod may be disrupted from now on."),
)
REASONS: Final = {each.name: each for each in (*(each._replace(warning=True) for each in _WARNINGS), *_NEWS)}
"""Every reason by its name."""
OF_ALL: Final = (
    Reason("the type of a condition", "everything with conditions", "The condition turned.", quiet_s=0.0),
    Reason("Finalized", "everything with conditions", "The owner of a finalizer removed it.", quiet_s=0.0),
)
"""What is told of every object with conditions; these are never left out for being told before."""
_SPAM: Final = Reason("", "", "", per_second=1 / 300, burst=25)
"""How much is told about one object, whatever it is: a burst, and then one every five minutes."""


class Told(NamedTuple):
    """An event that was published."""

    at: datetime
    thing: str
    """Kind and key of the object."""
    reason: str
    message: str
    warning: bool


class _Rate:
    """A bucket that fills with time."""

    def __init__(self, reason: Reason) -> None:
        self._per_second, self._most = reason.per_second, float(reason.burst)
        self._level = self._most
        self._at: float | None = None

    def allows(self, now: float) -> bool:
        if self._per_second is None:
            return True
        if self._at is not None:
            self._level = min(self._most, self._level + (now - self._at) * self._per_second)
        self._at = now
        if self._level < 1.0:
            return False
        self._level -= 1.0
        return True


class Recorder:
    """Publishes events. Telling never waits and never fails; writing is done by `run`, and what cannot be written is let go."""

    def __init__(self, client: Writer, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._told: dict[tuple[str, ...], float] = {}
        self._rates: dict[str, _Rate] = {}
        self._spam: dict[tuple[str, ...], _Rate] = {}
        """Object to how much may still be told about it."""
        self._waiting: deque[tuple[tuple[str, ...], Event]] = deque()
        self._written: dict[tuple[str, ...], Event] = {}
        self._wake = asyncio.Event()
        self._number = 0
        self.recent: deque[Told] = deque(maxlen=RECENT)
        """What was published last, for tests and simulations."""
        self.listeners: list[Callable[[Told], None]] = []
        """Called with every event that is published."""

    def publish(self, thing: KubeObject, reason: str, message: str, *, dedupe: Iterable[str] = ()) -> None:
        """Tell something about an object. What `dedupe` says tells apart events that may follow each other at once."""
        known, now = REASONS[reason], self._clock.monotonic()
        identity = (reason, *_identity(thing), *dedupe)
        quiet_until = self._told.get(identity)
        if quiet_until is not None and now < quiet_until:
            return
        rate = self._rates.setdefault(reason, _Rate(known))
        if thing.kind == "Pod" and not rate.allows(now):
            return
        self._quieten(identity, now, known.quiet_for(thing.kind))
        self._tell(thing, reason, message, known.warning)

    def turned(self, thing: KubeObject, old: Condition, new: Condition) -> None:
        """Tell that a condition of an object turned; the reason is its type."""
        message = f"{new.type} turned from {old.status} to {new.status}: {new.reason}"
        self._tell(thing, new.type, f"{message}, {new.message}" if new.message else message)

    def finalized(self, thing: KubeObject, finalizer: str) -> None:
        """Tell that the controller behind a finalizer let the object go."""
        self._tell(thing, "Finalized", f"{finalizer} let it go")

    def _quieten(self, identity: tuple[str, ...], now: float, seconds: float) -> None:
        if len(self._told) >= RECENT:
            self._told = {key: until for key, until in self._told.items() if until > now}
        self._told[identity] = now + seconds

    def _tell(self, thing: KubeObject, reason: str, message: str, warning: bool = False) -> None:
        known, now = _identity(thing), self._clock.now()
        spam = self._spam.pop(known, None) or _Rate(_SPAM)
        self._spam[known] = spam  # the latest at the end
        if len(self._spam) > RECENT:
            del self._spam[next(iter(self._spam))]
        if not spam.allows(self._clock.monotonic()) or len(self._waiting) >= BACKLOG:
            return
        named = f"{thing.metadata.namespace}/{thing.name}" if thing.metadata.namespace else thing.name
        told = Told(now, f"{thing.kind} {named}", reason, message, warning)
        self.recent.append(told)
        for listener in self.listeners:
            listener(told)
        self._waiting.append(((reason, *known, message), self._event(thing, reason, message, warning, now)))
        self._wake.set()

    def _event(self, thing: KubeObject, reason: str, message: str, warning: bool, now: datetime) -> Event:
        self._number += 1
        namespace = thing.metadata.namespace or "default"
        stamp = int(now.timestamp() * 1_000_000)
        return Event(
            metadata=ObjectMeta(name=f"{thing.name}.{stamp:x}{self._number:x}", namespace=namespace),
            involved_object=ObjectReference(
                api_version=thing.api_version(),
                kind=thing.kind,
                namespace=thing.metadata.namespace,
                name=thing.name,
                uid=thing.metadata.uid,
                resource_version=thing.metadata.resource_version,
            ),
            type="Warning" if warning else "Normal",
            reason=reason,
            message=message[:MESSAGE_MOST],
            count=1,
            first_timestamp=now,
            last_timestamp=now,
            source=EventSource(component=COMPONENT),
            reporting_component=COMPONENT,
        )

    async def run(self) -> None:
        """Write what is published, for ever."""
        while True:
            while self._waiting:
                identity, event = self._waiting.popleft()
                try:
                    await self._write(identity, event)
                except KubeError:
                    self._written.pop(identity, None)
            self._wake.clear()
            await self._wake.wait()

    async def _write(self, identity: tuple[str, ...], event: Event) -> None:
        known = self._written.get(identity)
        if known is None:
            written = await self._client.create(event)
        else:
            again = replace(known, count=known.count + 1, last_timestamp=event.last_timestamp)
            written = await self._client.patch(known, again)
        if len(self._written) >= RECENT:
            del self._written[next(iter(self._written))]
        self._written[identity] = written


def _identity(thing: KubeObject) -> tuple[str, ...]:
    return (thing.kind, thing.metadata.namespace, thing.name, thing.metadata.uid)
