from pathlib import Path

import pytest

from joiner.model.duration import Duration
from joiner.sim.story.document.format import Deploy, Story, StoryError, read
from joiner.sim.story.document.invariants import LawError
from joiner.sim.story.document.invariants import read as read_law

GOOD = """
story: a reservation is used first, and never twice
given:
  nodepools: [{name: default, capacity-types: [reserved, on-demand]}]
  reservations: [{id: cr-1, instance-type: m5.large, zone: a, count: 1}]
  options: {batch-idle-duration: 2s}
when:
  - {at: 1m, scale: web, replicas: 3}
  - {at: 0s, deploy: web, replicas: 2, cpu: 1500m}
then:
  - {by: 3m, running: {web: 2}}
always:
  - reservation cr-1 holds at most 1
"""


def told(text: str) -> Story:
    return read(text, "story.yaml", Path())


def test_a_story_is_read_in_order_of_time() -> None:
    story = told(GOOD)

    assert [each.at for each in story.when] == [Duration(0), Duration.parse("1m")]
    assert isinstance(story.when[0].step, Deploy)
    assert story.options.batch_idle_duration == 2.0


def test_a_story_that_does_not_say_how_long_goes_on_a_little_after_the_last_thing() -> None:
    assert told(GOOD).ends == Duration.parse("13m")
    assert told(GOOD + "for: 1h\n").ends == Duration.parse("1h")


def test_numbers_may_have_a_fraction() -> None:
    story = told(GOOD.replace("cpu: 1500m", "cpu: 1.5").replace("running: {web: 2}", "cost-per-hour-below: 0.25"))

    assert story.when[0].step.cpu == 1500
    assert story.then[0].cost_per_hour_below == 0.25


@pytest.mark.parametrize(
    ("wrong", "right", "words"),
    [
        pytest.param("deplo: web", "deploy: web", "must say exactly one thing that happens; did you mean deploy?", id="verb"),
        pytest.param("capacity-typs:", "capacity-types:", "'capacity-typs'; did you mean capacity-types?", id="word"),
        pytest.param("cpu: 15x", "cpu: 1500m", "when[1].cpu: '15x' is not a quantity", id="quantity"),
        pytest.param("at: 1d", "at: 1m", "when[0].at: '1d' is not a duration", id="duration"),
        pytest.param("count: one", "count: 1", "given.reservations[0].count: must be a whole number, not text", id="number"),
        pytest.param("{running: {web: 2}}", "{by: 3m, running: {web: 2}}", "either `by`", id="no time"),
        pytest.param("{by: 3m}", "{by: 3m, running: {web: 2}}", "says when, but not what", id="no fact"),
        pytest.param("batch-idle: 2s", "batch-idle-duration: 2s", "did you mean --batch-idle-duration?", id="option"),
        pytest.param("cr-1 has 1", "cr-1 holds at most 1", "is not understood", id="law"),
        pytest.param("whan:", "when:", "did you mean when?", id="part"),
        pytest.param("nodepool:", "nodepools:", "unknown word 'nodepool'; did you mean nodepools?", id="word of elsewhere"),
        pytest.param("{instance-type:", "{id: cr-1, instance-type:", "reservations[0]: the word 'id' is missing", id="missing"),
        pytest.param("feature-gates: NodeRepare=true", "batch-idle-duration: 2s", "did you mean NodeRepair?", id="gate"),
        pytest.param("outage: lunch}", "scale: web, replicas: 3}", "'lunch' is not known; known are launch,", id="choice"),
        pytest.param("{after: 5m, before: 3m,", "{by: 3m,", "`after` goes with a later `before`", id="after"),
        pytest.param("cpu: 1500m, labels: {a: 1}", "cpu: 1500m", "must be text, not a whole number; put it", id="quotes"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_its_line(wrong: str, right: str, words: str) -> None:
    assert right in GOOD
    with pytest.raises(StoryError) as caught:
        told(GOOD.replace(right, wrong))

    assert words in str(caught.value)
    assert str(caught.value).startswith("story.yaml:")


def test_all_mistakes_of_one_part_are_told_at_once_and_with_their_own_place() -> None:
    broken = GOOD.replace("[{name: default, ", "[{nam: a, zone: b, name: default, ").replace("count: 1", "count: one")
    with pytest.raises(StoryError) as caught:
        told(broken.replace("batch-idle-duration: 2s", "batch-idle-duration: [2s]"))

    assert [each.split(": ")[1] for each in caught.value.problems] == [
        "given.nodepools[0]", "given.nodepools[0]", "given.reservations[0].count", "given.options.batch-idle-duration",
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["", "# nothing\n", "--- \n"])
def test_an_empty_file_is_no_story(text: str) -> None:
    with pytest.raises(StoryError, match=r"story\.yaml: "):
        told(text)


def test_all_mistakes_are_told_at_once() -> None:
    broken = GOOD.replace("deploy:", "deplo:").replace("by: 3m,", "").replace("count: 1", "count: one")
    with pytest.raises(StoryError) as caught:
        told(broken)

    assert len(caught.value.problems) == 3


@pytest.mark.parametrize(
    ("sentence", "measure", "least", "most"),
    [
        ("reservation cr-1 holds at most 2", "reservation", None, 2.0),
        ("pool default has at least 1 node", "nodes", 1.0, None),
        ("there are at most 9 nodes", "nodes", None, 9.0),
        ("there are at most 3 claims", "claims", None, 3.0),
        ("at most 1 claim is ever made", "made", None, 1.0),
        ("web keeps at least 2 running", "running", 2.0, None),
        ("an hour costs at most 1.5", "cost", None, 1.5),
        ("no pod is refused", "refused", None, 0.0),
    ],
)
def test_a_law_is_a_sentence(sentence: str, measure: str, least: float | None, most: float | None) -> None:
    law = read_law(sentence)

    assert (law.measure, law.least, law.most) == (measure, least, most)


def test_a_sentence_that_is_no_law_is_answered_with_those_that_are() -> None:
    with pytest.raises(LawError, match="reservation cr-1 holds at most 2"):
        read_law("be nice")
