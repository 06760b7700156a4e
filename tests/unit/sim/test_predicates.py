from collections.abc import Iterable
from typing import Any

import pytest
from tests.builders import away_from, near_to, pod, spread_over
from tests.clusterworld import node

from joiner.model.clusterobjects import Namespace
from joiner.model.codec import decode
from joiner.model.meta import KubeObject, ObjectMeta, replace
from joiner.model.pod import Pod
from joiner.model.resources import of
from joiner.model.storage import CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass
from joiner.sim.scheduler import nodefit, podtopology, predicates, volumefit
from joiner.sim.scheduler.clusterindex import ClusterIndex, requests_of
from joiner.sim.scheduler.predicates import PodPredicates, check_placement
from joiner.sim.virtualtime import EPOCH

A = node("node-a", "a", labels={"size": "8", "team": "red"})
B = node("node-b", "b")
ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def on(name: str, *pods: Pod) -> list[Pod]:
    return [replace(each, spec=replace(each.spec, node_name=name)) for each in pods]


def web(name: str = "web-0", app: str = "web", **more: Any) -> Pod:
    return pod(name, labels={"app": app, **more.pop("labels", {})}, **more)


def places(*things: KubeObject) -> ClusterIndex:
    known = ClusterIndex()
    for thing in things:
        known.apply(None, thing)
    return known


def refusals(of_pod: Pod, name: str, things: Iterable[KubeObject]) -> list[str]:
    known = places(*things)
    return list(PodPredicates(of_pod, known).refusals(known.entries[name]))


def tainted(effect: str, **more: Any) -> KubeObject:
    return node("node-a", "a", taints=[{"key": "gpu", "effect": effect, "value": "yes"}], **more)


def chosen_by(*expressions: dict[str, Any], field: str = "matchExpressions") -> dict[str, Any]:
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{field: list(expressions)}]}}}


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


NOT_TOLERATED = "taint gpu=yes:{} not tolerated"
TABLE = {
    "an empty node": (web(), [A], []),
    "too little cpu": (web(cpu="5"), [A], ["insufficient cpu"]),
    "too little cpu left": (web(cpu="2"), [A, *on("node-a", web("x", cpu="3"))], ["insufficient cpu"]),
    "just enough left": (web(cpu="1"), [A, *on("node-a", web("x", cpu="3"))], []),
    "a resource it does not have": (web(extra={"gpu": "1"}), [A], ["insufficient gpu"]),
    "too many pods": (web(), [node("node-a", has={"pods": "1"}), *on("node-a", web("x"))], [nodefit.TOO_MANY_PODS]),
    "cordoned": (web(), [node("node-a", unschedulable=True)], [
        "taint node.kubernetes.io/unschedulable:NoSchedule not tolerated"
    ]),
    "cordoned and tolerated": (
        web(tolerations=[{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]),
        [node("node-a", unschedulable=True)],
        [],
    ),
    "tainted": (web(), [tainted("NoSchedule")], [NOT_TOLERATED.format("NoSchedule")]),
    "tainted for all": (web(), [tainted("NoExecute")], [NOT_TOLERATED.format("NoExecute")]),
    "tainted softly": (web(), [tainted("PreferNoSchedule")], []),
    "tolerated by value": (
        web(tolerations=[{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]), [tainted("NoSchedule")], []
    ),
    "tolerated for another effect": (
        web(tolerations=[{"key": "gpu", "operator": "Exists", "effect": "NoExecute"}]),
        [tainted("NoSchedule")],
        [NOT_TOLERATED.format("NoSchedule")],
    ),
    "selected": (web(nodeSelector={"team": "red"}), [A], []),
    "not selected": (web(nodeSelector={"team": "blue"}), [A], [nodefit.NOT_THE_NODE]),
    "larger than": (web(affinity=chosen_by(expression("size", "Gt", "7"))), [A], []),
    "not larger than": (web(affinity=chosen_by(expression("size", "Gt", "8"))), [A], [nodefit.NOT_THE_NODE]),
    "less than no number": (web(affinity=chosen_by(expression("team", "Lt", "8"))), [A], [nodefit.NOT_THE_NODE]),
    "not in": (web(affinity=chosen_by(expression("team", "NotIn", "red"))), [A], [nodefit.NOT_THE_NODE]),
    "not in, absent": (web(affinity=chosen_by(expression("else", "NotIn", "red"))), [A], []),
    "by name": (
        web(affinity=chosen_by(expression("metadata.name", "In", "node-a"), field="matchFields")), [A], []
    ),
    "by another name": (
        web(affinity=chosen_by(expression("metadata.name", "In", "b"), field="matchFields")),
        [A],
        [nodefit.NOT_THE_NODE],
    ),
    "a term that says nothing": (
        web(affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{}]}}}), [A], [nodefit.NOT_THE_NODE]
    ),
    "a port that is taken": (
        web(ports=[80]), [A, *on("node-a", web("x", ports=[{"hostPort": 80, "hostIP": "10.0.0.1"}]))], [nodefit.PORT_TAKEN]
    ),
    "a port of another protocol": (
        web(ports=[80]), [A, *on("node-a", web("x", ports=[{"hostPort": 80, "protocol": "UDP"}]))], []
    ),
    "a port on another node": (web(ports=[80]), [A, B, *on("node-b", web("x", ports=[80]))], []),
}  # fmt: skip


@pytest.mark.parametrize(("asked", "there", "why"), TABLE.values(), ids=TABLE)
def test_a_node_and_its_own_pods_may_refuse(asked: Pod, there: list[KubeObject], why: list[str]) -> None:
    assert refusals(asked, "node-a", there) == why


SPREAD: dict[str, Any] = {"topologySpreadConstraints": [spread_over("web")]}
LEAVING = replace(web("going"), metadata=replace(web("going").metadata, deletion_timestamp=EPOCH))
OTHERS = {
    "away from one on the node": (web(affinity=away_from("db")), on("node-a", web("x", "db")), [predicates.UNWELCOME]),
    "away from one in the zone": (
        web(affinity=away_from("db", ZONE)), on("node-a2", web("x", "db")), [predicates.UNWELCOME]
    ),
    "away from one elsewhere": (web(affinity=away_from("db", ZONE)), on("node-b", web("x", "db")), []),
    "away from another namespace": (
        web(affinity=away_from("db")), on("node-a", web("x", "db", namespace="other")), []
    ),
    "away from a named namespace": (
        web(affinity=away_from("db", namespaces=["other"])),
        on("node-a", web("x", "db", namespace="other")),
        [predicates.UNWELCOME],
    ),
    "away from chosen namespaces": (
        web(affinity=away_from("db", namespaceSelector={"matchLabels": {"tier": "1"}})),
        on("node-a", web("x", "db", namespace="other")),
        [predicates.UNWELCOME],
    ),
    "somebody there wants it away": (
        web(), on("node-a2", web("x", "db", affinity=away_from("web", ZONE))), [predicates.UNWANTED]
    ),
    "somebody elsewhere wants it away": (web(), on("node-b", web("x", "db", affinity=away_from("web", ZONE))), []),
    "near to one in the zone": (web(affinity=near_to("db")), on("node-a2", web("x", "db")), []),
    "near to one elsewhere": (web(affinity=near_to("db")), on("node-b", web("x", "db")), [predicates.LONELY]),
    "near to nobody": (web(affinity=near_to("db")), [], [predicates.LONELY]),
    "near to its own, the first": (web(affinity=near_to("web")), [], []),
    "near to its own, elsewhere": (web(affinity=near_to("web")), on("node-b", web("x")), [predicates.LONELY]),
    "near to those of its version": (
        web(labels={"v": "2"}, affinity=near_to("web", matchLabelKeys=["v"])),
        on("node-a", web("x", labels={"v": "1"})) + on("node-b", web("y", labels={"v": "2"})),
        [predicates.LONELY],
    ),
    "away from all other versions": (
        web(labels={"v": "2"}, affinity=away_from("web", mismatchLabelKeys=["v"])),
        on("node-a", web("x", labels={"v": "1"})),
        [predicates.UNWELCOME],
    ),
    "evenly": (web(**SPREAD), on("node-b", web("x")), []),
    "unevenly": (web(**SPREAD), on("node-a", web("x")), [podtopology.UNEVEN]),
    "evenly enough": (web(topologySpreadConstraints=[spread_over("web", skew=2)]), on("node-a", web("x")), []),
    "one who leaves does not count": (web(**SPREAD), on("node-a", LEAVING), []),
    "no such label": (web(topologySpreadConstraints=[spread_over("web", "rack")]), [], [podtopology.NO_DOMAIN]),
    "too few domains": (
        web(topologySpreadConstraints=[spread_over("web", minDomains=3)]),
        on("node-a", web("x")) + on("node-b", web("y")),
        [podtopology.UNEVEN],
    ),
    "only nodes that it could use": (
        web(nodeSelector={ZONE: "a"}, **SPREAD), on("node-a", web("x")), []
    ),
    "also nodes that it could not use": (
        web(nodeSelector={ZONE: "a"}, topologySpreadConstraints=[spread_over("web", nodeAffinityPolicy="Ignore")]),
        on("node-a", web("x")),
        [podtopology.UNEVEN],
    ),
    "also nodes that it does not tolerate": (
        web(topologySpreadConstraints=[spread_over("web")]), on("node-a", web("x")) + on("node-b", web("y")), [podtopology.UNEVEN]
    ),
    "only nodes that it tolerates": (
        web(topologySpreadConstraints=[spread_over("web", nodeTaintsPolicy="Honor")]),
        on("node-a", web("x")) + on("node-b", web("y")),
        [],
    ),
    "only its own version": (
        web(labels={"v": "2"}, topologySpreadConstraints=[spread_over("web", matchLabelKeys=["v"])]),
        on("node-a", web("x", labels={"v": "1"})),
        [],
    ),
    "softly": (
        web(topologySpreadConstraints=[spread_over("web", whenUnsatisfiable="ScheduleAnyway")]),
        on("node-a", web("x")),
        [],
    ),
}  # fmt: skip
TAINTED_ZONE = node("node-c", "c", taints=[{"key": "gpu", "effect": "NoSchedule"}])
CLUSTER = [A, node("node-a2", "a"), B, Namespace(metadata=ObjectMeta(name="other", labels={"tier": "1"}))]


@pytest.mark.parametrize(("asked", "there", "why"), OTHERS.values(), ids=OTHERS)
def test_pods_elsewhere_have_a_say(asked: Pod, there: list[Pod], why: list[str], request: Any) -> None:
    tolerates = "tolerate" in request.node.callspec.id
    assert refusals(asked, "node-a", [*CLUSTER, *([TAINTED_ZONE] if tolerates else []), *there]) == why


# -- volumes ---------------------------------------------------------------------------------------------------------------

LATE = StorageClass(metadata=ObjectMeta(name="late"), provisioner="ebs", volume_binding_mode="WaitForFirstConsumer")
ONLY_B = decode(
    {
        "metadata": {"name": "only-b"},
        "provisioner": "ebs",
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowedTopologies": [{"matchLabelExpressions": [{"key": ZONE, "values": ["b"]}]}],
    },
    StorageClass,
)
LIMIT = decode(
    {"metadata": {"name": "node-a"}, "spec": {"drivers": [{"name": "ebs", "allocatable": {"count": 1}}]}}, CSINode
)


def claim(name: str = "data", storage: str = "late", volume: str = "", **annotations: str) -> PersistentVolumeClaim:
    marks = {"volume.kubernetes.io/selected-node": annotations["node"]} if annotations else {}
    spec = {"storageClassName": storage, "volumeName": volume}
    metadata = {"name": name, "namespace": "default", "annotations": marks}
    return decode({"metadata": metadata, "spec": spec}, PersistentVolumeClaim)


def volume(name: str = "v", zone: str = "a") -> PersistentVolume:
    terms = {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression(ZONE, "In", zone)]}]}}
    spec = {"nodeAffinity": terms, "csi": {"driver": "ebs", "volumeHandle": name}}
    return decode({"metadata": {"name": name}, "spec": spec}, PersistentVolume)


USER = pod("user", claims=["data"])
VOLUMES: dict[str, tuple[list[KubeObject], list[str]]] = {
    "a claim that can wait": ([claim()], []),
    "a volume here": ([claim(volume="v"), volume()], []),
    "a volume elsewhere": ([claim(volume="v"), volume(zone="b")], [volumefit.VOLUME_ELSEWHERE]),
    "a volume nobody knows": ([claim(volume="v")], [volumefit.VOLUME_ELSEWHERE]),
    "a class of another zone": ([claim(storage="only-b")], [volumefit.VOLUME_ELSEWHERE]),
    "promised to another node": ([claim(node="node-b")], [volumefit.VOLUME_ELSEWHERE]),
    "promised to a node that is gone": ([claim(node="node-z")], []),
    "one volume more than the node can have": (
        [claim(), claim("x"), LIMIT, *on("node-a", pod("other", claims=["x"]))], [volumefit.TOO_MANY_VOLUMES]
    ),
    "a volume that is there already": ([claim(), LIMIT, *on("node-a", pod("other", claims=["data"]))], []),
}  # fmt: skip


@pytest.mark.parametrize(("there", "why"), VOLUMES.values(), ids=VOLUMES)
def test_volumes_have_a_say(there: list[KubeObject], why: list[str]) -> None:
    assert refusals(USER, "node-a", [A, B, LATE, ONLY_B, *there]) == why


@pytest.mark.parametrize(
    ("there", "why"),
    [
        ([], "volume claim data does not exist"),
        ([claim(storage="none")], volumefit.VOLUME_UNBOUND),
        ([claim()], None),
        ([claim(storage="none", volume="v")], None),
    ],
    ids=["no claim", "a claim that nobody serves", "a claim that can wait", "a claim that is bound"],
)
def test_a_claim_may_keep_a_pod_from_every_node(there: list[KubeObject], why: str | None) -> None:
    assert volumefit.claim_problem(USER, places(LATE, *there)) == why


# -- where a pod is --------------------------------------------------------------------------------------------------------

STANDING: dict[str, tuple[Pod, list[KubeObject], list[str]]] = {
    "well placed": (web(), [A], []),
    "overcrowded": (web(cpu="3"), [A, *on("node-a", web("x", cpu="2"))], ["insufficient cpu"]),
    "a taint for newcomers": (web(), [tainted("NoSchedule")], []),
    "a taint for all": (web(), [tainted("NoExecute")], ["taint gpu:NoExecute not tolerated"]),
    "cordoned later": (web(), [node("node-a", unschedulable=True)], []),
    "company that left": (web(affinity=near_to("db")), [A], []),
    "uneven by now": (web(**SPREAD), [A, B, *on("node-a", web("x"))], []),
    "bad company": (web(affinity=away_from("db")), [A, *on("node-a", web("x", "db"))], [predicates.UNWELCOME]),
    "not chosen": (web(nodeSelector={"team": "blue"}), [A], [nodefit.NOT_THE_NODE]),
    "its volume is elsewhere": (USER, [A, claim(volume="v"), volume(zone="b")], [volumefit.VOLUME_ELSEWHERE]),
}


@pytest.mark.parametrize(("asked", "there", "why"), STANDING.values(), ids=STANDING)
def test_what_holds_for_a_pod_that_is_there(asked: Pod, there: list[KubeObject], why: list[str]) -> None:
    (bound,) = on("node-a", asked)
    known = places(*there, bound)
    entry = known.entries["node-a"]
    assert entry.node is not None

    assert check_placement(bound, entry.node, known) == why
    assert known.pods.keys() >= {("default", asked.name)}


def test_a_pod_alike_that_it_dislikes_is_not_itself() -> None:
    (bound,) = on("node-a", web(affinity=away_from("web")))

    assert check_placement(bound, A, places(A, bound)) == []


def test_a_node_that_moves_takes_its_pods_along() -> None:
    known = places(A, node("node-a2", "a"), *on("node-a2", web("x", "db")))
    asked = web(affinity=away_from("db", ZONE))
    assert list(PodPredicates(asked, known).refusals(known.entries["node-a"])) == [predicates.UNWELCOME]

    known.apply(None, node("node-a2", "b"))

    assert list(PodPredicates(asked, known).refusals(known.entries["node-a"])) == []


# -- what is taken ---------------------------------------------------------------------------------------------------------


def container(cpu: str, **more: Any) -> dict[str, Any]:
    return {"name": "c", "resources": {"requests": {"cpu": cpu}}, **more}


AMOUNTS: dict[str, tuple[dict[str, Any], str]] = {
    "containers together": ({"containers": [container("1"), container("2")]}, "3"),
    "init containers one by one": ({"containers": [container("1")], "initContainers": [container("4")]}, "4"),
    "sidecars beside the others": (
        {"containers": [container("1")], "initContainers": [container("2", restartPolicy="Always")]},
        "3",
    ),
    "sidecars beside later init containers": (
        {"containers": [], "initContainers": [container("2", restartPolicy="Always"), container("3")]},
        "5",
    ),
    "the pod as a whole": ({"containers": [container("1")], "resources": {"requests": {"cpu": "7"}}}, "7"),
    "overhead on top": ({"containers": [container("1")], "overhead": {"cpu": "500m"}}, "1500m"),
}


@pytest.mark.parametrize(("spec", "cpu"), AMOUNTS.values(), ids=AMOUNTS)
def test_a_pod_takes_what_it_needs_at_its_peak(spec: dict[str, Any], cpu: str) -> None:
    assert requests_of(decode({"spec": spec}, Pod).spec) == of(cpu=cpu, pods=1)


def test_the_index_returns_to_nothing_when_all_have_gone() -> None:
    things: list[KubeObject] = [A, *on("node-a", web(ports=[80], claims=["data"]), web("x", affinity=away_from("db")))]
    known = places(*things)

    for thing in things:
        known.apply(thing, None)

    assert not known.entries
    assert not known.pods
    assert not known.groups
