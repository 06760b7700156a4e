"""The mirror: which labels, taints and amounts count, who must move, what is held, and when everybody waits."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from joiner.model import labels, resources
from joiner.model.codec import decode
from joiner.model.labels import INITIALIZED, INSTANCE_TYPE, NODEPOOL, REGISTERED, Vocabulary
from joiner.model.meta import KubeObject, replace
from joiner.model.node import Node
from joiner.model.nodeclaim import NodeClaim
from joiner.model.pod import Pod
from joiner.model.podpolicy import PodDisruptionBudget
from joiner.model.storage import CSINode, PersistentVolumeClaim, StorageClass
from joiner.model.workload import DaemonSet
from joiner.state.cluster import LAUNCH_PATIENCE, Cluster
from joiner.state.managed import Managed
from joiner.state.snapshot import Snapshot

NOW = datetime(2026, 1, 1, tzinfo=UTC)
STARTUP = {"key": "example.com/starting", "effect": "NoSchedule"}
NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
OWN = {"key": "example.com/own", "effect": "NoSchedule"}
DONE = {REGISTERED: "true", INITIALIZED: "true"}
AMOUNTS = {"cpu": "4", "pods": "10"}


def node(
    name: str = "n", cpu: str = "4", taints: Iterable[dict[str, str]] = (), provider: str | None = None, own: Any = None
) -> Node:
    amounts = {"cpu": cpu, "pods": "10"}
    spec = {"providerID": f"id-{name}" if provider is None else provider, "taints": list(taints)}
    status = {"capacity": amounts, "allocatable": amounts}
    return decode({"metadata": {"name": name, "labels": own or {}}, "spec": spec, "status": status}, Node)


def claim(name: str = "c", of: str = "n", status: dict[str, Any] | None = None, **metadata: Any) -> NodeClaim:
    bought = {"providerID": f"id-{of}", "capacity": AMOUNTS, "allocatable": AMOUNTS} if of else {}
    own = {"name": name, "labels": {NODEPOOL: "p", "from": "claim"}, "creationTimestamp": "2026-01-01T00:00:00Z"}
    spec = {"startupTaints": [STARTUP], "taints": [OWN, STARTUP], "resources": {"requests": {"cpu": "3", "pods": "2"}}}
    return decode({"metadata": {**own, **metadata}, "spec": spec, "status": {**bought, **(status or {})}}, NodeClaim)


def pod(name: str, on: str = "n", cpu: str = "1", **more: Any) -> Pod:
    metadata = {"name": name, "namespace": "default", "uid": name, **more.pop("metadata", {})}
    waits = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    status = {"phase": "Running" if on else "Pending", "conditions": [] if on else [waits]}
    container = {"resources": {"requests": {"cpu": cpu}}, **more.pop("container", {})}
    return decode(
        {"metadata": metadata, "spec": {"nodeName": on, "containers": [container], **more}, "status": status}, Pod
    )


def owned_by(kind: str, name: str) -> dict[str, Any]:
    return {"ownerReferences": [{"apiVersion": "apps/v1", "kind": kind, "name": name, "controller": True}]}


def cluster(*things: KubeObject) -> Cluster:
    made = Cluster(Vocabulary())
    tell(made, *things)
    return made


def tell(made: Cluster, *things: KubeObject) -> None:
    for thing in things:
        made.apply(type(thing), None, thing)


def seen(*things: KubeObject) -> Snapshot:
    return cluster(*things).snapshot(NOW)


# -- nodes ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("own", "name", "believed", "taints", "initialized"),
    [
        pytest.param({}, "c", "claim", ["example.com/own"], False, id="not registered"),
        pytest.param({REGISTERED: "true"}, "n", "node", ["example.com/own"], False, id="registered"),
        pytest.param(
            DONE,
            "n",
            "node",
            ["example.com/own", "example.com/starting", "node.kubernetes.io/not-ready"],
            True,
            id="initialized",
        ),
    ],
)
def test_the_claim_is_believed_until_the_node_is_there(
    own: dict[str, str], name: str, believed: str, taints: list[str], initialized: bool
) -> None:
    (found,) = seen(node(taints=(OWN, STARTUP, NOT_READY), own={**own, "from": "node"}), claim()).existing

    assert (found.name, found.labels["from"], found.initialized) == (name, believed, initialized)
    assert [taint.key for taint in found.taints] == taints


def test_a_node_that_reboots_is_expected_back_without_its_passing_taints() -> None:
    rebooting = {"conditions": [{"type": "Rebooting", "status": "True"}]}
    taint = {"key": "karpenter.sh/rebooting", "effect": "NoSchedule"}
    (found,) = seen(node(taints=(OWN, taint), own=DONE), claim(status=rebooting)).existing

    assert [taint.key for taint in found.taints] == ["example.com/own"]


def test_a_node_that_is_still_starting_has_what_its_claim_promises() -> None:
    (found,) = seen(node(cpu="0", own={REGISTERED: "true"}), claim()).existing

    assert found.allocatable == resources.of(cpu=4, pods=10)


def test_a_claim_without_a_node_is_a_place_already_and_is_counted() -> None:
    found = seen(claim())

    assert [each.name for each in found.existing] == ["c"]
    assert found.existing[0].labels[labels.HOSTNAME] == "c"
    assert found.used == {"p": resources.of(cpu=4, nodes=1, pods=10)}


def test_nodes_that_nobody_claimed_are_taken_as_they_are() -> None:
    (found,) = seen(node(taints=(NOT_READY,))).existing

    assert found.initialized
    assert [taint.key for taint in found.taints] == ["node.kubernetes.io/not-ready"]


@pytest.mark.parametrize(
    ("thing", "tracked"),
    [
        pytest.param(node(provider=""), True, id="somebody else's without a provider id"),
        pytest.param(node(provider="", own={NODEPOOL: "p", **DONE}), False, id="ours without a provider id"),
        pytest.param(node(own={NODEPOOL: "p"}), False, id="ours before its type is known"),
        pytest.param(node(own={NODEPOOL: "p", INSTANCE_TYPE: "m-4"}), True, id="ours once its type is known"),
        pytest.param(node(own={NODEPOOL: "p", **DONE}), True, id="ours when it is initialized"),
    ],
)
def test_a_node_is_looked_at_once_it_can_be_told_what_it_is(thing: Node, tracked: bool) -> None:
    made = Cluster(Vocabulary(), Managed(()))
    tell(made, thing)

    assert len(made.snapshot(NOW).nodes) == tracked


def test_a_claim_that_is_launched_is_one_with_its_node_whichever_came_first() -> None:
    made = cluster(claim(of=""), node(own=DONE))
    assert [each.name for each in made.snapshot(NOW).nodes] == ["c", "n"]

    tell(made, claim())

    (both,) = made.snapshot(NOW).nodes
    assert (both.claim is not None, both.node is not None, both.key) == (True, True, "id-n")


def test_heartbeats_do_not_move_the_picture() -> None:
    beat = replace(node(), metadata=replace(node().metadata, resource_version="2"))
    made = cluster(node())
    before = made.snapshot(NOW)
    tell(made, beat)

    assert made.snapshot(NOW) is before


# -- what is on them -----------------------------------------------------------------------------------------------------


def storage() -> tuple[KubeObject, ...]:
    kind = {
        "metadata": {"name": "gp3"},
        "provisioner": "kubernetes.io/aws-ebs",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    data = {"metadata": {"name": "data", "namespace": "default"}, "spec": {"storageClassName": "gp3"}}
    driver = {"name": "ebs.csi.aws.com", "allocatable": {"count": 3}}
    csi = {"metadata": {"name": "n"}, "spec": {"drivers": [driver, {"name": "other"}]}}
    return decode(data, PersistentVolumeClaim), decode(kind, StorageClass), decode(csi, CSINode)


WITH_VOLUME = pod("a", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}])


def test_usage_counts_pods_daemons_and_ports_but_not_what_has_ended() -> None:
    over = decode({"metadata": {"name": "over"}, "spec": {"nodeName": "n"}, "status": {"phase": "Failed"}}, Pod)
    daemon = pod("d", cpu="500m", metadata=owned_by("DaemonSet", "d"))
    found = seen(node(), pod("a", container={"ports": [{"hostPort": 80}]}), daemon, over)
    (place,) = found.existing

    assert place.used == resources.of(cpu="1500m", pods=2)
    assert place.daemon_used == resources.of(cpu="500m", pods=1)
    assert [port.host_port for port in place.ports] == [80]
    assert [each.name for each in found.bound] == ["a", "d"]


def test_volumes_that_become_known_later_count_on_the_node_where_they_are() -> None:
    made = cluster(node(), WITH_VOLUME)
    assert made.snapshot(NOW).existing[0].volumes == {}

    tell(made, *storage())

    (place,) = made.snapshot(NOW).existing
    assert place.volumes == {"ebs.csi.aws.com": frozenset({"default/data"})}
    assert place.volume_limits == {"ebs.csi.aws.com": 3}


def test_the_picture_holds_only_storage_that_waiting_pods_lead_to() -> None:
    waiting = replace(WITH_VOLUME, spec=replace(WITH_VOLUME.spec, node_name=""), status=pod("x", on="").status)

    assert [each.name for each in seen(*storage(), waiting).storage.claims] == ["data"]
    assert seen(*storage(), node(), WITH_VOLUME).storage.claims == ()


def test_a_pod_name_that_is_used_again_on_another_node_moves_its_usage() -> None:
    made = cluster(node(), node("m"), pod("a"))
    made.snapshot(NOW)
    tell(made, pod("a", on="m", metadata={"uid": "another"}))

    assert [(each.name, each.used) for each in made.snapshot(NOW).existing] == [
        ("m", resources.of(cpu=1, pods=1)),
        ("n", {}),
    ]


# -- what goes -----------------------------------------------------------------------------------------------------------

GOING = [
    pytest.param(claim(deletionTimestamp="2026-01-01T00:00:00Z"), id="claim deleted"),
    pytest.param(claim(status={"conditions": [{"type": "InstanceTerminating", "status": "True"}]}), id="terminating"),
]


@pytest.mark.parametrize("going", GOING)
def test_pods_of_a_node_that_goes_join_the_queue(going: NodeClaim) -> None:
    found = seen(node(own={**DONE, NODEPOOL: "p"}), pod("a"), going)

    assert (found.existing, found.used, found.bound) == ((), {}, ())
    assert [(each.name, each.spec.node_name) for each in found.evicted] == [("a", "")]
    assert found.bound_nodes["n"][labels.HOSTNAME] == "n"


@pytest.mark.parametrize("name", ["c", "n", "id-n"])
def test_a_node_may_be_chosen_to_go_by_any_of_its_names_and_be_spared(name: str) -> None:
    made = cluster(node(own=DONE), claim(), pod("a"))
    made.mark_for_deletion(name)
    assert [each.name for each in made.snapshot(NOW).evicted] == ["a"]

    made.unmark_for_deletion(name)

    assert [each.name for each in made.snapshot(NOW).bound] == ["a"]


@pytest.mark.parametrize(
    "stays",
    [
        pytest.param({"metadata": owned_by("DaemonSet", "d")}, id="of a DaemonSet"),
        pytest.param({"metadata": {"annotations": {labels.DO_NOT_DISRUPT: "true"}}}, id="do not disrupt"),
        pytest.param({"metadata": {"labels": {"app": "db"}}}, id="protected by a budget"),
        pytest.param({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}, id="leaving anyway"),
    ],
)
def test_pods_that_need_no_other_place_yet_stay_where_they_are(stays: dict[str, Any]) -> None:
    strict = {
        "metadata": {"name": "b", "namespace": "default"},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "db"}}},
    }
    made = cluster(node(), pod("a", **stays), decode(strict, PodDisruptionBudget))
    made.mark_for_deletion("n")

    assert made.snapshot(NOW).evicted == ()
    assert [each.name for each in made.snapshot(NOW).bound] == ["a"]


def test_a_protection_that_ends_with_time_moves_the_picture() -> None:
    shielded = pod("a", metadata={"annotations": {labels.DO_NOT_DISRUPT: "10m"}})
    made = cluster(node(), replace(shielded, status=replace(shielded.status, start_time=NOW)))
    made.mark_for_deletion("n")
    early = made.snapshot(NOW)

    assert early.evicted == ()
    assert made.snapshot(NOW + timedelta(minutes=9)) is early
    assert [each.name for each in made.snapshot(NOW + timedelta(minutes=10)).evicted] == ["a"]


# -- daemons -------------------------------------------------------------------------------------------------------------


def daemon_set() -> DaemonSet:
    limits = {"resources": {"limits": {"cpu": "200m"}}}
    template = {"metadata": {"labels": {"app": "d"}}, "spec": {"containers": [limits]}}
    return decode({"metadata": {"name": "d", "namespace": "default"}, "spec": {"template": template}}, DaemonSet)


def daemon_pod(name: str, cpu: str, born: str) -> Pod:
    pinned = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": pinned}}
    return pod(name, cpu=cpu, affinity=affinity, metadata={**owned_by("DaemonSet", "d"), "creationTimestamp": born})


OLD, NEW = daemon_pod("old", "1", "2025-01-01T00:00:00Z"), daemon_pod("new", "2", "2025-06-01T00:00:00Z")


def test_a_daemon_without_pods_is_made_from_the_template_with_limits_as_requests() -> None:
    (found,) = seen(daemon_set()).daemons

    assert found.spec.containers[0].resources.requests == resources.of(cpu="200m")
    assert found.metadata.labels == {"app": "d"}


def test_a_daemon_is_like_its_newest_pod_but_bound_to_no_node() -> None:
    (found,) = seen(node(), daemon_set(), NEW, OLD).daemons

    assert found.spec.containers[0].resources.requests == resources.of(cpu=2)
    assert (found.spec.node_name, found.spec.affinity.node_affinity.required) == ("", None)


def test_a_daemon_is_like_a_pod_that_found_no_room_anywhere() -> None:
    (found,) = seen(node(), daemon_set(), OLD, replace(NEW, spec=replace(NEW.spec, node_name=""))).daemons

    assert found.spec.containers[0].resources.requests == resources.of(cpu=2)


def test_a_daemon_is_like_the_next_newest_pod_when_the_newest_is_gone() -> None:
    made = cluster(node(), daemon_set(), NEW, OLD)
    made.snapshot(NOW)
    made.apply(Pod, NEW, None)

    (found,) = made.snapshot(NOW).daemons
    assert found.spec.containers[0].resources.requests == resources.of(cpu=1)


# -- claims that are not launched ----------------------------------------------------------------------------------------

FAILING = {"conditions": [{"type": "Launched", "status": "Unknown", "reason": "LaunchFailed"}]}


@pytest.mark.parametrize(
    ("waits_for", "synced"),
    [
        pytest.param(claim(), True, id="launched"),
        pytest.param(claim(of=""), False, id="about to be launched"),
        pytest.param(claim(of="", status=FAILING), True, id="its launch fails"),
        pytest.param(claim(of="", deletionTimestamp="2026-01-01T00:00:00Z"), True, id="on its way out"),
    ],
)
def test_everybody_waits_for_a_launch_but_not_for_one_that_fails(waits_for: NodeClaim, synced: bool) -> None:
    assert cluster(waits_for).synced(NOW) is synced


def test_nobody_waits_for_a_launch_for_ever() -> None:
    assert cluster(claim(of="")).synced(NOW + LAUNCH_PATIENCE)


def test_a_claim_that_was_written_counts_before_any_watch_tells_of_it() -> None:
    made = cluster()
    made.created(claim(of=""), (), NOW)

    assert not made.synced(NOW)
    assert made.snapshot(NOW).used == {"p": resources.of(nodes=1)}
    assert made.unseen(NOW, timedelta(0)) == ("c",)


def test_a_claim_that_a_watch_told_of_is_not_taken_back_to_what_was_written() -> None:
    made = cluster(claim())
    made.created(claim(of=""), (), NOW)

    assert made.snapshot(NOW).nodes[0].launched
    assert made.unseen(NOW, timedelta(0)) == ()


def test_a_claim_that_was_gone_before_any_watch_told_of_it_is_forgotten() -> None:
    made = cluster()
    made.created(claim(of=""), (), NOW)
    made.forget_unseen("c")

    assert made.snapshot(NOW).nodes == ()


def test_pods_are_held_for_the_claim_they_were_promised_to_until_it_is_launched() -> None:
    waiting = pod("a", on="", cpu="3")
    made = cluster(waiting)
    made.created(claim(of=""), (waiting,), NOW)
    held = made.snapshot(NOW)
    assert (held.waiting, held.held) == ((), (waiting,))
    assert held.existing[0].used == resources.of(cpu=3, pods=1)
    assert [(each.name, each.spec.node_name) for each in held.bound] == [("a", "c")]

    tell(made, claim())

    assert made.snapshot(NOW).waiting == (waiting,)


def test_pods_that_must_move_are_held_as_well_and_are_counted_once() -> None:
    made = cluster(node(own=DONE), pod("a"))
    made.mark_for_deletion("n")
    (evicted,) = made.snapshot(NOW).evicted
    made.created(claim(of=""), (evicted,), NOW)

    found = made.snapshot(NOW)
    assert (found.evicted, [each.name for each in found.held]) == ((), ["a"])
    assert [(each.name, each.spec.node_name) for each in found.bound] == [("a", "c")]


def test_a_pod_that_found_a_node_while_its_claim_was_written_takes_no_room_there() -> None:
    waiting = pod("a", on="", cpu="3")
    made = cluster(node(own=DONE), claim(), waiting)
    tell(made, pod("a", cpu="3"))
    made.created(claim("d", of=""), (waiting,), NOW)

    found = made.snapshot(NOW)
    assert [(each.name, dict(each.used)) for each in found.existing if each.name == "d"] == [("d", {})]
    assert [(each.name, each.spec.node_name) for each in found.bound] == [("a", "n")]


def test_a_pod_that_came_in_place_of_another_while_the_claim_was_written_is_not_promised_its_room() -> None:
    made = cluster(pod("a", on="", metadata={"uid": "another"}))
    made.created(claim(of=""), (pod("a", on=""),), NOW)

    assert [each.metadata.uid for each in made.snapshot(NOW).waiting] == ["another"]


@pytest.mark.parametrize(
    "freed",
    [
        pytest.param(lambda made: made.apply(NodeClaim, claim(of=""), None), id="the claim is gone"),
        pytest.param(lambda made: made.mark_for_deletion("c"), id="the claim is chosen to go"),
        pytest.param(lambda made: tell(made, pod("a", on="", metadata={"uid": "another"})), id="it is another pod"),
    ],
)
def test_pods_wait_again_when_nothing_is_bought_for_them_any_more(freed: Any) -> None:
    made = cluster(pod("a", on=""))
    made.created(claim(of=""), (pod("a", on=""),), NOW)
    freed(made)

    assert [each.name for each in made.snapshot(NOW).waiting] == ["a"]


def test_what_a_claim_leaves_no_choice_about_is_known_before_it_is_launched() -> None:
    zones = {"requirements": [{"key": labels.ZONE, "operator": "In", "values": ["a"]}]}
    unlaunched = decode({"metadata": {"name": "c"}, "spec": zones}, NodeClaim)

    assert seen(unlaunched).existing[0].labels[labels.ZONE] == "a"


# -- the books -----------------------------------------------------------------------------------------------------------


def test_a_nomination_follows_the_claim_to_its_node_and_ends() -> None:
    made = cluster(claim(of=""))
    made.nominate("c", NOW + timedelta(seconds=20), NOW)
    tell(made, claim(), node(own=DONE))

    assert made.is_nominated("n", NOW + timedelta(seconds=19))
    assert not made.is_nominated("n", NOW + timedelta(seconds=20))


def test_nodes_are_reserved_up_to_the_limit_with_claims_that_go_counted() -> None:
    made = cluster(claim("c1"), claim("c2", of="m", deletionTimestamp="2026-01-01T00:00:00Z"))

    assert [made.reserve("p", 2, 5), made.reserve("p", 2, 5), made.reserve("p", 2, None)] == [2, 1, 2]
    made.release("p", 3)
    assert made.reserve("p", 9, 5) == 3


def test_what_is_known_of_a_pod_ends_with_it() -> None:
    made = cluster(pod("a", on=""))
    assert made.acknowledge(pod("a", on=""), NOW).seen == NOW
    made.apply(Pod, pod("a", on=""), None)

    assert made.times("default", "a") is None
