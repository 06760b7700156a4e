import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from joiner.cli.main import cli

STORY = """
story: two pods get a node
given:
  nodepools: [{name: default}]
when:
  - {at: 0s, deploy: web, replicas: 2, cpu: 500m}
then:
  - {by: 3m, running: {web: %d}}
for: 5m
"""


@pytest.fixture
def story(tmp_path: Path) -> Path:
    path = tmp_path / "story.yaml"
    path.write_text(STORY % 2)
    return path


def simulate(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["simulate", *arguments])


def test_a_story_is_told_and_summed_up(story: Path) -> None:
    result = simulate(str(story))

    assert result.exit_code == 0, result.output
    for words in ("somebody deploys web: 2 pods", "all 2 pods of web run", "paid now", "as told  by 3m0s"):
        assert words in result.output


def test_a_folder_stands_for_the_story_in_it(story: Path) -> None:
    assert simulate(str(story.parent), "--no-tell").exit_code == 0


def test_what_does_not_come_true_is_told_and_ends_with_1(story: Path) -> None:
    story.write_text(STORY % 3)

    result = simulate(str(story), "--no-tell")

    assert result.exit_code == 1
    assert "NOT SO  by 3m0s: running {'web': 3}: web: 2 pods run, not 3" in result.output


def test_json_has_everything_that_the_summary_tells(story: Path) -> None:
    found = json.loads(simulate(str(story), "-o", "json").output)

    assert found["true"]
    assert found["pods"]["placed"] == 2
    assert found["nodes"] == {"most": 1, "claims": {"default": 1}}
    assert found["costs"][0]["dollars"] > 0


def test_the_same_seed_tells_the_same_story_and_another_one_another(story: Path) -> None:
    digests = [json.loads(simulate(str(story), "--seed", seed, "-o", "json").output)["trace"] for seed in "112"]

    assert digests[0] == digests[1] != digests[2]


def test_every_step_can_be_kept(story: Path, tmp_path: Path) -> None:
    simulate(str(story), "--no-tell", "--trace", str(tmp_path / "steps.txt"))

    assert "create   NodeClaim default-" in (tmp_path / "steps.txt").read_text()


def test_a_story_can_be_played_for_longer_than_it_says(story: Path) -> None:
    assert json.loads(simulate(str(story), "--for", "1h", "-o", "json").output)["seconds"] == 3600


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param(("deploy:", "deplo:"), "did you mean deploy?", id="a misspelt step"),
        pytest.param(("cpu: 500m", "cpu: a lot"), "is not a quantity", id="an amount that is none"),
    ],
)
def test_a_mistake_is_told_before_anything_runs(story: Path, change: tuple[str, str], words: str) -> None:
    story.write_text((STORY % 2).replace(*change))

    result = simulate(str(story))

    assert result.exit_code == 1
    assert "this story cannot be told" in result.output
    assert f"{story}:6: " in result.output
    assert words in result.output


def test_a_story_or_a_hunt_is_needed_and_not_both(story: Path) -> None:
    for arguments in ((), (str(story), "--hunt", "1")):
        result = simulate(*arguments)
        assert result.exit_code == 2
        assert "name a STORY, or say --hunt N" in result.output


def test_a_hunt_counts_what_occurred() -> None:
    found = json.loads(simulate("--hunt", "1", "--seed", "3", "-o", "json").output)

    assert found["violations"] == {}
    assert found["counts"]["step Restart"] >= 1
