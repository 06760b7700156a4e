"""What `joiner plan` says about objects it does not count, counts once, or can make nothing of."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.unit.cli.test_plan_command import NODE, POOL, deployment, pod

from joiner.cli.main import cli


def run(*documents: str, arguments: tuple[str, ...] = ()) -> tuple[dict[str, Any], str]:
    command = ["plan", "-f", "-", "-o", "json", *arguments]
    result = CliRunner().invoke(cli, command, input="---\n".join((POOL, *documents)))
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout), result.stderr


def notes(*documents: str) -> str:
    return "\n".join(run(*documents)[0]["notes"])


# -- whose pods they are -------------------------------------------------------------------------------------------------


def living(name: str, replica_set: str, label: str = "web") -> str:
    return f"""\
apiVersion: v1
kind: Pod
metadata:
  name: {name}
  uid: "{name}"
  labels: {{app: {label}}}
  ownerReferences: [{{apiVersion: apps/v1, kind: ReplicaSet, name: {replica_set}, controller: true}}]
spec: {{nodeName: there, containers: [{{name: c, resources: {{requests: {{cpu: 100m, memory: 1Gi}}}}}}]}}
"""


def selecting(app: str, name: str = "web") -> str:
    selector = f"  selector: {{matchLabels: {{app: {app}}}}}\n  template:"
    return (
        deployment(name).replace("  template:", selector).replace(f"labels: {{app: {name}}}", f"labels: {{app: {app}}}")
    )


@pytest.mark.parametrize(
    ("workload", "replica_set", "waiting"),
    [
        pytest.param(deployment(), "web-5d8f6c7b9", 2, id="by the name of the ReplicaSet"),
        pytest.param(selecting("web"), "web-5d8f6c7b9", 2, id="by name and selector"),
        pytest.param(selecting("web"), "renamed", 2, id="by the selector alone"),
        pytest.param(selecting("other"), "web-5d8f6c7b9", 3, id="a name alike but another selector"),
        pytest.param(deployment(), "website-5d8f6c7b9", 3, id="another name"),
    ],
)
def test_running_pods_count_for_their_deployment_without_its_replica_set(
    workload: str, replica_set: str, waiting: int
) -> None:
    assert run(NODE, living("web-a", replica_set), workload)[0]["summary"]["pods"] == waiting


# -- what is passed over -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "version", "said"),
    [
        pytest.param("CronJob", "batch/v1", "CronJob x is passed over: the Jobs it starts at its hours", id="CronJob"),
        pytest.param("ScaledObject", "keda.sh/v1alpha1", "the replicas that workloads state", id="KEDA"),
        pytest.param(
            "Rollout",
            "argoproj.io/v1alpha1",
            "plans do not read such objects, and pods that they make are not planned for",
            id="a stranger",
        ),
        pytest.param("Deploymnet", "apps/v1", "did you mean Deployment?", id="a slip"),
        pytest.param(
            "Deployment", "extensions/v1beta1", "is extensions/v1beta1; only apps/v1 is read", id="an old one"
        ),
    ],
)
def test_what_might_have_mattered_is_told(kind: str, version: str, said: str) -> None:
    assert said in notes(f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: x}}\n")


def test_objects_of_one_kind_are_told_in_one_line() -> None:
    jobs = [f"apiVersion: batch/v1\nkind: CronJob\nmetadata: {{name: j{n}}}\n" for n in range(9)]

    assert "CronJob j0, j1, j2 and 6 more are passed over" in notes(*jobs)


def test_kinds_that_say_nothing_about_places_are_passed_over_in_silence() -> None:
    silent = (f"apiVersion: v1\nkind: {kind}\nmetadata: {{name: x}}\n" for kind in ("ConfigMap", "Service"))

    assert notes(pod("a"), *silent) == ""


# -- the market ----------------------------------------------------------------------------------------------------------


def overlay(name: str, price: str, family: str = "c") -> str:
    chosen = f"[{{key: karpenter.kwok.sh/instance-family, operator: In, values: [{family}]}}]"
    head = f"apiVersion: karpenter.sh/v1alpha1\nkind: NodeOverlay\nmetadata: {{name: {name}}}\n"
    return f'{head}spec: {{requirements: {chosen}, price: "{price}"}}\n'


SETTINGS = """\
apiVersion: karpenter.sh/v1alpha1
kind: InstanceType
metadata: {name: c-4x-amd64-linus}
spec: {resources: {cpu: "5"}}
"""


@pytest.mark.parametrize(
    ("documents", "said"),
    [
        pytest.param(
            [overlay("one", "1"), overlay("two", "2")], "NodeOverlays one and two have the same", id="conflict"
        ),
        pytest.param([SETTINGS], "InstanceType c-4x-amd64-linus names no type of this provider", id="no such type"),
        pytest.param([SETTINGS], "did you mean c-4x-amd64-linux?", id="a type like it"),
        pytest.param(
            [overlay("one", "1", "zz")], "NodeOverlay one matches nothing that NodePool default can", id="idle"
        ),
    ],
)
def test_what_is_odd_about_overlays_and_settings_is_told(documents: list[str], said: str) -> None:
    assert said in notes(pod("a"), *documents)


@pytest.mark.parametrize(
    ("hook", "planned"),
    [("test", 0), ("post-delete, pre-rollback", 0), ("pre-install", 1), ("post-upgrade,test", 1)],
)
def test_what_helm_starts_only_to_test_or_to_delete_is_not_planned_for(hook: str, planned: int) -> None:
    report, _ = run(pod("a").replace("metadata: {", f"metadata: {{annotations: {{helm.sh/hook: '{hook}'}}, "))

    assert report["summary"]["pods"] == planned
    told = "Pod a is passed over: helm starts it only to test, delete or roll back a release (helm.sh/hook)"
    assert (told in report["notes"]) is not bool(planned)


def test_pools_that_cannot_be_used_for_one_reason_are_one_line() -> None:
    absent = POOL.partition("---\n")[2].replace("karpenter.kwok.sh, kind: KWOK", "eks.amazonaws.com, kind: ")
    others = [absent.replace("name: default", f"name: {name}", 1) for name in ("one", "two")]
    (line,) = run(pod("a"), *others)[0]["nodePoolsLeftOut"]

    assert line.startswith(
        "NodePools one, two are left out: no installed provider reads NodeClass of eks.amazonaws.com"
    )


# -- pods ----------------------------------------------------------------------------------------------------------------


def test_a_pod_that_is_given_twice_counts_once_and_is_told() -> None:
    found, _ = run(NODE, pod("a", node="there", uid="x"), pod("a"))

    assert found["summary"]["pods"] == 0
    assert "Pod a: given more than once; each counts once" in found["notes"]


def test_of_pods_that_are_given_twice_and_differ_it_is_told_which_counts() -> None:
    found, _ = run(pod("a"), pod("b"), pod("a", cpu="2"), pod("b"))

    assert "Pod a (<stdin>:27): given more than once, and not alike; only what stands at" in "\n".join(found["notes"])
    assert "Pod b: given more than once; each counts once" in found["notes"]
    assert found["claims"][0]["requests"]["cpu"] == "3"


def test_files_in_which_nobody_waits_are_told() -> None:
    said = "no pod is waiting for a node, so there is nothing to plan for"

    assert said in notes(NODE, pod("a", node="there"))
    assert said not in notes(pod("a"))


def test_pods_without_requests_are_told_with_their_number() -> None:
    bare = deployment("bare", replicas=4).replace("{cpu: '1', memory: 1Gi}", "{}")

    assert "4 of 5 pods request no cpu and no memory (Deployment bare): they take none" in notes(bare, pod("a"))


def test_pods_that_request_only_one_of_the_two_are_told_by_which_is_missing() -> None:
    half = deployment("half", replicas=2).replace("cpu: '1', ", "")

    assert "2 of 2 pods request no cpu (Deployment half)" in notes(half)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        pytest.param(
            ", nodeSelecter: {a: b}", ["spec.template.spec.nodeSelecter: Kubernetes", "nodeSelector"], id="pod"
        ),
        pytest.param(
            ", affinity: {nodeAffinity: {required: {}}}",
            ["affinity.nodeAffinity.required:", "requiredDuringSchedulingIgnoredDuringExecution"],
            id="affinity",
        ),
        pytest.param(
            ", tolerations: [{keyy: a, operator: Exists}]", ["spec.tolerations[0].keyy:", "mean: key"], id="in a list"
        ),
        pytest.param(
            ", initContainers: [{resources: {requests: {mem: 1Gi}}}]",
            ["resources.requests.mem: Kubernetes knows no such resource", "mean: memory"],
            id="a resource",
        ),
    ],
)
def test_fields_that_kubernetes_does_not_know_are_told_with_the_one_that_was_meant(more: str, said: list[str]) -> None:
    warned = run(deployment(more=more))[1]

    assert "warning: Deployment/web" in warned
    assert all(each in warned for each in said)


def test_whatever_else_a_pod_may_hold_is_no_problem() -> None:
    more = ", hostNetwork: true, volumes: [{name: v, emptyDir: {}}], securityContext: {runAsUser: 1}, restartPolicy: Always"

    assert "warning" not in run(deployment(more=more))[1]


def test_what_an_api_server_has_stored_is_not_looked_at_again() -> None:
    stored = pod("a", uid="x").replace("spec: {", "spec: {fromTheFuture: true, ")

    assert "fromTheFuture" not in run(stored)[1]


# -- options -------------------------------------------------------------------------------------------------------------

SERVICE = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {selector: {app: web}}\n"
CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: PodTopologySpread
    args:
      defaultingType: List
      defaultConstraints: [{maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule}]
"""


@pytest.mark.parametrize(
    ("workload", "more", "nodes"),
    [
        pytest.param(deployment(), [SERVICE], 3, id="a Service"),
        pytest.param(selecting("web"), [], 3, id="the Deployment's selector"),
        pytest.param(deployment(), [], 1, id="nobody says who is spread with whom"),
    ],
)
def test_the_schedulers_default_spread_is_planned_for(
    workload: str, more: list[str], nodes: int, tmp_path: Path
) -> None:
    (tmp_path / "scheduler.yaml").write_text(CONFIG)
    found, _ = run(workload, *more, arguments=("--scheduler-config", str(tmp_path / "scheduler.yaml")))

    assert found["summary"]["newNodes"] == nodes


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(CONFIG.replace("maxSkew: 1", "maxSkew: 0"), "maxSkew: is 0; it must be 1 or more", id="bad value"),
        pytest.param("kind: Pod\napiVersion: v1\n", "this is Pod of v1, not a KubeSchedulerConfiguration", id="kind"),
        pytest.param("a: [", "scheduler.yaml:", id="no YAML"),
        pytest.param("", "holds 0 documents", id="empty"),
        pytest.param(None, "cannot be read", id="no file"),
    ],
)
def test_a_bad_scheduler_configuration_is_an_error_with_the_field(text: str | None, said: str, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / "scheduler.yaml").write_text(text)
    command = ["plan", "-f", "-", "--scheduler-config", str(tmp_path / "scheduler.yaml")]
    result = CliRunner().invoke(cli, command, input=POOL)

    assert result.exit_code == 1
    assert said in result.output
    assert "Traceback" not in result.output


# -- volumes that were never in a cluster ----------------------------------------------------------------------------------

STATEFUL = """\
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 2
  template: {spec: {containers: [{name: c, resources: {requests: {cpu: 100m}}}]}}
  volumeClaimTemplates: [{metadata: {name: data}, spec: {storageClassName: fast}}]
"""
AT_ONCE = """\
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: fast}
provisioner: ebs.csi.aws.com
volumeBindingMode: Immediate
allowedTopologies: [{matchLabelExpressions: [{key: topology.ebs.csi.aws.com/zone, values: [test-zone-b]}]}]
"""
VOLUME = """\
apiVersion: v1
kind: PersistentVolume
metadata: {name: disk}
spec:
  csi: {driver: ebs.csi.aws.com, volumeHandle: disk}
  nodeAffinity:
    required:
      nodeSelectorTerms:
        - matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [test-zone-b]}]
"""


def claiming(**more: Any) -> tuple[str, str, str]:
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "spec": {"volumeName": "disk"}, **more}
    claim["metadata"] = {"name": "mine", **more.get("metadata", {})}
    holder = pod("holder").replace("spec: {", "spec: {volumes: [{name: v, persistentVolumeClaim: {claimName: mine}}], ")
    return VOLUME, json.dumps(claim) + "\n", holder


def test_a_volume_that_would_be_made_at_once_does_not_keep_its_pod_out() -> None:
    found, _ = run(AT_ONCE, STATEFUL)

    assert found["summary"]["leftOver"] == 0
    assert "StorageClass fast binds at once" in "\n".join(found["notes"])


@pytest.mark.parametrize(
    ("claim", "left"),
    [
        pytest.param({}, 0, id="never in a cluster"),
        pytest.param({"metadata": {"uid": "u"}, "status": {"phase": "Bound"}}, 0, id="bound by its phase"),
        pytest.param({"metadata": {"uid": "u"}, "status": {"phase": "Pending"}}, 1, id="waiting in a cluster"),
    ],
)
def test_a_claim_that_names_its_volume_has_it_unless_a_cluster_says_otherwise(claim: dict[str, Any], left: int) -> None:
    assert run(*claiming(**claim))[0]["summary"]["leftOver"] == left


# -- policies ----------------------------------------------------------------------------------------------------------------

CHOOSY = """\
apiVersion: v1
kind: Pod
metadata: {name: choosy}
spec:
  containers: [{name: c, resources: {requests: {cpu: 100m, memory: 1Gi}}}]
  affinity:
    nodeAffinity:
      preferredDuringSchedulingIgnoredDuringExecution:
        - weight: 1
          preference: {matchExpressions: [{key: karpenter.kwok.sh/instance-cpu, operator: In, values: ["8"]}]}
"""


def test_preferences_can_be_ignored() -> None:
    respected, ignored = (
        run(CHOOSY, arguments=("--preference-policy", policy))[0]["summary"]["hourly"]
        for policy in ("Respect", "Ignore")
    )

    assert ignored < respected


def test_min_values_can_be_kept_only_as_far_as_can_be() -> None:
    asked = "{key: node.kubernetes.io/instance-type, operator: In, values: [c-1x-amd64-linux, gone], minValues: 2}"
    flexible = f"{POOL}      - {asked}\n"

    def left(policy: str) -> int:
        command = ["plan", "-f", "-", "-o", "json", "--min-values-policy", policy]
        result = CliRunner().invoke(cli, command, input="---\n".join((flexible, pod("one", cpu="100m"))))
        return int(json.loads(result.stdout)["summary"]["leftOver"])

    assert (left("Strict"), left("BestEffort")) == (1, 0)


def test_a_wish_that_was_given_up_is_told() -> None:
    nowhere = CHOOSY.replace('["8"]', '["7"]')

    found, _ = run(nowhere)
    table = CliRunner().invoke(cli, ["plan", "-f", "-"], input="---\n".join((POOL, nowhere))).output
    story = (
        CliRunner().invoke(cli, ["plan", "-f", "-", "--explain", "choosy"], input="---\n".join((POOL, nowhere))).output
    )

    wish = "preferred node affinity karpenter.kwok.sh/instance-cpu In [7]"
    assert [each["pods"] for each in found["givenUp"]] == [["default/choosy"]]
    assert found["givenUp"][0]["wishes"][0].startswith(wish)
    assert f"Pod choosy     1  {wish}" in table
    assert f"it gave up: {wish}" in story


# -- amounts that cannot be meant ----------------------------------------------------------------------------------------


def test_requests_that_cannot_be_meant_are_named_once_for_all_their_workloads() -> None:
    workloads = [deployment(name).replace("memory: 1Gi", "memory: 512m") for name in ("web", "shop")]

    said = notes(*workloads)

    assert "Deployment shop, Deployment web: requests 512m of memory is less than 1Mi" in said
    assert said.count("less than 1Mi") == 1


# -- limits ----------------------------------------------------------------------------------------------------------------

SPREAD = (
    ", topologySpreadConstraints: [{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule,"
    " labelSelector: {matchLabels: {app: web}}}]"
)


@pytest.mark.parametrize(
    ("cpu", "told"), [pytest.param("4", "leaves cpu 2 of its limits", id="room"), pytest.param("2", "", id="none")]
)
def test_room_that_a_later_round_may_use_is_told(cpu: str, told: str) -> None:
    pool = POOL.replace("  template:", f"  limits: {{cpu: {cpu}}}\n  template:", 1)
    workload = deployment(replicas=8, cpu="1500m", more=SPREAD)
    report = json.loads(
        CliRunner().invoke(cli, ["plan", "-f", "-", "-o", "json"], input=f"{pool}---\n{workload}").stdout
    )
    found = [note for note in report["notes"] if "in a later round" in note]

    assert report["summary"]["newNodes"] == 1
    assert bool(found) == bool(told)
    assert all(told in each for each in found)
