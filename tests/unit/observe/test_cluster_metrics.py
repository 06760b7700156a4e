"""What can be scraped while a world runs, and what one option leaves out."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import generate_latest

from joiner.kube.tasks import Tasks
from joiner.options import Options
from joiner.sim.story import objects
from joiner.sim.story.document.format import read
from joiner.sim.story.outages import Outages
from joiner.sim.story.steps import StepRunner
from joiner.sim.virtualtime import VirtualLoop, run
from joiner.sim.world import World

STORY = """
story: something to count
given: {nodepools: [{name: default, limits: {cpu: 8}}]}
when: [{at: 0s, deploy: web, replicas: 2, cpu: 500m}]
"""


def scraped(**options: Any) -> str:
    """The text of all metrics after three minutes."""

    async def play(loop: VirtualLoop) -> str:
        story = read(STORY, "story.yaml", Path())
        world = World(loop, seed=1, options=Options(**options))
        world.load([objects.node_class(story.given, Path(), world.clock.now()), *objects.pools(story.given)])
        await world.start()
        await StepRunner(world, Tasks(), Outages()).play(story.when[0].step)
        await asyncio.sleep(180)
        assert world.joiner is not None
        text = generate_latest(world.joiner.metrics.registry).decode()
        await world.stop()
        return text

    return run(play)


@pytest.fixture(scope="module")
def text() -> str:
    return scraped()


@pytest.mark.parametrize(
    "line",
    [
        'karpenter_nodepools_limit{nodepool="default",resource_type="cpu"} 8.0',
        'karpenter_nodepools_usage{nodepool="default",resource_type="nodes"} 1.0',
        'karpenter_nodepools_usage{nodepool="default",resource_type="ephemeral_storage"}',
        'karpenter_nodepools_allowed_disruptions{nodepool="default",reason="empty"} 1.0',
        'karpenter_nodepools_nodes_consuming_budgets{nodepool="default",reason="drifted"} 0.0',
        "karpenter_cluster_state_synced 1.0",
        "karpenter_build_info{",
        "karpenter_cluster_state_node_count 1.0",
        "karpenter_cluster_state_unsynced_time_seconds 0.0",
        'karpenter_nodeclaims_created_total{min_values_relaxed="false",nodepool="default",reason="provisioned"} 1.0',
        'karpenter_pods_bound_duration_seconds_count{dynamic_resources="false"} 2.0',
        "operator_nodeclaim_status_condition_count{",
        'operator_status_condition_count{group="karpenter.sh",kind="NodePool",name="default",namespace="",reason="Ready"',
        'operator_nodeclaim_status_condition_transitions_total{karpenter_kwok_sh_kwoknodeclass="default"',
        'operator_status_condition_transitions_total{group="karpenter.sh",kind="NodeClaim",reason="Launched"',
        'operator_status_condition_transition_seconds_sum{group="karpenter.sh",kind="NodeClaim",status="Unknown"',
        'karpenter_cloudprovider_instance_type_offering_available{capacity_type="spot",instance_type="m5.large",zone="a"} 1.0',
        'karpenter_nodepools_cost_total{nodepool="default"} 0.03',
        'joiner_catalog_cache_misses_total{nodepool="default"}',
    ],
)
def test_a_number_can_be_scraped(line: str, text: str) -> None:
    assert line in text


def test_a_pod_is_told_with_its_node_and_place(text: str) -> None:
    (first, second) = [line for line in text.splitlines() if line.startswith("karpenter_pods_state{")]

    for words in (
        'nodepool="default"',
        'phase="Running"',
        'ready="true"',
        'managed="true"',
        'owner="/apis/apps/v1/namespaces/default/replicasets/web-',
    ):
        assert words in first
        assert words in second


def test_series_of_single_pods_and_offerings_can_be_left_out() -> None:
    found = scraped(disable_detailed_metrics=True)

    assert "karpenter_pods_state" not in found
    assert "karpenter_cloudprovider_instance_type" not in found
    assert "karpenter_nodepools_usage" in found
    assert "karpenter_pods_bound_duration_seconds_count" in found


def test_everything_read_off_the_cluster_can_be_left_out() -> None:
    found = scraped(disable_cluster_state_observability=True)

    for name in ("nodepools_usage", "nodes_allocatable", "pods_state"):
        assert f"karpenter_{name}" not in found
    assert "operator_" not in found
    for name in ("nodeclaims_created_total", "cluster_state_synced", "nodepools_allowed_disruptions"):
        assert f"karpenter_{name}" in found
