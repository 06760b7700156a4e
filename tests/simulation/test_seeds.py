"""Made-up worlds with faults in them: nothing that never may happen happens, and everything comes right.

Worlds of two virtual hours are played here; `joiner simulate --hunt N` plays more. Every seed that ever found something stays in
the corpus.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from tests.golden import digests

from joiner.sim.hunt.hunt import FAULTS_S, REQUIRED, Outcome, hunt, missing
from joiner.sim.hunt.randomworld import make
from joiner.sim.hunt.worseworlds import WORSE, WorseWorld, worse

SEEDS = int(os.environ.get("JOINER_SEEDS", "100"))
"""How many seeds are played. A second version of Python plays fewer: they differ in nothing but speed."""
ALL_FAULTS = 100
"""In so many seeds each fault, rule and step occurs."""
PLAYED_BY_STORIES = {"event InsufficientCapacityError", "removal insufficient_capacity"}
"""What the default seeds have not shown since claims are given up later: `shortage-other-pool` and `reserved-shortage` do."""
ROOT = Path(__file__).resolve().parent.parent.parent
CORPUS = Path(__file__).parent / "corpus"


def kept(name: str) -> list[int]:
    lines = (CORPUS / name).read_text(encoding="utf-8").splitlines()
    return [int(line.split()[0]) for line in lines if line[:1].isdigit()]


KEPT, MOVING, ON_EC2 = kept("seeds.txt"), kept("consolidation.txt"), kept("ec2.txt")
RECORDED = digests.recorded()


def told(outcome: Outcome, kind: str = "") -> str:
    worse = f" --worse {kind}" if kind else ""
    again = f"joiner simulate --hunt 1{worse} --seed {outcome.seed} --trace steps.txt"
    return "\n".join([f"seed {outcome.seed}", *outcome.violations, *outcome.last[-40:], again])


@pytest.fixture
def gathered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all processes of this run of the tests share."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "counts-of-seeds"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.mark.parametrize("seed", range(SEEDS))
def test_no_seed_breaks_a_rule(seed: int, gathered: Path) -> None:
    outcome = hunt(seed)
    assert outcome.sound, told(outcome)
    if seed in digests.HUNTS:
        assert digests.digest(digests.hunted(outcome)) == RECORDED[f"hunt {seed}"], digests.MEANT
    assert 5 <= outcome.nodes <= 60, f"seed {seed}: {outcome.nodes} nodes"
    assert 50 <= outcome.pods <= 500, f"seed {seed}: {outcome.pods} pods"
    (gathered / f"{seed}.part").write_text(json.dumps(outcome.counts))
    (gathered / f"{seed}.part").rename(gathered / f"{seed}.json")
    check_that_everything_occurred(gathered)


def check_that_everything_occurred(gathered: Path) -> None:
    """The test that finishes last looks at all counts together."""
    files = sorted(gathered.glob("*.json"))
    if len(files) == SEEDS >= ALL_FAULTS:
        found = [Counter(json.loads(path.read_text())) for path in files]
        assert set(missing(sum(found, Counter()))) <= PLAYED_BY_STORIES


@pytest.mark.parametrize("seed", range(4 if SEEDS >= ALL_FAULTS else 1))
@pytest.mark.parametrize("kind", sorted(WORSE))
def test_no_seed_breaks_a_rule_in_a_worse_world(kind: str, seed: int) -> None:
    outcome = hunt(seed, kind=kind)

    assert outcome.sound, told(outcome, kind)


@pytest.mark.parametrize("seed", range(4, 10 if SEEDS >= ALL_FAULTS else 4))
def test_no_seed_loses_or_doubles_a_machine_of_ec2(seed: int) -> None:
    outcome = hunt(seed, kind="ec2")

    assert outcome.sound, told(outcome, "ec2")


@pytest.mark.parametrize("kind", sorted(WORSE))
def test_a_worse_world_is_worse_and_always_alike(kind: str) -> None:
    found = worse(kind, 7)

    assert found != WorseWorld()
    assert found == worse(kind, 7)
    spans = (*found.api_away, *found.cloud_away, *found.controllers_away)
    assert all(0 < start < end < FAULTS_S for start, end in spans)


@pytest.mark.parametrize("seed", KEPT)
def test_a_seed_that_once_failed_holds(seed: int) -> None:
    outcome = hunt(seed)

    assert outcome.sound, told(outcome)


@pytest.mark.parametrize("seed", MOVING)
def test_a_seed_whose_consolidation_once_failed_holds(seed: int) -> None:
    outcome = hunt(seed, kind="consolidation")

    assert outcome.sound, told(outcome, "consolidation")


@pytest.mark.parametrize("seed", ON_EC2)
def test_a_seed_on_ec2_that_once_failed_holds(seed: int) -> None:
    outcome = hunt(seed, kind="ec2")

    assert outcome.sound, told(outcome, "ec2")


@pytest.mark.parametrize("seed", range(0, 40, 7))
def test_a_world_has_pools_and_a_restart(seed: int) -> None:
    made = make(seed)

    assert len(made.given.nodepools) >= 3
    assert any(type(each.step).__name__ == "Restart" for each in made.steps)


def digest(python: str, hash_seed: str) -> str:
    program = "from tests.golden import digests; print(digests.answers(('hunt', '3'))['hunt 3'])"
    done = subprocess.run(
        [python, "-c", program],
        env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_the_same_seed_tells_the_same_story_under_every_hash_seed() -> None:
    assert digest(sys.executable, "1") == RECORDED["hunt 3"]  # which is compared under a drawn hash seed as well


def test_the_same_seed_tells_the_same_story_on_every_python() -> None:
    others = [str(home / "bin" / "python") for home in sorted(ROOT.glob(".venv*")) if (home / ".ready").exists()]
    others = [each for each in others if Path(each).resolve() != Path(sys.executable).resolve()]
    if not others:
        pytest.skip("only one version of Python has been set up; `make test` sets up two")

    assert {digest(each, "3") for each in others} == {RECORDED["hunt 3"]}


def test_what_must_occur_in_a_long_hunt_is_known_by_name() -> None:
    assert missing({}) == REQUIRED
    assert missing(dict.fromkeys(REQUIRED, 1)) == ()
