"""The recorded answers of the reference, and how ours compares with them.

`python -m tests.differential.recordings FAMILY/NUMBER` prints a recorded scenario, ready for `joiner plan --scenario -`;
with `--answers` it prints what the reference said, one line for each different answer.
"""

import gzip
import json
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.differential.judge import judge
from tests.differential.terms import Json

from joiner.offline.scenario import answer
from joiner.offline.scenario.reader import Scenario, read
from joiner.scheduling.plan import Plan
from joiner.scheduling.schedule import schedule

FOLDER = Path(__file__).parent / "cases"
FAMILIES = sorted(path.name.removesuffix(".jsonl.gz") for path in FOLDER.glob("*.jsonl.gz"))


@dataclass(frozen=True)
class Recording:
    """A scenario, and the answers of three runs (equal ones are kept once)."""

    scenario: Json
    answers: list[Json]
    runs: list[int]

    @property
    def name(self) -> str:
        return str(self.scenario["name"])


def recordings(family: str) -> list[Recording]:
    """Everything recorded of a family."""
    text = gzip.decompress((FOLDER / f"{family}.jsonl.gz").read_bytes()).decode()
    return [Recording(**json.loads(line)) for line in text.splitlines()]


def ours(scenario: Json) -> Json:
    """The answer of our engine, through the door that scenario files come in by."""
    return answer.told(*planned(json.dumps(scenario)))


@cache
def planned(scenario: str) -> tuple[Scenario, Plan]:
    """What is asked by a scenario, and the plan; made once for all tests of a process that look at it."""
    question = read(scenario.encode(), Path())
    return question, schedule(question.problem)


def differences(recording: Recording, mine: Json) -> list[str]:
    """Broken promises: an invalid plan, a pod left out that the reference always places, a higher price for the same pods."""
    found = [f"invalid: {violation}" for violation in judge(recording.scenario, mine)]
    kinds = _kinds(recording.scenario)
    theirs = [_placed(answer, kinds) for answer in recording.answers]
    placed = _placed(mine, kinds)
    for kind in sorted(placed.keys() | theirs[0].keys()):
        always = min(counts[kind] for counts in theirs)
        if placed[kind] < always:
            found.append(f"left out: {placed[kind]} of {kind} placed, the reference always places {always}")
    if all(counts == placed for counts in theirs):
        dearest = max(price(answer) for answer in recording.answers)
        if price(mine) > dearest * (1 + 1e-9):
            found.append(f"dearer: {price(mine):.9g}, the reference at most {dearest:.9g}")
    return found


def price(answer: Json) -> float:
    """What the claims of an answer cost together; one that cannot be launched costs nothing."""
    return sum(max(0.0, float(claim["cheapestPrice"])) for claim in answer["newNodeClaims"])


def _kinds(scenario: Json) -> dict[str, str]:
    """Pods that differ in nothing but their name are of one kind, called after the first of them."""
    kinds: dict[str, str] = {}
    first: dict[str, str] = {}
    written = [*(scenario.get("pods") or ()), *(scenario.get("boundPods") or ())]
    for pod in written:
        metadata = pod["metadata"]
        space = metadata.get("namespace") or "default"
        key = metadata["name"] if space == "default" else f"{space}/{metadata['name']}"
        spec = {part: value for part, value in pod["spec"].items() if part != "nodeName"}
        same = json.dumps([space, metadata.get("labels"), spec], sort_keys=True)
        kinds[key] = first.setdefault(same, key)
    return kinds


def _placed(answer: Json, kinds: dict[str, str]) -> Counter[str]:
    """How many of each kind have a place; a claim that cannot be launched is none."""
    claims = (claim for claim in answer["newNodeClaims"] if claim["cheapestPrice"] >= 0)
    places: Iterable[Json] = [*claims, *answer["existingNodes"]]
    return Counter(kinds[pod] for place in places for pod in place["pods"])


def rerun(name: str) -> str:
    """How to see a difference again."""
    return f"python -m tests.differential.recordings {name} | joiner plan --scenario - --output json"


def main(name: str, *options: str) -> None:
    """Print a recorded scenario, or its answers."""
    recording = next(one for one in recordings(name.partition("/")[0]) if one.name == name)
    for line in recording.answers if "--answers" in options else [recording.scenario]:
        sys.stdout.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
