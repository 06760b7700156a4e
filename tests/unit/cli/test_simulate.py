import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NoReturn

import pytest
from click.testing import CliRunner, Result

from joiner.cli.main import cli
from joiner.cli.simulate.progress import StoryProgress
from joiner.controllers.nodeclaim.garbagecollection import ClaimGarbageCollection
from joiner.kube.client import Key
from joiner.sim.story.document.format import read
from joiner.sim.story.player import play

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
    for words in (
        "a user deploys web: 2 pods",
        "all 2 pods of web run",
        "to pay",
        "as told  by 3m: running {web: 2} (first so at 00:00:4",
    ):
        assert words in result.output


def test_the_summary_says_how_long_pods_waited(story: Path) -> None:
    assert "2 times a pod got a node: half within 4" in (said := simulate(str(story), "--no-tell").output)
    assert ", 99% within 4" in said


def test_a_folder_stands_for_the_story_in_it(story: Path) -> None:
    assert simulate(str(story.parent), "--no-tell").exit_code == 0


def test_what_does_not_come_true_is_told_and_ends_with_1(story: Path) -> None:
    story.write_text(STORY % 3)

    result = simulate(str(story), "--no-tell")

    assert result.exit_code == 1
    assert "NOT SO   by 3m: running {web: 3}: web: 2 pods run, not 3" in result.output


def test_json_has_everything_that_the_summary_tells(story: Path) -> None:
    found = json.loads(simulate(str(story), "-o", "json").output)

    assert found["true"]
    assert found["pods"]["placed"] == 2
    assert found["nodes"] == {"most": 1, "claims": {"default": 1}}
    assert found["costs"][0]["dollars"] > 0
    assert found["told"][0]["text"] == "a user deploys web: 2 pods"


def test_the_bill_can_be_worked_out_from_the_machines(story: Path) -> None:
    found = json.loads(simulate(str(story), "--for", "2h", "-o", "json").output)

    (machine,) = found["machines"]
    assert found["dollars"] == pytest.approx(machine["dollarsPerHour"] * (7200 - machine["bought"]) / 3600, abs=1e-6)
    assert found["dollarsPerHourAtEnd"] == machine["dollarsPerHour"]


def test_what_is_told_beside_data_does_not_mix_with_them(story: Path) -> None:
    result = simulate(str(story), "-o", "json", "--tell")

    assert json.loads(result.stdout)["true"]
    assert "all 2 pods of web run" in result.stderr


def test_pods_that_never_get_a_node_are_counted_at_the_end(story: Path) -> None:
    story.write_text(STORY.replace("cpu: 500m", "cpu: 500") % 0)

    assert "at the end 2 pods of web have no node" in simulate(str(story)).output


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
    cases = {(): "name a STORY, or say --hunt N", (str(story), "--hunt", "1"): "either a STORY or --hunt, not both"}
    for arguments, words in cases.items():
        result = simulate(*arguments)
        assert result.exit_code == 2
        assert words in result.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--hunt", "1", "--for", "5m"), "--for is for stories only"),
        (("--hunt", "1", "--no-tell"), "--tell is for stories only"),
        (("STORY", "--jobs", "2"), "--jobs is for hunts only"),
    ],
)
def test_an_option_that_would_do_nothing_is_refused(story: Path, arguments: tuple[str, ...], words: str) -> None:
    result = simulate(*(str(story) if each == "STORY" else each for each in arguments))

    assert result.exit_code == 2
    assert words in result.output


@pytest.mark.parametrize("what", ["STORY", "--hunt=1"])
def test_a_file_for_steps_that_cannot_be_written_is_told_before_anything_is_played(story: Path, what: str) -> None:
    result = simulate(str(story) if what == "STORY" else what, "--trace", str(story.parent / "none" / "steps.txt"))

    assert result.exit_code == 1
    assert "steps.txt: cannot be written: No such file or directory" in result.output
    assert "somebody" not in result.output


def test_a_file_that_is_no_text_is_told_so(story: Path) -> None:
    story.write_bytes(b"\x7fELF\xd0\x00")

    assert f"{story}: cannot be read: a story is text in UTF-8" in simulate(str(story)).output


def test_a_step_that_the_world_refuses_is_told_with_its_line(story: Path) -> None:
    story.write_text((STORY % 2).replace("then:", "  - {at: 1m, delete: node/node-00009}\nthen:"))

    result = simulate(str(story))

    assert result.exit_code == 1
    assert f"{story}:7: when[1], at 1m: there is no 'node/node-00009' at this time" in result.output


def test_a_hunt_counts_what_occurred() -> None:
    found = json.loads(simulate("--hunt", "1", "--seed", "3", "-o", "json").output)

    assert found["violations"] == {}
    assert found["counts"]["step Restart"] >= 1


def test_a_hunt_goes_on_after_a_seed_that_broke_a_controller(monkeypatch: pytest.MonkeyPatch) -> None:
    async def reconcile(self: ClaimGarbageCollection, key: Key) -> NoReturn:
        raise ValueError("a number is missing")

    monkeypatch.setattr(ClaimGarbageCollection, "reconcile", reconcile)
    result = simulate("--hunt", "2", "--seed", "3", "--jobs", "1", "-o", "json")

    assert result.exit_code == 1
    for seed, found in json.loads(result.stdout)["violations"].items():
        assert (
            f"error: {ClaimGarbageCollection.name}: ValueError('a number is missing') in test_simulate.py" in found[0]
        )
        assert f"to see every step: joiner simulate --hunt 1 --seed {seed}" in result.stderr


def test_a_hunt_that_is_stopped_shows_what_it_found_so_far(tmp_path: Path) -> None:
    steps = tmp_path / "steps.txt"
    command = [sys.executable, "-m", "joiner", "simulate", "--hunt", "999", "--trace", str(steps), "-o", "json"]
    hunt = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # who runs tests in the background ignores it
    )  # fmt: skip
    while not (steps.exists() and steps.stat().st_size) and hunt.poll() is None:
        time.sleep(0.05)
    hunt.send_signal(signal.SIGINT)
    try:
        found, said = hunt.communicate(timeout=60)
    finally:
        hunt.kill()

    assert hunt.returncode == 130
    assert "of 999 seeds; this is what was found so far" in said
    assert json.loads(found)["seeds"] < 999


def test_another_catalogue_can_be_played(story: Path) -> None:
    def types(*options: str) -> set[str]:
        return {
            each["instanceType"] for each in json.loads(simulate(str(story), "-o", "json", *options).output)["machines"]
        }

    assert types("--instance-types", "kwok").isdisjoint(types())
    assert "there are small, kwok" in simulate(str(story), "--instance-types", "ec2/nowhere").output


def test_what_is_passed_over_is_told_in_one_line_and_in_the_data(story: Path) -> None:
    around = "{apiVersion: v1, kind: %s, metadata: {name: a}}"
    objects = ", ".join(around % kind for kind in ("ConfigMap", "Service", "Service"))
    story.write_text((STORY % 2).replace("given:\n", f"given:\n  objects: [{objects}]\n"))
    result = simulate(str(story), "--no-tell")

    assert result.exit_code == 0
    note = "passed over: 1 ConfigMap, 2 Service: nothing in a simulation depends on them"
    assert result.stderr.splitlines() == [f"note: {note}"]
    assert json.loads(simulate(str(story), "-o", "json").stdout)["notes"] == [note]


def test_names_in_complaints_cannot_steer_a_terminal(story: Path) -> None:
    story.write_text((STORY % 2).replace("deploy: web", 'deploy: "\\e[31mevil\\u202e\\x9b"'))
    result = simulate(str(story))

    assert result.exit_code == 1
    assert r"\x1b[31mevil\u202e\x9b" in result.output
    assert all(line.isprintable() for line in result.output.splitlines())


def test_a_story_with_too_many_pods_is_refused(story: Path) -> None:
    story.write_text((STORY % 2).replace("replicas: 2", "replicas: 20000"))
    result = simulate(str(story))

    assert result.exit_code == 1
    assert "when: the workloads have up to 20,000 pods together, 20,000 of them web" in result.output


class _Impatient:
    """A clock by which ten seconds go by between any two looks."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic(self) -> float:
        self.seconds += 10.0
        return self.seconds


def test_a_log_has_a_line_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    text = (STORY % 2).replace("for: 5m", "for: 3m")
    progress = StoryProgress(180, _Impatient())  # type: ignore[arg-type]

    play(read(text, "story.yaml", Path()), seed=1, progress=progress.at)
    progress.close()

    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "played 00:00:01 of 00:03:00: 0 nodes, 2 pods"
    assert lines[-1] == "played 00:03:00 of 00:03:00: 1 node, 2 pods"


def test_a_story_that_is_not_there_is_an_error_of_the_input() -> None:
    result = CliRunner().invoke(cli, ["simulate", "nosuch.yaml"])

    assert (result.exit_code, "nosuch.yaml: cannot be read: No such file" in result.output) == (1, True)


def test_a_folder_of_manifests_is_answered_with_the_story_to_write(tmp_path: Path) -> None:
    (tmp_path / "pods.yaml").write_text("apiVersion: v1\nkind: Pod\n---\napiVersion: v1\nkind: Pod\n")

    folder = simulate(str(tmp_path))
    file = simulate(str(tmp_path / "pods.yaml"))

    assert (folder.exit_code, file.exit_code) == (1, 1)
    assert "has no story.yaml" in folder.output
    assert "given: {manifests: [" in folder.output
    assert "found 2; Kubernetes objects are named in one: given: {manifests: [FILE or FOLDER]}" in file.output
