"""Every story in tests/stories is told, and everything in it must come as it says; whatever chance decides, and always alike."""

import json
import os
import re
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.golden import digests

from joiner.cli.main import cli
from joiner.sim.story.document.format import read

FOLDER = Path(__file__).resolve().parent / "stories"
STORIES = sorted(FOLDER.glob("*.yaml"))
SAMPLE = STORIES[:: max(1, len(STORIES) // 6)]
RECORDED = digests.recorded()
PROGRAM = """
import sys
from pathlib import Path
from tests.golden import digests
from tests.test_stories import told
for name in sys.argv[1:]:
    print(digests.digest(told(Path(name), digests.STORY_SEEDS[0])))
"""


def told(path: Path, seed: int) -> str:
    """What `joiner simulate` prints of the story, as JSON; everything in it must come as it says."""
    result = CliRunner().invoke(cli, ["simulate", str(path), "--seed", str(seed), "-o", "json"], prog_name="joiner")
    verdicts = json.loads(result.stdout)["verdicts"]
    assert verdicts, "a story that claims nothing proves nothing"
    assert not [verdict for verdict in verdicts if not verdict["holds"]]
    return f"{result.exit_code}\n{result.stdout}"  # progress, told where it takes long, goes to stderr


@pytest.mark.parametrize("seed", digests.STORY_SEEDS[:1] if "JOINER_SEEDS" in os.environ else digests.STORY_SEEDS)
@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_a_story_comes_true_and_gives_the_recorded_answer(
    path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(digests.ROOT)
    found = digests.digest(told(path.relative_to(digests.ROOT), seed))

    assert found == RECORDED.get(f"story {path.stem} seed {seed} json"), digests.MEANT


def test_a_story_is_told_step_by_step_alike_under_every_hash_seed() -> None:
    """The recorded digests, which hold one of all steps, are compared above under a hash seed that was drawn."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *(str(path.relative_to(digests.ROOT)) for path in SAMPLE)],
        env={**os.environ, "PYTHONHASHSEED": "1", "PYTHONPATH": str(digests.ROOT)},
        cwd=digests.ROOT,
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.split() == [RECORDED[f"story {path.stem} seed {digests.STORY_SEEDS[0]} json"] for path in SAMPLE]


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
