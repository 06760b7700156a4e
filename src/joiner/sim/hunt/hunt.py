"""Deterministic simulation: one seed, one world, two hours with faults in it, and checkers that watch.

For eighty minutes users, random events and bad connections do what they can. Then everything must come right, and then quiet.
"""

import asyncio
import gc
import traceback
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Final

from joiner.kube.client import Key
from joiner.kube.errors import KubeError
from joiner.kube.tasks import Tasks
from joiner.model.clusterobjects import Event
from joiner.model.meta import Value, replace
from joiner.model.node import Node
from joiner.model.pod import Pod
from joiner.options import Gates, Options
from joiner.sim.cloud.cloud import Hook
from joiner.sim.hunt.checkers import ONLY_MOVING, RULES, Checks, Quiet
from joiner.sim.hunt.ec2worlds import on_ec2, other_cluster
from joiner.sim.hunt.faults import API_FAULTS, CLOUD_FAULTS, RandomFaults
from joiner.sim.hunt.randomworld import STEP_NAMES, ClockStep, DeleteNodes, HangUp, Made, ProtectNodes, make
from joiner.sim.hunt.worseworlds import WorseWorld, worse
from joiner.sim.kubelet.kubelet import NodeTiming
from joiner.sim.story import ec2, objects
from joiner.sim.story.document.format import Timed
from joiner.sim.story.document.manifests import KNOWN, decoded
from joiner.sim.story.outages import Outages
from joiner.sim.story.steps import StepRunner, Unplayable
from joiner.sim.trace import Trace
from joiner.sim.virtualtime import VirtualLoop, run
from joiner.sim.world import World

HOURS: Final = 2
FAULTS_S: Final = 80 * 60.0
"""So long things go wrong."""
RIGHT_S: Final = 105 * 60.0
"""By then everything has to have come right."""
END_S: Final = HOURS * 3600.0
STILL_S: Final = 15 * 60.0
"""Where nodes are consolidated, it ends when so long nothing was written."""
REST_S: Final = 6 * 3600.0
"""By then that must have happened."""


class Outcome(Value):
    """What became of one seed."""

    seed: int
    violations: tuple[str, ...]
    digest: str
    counts: dict[str, int]
    """How often each fault, rule, step and event occurred."""
    nodes: int
    """The most nodes at once."""
    pods: int
    last: tuple[str, ...] = ()
    """The last steps before it was found, if something was."""

    @property
    def sound(self) -> bool:
        """Whether nothing was found."""
        return not self.violations


def hunt(seed: int, *, kind: str = "", trace: Trace | None = None) -> Outcome:
    """Play the world of a seed to its end, or to the first thing that may not be. An error of any kind is such a thing.

    `kind` is one of `worseworlds.WORSE`, or empty for an ordinary hunt.
    """
    trace = trace if trace is not None else Trace()
    collects = gc.isenabled()
    gc.disable()  # a world is small, lives for seconds, and goes as a whole: looking through it meanwhile finds little
    try:
        # The seed also decides in which order tasks take their turns.
        how = worse(kind, seed)
        made = make(seed, consolidates=how.consolidates)
        return run(lambda loop: _Hunt(loop, made, seed, how, trace).play(), shuffle=Random(f"turns {seed}"))
    except Exception as error:  # a hunt through many seeds reports it, and goes on with the next
        return _broken_off(seed, error, trace)
    finally:
        if collects:
            gc.enable()
            gc.collect()


def _broken_off(seed: int, error: Exception, trace: Trace) -> Outcome:
    return Outcome(
        seed=seed,
        violations=(f"error: {_told(error)}",),
        digest=trace.digest(),
        counts={f"error {type(error).__name__}": 1},
        nodes=0,
        pods=0,
        last=tuple(trace.last),
    )


def _told(error: BaseException) -> str:
    """The error, and the line of the program that raised it."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{error!r} in {Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else repr(error)


def _options(made: Made) -> Options:
    """What the controllers are started with: what a world has no use for stays off."""
    gates = Gates(
        node_repair=made.repairs,
        terminate_first_repair=made.terminates_first,
        static_capacity=made.static,
        capacity_buffer=made.buffers,
        spot_to_spot_consolidation=made.consolidation.spot_to_spot,
        pod_deletion_cost_management=made.consolidation.on and made.consolidation.spot_to_spot,
    )
    return Options(
        feature_gates=gates,
        min_values_policy="BestEffort" if made.best_effort else "Strict",
        eviction_cost=made.consolidation.eviction_cost_s,
    )


class _Hunt:
    """One world, hunted through."""

    def __init__(self, loop: VirtualLoop, made: Made, seed: int, worse: WorseWorld, trace: Trace) -> None:
        self._loop, self._seed, self._worse = loop, seed, worse
        self._made = on_ec2(made) if worse.ec2 else made
        self._faults = RandomFaults(
            loop,
            Random(f"weather {seed}"),
            worse.chances,
            FAULTS_S,
            api_away=worse.api_away,
            cloud_away=worse.cloud_away,
        )
        self.world = World(
            loop,
            seed=seed,
            options=_options(self._made),
            trace=trace,
            habits=NodeTiming(prepares={"example.com/agent": 15.0}),
            interceptor=self._faults,
            cloud_interceptor=self._faults.cloud,
            history=300,
            open_account=ec2.open_account(self._made.given) if worse.ec2 else None,
            failed=self._failed,
        )
        self.world.cloud.unlisted_s = worse.unlisted_s
        self._checks = Checks(self.world)
        self._tasks = Tasks(failed=self._broke)
        self._stage = StepRunner(self.world, self._tasks, Outages())
        self._counts: Counter[str] = Counter()
        self._most = [0, 0]

    def _failed(self, controller: str, key: Key, error: Exception) -> None:
        """A reconcile failed. Errors of the API server and the cloud are injected faults; anything else is a bug."""
        self._counts[f"error {type(error).__name__}"] += 1
        if not isinstance(error, KubeError) and not type(error).__module__.startswith("joiner.cloud"):
            self._found(f"{controller} {key}".rstrip(), error)

    def _broke(self, name: str, error: BaseException) -> None:
        if not isinstance(error, Unplayable | KubeError):  # what is meant may be gone by the time of a step
            self._found(name, error)

    def _found(self, where: str, error: BaseException) -> None:
        self._checks.violations.append(f"error: {where}: {_told(error)}")

    async def play(self) -> Outcome:
        """From the first minute to the last."""
        given = self._made.given
        begins = self.world.clock.now()
        own = ec2.node_class(given) if self._worse.ec2 else objects.node_class(given, Path(), begins)
        self.world.load([own, *objects.pools(given)])
        self.world.load(decoded(each, KNOWN[str(each["kind"]).lower()]) for each in self._made.objects)
        if self._made.hook_s is not None:
            self.world.cloud.hooks.append(Hook("inspection", self._made.hook_s, {}))
            self._counts["registration hook"] += 1
        await self.world.start()
        for timed in self._made.steps:
            self._tasks.start(f"step at {timed.at.text()}", self._step(timed))
        for at in self._worse.other_cluster:
            self._tasks.start(f"another cluster at {at:.0f} s", self._take_places(at))
        for at, seconds in self._worse.clock_steps:
            self._tasks.start(f"clock at {at:.0f} s", self._set_clock(at, seconds))
        for start, end in self._worse.controllers_away:
            self._tasks.start(f"absence at {start:.0f} s", self._leave(start, end))
        violations = await self._watch()
        last, digest = tuple(self.world.trace.last), self.world.trace.digest()
        await self._close(violations)
        return Outcome(
            seed=self._seed,
            violations=tuple(violations),
            digest=digest,
            counts=self._counted(),
            nodes=self._most[0],
            pods=self._most[1],
            last=last if violations else (),
        )

    async def _close(self, violations: list[str]) -> None:
        await self._tasks.close()
        try:
            await self.world.stop()
        except Exception as error:
            if not violations:  # what was found first tells more
                violations.append(f"error: at the end: {_told(error)}")

    async def _step(self, timed: Timed) -> None:
        await asyncio.sleep(timed.at.seconds)
        step = timed.step
        self._counts[f"step {type(step).__name__}"] += 1
        if isinstance(step, ClockStep):
            self.world.clock.step(step.clock_step)
        elif isinstance(step, HangUp):
            self.world.server.hang_up()
        elif isinstance(step, DeleteNodes):
            await self._delete_nodes(step.delete_nodes)
        elif isinstance(step, ProtectNodes):
            await self._protect_nodes(step.protect_nodes)
        else:
            await self._stage.play(step)

    async def _take_places(self, at: float) -> None:
        await asyncio.sleep(at)
        self._counts["other cluster"] += 1
        assert self.world.account is not None
        other_cluster(self.world.account, Random(f"other cluster {self._seed} {at}"))

    async def _set_clock(self, at: float, seconds: float) -> None:
        await asyncio.sleep(at)
        self._counts["clock set"] += 1
        self.world.clock.step(seconds)

    async def _leave(self, start: float, end: float) -> None:
        await asyncio.sleep(start)
        self._counts["controllers away"] += 1
        await self.world.leave()
        await asyncio.sleep(end - start)
        await self.world.come_back()

    async def _delete_nodes(self, number: int) -> None:
        for node in sorted(self.world.server.objects(Node), key=lambda each: each.name)[:number]:
            await self.world.user.delete(Node, node.name)

    async def _protect_nodes(self, number: int) -> None:
        for node in sorted(self.world.server.objects(Node), key=lambda each: each.name)[:number]:
            protected = {**node.metadata.annotations, "karpenter.sh/do-not-disrupt": "true"}
            await self.world.user.patch(node, replace(node, metadata=replace(node.metadata, annotations=protected)))

    async def _watch(self) -> list[str]:
        """Until something is found, or the end."""
        violations = self._checks.violations
        while self._loop.time() < RIGHT_S:
            await asyncio.sleep(5.0)
            if self._loop.time() >= FAULTS_S:
                self.world.cloud.spare()  # rules about the next machines, which may be bought only now
                self._end_reservations()
            self._look()
            if violations:
                return violations
        wrong = self._checks.settled()
        while wrong and self._is_never_still() and self._loop.time() < END_S:
            # Where nodes grow old or move, there may never be a moment at which all is well; but nothing stays wrong for long.
            await asyncio.sleep(10.0)
            self._look()
            if violations:
                return violations
            still = frozenset(self._checks.settled())
            wrong = [each for each in wrong if each in still]
        if wrong:
            return wrong
        if self._made.consolidation.on and not self._made.expires:
            return await self._rest()
        quiet = None if self._made.expires else Quiet(self.world, self._checks.counts)
        while self._loop.time() < END_S:
            await asyncio.sleep(5.0)
            self._look()
            if violations:
                return violations
        written = quiet.since(0.0) if quiet is not None else Counter[str]()
        return [f"quiet: {count} × {what}" for what, count in sorted(written.items())][:20]

    def _is_never_still(self) -> bool:
        return self._made.expires or self._made.consolidation.on

    async def _rest(self) -> list[str]:
        """Until nothing has been written for a while; in the end no node has to move any more, and none is left marked."""
        quiet = Quiet(self.world, self._checks.counts)
        still_since, written = self._loop.time(), 0
        while self._loop.time() < still_since + STILL_S:
            await asyncio.sleep(5.0)
            self._look()
            if self._checks.violations:
                return self._checks.violations
            if quiet.total > written:
                still_since, written = self._loop.time(), quiet.total
            if self._loop.time() > REST_S:
                return [f"rest: {count} × {what}" for what, count in sorted(quiet.since(REST_S - STILL_S).items())][:20]
        assert self.world.joiner is not None
        return [*self._checks.at_rest(await self.world.joiner.proposed()), *self._checks.settled()]

    def _end_reservations(self) -> None:
        """Where the clock was set, a reservation that ends with time has to end before it is quiet."""
        for each in self._made.given.reservations if self._worse.clock_steps else ():
            if each.until is not None and not self.world.cloud.over(each.id):
                self.world.cloud.cancel_reservation(each.id)

    def _look(self) -> None:
        try:
            self.world.healthy()
        except Exception as error:
            self._found("outside of any task", error)
        server = self.world.server
        self._most = [
            max(self._most[0], len(server.store(Node).objects)),
            max(self._most[1], len(server.store(Pod).objects)),
        ]

    def _counted(self) -> dict[str, int]:
        counts: Counter[str] = Counter(self._counts)
        counts.update({f"fault {name}": count for name, count in self._faults.counts.items()})
        counts.update({f"rule {name}": count for name, count in self._checks.counts.items()})
        counts.update(f"event {event.reason}" for event in self.world.server.objects(Event))
        counts.update({f"removal {reason}": count for reason, count in self.world.removals.items()})
        return dict(sorted(counts.items()))


REQUIRED: Final[tuple[str, ...]] = (
    *(f"fault {name}" for name in (*API_FAULTS, *CLOUD_FAULTS)),
    *(f"rule {name}" for name in RULES if name not in ONLY_MOVING),
    *(f"step {name}" for name in STEP_NAMES),
    *(
        f"event {name}"
        for name in ("Nominated", "FailedScheduling", "InsufficientCapacityError", "Evicted", "Disrupted")
    ),
    *(f"event {name}" for name in ("FailedDraining", "TerminationGracePeriodExpiring", "NodeOverlaysChanged")),
    *(f"removal {name}" for name in ("expired", "garbage_collected", "insufficient_capacity", "registration_timeout")),
    "removal unhealthy",
    "event RebootObserved",
    "registration hook",
)
"""What has to occur in a long hunt: where one of these never did, nothing was shown about it."""


def missing(counts: Mapping[str, int]) -> tuple[str, ...]:
    """What should have occurred and never did."""
    return tuple(name for name in REQUIRED if not counts.get(name))
