"""Look for mistakes where no recorded test looks: new examples of the laws, new hunts, new scenarios (`make explore`).

python tools/explore.py [--seed SEED] [--laws-off] [--hunts N] [--scenarios N]

The seed is printed first; the same seed explores the same again.
"""

import argparse
import json
import os
import random
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.differential import generate  # noqa: E402
from tests.differential.judge import complaints  # noqa: E402

from joiner.offline.scenario import answer  # noqa: E402
from joiner.offline.scenario.reader import read  # noqa: E402
from joiner.scheduling.schedule import schedule  # noqa: E402


def laws(seed: int) -> bool:
    """Whether the property tests hold on examples drawn from the seed."""
    command = [sys.executable, "-m", "pytest", "-n", "auto", f"--hypothesis-seed={seed}", "tests/property"]
    return not subprocess.run(command, cwd=ROOT, env={**os.environ, "JOINER_EXPLORE": "1"}).returncode


def hunts(seed: int, number: int) -> bool:
    """Whether so many hunts from the seed on find nothing."""
    command = [sys.executable, "-m", "joiner", "simulate", "--hunt", str(number), "--seed", str(seed)]
    return not subprocess.run(command, cwd=ROOT).returncode


def scenarios(seed: int, number: int) -> bool:
    """Whether the plans for so many generated scenarios are valid."""
    names = sorted(generate.FAMILIES)
    sound = True
    for count in range(number):
        name, drawn = names[count % len(names)], seed + count // len(names)
        scenario = generate.generate(name, drawn)
        question = read(json.dumps(scenario).encode(), ROOT)
        for text in complaints(scenario, answer.told(question, schedule(question.problem))):
            print(f"scenario {name}/{drawn}: {text}")
            sound = False
    print(f"{number} scenarios planned: {'all plans are valid' if sound else 'see above'}")
    return sound


def main() -> int:
    """Explore everything, also after something was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(100_000, 1_000_000_000))
    parser.add_argument("--laws-off", action="store_true", help="leave the property tests out")
    parser.add_argument("--hunts", type=int, default=100)
    parser.add_argument("--scenarios", type=int, default=1_000)
    options = parser.parse_args()
    print(f"exploring with seed {options.seed}; again: make explore SEED={options.seed}", flush=True)
    sound = [
        options.laws_off or laws(options.seed),
        not options.scenarios or scenarios(options.seed, options.scenarios),
        not options.hunts or hunts(options.seed, options.hunts),
    ]
    return 0 if all(sound) else 1


if __name__ == "__main__":
    sys.exit(main())
