"""Laws of the mirror: the picture follows from what there is, not from how we came to know of it."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from joiner.model import labels
from joiner.model.clusterobjects import Namespace
from joiner.model.codec import decode
from joiner.model.labels import Vocabulary
from joiner.model.meta import KubeObject, replace
from joiner.model.node import Node
from joiner.model.nodeclaim import NodeClaim
from joiner.model.pod import Pod
from joiner.model.podpolicy import PodDisruptionBudget
from joiner.model.storage import (
    BIND_COMPLETED,
    WAIT_FOR_FIRST_CONSUMER,
    CSINode,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from joiner.model.workload import DaemonSet
from joiner.state.cluster import Cluster
from joiner.state.snapshot import Snapshot

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
DELETED = "2030-01-01T11:00:00Z"
DISK = {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}

Event = tuple[type[KubeObject], str, KubeObject | None]
"""Kind, name, and the object as it is from now on; nothing when it is gone."""

Known = dict[tuple[type[KubeObject], str], KubeObject]

some = st.sampled_from
maybe_deleted = some([{}, {}, {"deletionTimestamp": DELETED}])
amounts = some([{}, {"cpu": "2", "pods": "4"}, {"cpu": "4", "pods": "0"}])
ids = some(["", "p0", "p1", "p2"])
nodes = some(["n0", "n1", "n2"])
own_labels = st.fixed_dictionaries(
    {},
    optional={
        labels.NODEPOOL: some(["a", "b"]),
        labels.REGISTERED: st.just("true"),
        labels.INITIALIZED: st.just("true"),
        labels.INSTANCE_TYPE: st.just("m-4"),
    },
)
taints = st.lists(
    some([{"key": "own", "effect": "NoSchedule"}, {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]),
    max_size=2,
    unique_by=lambda taint: taint["key"],
)


def _node(name: str) -> st.SearchStrategy[KubeObject]:
    def make(provider: str, own: Any, spots: Any, given: Any, gone: Any) -> Node:
        return decode(
            {
                "metadata": {"name": name, "labels": own, **gone},
                "spec": {"providerID": provider, "taints": spots},
                "status": {"capacity": given, "allocatable": given},
            },
            Node,
        )

    return st.builds(make, ids, own_labels, taints, amounts, maybe_deleted)


def _claim(name: str) -> st.SearchStrategy[KubeObject]:
    def make(provider: str, pool: str, given: Any, kind: str, gone: Any) -> NodeClaim:
        return decode(
            {
                "metadata": {"name": name, "labels": {labels.NODEPOOL: pool}, **gone},
                "spec": {"startupTaints": [{"key": "own", "effect": "NoSchedule"}]},
                "status": {
                    "providerID": provider,
                    "capacity": given,
                    "allocatable": given,
                    "conditions": [{"type": kind, "status": "True"}],
                },
            },
            NodeClaim,
        )

    kinds = some(["Launched", "InstanceTerminating", "Rebooting"])
    return st.builds(make, ids, some(["a", "b"]), amounts, kinds, maybe_deleted)


def _pod(name: str) -> st.SearchStrategy[KubeObject]:
    def make(uid: str, node: str, owner: str, phase: str, disk: bool, shield: Any, born: int, gone: Any) -> Pod:
        waits = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
        return decode(
            {
                "metadata": {
                    "name": name,
                    "namespace": "team",
                    "uid": uid,
                    "labels": {"app": owner},
                    "annotations": shield,
                    "creationTimestamp": f"2030-01-01T00:00:{born:02}Z",
                    "ownerReferences": [{"apiVersion": "apps/v1", "kind": owner, "name": "d"}],
                    **gone,
                },
                "spec": {
                    "nodeName": node,
                    "containers": [{"resources": {"requests": {"cpu": f"{born + 1}"}}, "ports": [{"hostPort": 80}]}],
                    "volumes": [DISK] if disk else [],
                },
                "status": {
                    "phase": phase,
                    "startTime": "2030-01-01T11:30:00Z",
                    "conditions": [] if node else [waits],
                },
            },
            Pod,
        )

    shields = some([{}, {labels.DO_NOT_DISRUPT: "true"}, {labels.DO_NOT_DISRUPT: "1h"}])
    return st.builds(
        make,
        some(["1", "2"]),
        some(["", "n0", "n1", "n2"]),
        some(["DaemonSet", "ReplicaSet"]),
        some(["Running", "Running", "Succeeded"]),
        st.booleans(),
        shields,
        st.integers(0, 2),
        maybe_deleted,
    )


def _fixed(kind: type[KubeObject], *objects: Any) -> st.SearchStrategy[KubeObject]:
    return some([decode(each, kind) for each in objects])


_DRIVER = {"name": "ebs.csi.aws.com", "allocatable": {"count": 3}}
_SPACED = {"namespace": "team"}
HISTORIES: dict[tuple[type[KubeObject], str], st.SearchStrategy[KubeObject]] = {
    **{(Node, name): _node(name) for name in ("n0", "n1", "n2")},
    **{(NodeClaim, name): _claim(name) for name in ("c0", "c1", "c2")},
    **{(Pod, name): _pod(name) for name in ("w0", "w1", "w2", "w3")},
    (DaemonSet, "d"): _fixed(DaemonSet, {"metadata": {"name": "d", **_SPACED}}),
    (PersistentVolumeClaim, "data"): _fixed(
        PersistentVolumeClaim,
        {"metadata": {"name": "data", **_SPACED}, "spec": {"storageClassName": "gp3"}},
        {
            "metadata": {"name": "data", **_SPACED, "annotations": {BIND_COMPLETED: "yes"}},
            "spec": {"storageClassName": "gp3", "volumeName": "vol"},
        },
    ),
    (PersistentVolume, "vol"): _fixed(
        PersistentVolume, {"metadata": {"name": "vol"}, "spec": {"csi": {"driver": "other"}}}
    ),
    (StorageClass, "gp3"): _fixed(
        StorageClass,
        {"metadata": {"name": "gp3"}, "provisioner": "ebs.csi.aws.com", "volumeBindingMode": WAIT_FOR_FIRST_CONSUMER},
    ),
    (CSINode, "n0"): _fixed(CSINode, {"metadata": {"name": "n0"}, "spec": {"drivers": [_DRIVER]}}),
    (PodDisruptionBudget, "b"): _fixed(
        PodDisruptionBudget,
        {
            "metadata": {"name": "b", **_SPACED},
            "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "ReplicaSet"}}},
        },
    ),
    (Namespace, "team"): _fixed(Namespace, {"metadata": {"name": "team", "labels": {"tier": "gold"}}}),
}


@st.composite
def histories(draw: st.DrawFn) -> list[Event]:
    """Things that happen, one after the other."""
    keys = sorted(HISTORIES, key=lambda each: (each[0].kind, each[1]))
    events: list[Event] = [(*key, draw(HISTORIES[key])) for key in keys if draw(st.integers(0, 5))]
    for _ in range(draw(st.integers(0, 12))):
        kind, name = draw(some(keys))
        after = draw(st.none() | HISTORIES[kind, name] | HISTORIES[kind, name])
        events.append((kind, name, after))
    return events


def _tell(cluster: Cluster, event: Event, known: Known) -> None:
    kind, name, after = event
    before = known.pop((kind, name), None)
    if after is not None:
        known[kind, name] = after
    if before is not None or after is not None:
        cluster.apply(kind, before, after)


def _after(events: Iterable[Event], looks: Iterable[int] = ()) -> Snapshot:
    cluster, seen = Cluster(Vocabulary()), frozenset(looks)
    known: Known = {}
    for number, event in enumerate(events):
        _tell(cluster, event, known)
        if number in seen:
            cluster.snapshot(NOW)
    return _timeless(cluster.snapshot(NOW))


def _timeless(snapshot: Snapshot) -> Snapshot:
    return replace(snapshot, generation=0)


@given(histories(), st.sets(st.integers(0, 28)))
def test_a_picture_that_was_kept_up_is_the_one_that_is_made_from_scratch(events: list[Event], looks: set[int]) -> None:
    known: Known = {}
    for event in events:
        _tell(Cluster(Vocabulary()), event, known)

    assert _after(events, looks) == _after((kind, name, thing) for (kind, name), thing in known.items())


@given(histories(), st.randoms(use_true_random=False))
def test_the_order_in_which_objects_are_heard_of_does_not_matter(events: list[Event], random: Any) -> None:
    turns = [(kind, name) for kind, name, _ in events]
    random.shuffle(turns)
    own = {key: iter([event for event in events if event[:2] == key]) for key in turns}

    assert _after(next(own[key]) for key in turns) == _after(events)


@given(histories())
def test_one_generation_is_one_object_and_parts_that_stay_equal_stay_the_same(events: list[Event]) -> None:
    cluster = Cluster(Vocabulary())
    known: Known = {}
    for number, event in enumerate(events):
        before = cluster.snapshot(NOW)
        _tell(cluster, event, known)
        after = cluster.snapshot(NOW)
        assert cluster.snapshot(NOW) is after
        for part in ("existing", "bound", "waiting", "evicted", "daemons", "storage", "used", "bound_nodes"):
            old, new = getattr(before, part), getattr(after, part)
            assert old is new or old != new, (number, part)


@given(histories())
def test_what_is_told_twice_changes_nothing(events: list[Event]) -> None:
    again = [each for event in events for each in (event, event)]

    assert _after(again) == _after(events)


@given(histories(), st.integers(0, 90))
def test_time_alone_moves_the_picture_only_when_a_protection_ends(events: list[Event], minutes: int) -> None:
    cluster = Cluster(Vocabulary())
    known: Known = {}
    for event in events:
        _tell(cluster, event, known)
    early, later = cluster.snapshot(NOW), cluster.snapshot(NOW + timedelta(minutes=minutes))

    protected = NOW < datetime(2030, 1, 1, 12, 30, tzinfo=UTC) <= NOW + timedelta(minutes=minutes)
    assert early is later or protected
