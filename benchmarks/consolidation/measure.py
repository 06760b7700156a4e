"""One cluster, one way to decide, until nothing moves any more; and a day of traffic."""

import json
import sys
from collections import Counter
from math import pi, sin
from random import Random
from statistics import median
from typing import Any

from benchmarks.consolidation.clusters import made
from benchmarks.consolidation.ours import Ours
from benchmarks.consolidation.shop import VOCABULARY
from benchmarks.consolidation.upstream import Upstream
from benchmarks.consolidation.world import World
from joiner.disruption.situation import Rules
from joiner.model.duration import Duration
from joiner.model.meta import replace
from joiner.scheduling.bound.lowerbound import bound
from joiner.scheduling.problem import Problem

POLL_S, SECOND_LOOK_S, FORGET_S = 10.0, 15.0, 300.0
LONGEST_S = 36 * 3600.0
IDLE_S = 900.0
QUIET_S = 3 * 3600.0
"""So long nothing may happen before a cluster counts as at rest: a raised price of evictions has fallen by then."""


def least(world: World) -> float:
    """The bound for all pods of a cluster as it is now."""
    pods = tuple(
        replace(pod, spec=replace(pod.spec, node_name=""))
        for state in world.cluster.snapshot(world.moment).nodes
        for pod in state.pods
    )
    waiting = world.cluster.snapshot(world.moment).waiting
    options = world.shop.options({}, world.policy)
    return bound(Problem(pods=(*pods, *waiting), pools=options, vocabulary=VOCABULARY)).price


def decider(world: World, who: str, **more: Any) -> Ours | Upstream:
    if who == "upstream":
        return Upstream(world, **more)
    if who == "balanced":
        return Upstream(world, balanced=True, **more)
    soft = more.pop("soft_taint", True)
    rules = Rules(vocabulary=VOCABULARY, spot_to_spot=True)
    if "eviction" in more:
        rules = replace(rules, eviction_cost=Duration.parse(more.pop("eviction")))
    for name in ("horizon", "longest_horizon"):
        if name in more:
            rules = replace(rules, **{name: Duration.parse(more.pop(name))})
    return Ours(world, replace(rules, **more) if more else rules, soft_taint=soft)


def play(world: World, mind: Ours | Upstream, until: float, *, rest: bool) -> bool:
    """Pass after pass until that moment, or with `rest` until nothing has moved for long. Whether it is at rest."""
    idle_since: float | None = None
    while world.now < until:
        version = world.version
        proposals: list[Any] = list(mind.look())
        if proposals:
            idle_since = None
            world.advance(world.now + mind.spent + SECOND_LOOK_S)
            for each in proposals:
                command = mind.confirm(each)
                if command is not None:
                    world.start(command)
                else:
                    world.tally.rejected += 1
            continue
        quiet = not world.commands and not world.pending and world.version == version
        if not quiet or mind.spent:
            idle_since = None if not quiet else idle_since
        if quiet and idle_since is None:
            idle_since = world.now
        if rest and idle_since is not None:
            if isinstance(mind, Upstream) or world.now - idle_since >= max(QUIET_S, mind.longest_s):
                return True
            world.advance(world.now + IDLE_S)
            continue
        following = world.next_event
        step = world.now + mind.spent + POLL_S
        if quiet:
            step = max(step, min(until if following is None else following, world.now + FORGET_S))
        world.advance(min(step, until))
    return False


def to_rest(family: str, nodes: int, pools: int, seed: int, who: str, **more: Any) -> dict[str, Any]:
    """The whole way of one cluster."""
    ordered = more.pop("ordered", who == "ours")
    world = made(family, nodes, pools, seed, ordered=ordered, policy="Balanced" if who == "balanced" else "")
    world.places.scattered = more.pop("scattered", False)
    mind = decider(world, who, **more)
    best, before = least(world), world.places.bill
    rest = play(world, mind, LONGEST_S, rest=True)
    return row(world, mind, best, before, rest)


def day(nodes: int, seed: int, who: str, **more: Any) -> dict[str, Any]:
    """A day: six deployments of ten follow the hour, one of ten jumps, the others stay as they are."""
    dice = Random(seed)
    world = made("plain", nodes, 1, seed, ordered=who == "ours", policy="Balanced" if who == "balanced" else "")
    mind = decider(world, who, **more)
    counts = Counter(record.kind for record in world.pods.values())
    fates = {kind: dice.random() for kind in sorted(counts)}
    phases = {kind: dice.uniform(-1.5, 1.5) for kind in sorted(counts)}
    bounds = 0.0
    world.tally.dollars = 0.0
    for quarter in range(96):
        for kind, count in sorted(counts.items()):
            if fates[kind] < 0.6:
                wanted = round(count * (1.0 + 0.6 * sin((quarter / 4 + phases[kind]) * pi / 12)))
            elif fates[kind] < 0.7:
                wanted = dice.randint(1, 2 * count)
            else:
                continue
            own = sorted(name for name, record in world.pods.items() if record.kind == kind)
            for _ in range(wanted - len(own)):
                world.create(kind)
            for name in dice.sample(own, max(0, len(own) - wanted)):
                world.remove(world.pods[name])
        bounds += least(world) / 4
        play(world, mind, (quarter + 1) * 900.0, rest=False)
    found = row(world, mind, 1.0, 0.0, True)
    kept = {name: value for name, value in found.items() if name not in ("start", "ratio", "hours", "rest", "pods")}
    return {"bill over bound": round(world.tally.dollars / bounds, 4), **kept}


def row(world: World, mind: Ours | Upstream, best: float, before: float, rest: bool) -> dict[str, Any]:
    tally = world.tally
    found: dict[str, Any] = {
        "start": round(before / best, 4),
        "ratio": round(world.places.bill / best, 4),
        "pods": len(world.pods),
        "nodes": int(world.places.alive.sum()),
        "evictions": tally.evictions,
        "again": tally.again,
        "launched": tally.launched,
        "surprises": tally.surprises,
        "commands": tally.commands,
        "rejected": tally.rejected,
        "hours": round(tally.last / 3600.0, 3),
        "rises": sum(each.after > each.before + 1e-9 for each in world.finished),
        "rest": rest,
    }
    if isinstance(mind, Ours):
        seconds = mind.seconds or [0.0]
        found |= {
            "decisions": len(seconds),
            "cpu median": round(median(seconds), 4),
            "cpu most": round(max(seconds), 4),
            "second look most": round(max(mind.second_looks, default=0.0), 4),
            "cut short": mind.cut,
        }
    else:
        found |= {"calls": mind.calls}
    return found


def main(family: str, nodes: str, pools: str, seed: str, who: str, *more: str) -> None:
    told = dict(each.split("=") for each in more)
    settings: dict[str, Any] = {key: {"yes": True, "no": False}.get(value, value) for key, value in told.items()}
    if family == "day":
        found = day(int(nodes), int(seed), who, **settings)
    else:
        found = to_rest(family, int(nodes), int(pools), int(seed), who, **settings)
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
