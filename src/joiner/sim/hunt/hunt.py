"""Deterministic simulation: one seed, one world, two hours with faults in it, and checkers that watch.

For eighty minutes people, fate and bad connections do what they can. Then everything must come right, and then it must be quiet.
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
from joiner.model.meta import Value
from joiner.model.node import Node
from joiner.model.pod import Pod
from joiner.options import Gates, Options
from joiner.sim.cloud.cloud import Hook
from joiner.sim.cloud.outages import Outages
from joiner.sim.hunt.checkers import RULES, Checks, Quiet
from joiner.sim.hunt.faults import API_FAULTS, CLOUD_FAULTS, Chances, RandomFaults
from joiner.sim.hunt.randomworld import STEP_NAMES, ClockStep, DeleteNodes, HangUp, Made, make
from joiner.sim.kubelet.kubelet import NodeTiming
from joiner.sim.story import objects
from joiner.sim.story.format import Timed
from joiner.sim.story.steps import StepRunner, Unplayable
from joiner.sim.trace import Trace
from joiner.sim.virtualtime import VirtualLoop, run
from joiner.sim.world import World

HOURS: Final = 2
STORM_S: Final = 80 * 60.0
"""So long things go wrong."""
RIGHT_S: Final = 105 * 60.0
"""By then everything has to have come right."""
END_S: Final = HOURS * 3600.0


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


def hunt(seed: int, *, chances: Chances | None = None, trace: Trace | None = None) -> Outcome:
    """Play the world of a seed to its end, or to the first thing that may not be. An error of any kind is such a thing."""
    trace = trace if trace is not None else Trace()
    collects = gc.isenabled()
    gc.disable()  # a world is small, lives for seconds, and goes as a whole: looking through it meanwhile finds little
    try:
        # The seed also decides in which order tasks take their turns.
        return run(lambda loop: _Hunt(loop, seed, chances or Chances(), trace).play(), shuffle=Random(f"turns {seed}"))
    except Exception as error:  # whoever hunts through many seeds must hear of it, and go on with the next
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
    )
    return Options(feature_gates=gates, min_values_policy="BestEffort" if made.best_effort else "Strict")


class _Hunt:
    """One world, hunted through."""

    def __init__(self, loop: VirtualLoop, seed: int, chances: Chances, trace: Trace) -> None:
        self._loop, self._seed = loop, seed
        self._made: Made = make(seed)
        self._weather = RandomFaults(loop, Random(f"weather {seed}"), chances, STORM_S)
        self.world = World(
            loop,
            seed=seed,
            options=_options(self._made),
            trace=trace,
            habits=NodeTiming(prepares={"example.com/agent": 15.0}),
            meddler=self._weather,
            cloud_meddler=self._weather.cloud,
            history=300,
            failed=self._failed,
        )
        self._checks = Checks(self.world)
        self._tasks = Tasks(failed=self._broke)
        self._stage = StepRunner(self.world, self._tasks, Path(), Outages())
        self._counts: Counter[str] = Counter()
        self._most = [0, 0]

    def _failed(self, controller: str, key: Key, error: Exception) -> None:
        """A reconcile failed. Errors of the doors are part of the weather; anything else is ours."""
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
        self.world.load(
            [objects.node_class(self._made.given, Path(), self.world.clock.now()), *objects.pools(self._made.given)]
        )
        self.world.load(each for given in self._made.objects for each in self._stage.objects(given))
        if self._made.hook_s is not None:
            self.world.cloud.hooks.append(Hook("inspection", self._made.hook_s, {}))
            self._counts["registration hook"] += 1
        await self.world.start()
        for timed in self._made.steps:
            self._tasks.start(f"step at {timed.at.text()}", self._step(timed))
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
        else:
            await self._stage.play(step)

    async def _delete_nodes(self, number: int) -> None:
        for node in sorted(self.world.server.objects(Node), key=lambda each: each.name)[:number]:
            await self.world.user.delete(Node, node.name)

    async def _watch(self) -> list[str]:
        """Until something is found, or the end."""
        violations = self._checks.violations
        while self._loop.time() < RIGHT_S:
            await asyncio.sleep(5.0)
            if self._loop.time() >= STORM_S:
                self.world.cloud.spare()  # fate strikes the next machines, which may be bought only now
            self._look()
            if violations:
                return violations
        wrong = self._checks.settled()
        while wrong and self._made.expires and self._loop.time() < END_S:
            # Where nodes grow old, there may never be a moment at which all is well; but nothing stays wrong for long.
            await asyncio.sleep(10.0)
            self._look()
            if violations:
                return violations
            still = frozenset(self._checks.settled())
            wrong = [each for each in wrong if each in still]
        if wrong:
            return wrong
        quiet = None if self._made.expires else Quiet(self.world, self._checks.counts)
        while self._loop.time() < END_S:
            await asyncio.sleep(5.0)
            self._look()
            if violations:
                return violations
        written = quiet.writes if quiet is not None else Counter[str]()
        return [f"quiet: {count} × {what}" for what, count in sorted(written.items())][:20]

    def _look(self) -> None:
        try:
            self.world.healthy()
        except Exception as error:
            self._found("behind everybody's back", error)
        server = self.world.server
        self._most = [
            max(self._most[0], len(server.shelf(Node).objects)),
            max(self._most[1], len(server.shelf(Pod).objects)),
        ]

    def _counted(self) -> dict[str, int]:
        counts: Counter[str] = Counter(self._counts)
        counts.update({f"fault {name}": count for name, count in self._weather.counts.items()})
        counts.update({f"rule {name}": count for name, count in self._checks.counts.items()})
        counts.update(f"event {event.reason}" for event in self.world.server.objects(Event))
        counts.update({f"removal {reason}": count for reason, count in self.world.removals.items()})
        return dict(sorted(counts.items()))


REQUIRED: Final[tuple[str, ...]] = (
    *(f"fault {name}" for name in (*API_FAULTS, *CLOUD_FAULTS)),
    *(f"rule {name}" for name in RULES),
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
