"""What plans cost and lose without each way of planning, so that the table in docs/design/engine.md can be kept true.

python tools/ablate.py [--only WAY …] [--recorded N] [--pods 20 50 …] [--seeds N] [--dials]

Every question is planned whole, and once without each planner, rescue and phase. A line says for one of them how many questions
leave more pods over or fewer, how many are dearer or cheaper, by how much all prices together change, and what the time is.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks import mixes  # noqa: E402
from tests.differential.recordings import FAMILIES, recordings  # noqa: E402

from joiner.model.meta import replace  # noqa: E402
from joiner.offline.scenario.reader import read  # noqa: E402
from joiner.scheduling import rescues, schedule, tuning  # noqa: E402
from joiner.scheduling.attempts import Attempts  # noqa: E402
from joiner.scheduling.choice import as_asked_for  # noqa: E402
from joiner.scheduling.engine.affinitydomains import AffinityDomainRanking  # noqa: E402
from joiner.scheduling.engine.volumepinned import VolumePinnedQueue  # noqa: E402
from joiner.scheduling.planners import table  # noqa: E402
from joiner.scheduling.problem import Problem  # noqa: E402

Way = Callable[[], AbstractContextManager[None]]
Search = schedule._Search


@contextmanager
def put(thing: Any, name: str, value: Any) -> Iterator[None]:
    """Another value for a while."""
    before = getattr(thing, name)
    setattr(thing, name, value)
    try:
        yield
    finally:
        setattr(thing, name, before)


def _nothing(*_: object, **__: object) -> tuple[()]:
    return ()


def _rivals_as_they_are(search: Any, net: Any) -> list[Any]:
    refused = net.left_over()
    rivals = [run for run in search.runs if run.sound and run.left_over() <= refused]
    return [run for run in rivals if as_asked_for(run, net)]


def ways() -> dict[str, Way]:
    """Name to a context in which a way of planning is left out."""
    found: dict[str, Way] = {}
    for row in table.PLANNERS:
        rest = tuple(each for each in table.PLANNERS if each is not row)
        found[row.run.planner] = partial(put, table, "PLANNERS", rest)
    for rescue in rescues.RESCUES:
        others = tuple(each for each in rescues.RESCUES if each is not rescue)
        found[f"rescue: {rescue.__name__.strip('_')}"] = partial(put, rescues, "RESCUES", others)
    found |= {
        "phase: proof that ends the search": lambda: put(Search, "_good_enough", lambda _: False),
        "phase: agreement on one node": lambda: put(schedule, "_agreed", lambda *_: False),
        "phase: second charge for nodes": lambda: put(Search, "_promising", _nothing),
        "phase: each domain as the favourite": lambda: put(Attempts, "favouring", lambda *_, **__: iter(())),
        "phase: again without those left over": lambda: put(Search, "_rivals", _rivals_as_they_are),
        "phase: those left over first": lambda: put(Attempts, "rescued", lambda _, run: run),
        "phase: local search": lambda: put(Search, "_improved", lambda _, runs: runs),
        "phase: local search from dearer plans": lambda: put(schedule, "NEAR_OF_FEW", schedule.NEAR),
        "engine: domains by the price of the group": lambda: put(AffinityDomainRanking, "rank", lambda *_: None),
        "engine: pods held by volumes are called back": lambda: put(VolumePinnedQueue, "wait", lambda *_: None),
    }
    return found


class Planned(NamedTuple):
    """What counts of a plan."""

    left: int
    price: float
    seconds: float


def planned(problem: Problem) -> Planned:
    """A plan, with what a node is charged on top of its price."""
    began = time.process_time()
    plan = schedule.schedule(problem)
    took = time.process_time() - began
    return Planned(len(plan.refusals), plan.price + tuning.charge(problem) * len(plan.claims), took)


def questions(options: argparse.Namespace) -> Iterator[Problem]:
    """Recorded scenarios, and the mixes of the benchmarks in sizes at which everything is tried."""
    scenarios = [each.scenario for family in FAMILIES for each in list(recordings(family))[: options.recorded]]
    made = (mixes.benchmark, lambda pods, seed: mixes.deployments(pods, max(4, pods // 10), seed=seed), mixes.topology)
    scenarios += [mix(pods, seed=seed) for pods in options.pods for seed in range(options.seeds) for mix in made]
    for scenario in scenarios:
        problem = read(json.dumps(scenario).encode(), ROOT).problem
        yield (
            replace(problem, policy=replace(problem.policy, node_price=tuning.NODE_PRICE)) if options.dials else problem
        )


def line(name: str, whole: list[Planned], without: list[Planned]) -> str:
    """What is lost; prices are compared where as many pods are left over."""
    pairs = list(zip(whole, without, strict=True))
    same = [(a.price, b.price) for a, b in pairs if a.left == b.left]
    before, after = (sum(column) for column in zip(*same, strict=True)) if same else (0.0, 0.0)
    more, fewer = sum(b.left > a.left for a, b in pairs), sum(b.left < a.left for a, b in pairs)
    dearer, cheaper = sum(b > a * (1 + 1e-9) for a, b in same), sum(b < a * (1 - 1e-9) for a, b in same)
    geometric = sum(b / a for a, b in same if a) / max(1, sum(bool(a) for a, _ in same))
    took = sum(each.seconds for each in without) / sum(each.seconds for each in whole)
    price = f"{100 * (after / before - 1):+.3f} %" if before else "-"
    return f"{name:<46} {more:>4} {fewer:>5} {dearer:>7} {cheaper:>8} {price:>10} {100 * (geometric - 1):+9.3f} % {took:>6.2f}"


def main() -> int:
    """Print a line for each way of planning."""
    known = ways()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=list(known), default=list(known), metavar="WAY")
    parser.add_argument("--recorded", type=int, default=20, help="so many recorded scenarios of each family")
    parser.add_argument("--pods", type=int, nargs="*", default=[20, 60, 200])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--dials", action="store_true", help="with the usual charge for nodes")
    options = parser.parse_args()
    asked = list(questions(options))
    whole = [planned(problem) for problem in asked]
    print(f"{len(asked)} questions, {sum(each.seconds for each in whole):.1f} s; prices as their sum, and on average")
    print(
        f"{'without':<46} {'more':>4} {'fewer':>5} {'dearer':>7} {'cheaper':>8} {'price':>10} {'average':>11} {'time':>6}"
    )
    for name in options.only:
        with known[name]():
            print(line(name, whole, [planned(problem) for problem in asked]), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
