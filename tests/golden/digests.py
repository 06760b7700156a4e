"""Digests of what Joiner answers: plans, traces, summaries and the output of commands.

`python -m tests.golden.digests` works all of them out and compares them with the recorded ones (`make golden`);
with `--write` it records them instead. A digest that changes on purpose needs a sentence in the changelog.
The kinds `story`, `hunt`, `recorded`, `generated` and `command` as arguments: only these, the others stay as they are.
`test_golden.py`, `tests/test_stories.py` and `tests/simulation/test_seeds.py` compare a part of them in every test run.
"""

import hashlib
import json
import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from click.testing import CliRunner
from msgspec.structs import replace
from tests.differential import generate
from tests.differential.recordings import FAMILIES, planned, recordings
from tests.differential.terms import Json
from tools import gen_reference

from joiner.cli.main import cli
from joiner.offline.scenario import answer
from joiner.scheduling import tuning
from joiner.scheduling.schedule import schedule
from joiner.sim.hunt.hunt import Outcome, hunt

ROOT = Path(__file__).resolve().parents[2]
RECORD = Path(__file__).parent / "digests.txt"
STORY_SEEDS = (1, 20)
HUNTS = range(50)
GENERATED = 1_000
FIRST_GENERATED_SEED = 7_000
MEANT = "meant? python -m tests.golden.digests --write, and say in changelog.d what changed"
WITH_DATA = ("plan", "catalog", "validate", "simulate")
"""Commands with `-o json`."""

Job = tuple[str, str]
"""The kind of an answer, and which one it is."""


def jobs() -> Iterator[Job]:
    """Everything that has a recorded digest."""
    yield from (("story", path.stem) for path in sorted((ROOT / "tests" / "stories").glob("*.yaml")))
    yield from (("hunt", str(seed)) for seed in HUNTS)
    yield from (("recorded", family) for family in FAMILIES)
    names = sorted(generate.FAMILIES)
    seeds = range(FIRST_GENERATED_SEED, FIRST_GENERATED_SEED + -(-GENERATED // len(names)))
    yield from [("generated", f"{name}/{seed}") for seed in seeds for name in names][:GENERATED]
    yield from (("command", line) for line in sorted(command_lines()))


def short_jobs() -> list[Job]:
    """The part that `test_golden.py` compares. Stories and hunts are compared where they are played all the same."""
    return [(kind, name) for kind, name in jobs() if kind == "recorded"]


def command_lines() -> set[str]:
    """Every command in a code fence of the examples and of the documentation."""
    pages = [path for path in gen_reference.pages() if path.parent.name != "changelog.d"]
    lines = {line for path in pages for line in gen_reference.commands(path.read_text(encoding="utf-8"))}
    return {line for line in lines if line.startswith("joiner ")}


def digest(text: str) -> str:
    """A few characters that stand for a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def answers(job: Job) -> dict[str, str]:
    """Name to digest, of one job."""
    kind, name = job
    os.chdir(ROOT)
    found = dict(_KINDS[kind](name))
    return {f"{kind} {key}": digest(text) for key, text in found.items()}


def _story(name: str) -> Iterator[tuple[str, str]]:
    for seed in STORY_SEEDS:
        for form in ("json", "table"):
            arguments = ["simulate", f"tests/stories/{name}.yaml", "--seed", str(seed), "-o", form]
            yield f"{name} seed {seed} {form}", _printed(arguments)


def _hunt(name: str) -> Iterator[tuple[str, str]]:
    yield name, hunted(hunt(int(name)))


def hunted(outcome: Outcome) -> str:
    """What is compared of a hunt."""
    return json.dumps([outcome.digest, outcome.violations, dict(sorted(outcome.counts.items()))])


def _recorded(family: str) -> Iterator[tuple[str, str]]:
    for recording in recordings(family):
        yield from _planned(recording.scenario)


def _generated(name: str) -> Iterator[tuple[str, str]]:
    family, _, seed = name.rpartition("/")
    yield from _planned(generate.generate(family, int(seed)))


def _planned(scenario: Json) -> Iterator[tuple[str, str]]:
    question, plain = planned(json.dumps(scenario))
    policy = replace(
        question.problem.policy,
        node_price=tuning.NODE_PRICE,
        spot_width=tuning.SPOT_WIDTH,
        spot_width_cost=tuning.SPOT_WIDTH_COST,
    )
    charged = replace(question.problem, policy=policy)
    for name, plan in (("plain", plain), ("charged", schedule(charged))):
        told = answer.told(question, plan)
        yield f"{scenario['name']} {name}", json.dumps([plan.planner, told], sort_keys=True)


def _command(line: str) -> Iterator[tuple[str, str]]:
    arguments = shlex.split(line)[1:]
    yield line, _printed(arguments)
    if arguments and arguments[0] in WITH_DATA and not {"-o", "--output"} & set(arguments):
        yield f"{line} -o json", _printed([*arguments, "-o", "json"])


def _printed(arguments: list[str]) -> str:
    result = CliRunner().invoke(cli, arguments, prog_name="joiner")
    shown = result.stdout if arguments[0] == "simulate" else result.output  # progress of a slow machine goes to stderr
    return f"{result.exit_code}\n{shown}"


_KINDS: dict[str, Callable[[str], Iterable[tuple[str, str]]]] = {
    "story": _story,
    "hunt": _hunt,
    "recorded": _recorded,
    "generated": _generated,
    "command": _command,
}


def recorded() -> dict[str, str]:
    """Name to recorded digest."""
    lines = RECORD.read_text(encoding="utf-8").splitlines() if RECORD.exists() else []
    return {name: value for value, _, name in (line.partition("  ") for line in lines)}


def differences(found: dict[str, str], wanted: dict[str, str]) -> list[str]:
    """A line for every answer that changed, came or went."""
    changed = [f"changed: {name}" for name in found if name in wanted and found[name] != wanted[name]]
    new = [f"new: {name}" for name in found if name not in wanted]
    gone = [f"gone: {name}" for name in wanted if name not in found]
    return [*changed, *new, *gone]


def main(options: list[str]) -> int:
    """Compare all digests with the recorded ones, or record them."""
    kinds = {option for option in options if option in _KINDS} or set(_KINDS)
    wanted = [job for job in jobs() if job[0] in kinds]
    before = {name: value for name, value in recorded().items() if name.partition(" ")[0] in kinds}
    found: dict[str, str] = {}
    with ProcessPoolExecutor() as pool:
        for number, part in enumerate(pool.map(answers, wanted, chunksize=4), start=1):
            found |= part
            if sys.stderr.isatty():
                print(f"\r{number} of {len(wanted)}", end="", file=sys.stderr, flush=True)
    if "--write" in options:
        others = {name: value for name, value in recorded().items() if name not in before}
        lines = [f"{value}  {name}\n" for name, value in sorted((others | found).items())]
        RECORD.write_text("".join(lines), encoding="utf-8")
        print(f"{len(found)} digests recorded")
        return 0
    told = differences(found, before)
    print("\n".join([*told, f"{len(found)} answers, {len(told)} differences"]))
    return 1 if told else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
