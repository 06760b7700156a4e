"""A first look: what a NodePool can buy, and what it should buy for some pods.

Runs the real commands on the lessons, and says what one sees: `python tools/demo.py`.
"""

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
WIDTH = 88


class Step(NamedTuple):
    """One command, with what is said before and after it."""

    title: str
    before: str
    command: str
    after: str
    exit_code: int = 0


STEPS = (
    Step(
        "What can this pool buy?",
        "A NodePool wants amd64 machines of the m5 and c5 families in two zones. The catalogue has every machine of a real"
        " region, with real prices.",
        "catalog -f examples/01-what-a-pool-can-buy --explain --limit 4",
        "Of more than a thousand types, eighteen are left. CPU and MEMORY are what pods can use, not what the machine has.",
    ),
    Step(
        "What does it cost us?",
        "Three NodeOverlays: a discount and some memory overhead for everything, more overhead for large machines, and a device"
        " on some machines that are bought on demand.",
        "catalog -f examples/05-overlays-together --type t3.small --type t3.medium --type m5.large",
        "They merge field by field, and the last table says who changed what. The star: an m5.large has the device only if it"
        " is bought on demand.",
    ),
    Step(
        "What if two people contradict each other?",
        "Two overlays of the same weight set the price of m5.",
        "catalog -f examples/06-conflicting-overlays --limit 2",
        "The cluster must go on growing, so one of them wins, always the same one, and the warning says so.",
    ),
    Step(
        "What do we know better than the cloud?",
        "An InstanceType object says what a c5.large is: how it can be bought, its devices, its pods, its overhead.",
        "catalog -f examples/11-settings-together --type c5.large --explain",
        "Every number that differs from what the provider said has the name of the object that changed it.",
    ),
    Step(
        "What is paid for already?",
        "Two capacity reservations in the NodeClass, and a third one that has ended.",
        "catalog -f examples/13-capacity-reservations --nodepool with-fallback --limit 3",
        "Reserved machines come first, whatever their size. When they are used up, the pool buys on demand.",
    ),
    Step(
        "What should be bought for these pods?",
        "A web shop: a front end spread over zones, a database that must not be on spot, workers that take anything, and one"
        " job that asks for more than any machine has.",
        "plan -f examples/17-a-first-plan --bound",
        "The plan with its price, how far that is from the cheapest possible one, and why the job is left over.",
    ),
    Step(
        "Is this manifest right?",
        "The rules of the API server, without an API server, and everything at once.",
        "validate examples/16-mistakes",
        "With file, line, field, what is allowed and the nearest spelling.",
        exit_code=1,
    ),
)


def styled(text: str, code: str) -> str:
    """The text in colour, for those who see colour."""
    plain = not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return text if plain else f"\033[{code}m{text}\033[0m"


def say(text: str) -> None:
    """A paragraph."""
    print(textwrap.fill(text, WIDTH))


def play(number: int, step: Step) -> bool:
    """Tell one step; the answer is whether the command did what it should."""
    print(f"\n{styled(f'{number}. {step.title}', '1;36')}\n")
    say(step.before)
    print(f"\n{styled(f'$ joiner {step.command}', '1')}", flush=True)
    code = subprocess.run([sys.executable, "-m", "joiner", *step.command.split()], cwd=ROOT).returncode
    print()
    say(step.after)
    return code == step.exit_code


def main() -> int:
    """Tell all steps; fails when a command does not do what it should."""
    print(styled("Joiner: what a NodePool can buy, and what it should.", "1"))
    say("Every command below is real and reads the manifests under examples/. No cluster, no cloud account.")
    failed = [step.command for number, step in enumerate(STEPS, start=1) if not play(number, step)]
    if failed:
        print(f"\nThis went wrong: {', '.join(failed)}", file=sys.stderr)
        return 1
    print(f"\n{styled('What next?', '1;36')}\n")
    say("Put the command on your path with `. .venv/bin/activate`, and go through the lessons in examples/README.md.")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BrokenPipeError:  # the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        sys.exit(130)
