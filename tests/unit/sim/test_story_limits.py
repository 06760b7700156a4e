from pathlib import Path

import pytest

from joiner.sim.story.document.format import StoryError, read
from joiner.sim.story.validation import rehearse

STORY = """
story: numbers that make sense
given: {nodepools: [{name: default}], cloud: {boot: BOOT}}
when:
  - {at: 0s, deploy: web, replicas: 2, cpu: 500m}
  - {at: 1m, STEP}
then:
  - {by: 2m, running: {web: NUMBER}}
"""
FINE = {"BOOT": "30s", "STEP": "traffic: web, low: 0, high: 2, every: 1s", "NUMBER": "0"}


def problems(**changes: str) -> tuple[str, ...]:
    """What is out of bounds."""
    text = STORY
    for word, value in {**FINE, **changes}.items():
        text = text.replace(word, value)
    try:
        rehearse(read(text, "story.yaml", Path()))
    except StoryError as error:
        return error.problems
    return ()


def test_what_makes_sense_is_let_pass() -> None:
    assert problems() == ()


@pytest.mark.parametrize(
    ("step", "told"),
    [
        ("scale: web, replicas: -3", "replicas: -3 is less than 0"),
        ("scale: web, replicas: 100000000", "replicas: 100,000,000 pods are more than a cluster can have"),
        ("reclaim: 0", "reclaim: must be more than 0"),
        ("vanish: -1", "vanish: -1 is less than 0"),
        ("traffic: web, low: 5, high: 2", "low: 5 is more than high, which is 2"),
        ("traffic: web, low: 1, high: 2, period: 0s", "period: must be more than 0"),
        ("traffic: web, low: 1, high: 2, every: 1ms", "every: 1ms is less than a second"),
        ("price: {zone: a}, factor: -0.5", "factor: -0.5 is less than 0"),
        ("shortage: {count: -4}", "shortage.count: -4 is less than 0"),
        ("outage: launch, lasts: Never", "lasts: must be a length of time, not Never"),
        ("deploy: more, cpu: -1", "cpu: an amount cannot be less than 0"),
        ("deploy: more, requests: {a.b/c: -1}", "requests[a.b/c]: an amount cannot be less than 0"),
        ("deploy: more, runs-for: 100000h", "runs-for: 100000h0m0s is longer than ten years"),
        ("sicken: Ready", "sicken: 'Ready' must be a condition and True, False or Unknown"),
        ("restore: {zone: a}", "restore: nothing was withdrawn in these words before"),
    ],
)
def test_a_slip_of_the_pen_is_told_before_anything_runs(step: str, told: str) -> None:
    (found,) = problems(STEP=step)

    assert found.startswith(f"story.yaml:6: when[1].{told}")


def test_a_budget_that_nobody_can_count_with_is_told_before_anything_runs() -> None:
    (found,) = problems(STEP="deploy: more, min-available: half")

    assert found.startswith("story.yaml:6: when[1]: spec.minAvailable: 'half' is not a number like 2, or a share")


def test_numbers_and_times_of_every_part_are_looked_at() -> None:
    found = problems(BOOT="-5s", NUMBER="-1")

    assert [each.split(": ", 1)[1] for each in found] == [
        "given.cloud.boot: -5s is less than 0",
        "then[0].running[web]: -1 is less than 0",
    ]


@pytest.mark.parametrize(
    ("at", "told"),
    [("-1m", "-1m0s is before the beginning of the story"), ("Never", "must be a length of time, not Never")],
)
def test_a_step_comes_at_some_time_of_the_story(at: str, told: str) -> None:
    (found,) = problems(**{"at: 1m": f"at: {at}"})

    assert found == f"story.yaml:6: when[1].at: {told}"


@pytest.mark.parametrize("length", ["0s", "-5m", "Never", "200000h"])
def test_a_story_has_a_length(length: str) -> None:
    (found,) = problems(**{"given:": f"for: {length}\ngiven:"})

    assert found.startswith("story.yaml:3: for: ")
