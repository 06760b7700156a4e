"""The real API server proves the permissions of the chart: nothing was denied, and nothing is granted that was never used.

It runs after the cases, on the audit log of what Joiner asked for in them.
"""

import json
from typing import Any

import pytest
from tests.cluster.conftest import permissions
from tools.controlplane.cluster import Cluster

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("joiner")]
ASKED_OF_THE_AUTHORIZER = {"nodepools/finalizers", "nodeclaims/finalizers"}
"""Never requested: a plug-in of the API server asks for them when an owner reference is written."""
RARE = {("nodes/status", "patch")}
"""How the provider kwok restarts a node; that case takes long."""


def asked(cluster: Cluster) -> list[tuple[str, str, bool]]:
    """Resource and verb of every request of Joiner, and whether the authorizer forbade it.

    Not every 403 is the authorizer's: an eviction in a namespace that is going is refused as well. And a request that the
    server had no time for never came as far as the authorizer.
    """
    found = []
    for line in cluster.audit_log.read_text(encoding="utf-8").splitlines():
        entry: dict[str, Any] = json.loads(line)
        if about := entry.get("objectRef"):
            resource = about["resource"] + (f"/{about['subresource']}" if about.get("subresource") else "")
            forbidden = entry.get("annotations", {}).get("authorization.k8s.io/decision") == "forbid"
            found.append((resource, entry["verb"], forbidden))
    return found


def granted() -> set[tuple[str, str]]:
    """Resource and verb of every rule of the chart."""
    rules = [rule for each in permissions() if each["kind"] in ("ClusterRole", "Role") for rule in each["rules"]]
    return {(resource, verb) for rule in rules for resource in rule["resources"] for verb in rule["verbs"]}


def test_nothing_was_denied(cluster: Cluster) -> None:
    assert not {(resource, verb) for resource, verb, forbidden in asked(cluster) if forbidden}


def test_nothing_is_granted_that_was_never_used(cluster: Cluster) -> None:
    used = {(resource, verb) for resource, verb, _ in asked(cluster)}
    unused = {each for each in granted() - used if each[0] not in ASKED_OF_THE_AUTHORIZER}
    # Lists come as the first events of a watch; an older server that cannot do that is asked for the list itself.
    unused -= {(resource, "list") for resource, verb in used if verb == "watch"}

    assert unused <= RARE, "run all of tests/cluster: the cases are what uses permissions"
