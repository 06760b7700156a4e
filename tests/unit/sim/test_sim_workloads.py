from typing import Any

import pytest
from tests.builders import pod
from tests.clusterworld import Town, in_town, node, running

from joiner.kube.errors import Unreachable
from joiner.model.codec import decode
from joiner.model.meta import KubeObject, ObjectMeta, replace
from joiner.model.node import Node
from joiner.model.pod import Pod
from joiner.model.podpolicy import PriorityClass, RuntimeClass
from joiner.model.resources import of
from joiner.model.storage import PersistentVolumeClaim
from joiner.model.workload import DaemonSet, Deployment, Job, JobSpec, ReplicaSet, StatefulSet, WorkloadStatus
from joiner.sim.apiserver.client import Call, NoInterceptor, WatchedChange
from joiner.sim.virtualtime import EPOCH
from joiner.sim.workloads import admit
from joiner.sim.workloads.deployment import first_to_go, grown, shrunk
from joiner.sim.workloads.job import wanted

SELECTOR = {"matchLabels": {"app": "web"}}


def template(cpu: str = "100m", **spec: Any) -> dict[str, Any]:
    containers = [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]
    annotations = {"test/stuck": "yes"} if spec.pop("stuck", False) else {}
    labels = {"app": "web"}
    return {"metadata": {"labels": labels, "annotations": annotations}, "spec": {"containers": containers, **spec}}


def deployment(replicas: int = 3, **spec: Any) -> Deployment:
    wanted = {"replicas": replicas, "selector": SELECTOR, "template": template(**spec)}
    return decode({"metadata": {"name": "web", "namespace": "default"}, "spec": wanted}, Deployment)


def stateful(replicas: int = 3, **spec: Any) -> StatefulSet:
    claims = [{"metadata": {"name": "data"}, "spec": {"storageClassName": "none"}}] if spec.pop("claims", 0) else []
    body = {"replicas": replicas, "selector": SELECTOR, "template": template(**spec), "volumeClaimTemplates": claims}
    return decode({"metadata": {"name": "db", "namespace": "default"}, "spec": body}, StatefulSet)


def daemon(cpu: str = "100m", **spec: Any) -> DaemonSet:
    body = {"selector": SELECTOR, "template": template(cpu, **spec)}
    return decode({"metadata": {"name": "agent", "namespace": "default"}, "spec": body}, DaemonSet)


def job(**spec: Any) -> Job:
    body = {**spec, "template": template()}
    return decode({"metadata": {"name": "once", "namespace": "default"}, "spec": body}, Job)


async def change(town: Town, kind: type[Any], name: str, **spec: Any) -> None:
    found = town.server.get(kind, name, "default")
    await town.client.patch(found, replace(found, spec=replace(found.spec, **spec)))


async def finish(town: Town, found: Pod, phase: str) -> None:
    await town.client.patch_status(found, replace(found, status=replace(found.status, phase=phase)))


# -- deployments and replica sets ------------------------------------------------------------------------------------------


def test_a_deployment_gets_its_pods_and_says_so() -> None:
    async def test(town: Town) -> None:
        town.create(node("a"), deployment(3))
        await town.run(10)

        status = town.all(Deployment)[0].status
        owners = {pod.metadata.owner_references[0].kind for pod in town.pods("web")}
        assert (len(town.pods("web")), owners) == (3, {"ReplicaSet"})
        assert (status.replicas, status.ready_replicas, status.observed_generation) == (3, 3, 1)
        assert not town.failures

    in_town(test)


@pytest.mark.parametrize("replicas", [0, 1, 7])
def test_a_deployment_follows_its_number(replicas: int) -> None:
    async def test(town: Town) -> None:
        town.create(node("a"), deployment(3))
        await town.run(10)
        await change(town, Deployment, "web", replicas=replicas)
        await town.run(10)

        assert len(town.pods("web")) == replicas == town.all(Deployment)[0].status.ready_replicas

    in_town(test)


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
def test_a_pod_that_has_ended_is_replaced(phase: str) -> None:
    async def test(town: Town) -> None:
        town.create(node("a"), deployment(2))
        await town.run(10)
        await finish(town, town.pods("web")[0], phase)
        await town.run(10)

        assert sorted(pod.status.phase for pod in town.pods("web")) == sorted([phase, "Running", "Running"])

    in_town(test)


def test_a_pod_that_is_being_deleted_is_replaced_at_once() -> None:
    async def test(town: Town) -> None:
        town.create(node("a"), deployment(2))
        await town.run(10)
        await town.client.delete(Pod, town.pods("web")[0].name, "default")
        await town.run(0.5)

        assert len(town.pods("web")) == 2
        assert len(town.all(Pod)) == 3

    in_town(test)


def test_a_new_template_is_rolled_out_with_a_quarter_more_and_a_quarter_less() -> None:
    async def test(town: Town) -> None:
        most, least = 0, 8

        def watch(write: Any) -> None:
            nonlocal most, least
            most = max(most, len(town.pods("web")))
            least = min(least, sum(1 for each in town.pods("web") if each.status.phase == "Running"))

        town.create(node("a", has={"pods": "50"}), deployment(8))
        await town.run(10)
        town.server.observers.append(watch)
        await change(town, Deployment, "web", template=deployment(cpu="200m").spec.template)
        await town.run(60)

        assert (most, least) == (10, 6)
        assert {pod.spec.containers[0].resources.requests["cpu"] for pod in town.pods("web")} == {200}
        assert [each.spec.replicas for each in town.all(ReplicaSet) if each.spec.replicas] == [8]

    in_town(test)


def test_a_rollout_that_cannot_work_leaves_three_quarters_running() -> None:
    async def test(town: Town) -> None:
        town.create(node("a"), deployment(8))
        await town.run(10)
        await change(town, Deployment, "web", template=deployment(cpu="100").spec.template)
        await town.run(600)

        assert town.all(Deployment)[0].status.ready_replicas == 6

    in_town(test)


@pytest.mark.parametrize(
    ("wanted", "newest", "others", "becomes"),
    [(4, 0, 0, 4), (4, 0, 4, 1), (4, 1, 4, 1), (4, 1, 3, 2), (2, 4, 1, 2), (0, 0, 3, 0)],
    ids=["nothing to replace", "begins", "waits", "goes on", "too many", "none wanted"],
)
def test_the_newest_template_grows_as_the_others_leave(wanted: int, newest: int, others: int, becomes: int) -> None:
    assert grown(wanted, newest, others) == becomes


class Trouble(NoInterceptor):
    """Events about pods come late, or answers to their making do; the first answer is lost if so wanted."""

    def __init__(self, *, events_s: float = 0.0, answers_s: float = 0.0, lost: int = 0) -> None:
        self.events_s, self.answers_s, self.lost = events_s, answers_s, lost

    def after(self, call: Call) -> float:
        if call.verb == "create" and call.kind is Pod:
            if self.lost:
                self.lost -= 1
                raise Unreachable("lost")
            return self.answers_s
        return 0.0

    def event(self, call: Call, event: Any) -> WatchedChange:
        return WatchedChange(delay_s=self.events_s if call.kind is Pod else 0.0)


TROUBLES = {
    "events come late": Trouble(events_s=3.0),
    "answers come late": Trouble(answers_s=3.0),
    "an answer is lost": Trouble(lost=1),
}


@pytest.mark.parametrize("trouble", TROUBLES.values(), ids=TROUBLES)
def test_the_number_of_pods_is_right_although(trouble: Trouble) -> None:
    async def test(town: Town) -> None:
        town.create(node("a"), deployment(3))
        await town.run(100)
        born = town.server.trace.verbs["create"]
        for replicas in (5, 2):
            await change(town, Deployment, "web", replicas=replicas)
            await town.run(100)
            assert len(town.pods("web")) == replicas
        assert town.server.trace.verbs["create"] == born + 2
        assert town.server.trace.verbs["delete"] == 3

    in_town(test, workloads=trouble)


def replica_set(name: str, replicas: int, ready: int) -> ReplicaSet:
    found = decode({"metadata": {"name": name}, "spec": {"replicas": replicas}}, ReplicaSet)
    return replace(found, status=WorkloadStatus(ready_replicas=ready))


@pytest.mark.parametrize(
    ("newest", "old", "stay"),
    [((0, 0), (8, 8), 6), ((2, 0), (8, 8), 6), ((2, 2), (8, 8), 4), ((2, 0), (8, 5), 6), ((4, 4), (6, 1), 2)],
    ids=["begins", "the new are not ready", "the new are ready", "some old are broken", "most old are broken"],
)
def test_old_templates_shrink_as_far_as_six_of_eight_are_ready(
    newest: tuple[int, int], old: tuple[int, int], stay: int
) -> None:
    ((_, left),) = shrunk(8, replica_set("new", *newest), [replica_set("old", *old)])

    assert left == stay


# -- who goes first --------------------------------------------------------------------------------------------------------


def member(name: str, where: str = "a", *, ready: bool = True, cost: str = "0", age: int = 0) -> Pod:
    made = pod(name)
    metadata = replace(
        made.metadata,
        annotations={"controller.kubernetes.io/pod-deletion-cost": cost},
        creation_timestamp=EPOCH.replace(minute=59 - age),
    )
    made = replace(made, metadata=metadata, spec=replace(made.spec, node_name=where))
    return running(made) if ready else made


FIRST: dict[str, tuple[Pod, Pod]] = {
    "without a node": (member("z", "", ready=False), member("a", ready=False)),
    "not ready": (member("z", ready=False), member("a")),
    "cheaper": (member("z", cost="-1"), member("a", cost="0")),
    "cost that is no number counts as none": (member("z", cost="?"), member("a", cost="1")),
    "newer": (member("z", age=1), member("a", age=2)),
    "by name": (member("a"), member("b")),
}


@pytest.mark.parametrize(("first", "second"), FIRST.values(), ids=FIRST)
def test_who_goes_first(first: Pod, second: Pod) -> None:
    assert first_to_go([second, first]) == [first, second]


def test_the_crowded_go_before_the_lonely() -> None:
    lonely, crowd = member("a", "x", age=0), [member("b", "y", age=5), member("c", "y", age=5)]

    assert first_to_go([lonely, *crowd]) == [*crowd, lonely]


# -- stateful sets ---------------------------------------------------------------------------------------------------------


def test_stateful_pods_come_one_after_the_other_and_go_in_reverse() -> None:
    async def test(town: Town) -> None:
        town.create(node("a"), stateful(3))
        await town.run(0.5)
        assert list(town.where()) == ["db-0"]
        await town.run(10)
        assert list(town.where()) == ["db-0", "db-1", "db-2"]

        await change(town, StatefulSet, "db", replicas=1)
        await town.run(0.5)
        assert list(town.where()) == ["db-0", "db-1"]
        await town.run(10)
        assert list(town.where()) == ["db-0"]
        assert not town.failures

    in_town(test)


def test_a_stateful_pod_comes_back_under_its_name_only_after_it_has_gone() -> None:
    async def test(town: Town) -> None:
        town.create(node("a"), stateful(2))
        await town.run(10)
        old = town.server.get(Pod, "db-0", "default")
        await town.client.delete(Pod, "db-0", "default")
        await town.run(0.5)
        assert town.server.get(Pod, "db-0", "default").metadata.uid == old.metadata.uid
        await town.run(10)
        assert town.server.get(Pod, "db-0", "default").metadata.uid != old.metadata.uid
        assert list(town.where().values()) == ["a", "a"]

    in_town(test)


def test_claims_of_a_stateful_set_outlive_its_pods() -> None:
    async def test(town: Town) -> None:
        town.create(node("a"), stateful(1, claims=True))
        await town.run(10)
        await change(town, StatefulSet, "db", replicas=0)
        await town.run(10)

        assert [claim.name for claim in town.all(PersistentVolumeClaim)] == ["data-db-0"]
        assert not town.pods()

    in_town(test)


def test_a_new_template_replaces_stateful_pods_from_the_last() -> None:
    async def test(town: Town) -> None:
        town.create(node("a"), stateful(2))
        await town.run(10)
        await change(town, StatefulSet, "db", template=stateful(cpu="200m").spec.template)
        await town.run(0.5)
        assert list(town.where()) == ["db-0"]
        await town.run(20)
        assert [pod.spec.containers[0].resources.requests["cpu"] for pod in town.pods()] == [200, 200]

    in_town(test)


# -- daemon sets -----------------------------------------------------------------------------------------------------------


def test_every_node_gets_a_daemon_also_those_that_come_later() -> None:
    async def test(town: Town) -> None:
        town.create(node("a"), daemon())
        await town.run(10)
        town.create(node("b", unschedulable=True))
        await town.run(10)

        assert sorted(town.where().values()) == ["a", "b"]
        status = town.all(DaemonSet)[0].status
        assert (status.desired_number_scheduled, status.current_number_scheduled, status.number_ready) == (2, 2, 2)

    in_town(test)


def affinity(zone: str) -> dict[str, Any]:
    expression = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]}
    terms = [{"matchExpressions": [expression]}]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


NODES: dict[str, tuple[dict[str, Any], dict[str, Any], bool]] = {
    "selected": ({"labels": {"gpu": "yes"}}, {"nodeSelector": {"gpu": "yes"}}, True),
    "not selected": ({}, {"nodeSelector": {"gpu": "yes"}}, False),
    "in its zone": ({}, {"affinity": affinity("a")}, True),
    "in another zone": ({}, {"affinity": affinity("b")}, False),
    "tainted": ({"taints": [{"key": "x", "effect": "NoSchedule"}]}, {}, False),
    "not ready": ({"taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}]}, {}, True),
    "short of memory": ({"taints": [{"key": "node.kubernetes.io/memory-pressure", "effect": "NoSchedule"}]}, {}, True),
    "unregistered": ({"taints": [{"key": "karpenter.sh/unregistered", "effect": "NoExecute"}]}, {}, False),
}


@pytest.mark.parametrize(("place", "spec", "there"), NODES.values(), ids=NODES)
def test_a_daemon_is_where_it_fits(place: dict[str, Any], spec: dict[str, Any], there: bool) -> None:
    async def test(town: Town) -> None:
        town.create(node("a", **place), daemon(**spec))
        await town.run(10)

        assert bool(town.pods()) is there
        assert town.all(DaemonSet)[0].status.desired_number_scheduled == there

    in_town(test)


@pytest.mark.parametrize(("effect", "stays"), [("NoSchedule", True), ("NoExecute", False)])
def test_a_daemon_leaves_a_node_that_drives_it_out(effect: str, stays: bool) -> None:
    async def test(town: Town) -> None:
        town.create(node("a"), daemon())
        await town.run(10)
        found = town.server.get(Node, "a")
        tainted = node("a", taints=[{"key": "x", "effect": effect}])
        await town.client.patch(found, replace(found, spec=tainted.spec))
        await town.run(10)
        assert bool(town.pods()) is stays

    in_town(test)


def test_a_daemon_that_is_leaving_is_waited_for() -> None:
    async def test(town: Town) -> None:
        town.create(node("a"), daemon())
        await town.run(10)
        await town.client.delete(Pod, town.pods()[0].name, "default")
        await town.run(0.5)
        assert len(town.all(Pod)) == 1
        await town.run(10)
        assert [pod.status.phase for pod in town.pods()] == ["Running"]

    in_town(test)


def test_daemons_of_a_node_that_is_gone_are_gone() -> None:
    async def test(town: Town) -> None:
        town.create(node("a"), daemon())
        await town.run(10)
        await town.client.delete(Node, "a")
        await town.run(10)

        assert not town.all(Pod)
        assert town.all(DaemonSet)[0].status.desired_number_scheduled == 0

    in_town(test)


def test_daemons_of_a_new_template_come_one_node_at_a_time() -> None:
    async def test(town: Town) -> None:
        town.create(*(node(name) for name in "abc"), daemon())
        await town.run(10)
        await change(town, DaemonSet, "agent", template=daemon("200m").spec.template)
        await town.run(1)
        assert len([pod for pod in town.pods() if pod.status.phase == "Running"]) == 2
        await town.run(30)
        assert [pod.spec.containers[0].resources.requests["cpu"] for pod in town.pods()] == [200, 200, 200]
        assert sorted(town.where().values()) == ["a", "b", "c"]

    in_town(test)


# -- jobs ------------------------------------------------------------------------------------------------------------------

JOBS: dict[str, tuple[JobSpec, tuple[int, int, int], int]] = {
    "one": (JobSpec(), (0, 0, 0), 1),
    "done": (JobSpec(), (1, 0, 0), 0),
    "as many as are left": (JobSpec(parallelism=3, completions=5), (4, 0, 0), 1),
    "no more than at once": (JobSpec(parallelism=3, completions=5), (0, 0, 0), 3),
    "a queue": (JobSpec(parallelism=3), (0, 0, 0), 3),
    "a queue that runs dry": (JobSpec(parallelism=3), (1, 0, 2), 2),
    "suspended": (JobSpec(suspend=True), (0, 0, 1), 0),
    "six failures": (JobSpec(), (0, 6, 0), 1),
    "seven failures": (JobSpec(), (0, 7, 0), 0),
    "as many failures as it may have": (JobSpec(backoff_limit=0), (0, 1, 0), 0),
}


@pytest.mark.parametrize(("spec", "so_far", "now"), JOBS.values(), ids=JOBS)
def test_how_many_pods_of_a_job_are_at_work(spec: JobSpec, so_far: tuple[int, int, int], now: int) -> None:
    assert wanted(spec, *so_far) == now


def test_a_job_runs_until_enough_have_succeeded() -> None:
    async def test(town: Town) -> None:
        town.create(node("a"), job(parallelism=2, completions=3))
        for _ in range(4):
            await town.run(10)
            for each in town.pods():
                if each.status.phase == "Running":
                    await finish(town, each, "Succeeded")

        assert [pod.status.phase for pod in town.pods()] == ["Succeeded"] * 3
        assert (town.all(Job)[0].status.succeeded, town.all(Job)[0].status.active) == (3, 0)

    in_town(test)


def test_a_pod_of_a_job_that_succeeded_still_counts_when_it_has_been_removed() -> None:
    async def test(town: Town) -> None:
        town.create(node("a"), job(parallelism=2, completions=4))
        for _ in range(3):
            await town.run(10)
            for each in town.pods():
                await finish(town, each, "Succeeded")
            await town.run(1)
            for each in town.pods():
                if each.status.phase == "Succeeded":
                    await town.client.delete(Pod, each.name, "default", grace_period_s=0)
        await town.run(100)

        assert (town.all(Job)[0].status.succeeded, town.pods()) == (4, [])

    in_town(test)


def test_a_job_waits_longer_after_each_failure_and_gives_up() -> None:
    async def test(town: Town) -> None:
        town.create(node("a"), job(backoffLimit=1))
        await town.run(5)
        await finish(town, town.pods()[0], "Failed")
        await town.run(5)
        assert len(town.pods()) == 1
        await town.run(10)
        assert len(town.pods()) == 2
        await finish(town, next(pod for pod in town.pods() if pod.status.phase == "Running"), "Failed")
        await town.run(1000)
        assert [pod.status.phase for pod in town.pods()] == ["Failed", "Failed"]
        assert town.all(Job)[0].status.failed == 2

    in_town(test)


# -- admission -------------------------------------------------------------------------------------------------------------


def admitted(spec: dict[str, Any], *things: KubeObject) -> Pod:
    runtimes = [each for each in things if isinstance(each, RuntimeClass)]
    priorities = [each for each in things if isinstance(each, PriorityClass)]
    return admit(decode({"metadata": {"name": "x"}, "spec": spec}, Pod), runtimes, priorities)


GOLD = PriorityClass(metadata=ObjectMeta(name="gold"), value=7, preemption_policy="Never")
USUAL = PriorityClass(metadata=ObjectMeta(name="usual"), value=3, global_default=True)
PRIORITIES: dict[str, tuple[dict[str, Any], int]] = {
    "by class": ({"priorityClassName": "gold"}, 7),
    "the usual one": ({}, 3),
    "of the system": ({"priorityClassName": "system-node-critical"}, 2_000_001_000),
    "given": ({"priority": 5}, 5),
}


@pytest.mark.parametrize(("spec", "priority"), PRIORITIES.values(), ids=PRIORITIES)
def test_a_pod_gets_the_priority_of_its_class(spec: dict[str, Any], priority: int) -> None:
    assert admitted(spec, GOLD, USUAL).spec.priority == priority


def test_limits_stand_in_for_requests_and_a_runtime_adds_its_overhead() -> None:
    runtime = decode(
        {
            "metadata": {"name": "vm"},
            "overhead": {"podFixed": {"cpu": "250m"}},
            "scheduling": {"nodeSelector": {"vm": "yes"}},
        },
        RuntimeClass,
    )
    containers = [{"name": "c", "resources": {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}}}]
    made = admitted({"containers": containers, "runtimeClassName": "vm"}, runtime)

    assert made.spec.containers[0].resources.requests == of(cpu=1, memory="1Gi")
    assert (made.spec.overhead, made.spec.node_selector) == (of(cpu="250m"), {"vm": "yes"})


WHOLE_PODS = {
    "a limit of the pod": ({"limits": {"memory": "1Gi"}}, {}, {"memory": "1Gi"}),
    "unless the pod asks for something": ({"limits": {"cpu": 2}, "requests": {"cpu": 1}}, {}, {"cpu": 1}),
    "unless a container does": ({"limits": {"cpu": 2}}, {"requests": {"cpu": 1}}, {}),
    "or has a limit": ({"limits": {"cpu": 2}}, {"limits": {"cpu": 1}}, {}),
}


@pytest.mark.parametrize(("whole", "container", "requests"), WHOLE_PODS.values(), ids=WHOLE_PODS)
def test_a_limit_of_the_whole_pod_stands_in_for_requests_that_no_container_has(
    whole: dict[str, Any], container: dict[str, Any], requests: dict[str, Any]
) -> None:
    made = admitted({"resources": whole, "containers": [{"name": "c", "resources": container}]})

    assert made.spec.resources.requests == of(**requests)


@pytest.mark.parametrize(
    ("tolerations", "added"),
    [([], 2), ([{"operator": "Exists"}], 0), ([{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}], 1)],
    ids=["none", "all", "one"],
)
def test_a_pod_is_patient_with_a_lost_node_for_five_minutes(tolerations: list[Any], added: int) -> None:
    made = admitted({"tolerations": tolerations}).spec.tolerations

    assert [each.toleration_seconds for each in made[len(tolerations) :]] == [300] * added
