"""`joiner explain`: why a node goes, stays or went, and what an edit of a NodePool will have replaced."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from tests.loopback import Answer, Asked, listening, status

from joiner.cli.main import cli
from joiner.model.codec import decode
from joiner.model.nodepool import NodePool
from joiner.model.nodepoolhash import nodepool_hash

DUMP = Path(__file__).resolve().parents[2] / "data" / "consolidation" / "half-empty.yaml"
OBJECTS = list(yaml.safe_load_all(DUMP.read_text(encoding="utf-8")))
POOL = OBJECTS[0]
HASH = "karpenter.sh/nodepool-hash"
WENT = "disrupted for reason Underutilized: m-8x (0.269 $/h) saves 0.269 $/h"


def asked(*arguments: str) -> Any:
    return CliRunner().invoke(cli, ["explain", *arguments], prog_name="joiner")


def event(name: str, message: str, kind: str = "Node", at: str = "2026-11-01T10:00:00Z") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{name}.{at}", "namespace": "default"},
        "involvedObject": {"kind": kind, "name": name},
        "reason": "DisruptionTerminating",
        "message": message,
        "lastTimestamp": at,
    }


def claim_of(node: dict[str, Any]) -> dict[str, Any]:
    """The claim that the node was bought for, by the NodePool as it is now."""
    annotations = {HASH: nodepool_hash(decode(POOL, NodePool)), "karpenter.sh/nodepool-hash-version": "v3"}
    name, own = node["metadata"]["name"], node["metadata"]["labels"]
    since = {"status": "True", "reason": "Told", "message": "", "lastTransitionTime": "2026-11-01T00:00:00Z"}
    told = [{"type": each, **since} for each in ("Launched", "Registered", "Initialized", "Consolidatable")]
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": f"claim-of-{name}", "labels": own, "annotations": annotations},
        "spec": {"requirements": [], "nodeClassRef": POOL["spec"]["template"]["spec"]["nodeClassRef"]},
        "status": {"nodeName": name, "providerID": node["spec"]["providerID"], "conditions": told},
    }


CLAIMS = [claim_of(each) for each in OBJECTS if each["kind"] == "Node"]


def written(folder: Path, *objects: dict[str, Any]) -> str:
    path = folder / f"{len(list(folder.iterdir()))}.yaml"
    path.write_text(yaml.safe_dump_all(objects), encoding="utf-8")
    return str(path)


def edited(**template: Any) -> dict[str, Any]:
    spec = {**POOL["spec"], "template": {**POOL["spec"]["template"], **template}}
    return {**POOL, "spec": spec}


def test_a_node_that_is_deleted_already_does_not_stay(tmp_path: Path) -> None:
    own = {**CLAIMS[0]["metadata"], "deletionTimestamp": "2026-11-01T10:00:00Z"}
    rest = [each for each in OBJECTS if each["kind"] != "NodeClaim"]
    dump = written(tmp_path, *rest, {**CLAIMS[0], "metadata": own}, *CLAIMS[1:])
    name = CLAIMS[0]["status"]["nodeName"]
    told, data = asked("node", name, "-f", dump).stdout, asked("node", name, "-f", dump, "-o", "json").stdout

    assert told.startswith(f"Node {name} goes already\n")
    assert json.loads(data)["goes"] is True


def test_a_node_that_goes_and_one_that_stays() -> None:
    goes, stays = (
        asked("node", "node-4", "-f", str(DUMP)),
        asked("node", "node-3", "-f", str(DUMP), "--eviction-cost", "100h"),
    )

    assert "Node node-4 goes: delete, for reason Empty" in goes.stdout
    assert "why: it is empty: saves 0.269 $/h" in goes.stdout
    assert "Node node-3 stays" in stays.stdout
    assert "it would pay with joiner.dev/eviction-cost below" in stays.stdout
    assert "no plan without it saves more than" in stays.stdout


def test_the_arithmetic_is_data_too() -> None:
    found = json.loads(asked("node", "node-0", "-f", str(DUMP), "-o", "json").stdout)

    assert found["goes"] is True
    assert found["before"][0]["nodes"] == ["node-4"]
    assert found["move"]["payback"]["saves"] == pytest.approx(2 * found["hourly"], rel=0.01)
    assert found["move"]["payback"]["paidBackSeconds"] < found["move"]["payback"]["horizonSeconds"]


def test_a_node_that_is_gone_is_explained_by_its_events(tmp_path: Path) -> None:
    events = written(
        tmp_path, event("node-9", "later", at="2026-11-01T11:00:00Z"), event("node-9", WENT), event("node-0", "x")
    )
    text = asked("node", "node-9", "-f", str(DUMP), "-f", events).stdout
    data = json.loads(asked("node", "node-9", "-f", str(DUMP), "-f", events, "-o", "json").stdout)

    assert "Node node-9 is gone" in text
    assert WENT in text
    assert data["goes"] is None
    assert [each["message"] for each in data["events"]] == [WENT, "later"]


def test_events_of_the_claim_are_told_with_those_of_the_node(tmp_path: Path) -> None:
    more = written(
        tmp_path,
        *CLAIMS,
        event("claim-of-node-3", "of the claim", kind="NodeClaim"),
        event("node-3", "a pod", kind="Pod"),
    )

    text = asked("node", "node-3", "-f", str(DUMP), "-f", more).stdout

    assert "of the claim" in text
    assert "a pod" not in text


def test_a_node_that_is_nowhere_is_answered_with_the_nearest_name() -> None:
    result = asked("node", "nod-3", "-f", str(DUMP))

    assert result.exit_code == 1
    assert "did you mean node-3" in result.output


@pytest.mark.parametrize("arguments", [("node", "node-3"), ("nodepool", "default")])
def test_something_has_to_be_read(arguments: tuple[str, ...]) -> None:
    assert asked(*arguments).exit_code == 2
    assert asked(*arguments, "-f", str(DUMP), "--context", "x").exit_code == 2


def test_an_edit_of_the_template_replaces_every_node_within_the_budgets(tmp_path: Path) -> None:
    claims = written(tmp_path, *CLAIMS)
    edit = written(tmp_path, edited(metadata={"labels": {"release": "second"}}))
    before = asked("nodepool", "default", "-f", str(DUMP), "-f", claims)
    after = asked("nodepool", "default", "-f", str(DUMP), "-f", claims, "-f", edit)
    data = json.loads(asked("nodepool", "default", "-f", str(DUMP), "-f", claims, "-f", edit, "-o", "json").stdout)

    assert "replaces none of its 5 nodes" in before.stdout
    assert "NodePool default replaces 5 of its 5 nodes" in after.stdout
    assert "2 go at a time if no other is away: at the least 3 times" in after.stdout
    assert (data["atATime"], data["rounds"], len(data["replaces"])) == (2, 3, 5)
    assert {each["reason"] for each in data["replaces"]} == {"NodePoolDrifted"}


def test_an_edit_of_requirements_replaces_the_nodes_that_do_not_meet_them(tmp_path: Path) -> None:
    needs = [{"key": "topology.kubernetes.io/zone", "operator": "NotIn", "values": ["test-zone-a"]}]
    spec = {**POOL["spec"]["template"]["spec"], "requirements": needs}
    edit = written(tmp_path, edited(spec=spec))
    found = json.loads(asked("nodepool", "default", "-f", str(DUMP), "-f", edit, "-o", "json").stdout)
    zones = {
        each["metadata"]["name"]: each["metadata"]["labels"]["topology.kubernetes.io/zone"]
        for each in OBJECTS
        if each["kind"] == "Node"
    }

    assert {each["node"]: each["reason"] for each in found["replaces"]} == {
        name: "RequirementsDrifted" for name, zone in zones.items() if zone == "test-zone-a"
    }


def test_of_a_live_cluster_only_the_events_about_the_node_are_read(tmp_path: Path) -> None:
    kinds = {"NodePool": "/apis/karpenter.sh/v1/nodepools", "NodeClaim": "/apis/karpenter.sh/v1/nodeclaims"}
    kinds |= {"KWOKNodeClass": "/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses"}
    kinds |= {"Node": "/api/v1/nodes", "Pod": "/api/v1/pods"}
    chosen: list[str] = []

    def cluster(request: Asked) -> Answer:
        if request.path == "/api/v1/events":
            chosen.append(request.query["fieldSelector"])
            name = chosen[-1].removeprefix("involvedObject.name=")
            return Answer({"items": [event(name, f"about {name}", "NodeClaim" if "claim" in name else "Node")]})
        kind = next((kind for kind, path in kinds.items() if path == request.path), None)
        if kind is None and "autoscaling.x-k8s.io" in request.path:
            return status(404, "NotFound", "no such kind")
        return Answer({"items": [each for each in (*OBJECTS, *CLAIMS) if each["kind"] == kind]})

    with listening(cluster) as server:
        path = tmp_path / "kubeconfig"
        access = {
            "clusters": [{"name": "c", "cluster": {"server": server.url}}],
            "users": [{"name": "u", "user": {"token": "secret"}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        }
        path.write_text(json.dumps(access))
        text = asked("node", "node-3", "--cluster", "--kubeconfig", str(path), "--context", "x").stdout

    assert sorted(chosen) == ["involvedObject.name=claim-of-node-3", "involvedObject.name=node-3"]
    assert "Node node-3 stays" in text
    assert "about claim-of-node-3" in text
    assert "about node-3" in text
