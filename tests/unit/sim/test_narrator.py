from pathlib import Path

import pytest

from joiner.sim.story.document.format import read
from joiner.sim.story.player import play
from joiner.sim.story.report.summary import Summary, quantile

STORY = """
story: what is told of
given: {nodepools: [{name: default}]}
when:
  - {at: 0s, deploy: web, cpu: 500m, min-available: 1}
  - {at: 0s, job: sums, cpu: 100m, completions: 2, runs-for: 1m}
STEPS
for: 10m
"""


def played(*steps: str) -> Summary:
    """A story with more steps."""
    lines = "\n".join(f"  - {{{each}}}" for each in steps)
    return play(read(STORY.replace("STEPS", lines), "story.yaml", Path()), seed=1)


def told(*steps: str) -> list[str]:
    """What is said of it."""
    return [text for _, text in played(*steps).told]


def test_one_pod_is_not_many_and_a_budget_comes_with_its_workload() -> None:
    found = told()

    assert found[:2] == ["a user deploys web: 1 pod", "a user deploys Job sums: 2 pods"]
    assert "the pod of web runs" in found
    assert found[-1] == "Job sums is done"


@pytest.mark.parametrize(
    ("step", "words"),
    [
        ("at: 5m, delete: node/node-00001", "a user deletes Node node-00001"),
        ("at: 5m, delete: deployment/web", "a user deletes Deployment web"),
        ("at: 5m, sicken: Ready=False, lasts: 1m", "node-00001 is no longer ready"),
        ("at: 5m, sicken: Ready=False, lasts: 1m", "node-00001 is ready again"),
        ("at: 5m, sicken: Disk=False", "node-00001 has the condition Disk=False"),
        ("at: 5m, scale: web, replicas: 0", "a user scales web from 1 to 0 pods"),
        ("at: 5m, restart: joiner", "the controllers lose their memory and start anew"),
        ("at: 5m, shortage: {zone: a}", "the cloud has run out of machines in a"),
        ("at: 5m, vanish: 3", "only 1 of 3 machines can vanish: no more of them run"),
        ("at: 0s, reclaim: 1", "only 0 of 1 spot machines can be taken back: no more of them run"),
    ],
)
def test_what_happens_is_told(step: str, words: str) -> None:
    assert told(step).count(words) == 1


def test_what_is_applied_is_told_with_its_name() -> None:
    overlay = "{apiVersion: karpenter.sh/v1alpha1, kind: NodeOverlay, metadata: {name: cheap}, spec: {price: '0.1'}}"
    steps = [f"at: {at}, apply: {overlay.replace('0.1', price)}" for at, price in (("5m", "0.1"), ("6m", "0.2"))]

    found = told(*steps)

    assert {"a user creates NodeOverlay cheap", "a user edits NodeOverlay cheap"} <= set(found)


def test_a_pod_that_finds_room_has_hardly_waited() -> None:
    assert played("at: 301700ms, deploy: small, cpu: 10m").waits[-1] < 0.2


def test_what_happens_at_one_moment_happens_in_the_order_in_which_it_is_written() -> None:
    found = told(
        "at: 5m, deploy: late, cpu: 10m", "at: 5m, scale: late, replicas: 2", "at: 5m, delete: deployment/late"
    )

    assert found[-3:] == [
        "a user deploys late: 1 pod", "a user scales late from 1 to 2 pods", "a user deletes Deployment late",
    ]  # fmt: skip


def test_why_there_is_no_machine_is_told() -> None:
    found = told("at: 0s, outage: launch, lasts: 8m")

    assert any(each.endswith(f"go (no machine: create {each.split()[2]}: the cloud does not answer)") for each in found)


@pytest.mark.parametrize(("until", "times"), [("3m", 1), ("1h", 0)])
def test_the_end_of_a_reservation_is_told_if_it_comes(until: str, times: int) -> None:
    reserved = f"reservations: [{{id: cr-1, instance-type: m5.large, zone: a, count: 1, until: {until}}}]"
    text = STORY.replace("STEPS\n", "").replace("given: {", f"given: {{{reserved}, ")
    summary = play(read(text, "story.yaml", Path()), seed=1)

    assert summary.told.count((180.0, "reservation cr-1 ends")) == times


def test_pods_without_a_node_are_counted_by_workload() -> None:
    assert played("at: 1m, deploy: giant, replicas: 2, cpu: 500").unplaced == {"giant": 2}


@pytest.mark.parametrize(
    ("values", "share", "found"),
    [
        ([], 0.5, 0.0),
        ([43.0, 49.0], 0.5, 43.0),
        ([1.0, 2.0, 3.0], 0.5, 2.0),
        ([1.0, 2.0], 0.99, 2.0),
        ([7.0], 0.0, 7.0),
    ],
)
def test_a_quantile_is_no_larger_than_it_must_be(values: list[float], share: float, found: float) -> None:
    assert quantile(values, share) == found
