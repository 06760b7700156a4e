"""Manifests of real clusters in a story: what is passed over, what stands in for a cloud's NodeClass, what is still a mistake."""

import textwrap
from pathlib import Path

import pytest

from joiner.cloud.kwok.nodeclass import KWOKNodeClass
from joiner.model import resources
from joiner.model.nodepool import NodePool
from joiner.model.pod import Pod
from joiner.model.podrequests import of_spec
from joiner.model.workload import Deployment
from joiner.sim.story import objects
from joiner.sim.story.document.format import StoryError, read
from joiner.sim.story.document.manifests import StoryManifests, with_instance_types
from joiner.sim.story.player import play
from joiner.sim.story.validation import prepared, rehearse

POOL = """
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec:
  template:
    spec:
      nodeClassRef: {group: GROUP, kind: KIND, name: mine}
      requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}]
"""
EC2 = POOL.replace("GROUP", "karpenter.k8s.aws").replace("KIND", "EC2NodeClass")
NODE_CLASS = """
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: mine}
spec: {role: nodes, amiSelectorTerms: [{alias: al2023@latest}], kubelet: {maxPods: 7, clusterDNS: [10.0.0.10]}}
"""
APP = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop, namespace: prod}
spec:
  REPLICAS
  selector: {matchLabels: {app.kubernetes.io/name: shop}}
  template:
    metadata: {labels: {app.kubernetes.io/name: shop}}
    spec:
      serviceAccountName: shop
      containers:
        - {name: main, image: shop, resources: {requests: {cpu: 500m}}, livenessProbe: {httpGet: {path: /, port: 80}}}
"""
AROUND = """
{apiVersion: v1, kind: Service, metadata: {name: shop, namespace: prod}}
---
{apiVersion: v1, kind: Service, metadata: {name: other, namespace: prod}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: shop, namespace: prod}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: shop, namespace: prod}, data: {a: b}}
---
{apiVersion: flink.apache.org/v1beta1, kind: FlinkDeployment, metadata: {name: words}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: shop, namespace: prod}
spec: {minReplicas: 4, maxReplicas: 9, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: shop}}
"""


def story(folder: Path, *manifests: str, given: str = "", then: str = "", catalogue: str = "") -> StoryManifests:
    (folder / "app").mkdir()
    (folder / "app" / "all.yaml").write_text("\n---\n".join(manifests), encoding="utf-8")
    text = f"story: a real app\ngiven: {{manifests: [app]{given}}}\nthen: [{then}]\nfor: 5m\n"
    told = with_instance_types(read(text, "story.yaml", folder), catalogue)
    rehearse(told)
    made = StoryManifests(told)
    if then:
        summary = play(told, seed=1)
        assert summary.true, summary.verdicts
        assert summary.notes == made.notes()
    return made


def test_an_app_as_helm_renders_it_runs(tmp_path: Path) -> None:
    app = APP.replace("REPLICAS", "replicas: 3")
    notes = story(tmp_path, EC2, NODE_CLASS, app, AROUND, then="{by: 3m, running: {shop: 3}}").notes()

    assert notes == (
        "passed over: 1 ConfigMap, 2 Service, 1 ServiceAccount: nothing in a simulation depends on them",
        "passed over: 1 FlinkDeployment: they are not simulated; what they would do, or pods that they would make, is missing",
        "passed over: 1 HorizontalPodAutoscaler: workloads keep the replicas they state, or begin with its minimum;"
        " the step `traffic` scales",
        "EC2NodeClass mine: machines are those of the catalogue small (given.catalog, --instance-types);"
        " only kubelet settings are taken from a NodeClass",
    )


def test_pods_are_placed_by_former_labels_and_by_what_the_driver_of_their_volume_calls_the_zone(tmp_path: Path) -> None:
    disk = """
    apiVersion: v1
    kind: PersistentVolume
    metadata: {name: disk}
    spec:
      capacity: {storage: 1Gi}
      accessModes: [ReadWriteOnce]
      storageClassName: gp3
      csi: {driver: ebs.csi.aws.com, volumeHandle: vol-1}
      claimRef: {namespace: default, name: disk}
      nodeAffinity:
        required: {nodeSelectorTerms: [{matchExpressions: [{key: topology.ebs.csi.aws.com/zone, operator: In, values: [b]}]}]}
    ---
    apiVersion: v1
    kind: PersistentVolumeClaim
    metadata: {name: disk}
    spec: {volumeName: disk, storageClassName: gp3, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
    ---
    apiVersion: v1
    kind: Pod
    metadata: {name: database, labels: {app: database}}
    spec:
      nodeSelector: {beta.kubernetes.io/arch: amd64, failure-domain.beta.kubernetes.io/zone: b}
      containers: [{name: main, resources: {requests: {cpu: 1}}}]
      volumes: [{name: disk, persistentVolumeClaim: {claimName: disk}}]
    """
    story(tmp_path, EC2, NODE_CLASS, textwrap.dedent(disk), then="{by: 3m, running: {database: 1}}")


def test_pods_of_their_own_ask_for_what_the_api_server_adds(tmp_path: Path) -> None:
    pods = """
    {apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: vm}, handler: vm, overhead: {podFixed: {cpu: 1}}}
    ---
    {apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 7}
    ---
    apiVersion: v1
    kind: Pod
    metadata: {name: alone}
    spec: {runtimeClassName: vm, priorityClassName: high, containers: [{name: main, resources: {limits: {cpu: 2}}}]}
    """
    (pod,) = [each for each in story(tmp_path, textwrap.dedent(pods)).given() if isinstance(each, Pod)]

    assert (of_spec(pod.spec), pod.spec.priority) == (resources.of(cpu=3, pods=1), 7)


@pytest.mark.parametrize(("stated", "replicas"), [("replicas: 2", 2), ("", 4)])
def test_replicas_that_are_left_to_an_autoscaler_begin_with_its_minimum(
    tmp_path: Path, stated: str, replicas: int
) -> None:
    made = story(tmp_path, EC2, APP.replace("REPLICAS", stated), AROUND)
    (shop,) = (each for each in made.given() if isinstance(each, Deployment))

    assert shop.spec.replicas == replicas


@pytest.mark.parametrize(
    ("asked", "beside", "said"),
    [
        ("runtimeClassName: kata", "", "RuntimeClass kata is not in the story"),
        ("priorityClassName: high", "", "PriorityClass high is not in the story"),
        ("priorityClassName: system-node-critical", "", ""),
        ("priorityClassName: high", "{kind: PriorityClass, metadata: {name: high}, value: 7}", ""),
        ("schedulerName: other", "", ""),
        ("os: {name: windows}", "", "Deployment shop: spec.template.spec.os is not used"),
        (
            "priority: 1",
            "{kind: LimitRange, metadata: {name: l}, spec: {limits: []}}",
            "LimitRange l: spec.limits is not",
        ),
    ],
)
def test_what_manifests_say_and_a_simulation_does_not_go_by_is_named(
    tmp_path: Path, asked: str, beside: str, said: str
) -> None:
    ours = POOL.replace("GROUP", "karpenter.kwok.sh").replace("KIND", "KWOKNodeClass").replace("mine", "default")
    app = APP.replace("REPLICAS", "").replace("serviceAccountName: shop", asked)
    version = "scheduling.k8s.io/v1" if "Priority" in beside else "v1"
    others = [beside.replace("{kind", f"{{apiVersion: {version}, kind", 1)] if beside else []
    notes = story(tmp_path, ours, app, *others).notes()

    assert [note.startswith(said) for note in notes] == [True] * bool(said)


def test_a_story_with_nothing_to_pass_over_has_no_note(tmp_path: Path) -> None:
    ours = POOL.replace("GROUP", "karpenter.kwok.sh").replace("KIND", "KWOKNodeClass").replace("mine", "default")

    assert story(tmp_path, ours, APP.replace("REPLICAS", "")).notes() == ()


def test_kubelet_settings_of_a_nodeclass_count_and_reservations_are_those_of_the_story(tmp_path: Path) -> None:
    reservation = ", reservations: [{id: cr-1, instance-type: m5.large, zone: a, count: 2}]"
    made = story(tmp_path, EC2, NODE_CLASS, given=reservation)
    own = objects.node_class(made._story.given, tmp_path)
    first, second = made.stand_ins(own)
    (pool,) = (each for each in made.given() if isinstance(each, NodePool))

    assert first is own
    assert second.spec.kubelet.max_pods == 7
    assert second.spec.capacity_reservations == own.spec.capacity_reservations
    assert pool.spec.template.spec.node_class_ref.name == second.name
    assert pool.spec.template.spec.node_class_ref.kind == KWOKNodeClass.kind


def test_a_pool_whose_nodeclass_is_not_given_buys_from_the_class_of_the_story(tmp_path: Path) -> None:
    made = story(tmp_path, EC2)
    (pool,) = (each for each in made.given() if isinstance(each, NodePool))

    assert pool.spec.template.spec.node_class_ref.name == objects.CLASS
    assert made.notes()[0].startswith("EC2NodeClass mine: machines are those of the catalogue small")


def test_instance_types_of_the_command_line_count_for_every_class(tmp_path: Path) -> None:
    ours = "{apiVersion: karpenter.kwok.sh/v1alpha1, kind: KWOKNodeClass, metadata: {name: own}, spec: {instanceTypes: small}}"
    made = story(tmp_path, EC2, NODE_CLASS, ours, catalogue="ec2/us-east-1")
    (own,) = (each for each in made.given() if isinstance(each, KWOKNodeClass))
    classes = [*made.stand_ins(objects.node_class(made._story.given, tmp_path)), own]

    assert [each.spec.instance_types for each in classes] == ["ec2/us-east-1"] * 3


def test_a_catalogue_of_the_command_line_is_seen_from_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").mkdir()
    told = prepared("story: s\nwhen: []\n", "story.yaml", tmp_path / "there", "here/types.json")

    assert told.given.catalog == str(tmp_path / "here" / "types.json")


@pytest.mark.parametrize(
    ("written", "told"),
    [
        (
            "{apiVersion: apps/v1, kind: Deploymnt, metadata: {name: a}}",
            "kind 'Deploymnt' is not known; did you mean Deployment?",
        ),
        ("{kind: Widget, metadata: {name: a}}", "kind 'Widget' is not known"),
        ("{apiVersion: v1, metadata: {name: a}}", "kind '' is not known"),
        ("{apiVersion: karpenter.sh/v1, kind: NodePol, metadata: {name: a}}", "did you mean NodePool?"),
    ],
)
def test_what_is_misspelt_is_no_other_kind(tmp_path: Path, written: str, told: str) -> None:
    with pytest.raises(StoryError, match=r"app/all\.yaml:1: kind:") as caught:
        story(tmp_path, written)

    assert told in str(caught.value)


def test_objects_of_other_namespaces_can_be_scaled_and_looked_at(tmp_path: Path) -> None:
    (tmp_path / "app.yaml").write_text("\n---\n".join([EC2, APP.replace("REPLICAS", "")]), encoding="utf-8")
    text = """
story: scaled
given: {manifests: [app.yaml]}
when: [{at: 1m, scale: shop, replicas: 2}]
then:
  - {by: 3m, running: {shop: 2}}
  - {by: 3m, field: {of: deployment/shop, path: spec.replicas, is: 2}}
"""
    summary = play(read(text, "story.yaml", tmp_path), seed=1)

    assert summary.true, summary.verdicts


def test_prices_of_overlays_that_the_bill_does_not_have_are_named(tmp_path: Path) -> None:
    ours = POOL.replace("GROUP", "karpenter.kwok.sh").replace("KIND", "KWOKNodeClass").replace("mine", "default")
    overlay = "{apiVersion: karpenter.sh/v1alpha1, kind: NodeOverlay, metadata: {name: NAME}, spec: {SET}}"
    saved = overlay.replace("NAME", "savings").replace("SET", 'priceAdjustment: "-28%"')
    more = overlay.replace("NAME", "more").replace("SET", "capacity: {example.com/dongle: 1}")

    assert story(tmp_path, ours, APP.replace("REPLICAS", ""), saved, more).notes() == (
        "NodeOverlay savings: the price moves decisions; the bill has the prices of the catalogue",
    )
