"""Every story in tests/stories is told, and everything in it must come as it says; whatever chance decides, and always alike."""

import os
import re
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

import pytest

from joiner.sim.story.format import read
from joiner.sim.story.player import play
from joiner.sim.trace import Trace

FOLDER = Path(__file__).parent / "stories"
STORIES = sorted(FOLDER.glob("*.yaml"))
SAMPLE = STORIES[:: max(1, len(STORIES) // 6)]
OTHER_SEED = 20
DIGEST = """
import sys
from pathlib import Path
from tests.test_stories import digest
for name in sys.argv[1:]:
    print(name, digest(Path(name)))
"""


def complaints(path: Path, seed: int) -> list[str]:
    """What did not come as the story says."""
    story = read(path.read_text(encoding="utf-8"), path.name, path.parent)
    played = play(story, seed=seed)
    assert played.verdicts, "a story that claims nothing proves nothing"
    return [f"{each.text}: {each.detail}" for each in played.verdicts if not each.holds]


def digest(path: Path) -> str:
    """Every step of the story, in a few characters."""
    trace = Trace()
    play(read(path.read_text(encoding="utf-8"), path.name, path.parent), seed=1, trace=trace)
    return trace.digest()


def _told_under(hash_seed: str) -> str:
    root = FOLDER.parent.parent
    told = subprocess.run(
        [sys.executable, "-c", DIGEST, *map(str, SAMPLE)],
        env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=True,
    )
    return told.stdout


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_a_story_comes_true(path: Path) -> None:
    assert not complaints(path, seed=1)


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_a_story_comes_true_whatever_chance_decides(path: Path) -> None:
    assert not complaints(path, seed=OTHER_SEED)


def test_a_story_is_told_step_by_step_alike_under_every_hash_seed() -> None:
    assert _told_under("1") == _told_under("2")


def test_what_is_said_to_be_shown_somewhere_is_there_and_no_story_is_forgotten() -> None:
    page = (FOLDER.parents[1] / "docs" / "design" / "behaviour-coverage.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([\w./*-]+)`", page))
    files = {each for each in named if each.endswith(".py")}
    patterns = [each for each in named if re.fullmatch(r"[a-z0-9-]+\*?", each)]

    assert not [each for each in sorted(files) if not (FOLDER.parent / each).is_file()]
    assert not [each for each in sorted(patterns) if not list(FOLDER.glob(f"{each}.yaml"))]
    assert not [path.stem for path in STORIES if not any(fnmatch(path.stem, each) for each in patterns)]


def test_titles_tell_stories_apart() -> None:
    titles = [read(path.read_text(encoding="utf-8"), path.name, path.parent).title for path in STORIES]

    assert len(set(titles)) == len(titles)
