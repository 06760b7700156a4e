"""Nodes in all states of health, for tests of what is to be done about them."""

from datetime import UTC, datetime, timedelta
from typing import Any

from tests.builders import VOCABULARY

from joiner.cloud.repair import RepairPolicy
from joiner.model import labels
from joiner.model.codec import decode
from joiner.model.conditions import Condition
from joiner.model.duration import Duration
from joiner.model.meta import KubeObject, replace
from joiner.model.node import Node, NodeCondition
from joiner.model.nodeclaim import NodeClaim
from joiner.model.pod import Pod
from joiner.state.cluster import Cluster
from joiner.state.snapshot import Snapshot

NOW = datetime(2030, 1, 7, 12, tzinfo=UTC)
LONG_AGO = NOW - timedelta(days=1)


def ago(**span: float) -> datetime:
    return NOW - timedelta(**span)


def policy(kind: str = "Bad", regex: str = ".*", toleration: str = "10m", **more: Any) -> RepairPolicy:
    bound = more.pop("bound", None)
    return RepairPolicy(
        condition_type=kind,
        condition_status=more.pop("status", "True"),
        reason_regex=regex,
        toleration=Duration.parse(toleration),
        termination_grace_period=None if bound is None else Duration.parse(bound),
        **more,
    )


FALLBACK = policy("Ready", "", "30m", status="False", bound="0s")


def ill(kind: str = "Bad", reason: str = "", since: datetime | None = None, status: str = "True") -> NodeCondition:
    return NodeCondition(type=kind, status=status, reason=reason, last_transition_time=since or ago(hours=1))


def node(*conditions: NodeCondition, name: str = "n", born: datetime = LONG_AGO, **more: Any) -> Node:
    own = {
        labels.NODEPOOL: "default",
        labels.REGISTERED: "true",
        labels.INITIALIZED: "true",
        labels.INSTANCE_TYPE: "m5.large",
        **more.pop("labels", {}),
    }
    amounts = {"cpu": "4", "memory": "16Gi", "pods": "20"}
    document = {
        "metadata": {"name": name, "labels": own, **more},
        "spec": {"providerID": f"shop://{name}"},
        "status": {"capacity": amounts, "allocatable": amounts},
    }
    made = decode(document, Node)
    made = replace(made, metadata=replace(made.metadata, creation_timestamp=born))
    told = conditions if any(each.type == "Ready" for each in conditions) else (*conditions, ill("Ready"))
    return replace(made, status=replace(made.status, conditions=told))


def claim(name: str = "n", since: datetime | None = None, grace: str | None = None, **conditions: str) -> NodeClaim:
    """A claim with these conditions, since that moment."""
    spec: dict[str, Any] = {} if grace is None else {"terminationGracePeriod": grace}
    document = {"metadata": {"name": name, "uid": f"uid-{name}", "labels": {labels.NODEPOOL: "default"}}, "spec": spec}
    made = decode(document, NodeClaim)
    told = tuple(
        Condition(type=kind, status=status, last_transition_time=since or LONG_AGO)  # type: ignore[arg-type]
        for kind, status in conditions.items()
    )
    return replace(made, status=replace(made.status, provider_id=f"shop://{name}", conditions=told))


def picture(*things: KubeObject, marked: tuple[str, ...] = ()) -> Snapshot:
    """The cluster that is made of these; every node has a claim of its name unless there is one."""
    cluster = Cluster(VOCABULARY)
    named = {thing.name for thing in things if isinstance(thing, NodeClaim)}
    claims = [claim(thing.name) for thing in things if isinstance(thing, Node) and thing.name not in named]
    for thing in (*claims, *things):
        cluster.apply(type(thing), None, thing)
    cluster.mark_for_deletion(*marked)
    return cluster.snapshot(NOW)


def running(pod: Pod, on: str = "n", **metadata: Any) -> Pod:
    """The pod at work on a node."""
    spec, status = replace(pod.spec, node_name=on), replace(pod.status, phase="Running", start_time=LONG_AGO)
    return replace(pod, metadata=replace(pod.metadata, **metadata), spec=spec, status=status)
