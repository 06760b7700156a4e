"""DaemonSets of a dump that has only their pods."""

from typing import Any

import pytest

from joiner.model.codec import decode
from joiner.model.pod import Pod
from joiner.model.workload import DaemonSet
from joiner.offline.workloads import daemonsets

PINNED = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]}


def daemon(name: str, owner: str = "agent", made: str = "2025-01-01T00:00:00Z", kind: str = "DaemonSet") -> Pod:
    owners = [{"apiVersion": "apps/v1", "kind": kind, "name": owner, "uid": "u", "controller": True}]
    metadata = {"name": name, "namespace": "kube-system", "creationTimestamp": made, "ownerReferences": owners}
    spec: dict[str, Any] = {
        "nodeName": "n1",
        "nodeSelector": {"pool": "a"},
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": PINNED}},
        "containers": [{"name": made}],
    }
    return decode({"metadata": metadata, "spec": spec}, Pod)


def test_a_daemon_set_is_inferred_from_its_newest_pod() -> None:
    pods = [daemon("a"), daemon("b", made="2025-02-01T00:00:00Z"), daemon("c", made="2025-01-02T00:00:00Z")]
    (found,) = daemonsets.inferred(pods, ())
    spec = found.spec.template.spec

    assert (found.name, found.metadata.namespace) == ("agent", "kube-system")
    assert spec.containers[0].name == "2025-02-01T00:00:00Z"
    assert (spec.node_name, spec.node_selector) == ("", {"pool": "a"})
    assert spec.affinity.node_affinity.required is None


@pytest.mark.parametrize(
    ("namespace", "count"), [("kube-system", 0), ("default", 1)], ids=["it is there", "one of the same name elsewhere"]
)
def test_a_daemon_set_that_is_there_is_not_inferred(namespace: str, count: int) -> None:
    known = decode({"metadata": {"name": "agent", "namespace": namespace}}, DaemonSet)

    assert len(daemonsets.inferred([daemon("a")], [known])) == count


def test_pods_of_other_owners_are_no_daemons() -> None:
    assert not daemonsets.inferred([daemon("a", kind="ReplicaSet")], ())


def test_what_was_inferred_is_told_in_one_line() -> None:
    found = daemonsets.inferred([daemon("a"), daemon("b", owner="logs")], ())

    assert daemonsets.note(()) == ()
    assert daemonsets.note(found)[0].startswith("DaemonSets agent, logs are not in these files:")
