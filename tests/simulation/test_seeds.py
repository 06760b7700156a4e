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

from joiner.sim.hunt.hunt import REQUIRED, Outcome, hunt, missing
from joiner.sim.hunt.randomworld import make

SEEDS = int(os.environ.get("JOINER_SEEDS", "60"))
"""How many seeds are played. From `ENOUGH` on, every fault and every rule must have occurred."""
ENOUGH = 200
ROOT = Path(__file__).resolve().parent.parent.parent
CORPUS = Path(__file__).parent / "corpus" / "seeds.txt"
KEPT = [int(line.split()[0]) for line in CORPUS.read_text(encoding="utf-8").splitlines() if line[:1].isdigit()]


def told(outcome: Outcome) -> str:
    again = f"joiner simulate --hunt 1 --seed {outcome.seed} --trace steps.txt"
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
    assert 5 <= outcome.nodes <= 60
    assert 50 <= outcome.pods <= 500
    written = gathered / f"{seed}.part"
    written.write_text(json.dumps(outcome.counts))
    written.rename(gathered / f"{seed}.json")
    check_that_everything_occurred(gathered)


def check_that_everything_occurred(gathered: Path) -> None:
    """The last test to finish looks at the counts of all seeds together."""
    files = list(gathered.glob("*.json"))
    if len(files) == SEEDS >= ENOUGH:
        assert missing(sum((Counter(json.loads(path.read_text())) for path in files), Counter())) == ()


@pytest.mark.parametrize("seed", KEPT)
def test_a_seed_that_once_failed_holds(seed: int) -> None:
    outcome = hunt(seed)

    assert outcome.sound, told(outcome)


@pytest.mark.parametrize("seed", range(0, 40, 7))
def test_a_world_has_pools_and_a_restart(seed: int) -> None:
    made = make(seed)

    assert len(made.given.nodepools) >= 3
    assert any(type(each.step).__name__ == "Restart" for each in made.steps)


def digest(python: str, hash_seed: str) -> str:
    program = "from joiner.sim.hunt.hunt import hunt; print(hunt(3).digest)"
    done = subprocess.run(
        [python, "-c", program],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_the_same_seed_tells_the_same_story_under_every_hash_seed() -> None:
    assert digest(sys.executable, "1") == digest(sys.executable, "2")


def test_the_same_seed_tells_the_same_story_on_every_python() -> None:
    others = [str(home / "bin" / "python") for home in sorted(ROOT.glob(".venv*")) if (home / ".ready").exists()]
    others = [each for each in others if Path(each).resolve() != Path(sys.executable).resolve()]
    if not others:
        pytest.skip("only one version of Python has been set up; `make test` sets up two")

    assert {digest(each, "3") for each in others} == {digest(sys.executable, "1")}


def test_what_must_occur_in_a_long_hunt_is_known_by_name() -> None:
    assert missing({}) == REQUIRED
    assert missing(dict.fromkeys(REQUIRED, 1)) == ()
