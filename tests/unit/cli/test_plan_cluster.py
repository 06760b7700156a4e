"""`joiner plan --cluster`: the same answer as from a dump of the cluster, and nothing but reading."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.loopback import Answer, Asked, Handler, Loopback, listening, status

from joiner.cli.main import cli

POOL = {
    "apiVersion": "karpenter.sh/v1",
    "kind": "NodePool",
    "metadata": {"name": "default", "uid": "1"},
    "spec": {
        "template": {
            "spec": {
                "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
                "requirements": [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}],
            }
        }
    },
}
CLASS = {
    "apiVersion": "karpenter.kwok.sh/v1alpha1",
    "kind": "KWOKNodeClass",
    "metadata": {"name": "default", "uid": "2"},
}


def pod(name: str) -> dict[str, Any]:
    container = {"name": "c", "image": "none", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
        "spec": {"containers": [container]},
        "status": {"phase": "Pending", "conditions": [condition]},
    }


OBJECTS = {
    "/apis/karpenter.sh/v1/nodepools": [POOL],
    "/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses": [CLASS],
    "/api/v1/pods": [pod("a"), pod("b"), pod("c")],
}


def cluster(asked: Asked) -> Answer:
    """Lists one object a page, without kinds, as an API server does."""
    if asked.path not in OBJECTS:
        return (
            status(404, "NotFound", "no such kind") if "autoscaling.x-k8s.io" in asked.path else Answer({"items": []})
        )
    items, start = OBJECTS[asked.path], int(asked.query.get("continue", "0"))
    bare = {key: value for key, value in items[start].items() if key not in ("apiVersion", "kind")}
    following = {"continue": str(start + 1)} if start + 1 < len(items) else {}
    return Answer({"metadata": {"resourceVersion": "1", **following}, "items": [bare]})


def planned(folder: Path, handler: Handler, *arguments: str) -> tuple[Result, Loopback]:
    with listening(handler) as server:
        path = folder / "kubeconfig"
        data = {
            "clusters": [{"name": "c", "cluster": {"server": server.url}}],
            "users": [{"name": "u", "user": {"token": "secret"}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        }
        path.write_text(json.dumps(data))
        where = ["--cluster", "--kubeconfig", str(path), "--context", "x"]
        return CliRunner().invoke(cli, ["plan", *where, *arguments], prog_name="joiner"), server


def test_the_answer_is_that_of_a_dump_and_the_cluster_is_only_read(tmp_path: Path) -> None:
    dump = tmp_path / "dump.json"
    dump.write_text(
        json.dumps({"apiVersion": "v1", "kind": "List", "items": [each for all in OBJECTS.values() for each in all]})
    )

    live, server = planned(tmp_path, cluster, "-o", "json")
    filed = CliRunner().invoke(cli, ["plan", "-f", str(dump), "-o", "json"], prog_name="joiner")

    assert live.exit_code == 0, live.output
    assert live.stdout == filed.stdout
    assert json.loads(live.stdout)["summary"]
    assert {each.method for each in server.asked} == {"GET"}


def test_a_file_counts_instead_of_the_object_in_the_cluster(tmp_path: Path) -> None:
    changed = json.loads(json.dumps(POOL))
    changed["spec"]["limits"] = {"cpu": "0"}
    (tmp_path / "pool.json").write_text(json.dumps(changed))

    result, _ = planned(tmp_path, cluster, "-f", str(tmp_path / "pool.json"), "--strict")

    assert result.exit_code == 1
    assert "limit" in result.output


@pytest.mark.parametrize(
    ("handler", "words"),
    [
        (lambda asked: status(403, "Forbidden", "pods is forbidden"), "pods is forbidden"),
        (lambda asked: status(401, "Unauthorized", "Unauthorized"), "cannot be read: Unauthorized"),
        (lambda asked: status(503, "Busy", "try later"), "try later"),
    ],
)
def test_a_cluster_that_cannot_be_read_is_told_in_a_sentence(tmp_path: Path, handler: Handler, words: str) -> None:
    result, _ = planned(tmp_path, handler)

    assert result.exit_code == 1
    assert words in result.output
    assert "bug in joiner" not in result.output
    assert "secret" not in result.output


def test_a_context_without_a_cluster_is_a_mistake() -> None:
    result = CliRunner().invoke(cli, ["plan", "-f", "x", "--context", "y"], prog_name="joiner")

    assert result.exit_code == 2
    assert "give --cluster as well" in result.output
