from pathlib import Path

import pytest

from joiner.sim.story.document.format import read
from joiner.sim.story.expectations import looked_up
from joiner.sim.story.player import play

DATA = {"status": {"nodes": 2}, "metadata": {"labels": {"example.com/team": "a"}}, "spec": {"taints": [{"key": "k"}]}}
STORY = """
story: one pod gets one node
given:
  nodepools: [{{name: default, capacity-types: [on-demand], zones: [a]}}]
when:
  - {{at: 0s, deploy: web, cpu: 1500m}}
then:
  - {{by: 2m, running: {{web: 1}}}}
  - {{at: 3m, {then}}}
always:
  - {always}
for: 3m
"""


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("status.nodes", 2),
        ("metadata.labels[example.com/team]", "a"),
        ("spec.taints[0].key", "k"),
        ("spec.taints[1].key", None),
        ("spec.nothing.here", None),
    ],
)
def test_a_field_is_found_by_its_path(path: str, value: object) -> None:
    assert looked_up(DATA, path) == value


def complaints(then: str = "nodes: 1", always: str = "there are at most 1 nodes") -> list[str]:
    """What did not come as the story says, with these words in it."""
    played = play(read(STORY.format(then=then, always=always), "story.yaml", Path()), seed=1)
    return [each.detail for each in played.verdicts if not each.holds]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("running: {web: 2}", "web: 1 pod runs, not 2"),
        ("pending: {web: 1}", "web: 0 pods without a node, not 1"),
        ("refused: {web: limits}", "web: no refusal says 'limits'; told: nothing"),
        ("claims: 2", "claims: there is 1, not 2"),
        ("claims: [{zone: b}]", "not as said"),
        ("claims: []", "not as said"),
        ("nodes: 0", "nodes: there is 1, not 0"),
        ("nodes: {default: 3}", "pool default has 1 node, not 3"),
        ("machines: 0", "the cloud runs 1 machine, not 0"),
        ("leaving: 1", "claims that are being deleted: there are 0, not 1"),
        ("tainted: {k: 1}", "nodes with the taint k: there are 0, not 1"),
        ("reboots: 1", "machines came back from 0 restarts, not 1"),
        ("event: {reason: Evicted}", "no event reason=Evicted"),
        ("condition: {of: nodepool/default, type: Ready, status: False}", "Ready is True"),
        ("condition: {of: nodeclaim/*, type: Drifted, status: True}", "Drifted is not there, status should be True"),
        ("condition: {of: nodeclaim/*, type: Launched, status: none}", "status should be none"),
        ("field: {of: nodepool/default, path: status.nodes, is: 5}", "status.nodes is 1, not 5"),
        ("field: {of: node/nobody, path: spec, is: 5}", "there is no node/nobody"),
        ("cost-per-hour-below: 0.01", "an hour costs 0.0850, not less than 0.01"),
    ],
)
def test_what_is_not_so_is_told_with_what_is(words: str, told: str) -> None:
    assert told in "; ".join(complaints(then=words))


@pytest.mark.parametrize(
    ("law", "told"),
    [
        ("there are at most 0 nodes", "there are 1"),
        ("pool default has at most 0 nodes", "it has 1"),
        ("there are at most 0 claims", "there are 1"),
        ("at most 0 claims are ever made", "1 were made"),
        ("an hour costs at most 0.01", "it costs 0.0850"),
    ],
)
def test_a_law_that_is_broken_is_told_with_its_moment(law: str, told: str) -> None:
    (found,) = complaints(always=law)

    assert found.startswith(f"{told}, at 00:00:")


@pytest.mark.parametrize("law", ["pool default has at least 2 nodes", "web keeps at least 2 running"])
def test_what_there_must_be_at_least_must_have_been_there_once(law: str) -> None:
    (found,) = complaints(always=law)

    assert found.startswith("there were never so many; at the end ")


def test_what_there_must_be_at_least_need_not_be_there_from_the_beginning() -> None:
    assert complaints(always="pool default has at least 1 node") == []


@pytest.mark.parametrize(
    ("when", "holds"),
    [
        pytest.param("by: 9m", False, id="it is no longer so"),
        pytest.param("before: 9m", True, id="it was so once"),
        pytest.param("after: 6m, before: 9m", False, id="not so late"),
        pytest.param("at: 3m", True, id="exactly then"),
    ],
)
def test_what_was_so_for_a_while_is_not_so_later(when: str, holds: bool) -> None:
    steps = "when: [{at: 0s, deploy: web, cpu: 1}, {at: 5m, scale: web, replicas: 0}]"
    given = "given: {nodepools: [{name: default}]}"
    text = f"story: one pod comes and goes\n{given}\n{steps}\nthen: [{{{when}, running: {{web: 1}}}}]\n"

    assert play(read(text, "story.yaml", Path()), seed=1).true is holds


def test_a_reserved_machine_costs_nothing_more_until_its_reservation_has_ended() -> None:
    given = "given: {nodepools: [{name: default, consolidate-after: Never}], reservations: [RESERVED]}"
    reserved = "{id: cr-1, instance-type: m5.large, zone: a, count: 1, until: 5m}"
    then = "then: [{at: 4m, nodes: 1, cost-per-hour-below: 0.01}, {at: 6m, cost-per-hour-below: 0.01}]"
    text = f"story: paid for\n{given}\nwhen: [{{at: 0s, deploy: web, cpu: 1}}]\n{then}\n".replace("RESERVED", reserved)

    played = play(read(text, "story.yaml", Path()), seed=1)

    assert [each.detail for each in played.verdicts] == ["", "an hour costs 0.0960, not less than 0.01"]


def test_a_story_that_comes_true_has_no_complaints() -> None:
    assert complaints() == []
