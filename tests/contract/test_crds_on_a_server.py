"""The real API server judges the table of good and bad objects as our CRDs, our rules in Python and a CEL engine do."""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest
from tests.unit.admission import server
from tests.unit.admission.rows import Bad, Document
from tests.unit.admission.server import SCHEMAS
from tests.unit.admission.table import GOOD
from tests.unit.admission.test_crds import CHANGED_WELL, SEEN_BY_A_SERVER, SEEN_BY_US_ALONE
from tools.controlplane.cluster import Cluster

pytestmark = pytest.mark.cluster
DRY = "?dryRun=All&fieldValidation=Ignore"
BY_SCHEMA = [bad for bad in SEEN_BY_A_SERVER if bad.by == "schema"]
BY_RULE = [bad for bad in SEEN_BY_A_SERVER if bad.by == "rule"]
NAMELESS = [bad for bad in SEEN_BY_US_ALONE if bad.path in ("metadata", "metadata.name")]
LET_IN = [bad for bad in SEEN_BY_US_ALONE if bad not in NAMELESS]


def created(cluster: Cluster, raw: Document) -> tuple[int, Any]:
    """What the server says to a new object, without keeping it."""
    return cluster.request("POST", cluster.folder_of(raw) + DRY, raw)


def changed(cluster: Cluster, old: Document, new: Document, name: str) -> tuple[int, Any]:
    """What the server says to a change of an object that is there."""
    before, after = {**deepcopy(old), "metadata": {"name": name}}, {**deepcopy(new), "metadata": {"name": name}}
    status, kept = cluster.request("POST", cluster.folder_of(before), before)
    assert status == 201, kept
    path = cluster.path_of(before)
    try:
        after["metadata"]["resourceVersion"] = kept["metadata"]["resourceVersion"]
        return cluster.request("PUT", path + DRY, after)
    finally:
        cluster.request("DELETE", path)


def causes(answer: Any) -> list[str]:
    return [cause["message"] for cause in answer.get("details", {}).get("causes", ())]


def messages(schema: Any) -> Iterator[tuple[str, str]]:
    """Every rule of a CRD with what the server says when it is broken."""
    yield from ((rule["rule"], rule["message"]) for rule in schema.get("x-kubernetes-validations", ()))
    for part in (*schema.get("properties", {}).values(), schema.get("items"), schema.get("additionalProperties")):
        if part:
            yield from messages(part)


@pytest.mark.parametrize("raw", GOOD.values(), ids=GOOD)
def test_a_good_object_is_let_in_with_the_defaults_that_we_fill_in(real_cluster: Cluster, raw: Document) -> None:
    status, answer = created(real_cluster, raw)

    assert status == 201, answer.get("message")
    ours = server.spec_of(raw)
    ours.pop("status", None)  # the server drops it: it is written through its subresource
    assert {name: answer.get(name) for name in ours} == ours


@pytest.mark.parametrize("bad", BY_SCHEMA, ids=[bad.case for bad in BY_SCHEMA])
def test_what_the_schema_forbids_is_refused(real_cluster: Cluster, bad: Bad) -> None:
    status, answer = created(real_cluster, bad.document)

    assert status == 422, answer
    assert causes(answer)


@pytest.mark.parametrize("bad", BY_RULE, ids=[bad.case for bad in BY_RULE])
def test_what_breaks_a_rule_is_refused_by_that_rule(real_cluster: Cluster, bad: Bad) -> None:
    if bad.old is None:
        status, answer = created(real_cluster, bad.document)
    else:
        status, answer = changed(real_cluster, bad.old, bad.document, f"changed-badly-{BY_RULE.index(bad)}")

    assert status == 422, answer
    schema, old = SCHEMAS[bad.document["kind"]], server.spec_of(bad.old) if bad.old else None
    said = dict(messages(schema))
    broken = [said[each.rule] for each in server.verdicts(schema, server.spec_of(bad.document), old) if not each.holds]
    assert len(causes(answer)) == len(broken)
    assert all(any(message in cause for cause in causes(answer)) for message in broken), causes(answer)


@pytest.mark.parametrize("bad", LET_IN, ids=[bad.case for bad in LET_IN])
def test_what_only_we_see_the_server_lets_in(real_cluster: Cluster, bad: Bad) -> None:
    status, answer = created(real_cluster, bad.document)

    assert status == 201, answer.get("message")


@pytest.mark.parametrize("bad", NAMELESS, ids=[bad.case for bad in NAMELESS])
def test_an_object_without_a_proper_name_is_refused(real_cluster: Cluster, bad: Bad) -> None:
    status, answer = created(real_cluster, bad.document)

    assert status in (400, 422), answer


@pytest.mark.parametrize("case", range(len(CHANGED_WELL)))
def test_a_good_change_is_let_in(real_cluster: Cluster, case: int) -> None:
    new, old = CHANGED_WELL[case]

    status, answer = changed(real_cluster, old, new, f"changed-well-{case}")

    assert status == 200, answer.get("message")
