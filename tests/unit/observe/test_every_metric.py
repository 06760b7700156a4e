"""A story in which nearly everything happens, held against the table of metrics: a renamed label breaks somebody's dashboard."""

import math
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
from prometheus_client import Metric
from tests.unit.observe.metrics_table import NODE, SILENT, TABLE, Row

from joiner.cloud.kwok.nodeclass import KWOKNodeClass
from joiner.model.clusterobjects import Event
from joiner.observe import metrics
from joiner.observe.cluster import CLUSTER_FAMILIES, STATE_FAMILIES
from joiner.observe.conditions import TOGETHER, TRANSITIONS, condition_families, watched_kinds
from joiner.observe.metrics import NOT_YET, Metrics
from joiner.observe.pods import POD_FAMILIES
from joiner.sim.story.document.format import read
from joiner.sim.story.player import play
from joiner.sim.world import World

STORY = """
story: a little of everything that is counted
given:
  options: {feature-gates: "NodeRepair=true,TerminateFirstRepair=true,CapacityBuffer=true,StaticCapacity=true"}
  nodepools:
    - {name: default, capacity-types: [on-demand], limits: {cpu: 64}, expire-after: 45m,
       termination-grace-period: 3m, consolidate-after: Never}
    - {name: steady, replicas: 1, limits: {nodes: 1}, capacity-types: [on-demand]}
    - {name: scarce, weight: 50, capacity-types: [spot], consolidate-after: Never}
    - {name: cheap, capacity-types: [spot], consolidate-after: Never, taints: [{key: example.com/cheap, effect: NoSchedule}]}
  objects:
    - {apiVersion: karpenter.sh/v1alpha1, kind: NodeOverlay, metadata: {name: cheaper}, spec: {weight: 10, pricePercent: 90}}
    - apiVersion: karpenter.sh/v1alpha1
      kind: InstanceType
      metadata: {name: m5.large}
      spec: {resources: {example.com/chip: "1"}}
    - apiVersion: v1
      kind: PodTemplate
      metadata: {name: like-this, namespace: default}
      template: {spec: {containers: [{name: main, resources: {requests: {cpu: "1"}}}]}}
    - apiVersion: autoscaling.x-k8s.io/v1beta1
      kind: CapacityBuffer
      metadata: {name: room, namespace: default}
      spec: {podTemplateRef: {name: like-this}, replicas: 1}
when:
  - {at: 0s, shortage: {capacity-type: spot}, lasts: 10m}
  - {at: 0s, daemon-set: agent, cpu: 100m}
  - {at: 0s, deploy: web, replicas: 5, cpu: 1500m, apart: hostname, min-available: 4}
  - {at: 0s, deploy: huge, cpu: 1000}
  - {at: 2m, delete: nodepool/scarce}
  - {at: 6m, sicken: KWOKRebootRequired=True, nodepool: default}
  - {at: 12m, sicken: KWOKUnhealthy=True, nodepool: steady}
  - {at: 18m, delete: node/node-00003}
  - {at: 20m, deploy: batch, cpu: 1, tolerations: [{key: example.com/cheap, operator: Exists}],
     node-selector: {karpenter.sh/nodepool: cheap}}
  - {at: 23m, never-join: 1}
  - {at: 24m, sicken: KWOKUnhealthy=True, nodepool: cheap}
  - {at: 45m, reclaim: 1}
  - {at: 54m, withdraw: {zone: a}}
for: 58m
"""
EVERY_S = 60
BEGINNING_S = 12
"""So long it is scraped every second, because much passes quickly then."""
AT_REST = {
    "karpenter_scheduler_queue_depth",
    "karpenter_scheduler_ignored_pods_count",
    "karpenter_voluntary_disruption_consolidation_timeouts_total",
}
"""Told, but zero here whenever somebody looks."""
UNSEEN = {
    *SILENT,
    "karpenter_scheduler_unfinished_work_seconds",  # there only while a plan is made, and that takes no time here
    "operator_kwoknodeclass_status_condition_transition_seconds",  # a class of the pretend cloud is always ready
    "operator_kwoknodeclass_status_condition_transitions_total",
    *(  # these go in an instant
        f"operator_{kind}_termination_{measure}_seconds"
        for kind in ("nodepool", "kwoknodeclass", "capacitybuffer", "nodeoverlay", "instancetype")
        for measure in ("current_time", "duration")
    ),
}
"""Not seen at all in this story."""


class Scraped(NamedTuple):
    """What was seen of one metric, over the whole story."""

    types: set[str]
    labels: set[frozenset[str]]
    buckets: set[float]
    values: list[float]


class Told(NamedTuple):
    """Everything that was scraped, the last scrape, and the events."""

    families: dict[str, Scraped]
    last: list[Metric]
    well_known: frozenset[str]
    """The labels of nodes that everybody knows, the provider's among them."""
    events: list[Event]


@cache
def told() -> Told:
    families: dict[str, Scraped] = {}
    last: list[Metric] = []
    known: set[str] = set()
    events: list[Event] = []

    def scrape(now: float, world: World) -> None:
        events[:] = world.server.objects(Event)
        if (now <= BEGINNING_S or int(now) % EVERY_S == 0) and world.joiner is not None:
            last[:] = world.joiner.metrics.registry.collect()
            for family in last:
                take_in(families, family)
            known.update(name.rpartition("/")[2].replace("-", "_") for name in world.joiner.vocabulary.well_known)

    play(read(STORY, "story.yaml", Path()), seed=1, progress=scrape)
    return Told(families, last, frozenset(known), events)


def take_in(families: dict[str, Scraped], family: Metric) -> None:
    name = f"{family.name}_total" if family.type == "counter" else family.name
    for sample in family.samples:
        if sample.name.endswith("_created"):
            continue
        known = families.setdefault(name, Scraped(set(), set(), set(), []))
        known.types.add(family.type)
        known.labels.add(frozenset(sample.labels) - {"le", "quantile"})
        known.values.append(sample.value)
        if sample.labels.get("le", "+Inf") != "+Inf":
            known.buckets.add(float(sample.labels["le"]))


def declared() -> Iterator[tuple[str, Row]]:
    kinds = watched_kinds((KWOKNodeClass,))
    of_kinds = (family for each in kinds for family in condition_families(each.prefix, each.names, TRANSITIONS))
    for family in (*Metrics().families, *STATE_FAMILIES, *CLUSTER_FAMILIES, *POD_FAMILIES, *TOGETHER, *of_kinds):
        labels = set(family.labels)
        if "well-known labels" in labels:
            labels = labels - {"well-known labels"} | set(NODE.split())
        yield family.name, Row(family.type, frozenset(labels), family.buckets)


def test_what_is_declared_is_what_dashboards_know() -> None:
    ours = {name: row for name, row in declared() if name != "karpenter_reconcile_errors_total"}

    assert ours == TABLE


@pytest.mark.parametrize("name", sorted(set(TABLE) - UNSEEN))
def test_a_metric_is_scraped_as_the_table_says(name: str) -> None:
    row, seen = TABLE[name], told().families[name]

    assert seen.types == {row.type}
    added = told().well_known - {"kwoknodeclass"} if "node_name" in row.labels else set()
    assert seen.labels == {row.labels | added}
    assert tuple(sorted(seen.buckets)) == row.buckets
    assert all(math.isfinite(value) and value >= 0 for value in seen.values)
    assert max(seen.values) > 0 or name in AT_REST


def test_what_was_never_seen_is_known() -> None:
    seen = told().families

    assert {name for name in set(TABLE) & UNSEEN if name in seen and max(seen[name].values) > 0} == set()


def test_every_metric_is_counted_by_somebody_or_said_to_wait() -> None:
    rooms = Path(metrics.__file__).parent.parent
    files = [path for path in rooms.rglob("*.py") if path != Path(metrics.__file__)]
    sources = "\n".join(path.read_text(encoding="utf-8") for path in files)
    families = {family.name for family in Metrics().families}

    assert {name for name in families if f".{name.removeprefix('karpenter_')}" not in sources} == set(NOT_YET)


@pytest.mark.parametrize("dead", ["node-00003", "scarce"], ids=["a node", "a pool"])
def test_nothing_is_left_of_what_is_gone(dead: str) -> None:
    gauges = [family for family in told().last if family.type == "gauge" or family.name.startswith("joiner_")]

    assert [s for family in gauges for s in family.samples if dead in s.labels.values()] == []


def test_calls_to_the_provider_tell_who_asked() -> None:
    (family,) = (each for each in told().last if each.name == "karpenter_cloudprovider_duration_seconds")
    asked = {(s.labels["controller"], s.labels["method"]) for s in family.samples}

    assert "" not in {controller for controller, _ in asked}
    assert {
        ("nodeclaim.lifecycle", "Create"),
        ("node.termination", "Delete"),
        ("nodeclaim.garbagecollection", "List"),
        ("nodeclaim.disruption", "IsDrifted"),
        ("nodeclaim.reboot", "Reboot"),
    } <= asked


def test_errors_of_the_provider_tell_whose_machine_it_was() -> None:
    (family,) = (each for each in told().last if each.name == "karpenter_cloudprovider_errors")
    asked = {(s.labels["method"], s.labels["error"], s.labels["nodepool"]) for s in family.samples}

    assert {
        ("Delete", "NodeClaimNotFoundError", "default"),
        ("Delete", "NodeClaimNotFoundError", "steady"),
        ("Create", "InsufficientCapacityError", "scarce"),
    } <= asked


EVENTS = [
    ("Pod", "Nominated", "Normal"),
    ("Pod", "FailedScheduling", "Warning"),
    ("Pod", "Evicted", "Normal"),
    ("Pod", "InsufficientCapacityError", "Warning"),
    ("NodeClaim", "InsufficientCapacityError", "Warning"),
    ("NodePool", "NoCompatibleInstanceTypes", "Warning"),
    ("NodePool", "NodeOverlaysChanged", "Normal"),
    ("NodeClaim", "RebootObserved", "Normal"),
    ("NodeClaim", "DisruptionLaunching", "Normal"),
    ("NodeClaim", "DisruptionWaitingReadiness", "Normal"),
    ("NodeClaim", "DisruptionBlocked", "Normal"),
    ("Node", "DisruptionTerminating", "Normal"),
    ("NodeClaim", "DisruptionTerminating", "Normal"),
    ("Node", "TerminationGracePeriodExpiring", "Warning"),
    ("NodeClaim", "TerminationGracePeriodExpiring", "Warning"),
    ("Node", "FailedDraining", "Warning"),
    ("NodeClaim", "Launched", "Normal"),
    ("NodeClaim", "Drained", "Normal"),
    ("NodeClaim", "Finalized", "Normal"),
    ("Node", "Ready", "Normal"),
    ("Node", "Finalized", "Normal"),
    ("NodePool", "Ready", "Normal"),
    ("NodeOverlay", "Ready", "Normal"),
    ("InstanceType", "InstanceTypeFound", "Normal"),
    ("CapacityBuffer", "Provisioning", "Normal"),
]


@pytest.mark.parametrize(("kind", "reason", "weight"), EVENTS, ids=[f"{kind} {reason}" for kind, reason, _ in EVENTS])
def test_an_event_is_told_about_the_right_object(kind: str, reason: str, weight: str) -> None:
    found = [event for event in told().events if (event.involved_object.kind, event.reason) == (kind, reason)]

    assert {event.type for event in found} == {weight}
