"""A random world from a seed: pools, reservations, workloads, and what users and events do to them in the first hour.

Whatever is made here can come right: there is always a pool that takes every pod, shortages end, and what no node can hold
is marked as impossible.
"""

from collections.abc import Iterator
from random import Random
from typing import Any, Final

from joiner.model.duration import NEVER, Duration
from joiner.model.meta import Value, replace
from joiner.model.quantity import parse
from joiner.sim.hunt.checkers import IMPOSSIBLE
from joiner.sim.story.document.format import (
    Apply,
    DaemonSetStep,
    Delete,
    Deploy,
    EndReservation,
    JobStep,
    NeverJoin,
    Price,
    Reclaim,
    Restart,
    Scale,
    Shortage,
    Sicken,
    StatefulSetStep,
    Timed,
    Vanish,
)
from joiner.sim.story.document.given import Given, MarketWords, PoolWords, ReservationWords

MINUTE: Final = 60.0
BUDGETS: Final[tuple[tuple[dict[str, Any], ...], ...]] = (
    ({"nodes": "10%"},),
    ({"nodes": "10%"},),
    ({"nodes": "100%"},),
    ({"nodes": "2"}, {"nodes": "50%"}),
    ({"nodes": "0", "reasons": ["Underutilized"]}, {"nodes": "3"}),
)
"""The disruption budgets that a pool may have."""
BUSY: Final = 75 * MINUTE
"""So long users edit and mishaps happen."""
PODS_SCALED: Final = 160
"""So many pods all Deployments together are scaled to: a world has a few dozen nodes at most."""
ZONES: Final = ("a", "b", "c")
TYPES: Final = tuple(
    f"{family}.{size}" for family in ("c5", "m5", "r5") for size in ("large", "xlarge", "2xlarge", "4xlarge")
)


class ClockStep(Value):
    """The time of day jumps."""

    clock_step: float


class HangUp(Value):
    """Every watch breaks at once."""

    hang_up: bool = True


class DeleteNodes(Value):
    """A user deletes some nodes by hand."""

    delete_nodes: int


class ProtectNodes(Value):
    """A user says of some nodes that they may not be disrupted."""

    protect_nodes: int


class Consolidates(Value):
    """How nodes are consolidated; every pool has its own way."""

    on: bool
    """Whether they are at all."""
    spot_to_spot: bool
    eviction_cost_s: float


class Made(Value):
    """A made-up world."""

    given: Given
    objects: tuple[dict[str, Any], ...]
    steps: tuple[Timed, ...]
    consolidation: Consolidates
    expires: bool
    """Whether nodes grow old, so that there is never quiet."""
    repairs: bool
    """Whether broken nodes are repaired."""
    terminates_first: bool
    """Whether a broken node may go before there is another in its place."""
    static: bool
    """Whether a pool keeps a number of nodes whatever the pods need."""
    buffers: bool
    """Whether room is kept for pods to come."""
    best_effort: bool
    """Whether minValues are lowered where they cannot be had."""
    hook_s: float | None
    """How long something is done with every machine before its node counts as registered."""


def make(seed: int, *, consolidates: bool = False) -> Made:
    """The world of a seed. `consolidates`: whether nodes are consolidated in it."""
    maker = _Maker(Random(f"world {seed}"), Random(f"features {seed}"), Random(f"moves {seed}"))
    return maker.made(consolidates)


def _moved(pool: PoolWords, draw: Random, *, on: bool) -> PoolWords:
    """The pool with its own way to consolidate nodes."""
    after = draw.choice([Duration(0), Duration(0), Duration.parse("30s"), Duration.parse("3m")])
    policy = draw.choice(["WhenEmptyOrUnderutilized"] * 4 + ["Balanced", "WhenEmpty"])
    budgets = draw.choice(BUDGETS)
    cost = draw.choice([None, None, Duration(0), Duration.parse("30m")])
    if not on:
        return replace(pool, consolidate_after=NEVER)
    return replace(pool, consolidate_after=after, consolidation_policy=policy, budgets=budgets, eviction_cost=cost)


class _Maker:
    """Draws one thing after the other."""

    def __init__(self, random: Random, features: Random, moves: Random) -> None:
        self._random, self._features, self._moves = random, features, moves
        self._sizes: dict[str, tuple[int, int]] = {}
        """Deployment to the fewest and the most pods it is ever scaled to."""
        self._imitable: list[str] = []
        """Deployments whose pods fit wherever there is room, so that it is easy to tell whether there is."""
        self._expires = random.random() < 0.2
        # All three take more nodes, too many where old ones go at the same time.
        self._static = features.random() < 0.4 and not self._expires
        self._best_effort = features.random() < 0.4 and not self._expires
        self._buffers = features.random() < 0.4 and not self._expires
        self._protects = random.random() < 0.3
        self._repairs = random.random() < 0.5
        self._terminates_first = random.random() < 0.5
        self._hook_s = random.uniform(5.0, 240.0) if random.random() < 0.25 else None

    def made(self, consolidates: bool) -> Made:
        consolidation = Consolidates(
            on=consolidates,
            spot_to_spot=self._moves.random() < 0.5,
            eviction_cost_s=self._moves.choice([0.0, 600.0, 600.0]),
        )
        pools = tuple(_moved(pool, self._moves, on=consolidates) for pool in self._pools())
        given = Given(nodepools=pools, reservations=tuple(self._reservations()))
        steps = [*self._workloads(), *self._changes(), *self._mishaps(given.reservations), *self._restarts()]
        steps += [*self._buffer(), *self._static_sizes()]
        if consolidates:
            at = Duration(int(self._moves.uniform(5 * MINUTE, 20 * MINUTE) * 1000) * 1_000_000)
            steps.append(Timed(at=at, step=ProtectNodes(protect_nodes=3)))
        steps.sort(key=lambda each: each.at)
        return Made(
            given=given,
            objects=tuple(self._objects()),
            steps=tuple(steps),
            consolidation=consolidation,
            expires=self._expires,
            repairs=self._repairs,
            terminates_first=self._terminates_first,
            static=self._static,
            buffers=self._buffers,
            best_effort=self._best_effort,
            hook_s=self._hook_s,
        )

    def _maybe(self, chance: float) -> bool:
        return self._random.random() < chance

    def _at(self, least: float, most: float) -> Duration:
        return Duration(int(self._random.uniform(least, most) * 1000) * 1_000_000)

    # -- what is given ----------------------------------------------------------------------------------------------

    def _pools(self) -> Iterator[PoolWords]:
        draw = self._random
        age: dict[str, Any] = {}
        if self._expires:
            age = {"expire_after": Duration.parse(draw.choice(["25m", "40m", "55m"]))}
        if self._expires or self._protects:
            age["termination_grace_period"] = Duration.parse(draw.choice(["3m", "6m"]))
        yield PoolWords(name="default", capacity_types=("spot", "on-demand"), **age)
        yield PoolWords(
            name="first",
            capacity_types=("reserved", "spot") if self._maybe(0.5) else ("reserved", "on-demand"),
            weight=draw.randint(1, 100),
            limits={draw.choice(["cpu", "nodes"]): draw.randint(4, 24)},
            **age,
        )
        yield PoolWords(
            name="flexible",
            capacity_types=("spot",),
            weight=draw.randint(1, 50),
            requirements=(
                {"key": "node.kubernetes.io/instance-type", "operator": "Exists", "minValues": draw.randint(2, 5)},
                {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a", "b"], "minValues": 2},
            ),
            **age,
        )
        if self._maybe(0.7):
            yield PoolWords(
                name="tainted",
                taints=({"key": "team", "value": "data", "effect": "NoSchedule"},),
                startup_taints=({"key": "example.com/agent", "effect": "NoExecute"},) if self._maybe(0.4) else (),
                labels={"team": "data"},
                **age,
            )
        if self._maybe(0.4):
            yield PoolWords(name="zonal", zones=(draw.choice(ZONES),), weight=draw.randint(1, 100), **age)
        if self._static:
            yield PoolWords(
                name="static",
                instance_types=TYPES[4:6],
                replicas=self._features.randint(1, 3),
                limits={"nodes": 3} if self._features.random() < 0.5 else {},
                **age,
            )

    def _reservations(self) -> Iterator[ReservationWords]:
        for number in range(self._random.randint(0, 3)):
            yield ReservationWords(
                id=f"cr-{number}",
                instance_type=self._random.choice(TYPES),
                zone=self._random.choice(ZONES),
                count=self._random.randint(1, 4),
                until=self._at(20 * MINUTE, BUSY) if self._maybe(0.3) else None,
            )

    def _objects(self) -> Iterator[dict[str, Any]]:
        yield {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "zonal"},
            "provisioner": "ebs.csi.aws.com",
            "volumeBindingMode": "WaitForFirstConsumer",
        }
        if self._maybe(0.3):
            yield _overlay("cheap-m5", "90", 10)

    # -- people -----------------------------------------------------------------------------------------------------

    def _workloads(self) -> Iterator[Timed]:
        apart = Deploy(deploy="apart", replicas=self._random.randint(5, 8), cpu=parse("250m"), apart="hostname")
        yield Timed(at=self._at(0, 5 * MINUTE), step=apart)
        left = self._random.randint(55, 120) if self._maybe(0.9) else self._random.randint(120, 300)
        number = 0
        while left > 0:
            made = self._workload(f"app-{number}", min(left + 2, self._random.randint(3, 45)))
            left -= made.step.completions if isinstance(made.step, JobStep) else made.step.replicas
            yield made
            number += 1
        if self._maybe(0.6):
            daemon = DaemonSetStep(daemon_set="agent", cpu=parse("100m"), memory=parse("64Mi"))
            yield Timed(at=self._at(0, 5 * MINUTE), step=daemon)
        if self._maybe(0.4):
            impossible = Deploy(deploy="impossible", replicas=2, cpu=parse("500"), labels={IMPOSSIBLE: "true"})
            yield Timed(at=self._at(0, BUSY), step=impossible)

    def _workload(self, name: str, replicas: int) -> Timed:
        draw = self._random
        words: dict[str, Any] = {
            # Of many pods each is small: a world has a few dozen nodes at most.
            "cpu": parse(
                draw.choice(["100m", "250m", "400m"] if replicas > 12 else ["250m", "500m", "900m", "1500m", "3"])
            ),
            "memory": parse(draw.choice(["64Mi", "512Mi", "1Gi", "3Gi", "6Gi"])),
            "grace": Duration.parse(draw.choice(["5s", "30s", "2m"])),
        }
        turn = draw.random()
        if turn < 0.2:
            words["spread"] = (draw.choice(["zone", "hostname"]),)
            replicas = min(replicas, 10)
        elif turn < 0.4:
            words["node_selector"] = {"topology.kubernetes.io/zone": draw.choice(ZONES)}
        elif turn < 0.5:
            words["tolerations"] = ({"key": "team", "operator": "Exists"},)
        elif turn < 0.55:
            words["node_selector"] = {"karpenter.sh/capacity-type": "on-demand"}
        kind = draw.random()
        if 0.1 <= kind < 0.2:
            replicas = min(replicas, 6)
        if kind >= 0.1 and replicas > 1 and self._maybe(0.35):
            words["min_available"] = max(1, replicas - draw.randint(1, 3))
        if self._protects and self._maybe(0.2):
            words["do_not_disrupt"] = True
        at = self._at(0, 20 * MINUTE)
        if kind < 0.1:
            parallel = (replicas + 1) // 2
            runs = Duration.parse(draw.choice(["1m", "4m", "8m"]))
            return Timed(
                at=at, step=JobStep(job=name, completions=replicas, parallelism=parallel, runs_for=runs, **words)
            )
        if kind < 0.2:
            words.pop(
                "spread", None
            )  # volumes stay where they are: in order, evenly and in place cannot always be had together
            return Timed(at=at, step=StatefulSetStep(stateful_set=name, replicas=replicas, volume="zonal", **words))
        if "spread" not in words:
            self._imitable.append(name)
        # Fewer pods than a budget keeps would never let a node go.
        self._sizes[name] = (words.get("min_available", 0) + 1, 10 if "spread" in words else 30)
        return Timed(at=at, step=Deploy(deploy=name, replicas=replicas, **words))

    def _changes(self) -> Iterator[Timed]:
        draw = self._random
        fair = PODS_SCALED // max(1, len(self._sizes))
        for name, (least, most) in self._sizes.items():
            for _ in range(draw.randint(0, 2) if least <= most else 0):
                replicas = draw.randint(least, max(least, min(most, fair)))
                yield Timed(at=self._at(21 * MINUTE, BUSY), step=Scale(scale=name, replicas=replicas))
        if self._maybe(0.5):
            yield Timed(at=self._at(30 * MINUTE, BUSY), step=DeleteNodes(delete_nodes=draw.randint(1, 3)))
        if self._maybe(0.3):
            overlay = Apply(apply=_overlay("dear-c5", "150", draw.randint(1, 20)))
            yield Timed(at=self._at(10 * MINUTE, BUSY), step=overlay)
        if self._maybe(0.15):
            yield Timed(at=self._at(30 * MINUTE, BUSY), step=Delete(delete="nodepool/flexible"))

    def _static_sizes(self) -> Iterator[Timed]:
        if self._static:
            for _ in range(self._features.randint(1, 3)):
                at = self._features.uniform(10 * MINUTE, BUSY)
                size = Scale(scale="nodepool/static", replicas=self._features.randint(0, 4))
                yield Timed(at=Duration(int(at * 1000) * 1_000_000), step=size)

    def _buffer(self) -> Iterator[Timed]:
        if not self._buffers:
            return
        draw = self._features
        at = Duration(int(draw.uniform(21 * MINUTE, BUSY) * 1000) * 1_000_000)
        if self._imitable and draw.random() < 0.6:
            like = {"scalableRef": {"apiGroup": "apps", "kind": "Deployment", "name": draw.choice(self._imitable)}}
            yield Timed(at=at, step=Apply(apply=_buffer({**like, "percentage": draw.choice([25, 100])})))
            return
        yield Timed(at=Duration(0), step=Apply(apply=_template(draw.choice(["1", "2", "3"]))))
        yield Timed(
            at=at, step=Apply(apply=_buffer({"podTemplateRef": {"name": "like"}, "replicas": draw.randint(2, 6)}))
        )

    # -- mishaps -------------------------------------------------------------------------------------------------------

    def _mishaps(self, reservations: tuple[ReservationWords, ...]) -> Iterator[Timed]:
        draw = self._random
        for _ in range(draw.randint(0, 3)):
            slice_ = MarketWords(
                instance_type=draw.choice([*TYPES, ""]),
                zone=draw.choice([*ZONES, ""]),
                capacity_type=draw.choice(["spot", "on-demand", ""]),
            )
            lasts = Duration.parse(draw.choice(["2m", "8m", "15m"]))
            yield Timed(at=self._at(0, BUSY - 20 * MINUTE), step=Shortage(shortage=slice_, lasts=lasts))
        if self._maybe(0.5):
            yield Timed(at=self._at(15 * MINUTE, BUSY), step=Reclaim(reclaim=draw.randint(1, 4)))
        if self._maybe(0.5):
            yield Timed(at=self._at(15 * MINUTE, BUSY), step=Vanish(vanish=draw.randint(1, 3)))
        if self._maybe(0.5):
            yield Timed(at=self._at(0, 20 * MINUTE), step=NeverJoin(never_join=draw.randint(1, 2)))
        if self._repairs:
            sickness = draw.choice(["KWOKUnhealthy=True", "KWOKRebootRequired=True"])
            sick = Sicken(sicken=sickness, nodes=draw.randint(1, 3), incurable=self._maybe(0.2))
            yield Timed(at=self._at(15 * MINUTE, BUSY), step=sick)
        if self._maybe(0.3):
            slice_ = MarketWords(instance_type=draw.choice(TYPES))
            yield Timed(at=self._at(5 * MINUTE, BUSY), step=Price(price=slice_, factor=draw.choice([0.5, 2.0])))
        if reservations and self._maybe(0.3):
            ended = EndReservation(end_reservation=draw.choice(reservations).id)
            yield Timed(at=self._at(15 * MINUTE, BUSY), step=ended)
        if self._maybe(0.3):
            yield Timed(at=self._at(MINUTE, BUSY), step=ClockStep(clock_step=draw.uniform(-45.0, 45.0)))
        for _ in range(draw.randint(0, 3)):
            yield Timed(at=self._at(MINUTE, BUSY), step=HangUp())

    def _restarts(self) -> Iterator[Timed]:
        for _ in range(self._random.randint(1, 4)):
            yield Timed(at=self._at(20.0, BUSY), step=Restart(restart="joiner"))


def _buffer(spec: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": "spare", "namespace": "default"}
    return {"apiVersion": "autoscaling.x-k8s.io/v1beta1", "kind": "CapacityBuffer", "metadata": metadata, "spec": spec}


def _template(cpu: str) -> dict[str, Any]:
    pod = {"containers": [{"name": "main", "resources": {"requests": {"cpu": cpu, "memory": "256Mi"}}}]}
    template = {"metadata": {"labels": {"app": "like"}}, "spec": pod}
    metadata = {"name": "like", "namespace": "default"}
    return {"apiVersion": "v1", "kind": "PodTemplate", "metadata": metadata, "template": template}


def _overlay(name: str, percent: str, weight: int) -> dict[str, Any]:
    family = "m5" if "m5" in name else "c5"
    return {
        "apiVersion": "karpenter.sh/v1alpha1",
        "kind": "NodeOverlay",
        "metadata": {"name": name},
        "spec": {
            "requirements": [{"key": "karpenter.kwok.sh/instance-family", "operator": "In", "values": [family]}],
            "priceAdjustment": f"{int(percent) - 100:+d}%",
            "weight": weight,
        },
    }


STEP_NAMES: Final = tuple(
    kind.__name__
    for kind in (
        Deploy, StatefulSetStep, DaemonSetStep, JobStep, Scale, Apply, Delete, DeleteNodes, Shortage, Sicken, Reclaim, Vanish,
        NeverJoin, Price, EndReservation, ClockStep, HangUp, Restart,
    )
)  # fmt: skip
"""Every kind of step that may be drawn."""
