from pathlib import Path

import pytest

from joiner.sim.story.document.format import StoryError, read
from joiner.sim.story.player import play
from joiner.sim.story.validation import prepared, rehearse

GOOD = """
story: everything that is named is there
given:
  nodepools: [{name: default, instance-types: [m5.large], zones: [a, b], capacity-types: [reserved, spot]}]
  reservations: [{id: cr-1, instance-type: m5.large, zone: a, count: 1}]
  cloud: {shelves: [{instance-type: c5.large, zone: b, count: 3}]}
  manifests: [more.yaml]
  objects:
    - apiVersion: karpenter.sh/v1alpha1
      kind: NodeOverlay
      metadata: {name: cheap}
      spec: {price: "0.1"}
when:
  - {at: 0s, deploy: web, replicas: 2, cpu: 1500m, tolerations: [{operator: Exists}]}
  - {at: 1m, scale: web, replicas: 3}
  - {at: 1m, traffic: shop, low: 1, high: 2}
  - {at: 2m, delete: nodeoverlay/cheap}
  - {at: 3m, reclaim: 1, nodepool: default}
  - {at: 3m, end-reservation: cr-1}
  - {at: 3m, price: {instance-type: c5.large}, factor: 2}
then:
  - {by: 4m, running: {web: 3, shop: 1}, nodes: {default: 2}}
  - {by: 4m, claims: [{reservation: cr-1, zone: a}]}
  - {by: 4m, condition: {of: nodepool/default, type: Ready, status: True}}
  - {by: 4m, event: {reason: Nominated, kind: Pod}}
always:
  - web keeps at least 1 running
  - pool default has at most 9 nodes
  - reservation cr-1 holds at most 1
"""
MANIFEST = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop}
spec:
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec: {containers: [{name: main}]}
"""


def problems(folder: Path, text: str, manifest: str | None = MANIFEST) -> tuple[str, ...]:
    """What the rehearsal finds."""
    if manifest is not None:
        (folder / "more.yaml").write_text(manifest, encoding="utf-8")
    try:
        rehearse(read(text, "story.yaml", folder))
    except StoryError as error:
        return error.problems
    return ()


def test_a_story_that_names_only_what_is_there_may_be_told(tmp_path: Path) -> None:
    assert problems(tmp_path, GOOD) == ()


MISTAKES = {
    "instance-types: [m5.large] > instance-types: [m5.larch]": (
        "story.yaml:4: given.nodepools[0].instance-types[0]: there is no instance type 'm5.larch'; did you mean m5.large?"
    ),
    "zones: [a, b] > zones: [a, z]": "given.nodepools[0].zones[1]: there is no zone 'z'; there are a, b, c",
    "[reserved, spot] > [reserved, spit]": "there is no capacity type 'spit'; did you mean spot?",
    "cr-1, instance-type: m5.large > cr-1, instance-type: m6": "story.yaml:5: given.reservations[0].instance-type",
    "zone: b, count: 3 > zone: d, count: 3": "given.cloud.shelves[0].zone: there is no zone 'd'",
    "scale: web > scale: wep": "when[1].scale: there is no workload or pool 'wep'; did you mean web?",
    "traffic: shop > traffic: shops": "there is no workload or pool 'shops'; did you mean shop?",
    "nodeoverlay/cheap > nodeoverlay/cheep": "there is no NodeOverlay 'cheep'; did you mean cheap?",
    "nodeoverlay/cheap > nodeoverlai/cheap": "kind 'nodeoverlai' is not known; did you mean nodeoverlay?",
    "reclaim: 1, nodepool: default > reclaim: 1, nodepool: defautl": "when[4].nodepool: there is no pool 'defautl'",
    "end-reservation: cr-1 > end-reservation: cr-2": "there is no reservation 'cr-2'; did you mean cr-1?",
    "price: {instance-type: c5.large} > price: {instance-type: c5.huge}": "when[6].price.instance-type: there is no",
    "running: {web: 3 > running: {wev: 3": "then[0].running[wev]: there is no workload 'wev'",
    "nodes: {default: 2} > nodes: {other: 2}": "then[0].nodes[other]: there is no pool 'other'",
    "{reservation: cr-1, zone: a} > {reservation: cr-9}": "then[1].claims[0].reservation: there is no",
    "of: nodepool/default, type > of: default, type": "must be a kind and a name, like nodepool/default",
    "type: Ready > typ: Ready": "unknown word 'typ'; did you mean type?",
    "reason: Nominated > reason: Nominatd": "did you mean Nominated?",
    "- web keeps > - wob keeps": "always[0]: there is no workload 'wob'; did you mean web?",
    "- pool default > - pool x": "always[1]: there is no pool 'x'",
    "- reservation cr-1 > - reservation cr-3": "always[2]: there is no reservation 'cr-3'",
    '{price: "0.1"} > {price: "cheap"}': "story.yaml:12: given.objects[0].spec.price",
    "kind: NodeOverlay > kind: NodeOverlai": "kind 'NodeOverlai' is not known; did you mean NodeOverlay?",
    "tolerations: [{operator: Exists}] > tolerations: [{operator: 3}]": "when[0]: ",
    "[more.yaml] > [less.yaml]": "story.yaml:7: given.manifests[0]: less.yaml: there is no such file or folder",
    "  nodepools: > \n  catalog: nowhere.yaml\n  nodepools:": "given.catalog: ",
    '{price: "0.1"} > {prize: "0.1"}': "story.yaml:12: given.objects[0].spec.prize: there is no such field; an API server drops "
    "it silently; did you mean price?",
    "cpu: 1500m > cpu: 1500m, spec: {priorityClasName: high}": "when[0].spec.priorityClasName: Kubernetes knows no such "
    "field; it has no effect; did you mean priorityClassName?",
    "tolerations: [{operator: Exists}] > tolerations: [{operater: Exists}]": "when[0].tolerations[0].operater: ",
    "zones: [a, b] > budgets: [{node: 1}]": "given.nodepools[0].budgets[0].node: ",
    "zones: [a, b] > taints: [{key: a, efect: NoSchedule}]": "given.nodepools[0].taints[0].efect: ",
    "zones: [a, b] > requirements: [{key: a, operator: Exists, minValue: 2}]": "requirements[0].minValue: ",
    "zones: [a, b] > replicas: 2": "story.yaml:4: given.nodepools[0].replicas: a pool with replicas needs the feature gate "
    "StaticCapacity; write given.options: {feature-gates: StaticCapacity=true}",
    "scale: web > scale: default": "when[1].scale: NodePool default has no replicas to scale",
    "scale: web > scale: nodeoverlay/cheap": "when[1].scale: NodeOverlay cheap has no replicas to scale",
    "nodeoverlay/cheap > nodeoverlay/*": "when[3].delete: names one object at a time, not all",
    "status: True > status: 'yes'": "then[2].condition.status: 'yes' is none of True, False, Unknown and none",
    "type: Ready > type: Redy": "then[2].condition.type: a NodePool has no condition 'Redy'; did you mean Ready?",
    "kind: Pod} > kind: Podd}": "then[3].event.kind: kind 'Podd' is not known; did you mean Pod?",
}
"""What is right and what somebody wrote instead, and what they hear."""


@pytest.mark.parametrize("mistake", MISTAKES)
def test_what_is_not_there_is_told_with_its_place_and_the_nearest_name(tmp_path: Path, mistake: str) -> None:
    right, wrong = mistake.split(" > ")
    assert right in GOOD

    assert any(MISTAKES[mistake] in each for each in problems(tmp_path, GOOD.replace(right, wrong)))


def steps(*lines: str) -> str:
    """A story with nothing but steps."""
    return "story: steps\ngiven: {nodepools: [{name: default}]}\nwhen:\n" + "".join(
        f"  - {{{each}}}\n" for each in lines
    )


WEB = "at: 0s, deploy: web"
POOL = "{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: default}, spec: {weigth: 5}}"


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["at: 5m, deploy: web", "at: 2m, scale: web, replicas: 5"], "5: when[1].scale: there is no 'web' at 2m, it comes at 5m"),
        (["at: 5m, deploy: web", "at: 2m, traffic: web, low: 1, high: 2"], "when[1].traffic: there is no 'web' at 2m, it"),
        ([WEB, "at: 5m, delete: deployment/web", "at: 6m, scale: web, replicas: 2"], "no 'web' at 6m, it is deleted at 5m"),
        ([WEB, "at: 5m, delete: deployment/web", "at: 6m, delete: deployment/web"], "no 'deployment/web' at 6m, it is"),
        (
            [WEB, "at: 1m, traffic: web, low: 1, high: 2", "at: 5m, delete: deployment/web"],
            "6: when[2].delete: the traffic of web that begins at 1m goes on; give it an until",
        ),
        (["at: 1m, job: sums", "at: 2m, scale: job/sums, replicas: 2"], "when[1].scale: Job sums has no replicas to scale"),
        (["at: 1m, scale: node/node-00001, replicas: 2"], "when[0].scale: Node node-00001 has no replicas to scale"),
        (["at: 1m, scale: deployment/*, replicas: 2"], "when[0].scale: names one object at a time, not all"),
    ],
)  # fmt: skip
def test_what_is_not_there_at_that_time_is_known_before(tmp_path: Path, lines: list[str], words: str) -> None:
    (found,) = problems(tmp_path, steps(*lines))

    assert words in found


@pytest.mark.parametrize(
    "lines",
    [
        [WEB, "at: 5m, delete: deployment/web", "at: 6m, deploy: web", "at: 7m, scale: web, replicas: 2"],
        [WEB, "at: 0s, scale: web, replicas: 2"],
        [WEB, "at: 1m, traffic: web, low: 1, high: 2, until: 3m", "at: 5m, delete: deployment/web"],
        ["at: 1m, delete: node/node-00001"],
        ["at: 1m, deploy: default", "at: 2m, scale: default, replicas: 2"],
    ],
)
def test_what_comes_and_goes_in_time_is_no_mistake(tmp_path: Path, lines: list[str]) -> None:
    assert problems(tmp_path, steps(*lines)) == ()


def test_a_misspelt_field_is_told_wherever_an_object_is_written(tmp_path: Path) -> None:
    manifest = MANIFEST.replace("{containers:", "{nodeSelecter: {}, containers:")
    broken = GOOD.replace("delete: nodeoverlay/cheap", f"apply: {POOL}").replace("at: 3m, reclaim: 1, nodepool: default", (
        "at: 3m, apply: {apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: web}, spec: {minAvailble: 1}}"
    ))  # fmt: skip

    found = problems(tmp_path, broken, manifest)

    for place, nearest in (
        ("story.yaml:17: when[3].apply.spec.weigth: there is no such field", "weight"),
        ("story.yaml:18: when[4].apply.spec.minAvailble: Kubernetes knows no such field", "minAvailable"),
        ("more.yaml:9: spec.template.spec.nodeSelecter: Kubernetes knows no such field", "nodeSelector"),
    ):
        assert any(each.startswith(place) and each.endswith(f"did you mean {nearest}?") for each in found)


def test_a_pool_with_replicas_needs_its_gate_however_it_is_written(tmp_path: Path) -> None:
    pool = "{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: fixed}, spec: {replicas: 2, template: {spec: %s}}}"
    spec = "{requirements: [], nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}}"
    story = steps(f"at: 1m, apply: {pool % spec}")

    (found,) = problems(tmp_path, story)
    assert "4: when[0].apply.spec.replicas: a pool with replicas needs the feature gate StaticCapacity" in found
    assert not problems(tmp_path, story.replace("}]}", "}], options: {feature-gates: StaticCapacity=true}}"))


def test_mistakes_in_words_hide_no_others(tmp_path: Path) -> None:
    broken = GOOD.replace("scale: web", "scale: wep").replace(
        "  manifests:", "  options: {feature-gates: Foo=true}\n  manifests:"
    )
    (tmp_path / "more.yaml").write_text(MANIFEST, encoding="utf-8")
    with pytest.raises(StoryError) as caught:
        prepared(broken.replace("cpu: 1500m", "cpu: 15x").replace("{web: 3", "{wob: 3"), "story.yaml", tmp_path)

    assert [each.split(":")[1] for each in caught.value.problems] == ["7", "15", "16", "23"]


def test_what_could_not_be_read_is_not_missed(tmp_path: Path) -> None:
    broken = GOOD.replace("{at: 0s, deploy: web", "{at: 0s, deplo: web")
    with pytest.raises(StoryError) as caught:
        prepared(broken, "story.yaml", tmp_path)

    assert len(caught.value.problems) == 1


def test_everything_is_told_at_once_from_the_first_line_to_the_last(tmp_path: Path) -> None:
    broken = GOOD.replace("scale: web", "scale: wep").replace("zones: [a, b]", "zones: [z]").replace("- web", "- wob")

    assert [each.split(":")[1] for each in problems(tmp_path, broken)] == ["4", "15", "27"]


def test_a_mistake_in_a_manifest_is_told_with_the_line_of_the_manifest(tmp_path: Path) -> None:
    broken = MANIFEST.replace("metadata: {labels: {app: shop}}", "metadata: {labels: [app]}")

    (found,) = problems(tmp_path, GOOD, broken)
    assert found.startswith("more.yaml:8: spec.template.metadata.labels")


def test_a_story_with_a_mistake_is_not_begun(tmp_path: Path) -> None:
    told: list[str] = []
    broken = read(GOOD.replace("scale: web", "scale: wep"), "story.yaml", tmp_path)
    with pytest.raises(StoryError):
        play(broken, seed=1, tell=lambda seconds, text: told.append(text))

    assert told == []


def test_what_comes_after_the_end_is_a_mistake(tmp_path: Path) -> None:
    assert problems(tmp_path, GOOD + "for: 210s\n")[0].endswith(
        "then[0]: comes at 4m0s, but the story ends after 3m30s"
    )
