from pathlib import Path

import pytest

from joiner.sim.judging import looked_up
from joiner.sim.play import play
from joiner.sim.story import read

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
        ("running: {web: 2}", "web: 1 pods run, not 2"),
        ("pending: {web: 1}", "web: 0 pods have no node, not 1"),
        ("refused: {web: limits}", "web: no refusal says 'limits'; told: nothing"),
        ("claims: 2", "there are 1 claims, not 2"),
        ("claims: [{zone: b}]", "not as said"),
        ("claims: []", "not as said"),
        ("nodes: 0", "there are 1 nodes, not 0"),
        ("nodes: {default: 3}", "pool default has 1 nodes, not 3"),
        ("machines: 0", "the cloud runs 1 machines, not 0"),
        ("leaving: 1", "0 claims are being deleted, not 1"),
        ("tainted: {k: 1}", "0 nodes have the taint k, not 1"),
        ("reboots: 1", "machines came back from 0 restarts, not 1"),
        ("event: {reason: Evicted}", "nobody told of reason=Evicted"),
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
        ("pool default has at most 0 nodes", "there are 1"),
        ("pool default has at least 1 node", "there are 0"),
        ("there are at most 0 claims", "there are 1"),
        ("at most 0 claims are ever made", "there were 1"),
        ("an hour costs at most 0.01", "it costs 0.085"),
    ],
)
def test_a_law_that_is_broken_is_told_with_its_moment(law: str, told: str) -> None:
    (found,) = complaints(always=law)

    assert found.startswith("at ")
    assert found.endswith(told)


def test_a_story_that_comes_true_has_no_complaints() -> None:
    assert complaints() == []
