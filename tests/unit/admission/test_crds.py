"""The CRDs and the offline judge are two sayings of one thing: rule by rule, object by object."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from tests.unit.admission import server
from tests.unit.admission.rows import Bad, Document, document
from tests.unit.admission.server import KINDS, SCHEMAS, Verdict
from tests.unit.admission.table import BAD, GOOD, claim, kwok, overlay, pool
from tools import gen_crds

from joiner.admission.crd import crd, crds
from joiner.admission.schema import Schema, schema_of
from joiner.admission.schemacheck import below
from joiner.model.codec import decode
from joiner.model.customobject import CustomObject
from joiner.model.nodepool import NodePool

SEEN_BY_US_ALONE = [
    bad
    for bad in BAD
    if bad.by == "judge" and isinstance(bad.document, dict) and isinstance(bad.document.get("kind"), str)
    if KINDS.find(bad.document.get("apiVersion", ""), bad.document["kind"])
]
SEEN_BY_A_SERVER = [bad for bad in BAD if bad.by in ("schema", "rule")]
CHANGED_WELL = [
    (pool(weight=2), pool()),
    (pool(replicas=2), pool(replicas=1)),
    (claim(), claim()),
    (overlay(), overlay()),
]


def said_in_python(schema: Schema, value: Any, old: Any = None, path: str = "") -> Iterator[Verdict]:
    for rule in schema.rules:
        if not rule.is_transition:
            yield Verdict(path, rule.cel, rule.holds(value))
        elif old is not None:
            yield Verdict(path, rule.cel, rule.holds(value, old))
    for part, item, place, before in below(schema, value, path, old):
        yield from said_in_python(part, item, before, place)


def both_sayings(raw: Document, old: Document | None = None) -> tuple[set[Verdict], set[Verdict]]:
    kind = KINDS.find(raw["apiVersion"], raw["kind"])
    assert kind is not None
    value, before = server.spec_of(raw), server.spec_of(old) if old else None
    return set(said_in_python(schema_of(kind), value, before)), set(
        server.verdicts(SCHEMAS[raw["kind"]], value, before)
    )


def test_the_committed_crds_are_current() -> None:
    assert gen_crds.present() == gen_crds.wanted(), "run: python tools/gen_crds.py"


@pytest.mark.parametrize("raw", GOOD.values(), ids=GOOD)
def test_a_good_object_passes_schema_and_rules(raw: Document) -> None:
    python, engine = both_sayings(raw)

    assert list(server.errors(SCHEMAS[raw["kind"]], server.spec_of(raw))) == []
    assert python == engine
    assert all(verdict.holds for verdict in engine)


@pytest.mark.parametrize("bad", SEEN_BY_A_SERVER, ids=[bad.case for bad in SEEN_BY_A_SERVER])
def test_a_bad_object_is_refused_by_schema_or_rule(bad: Bad) -> None:
    problems = list(server.errors(SCHEMAS[bad.document["kind"]], server.spec_of(bad.document)))
    if bad.by == "schema":
        assert problems
        return

    python, engine = both_sayings(bad.document, bad.old)

    assert problems == []
    assert python == engine
    assert not all(verdict.holds for verdict in engine)


@pytest.mark.parametrize("bad", SEEN_BY_US_ALONE, ids=[bad.case for bad in SEEN_BY_US_ALONE])
def test_what_only_the_judge_sees_a_server_lets_in(bad: Bad) -> None:
    _, engine = both_sayings(bad.document, bad.old)

    assert list(server.errors(SCHEMAS[bad.document["kind"]], server.spec_of(bad.document))) == []
    assert all(verdict.holds for verdict in engine)


@pytest.mark.parametrize(("raw", "old"), CHANGED_WELL)
def test_a_change_that_is_allowed_passes_the_rules_about_changes(raw: Document, old: Document) -> None:
    python, engine = both_sayings(raw, old)

    assert python == engine
    assert all(verdict.holds for verdict in engine)


@pytest.mark.parametrize("kind", sorted(SCHEMAS))
def test_every_rule_refuses_some_bad_object(kind: str) -> None:
    refused = {
        (re.sub(r"\[[0-9]+\]", "[]", verdict.path), verdict.rule)
        for bad in SEEN_BY_A_SERVER
        if bad.by == "rule" and bad.document["kind"] == kind
        for verdict in both_sayings(bad.document, bad.old)[1]
        if not verdict.holds
    }

    assert set(server.rules(SCHEMAS[kind])) == refused


@pytest.mark.parametrize("kind", list(KINDS), ids=lambda kind: kind.kind)
def test_the_defaults_of_the_crd_are_the_defaults_of_the_class(kind: type[CustomObject]) -> None:
    raw = {"NodePool": pool(), "NodeClaim": claim()}.get(kind.kind, document(kind.api_version(), kind.kind))

    assert decode({**raw, **server.spec_of(raw)}, kind) == decode(raw, kind)


def test_budgets_get_their_defaults_one_by_one() -> None:
    spec = server.spec_of(pool(disruption={"budgets": [{"schedule": "@daily", "duration": "1h"}]}))["spec"]

    assert spec["disruption"]["budgets"] == [{"schedule": "@daily", "duration": "1h", "nodes": "10%"}]
    assert spec["disruption"]["consolidationPolicy"] == "WhenEmptyOrUnderutilized"


def test_a_pretend_class_is_ready_from_the_start() -> None:
    [condition] = server.spec_of(kwok())["status"]["conditions"]

    assert (condition["type"], condition["status"], condition["reason"]) == ("Ready", "True", "Ready")


NAMES = [
    ("NodePool", "nodepools", "Cluster", None, ["karpenter"]),
    ("NodeClaim", "nodeclaims", "Cluster", None, ["karpenter"]),
    ("NodeOverlay", "nodeoverlays", "Cluster", ["overlays"], ["karpenter"]),
    ("InstanceType", "instancetypes", "Cluster", None, ["karpenter"]),
    ("CapacityBuffer", "capacitybuffers", "Namespaced", ["cb"], None),
    ("EC2NodeClass", "ec2nodeclasses", "Cluster", ["ec2nc", "ec2ncs"], ["karpenter"]),
    ("KWOKNodeClass", "kwoknodeclasses", "Cluster", ["kwoknc", "kwokncs"], ["karpenter"]),
]


@pytest.mark.parametrize(("kind", "plural", "scope", "short", "categories"), NAMES, ids=[row[0] for row in NAMES])
def test_kinds_are_known_by_their_names(kind: str, plural: str, scope: str, short: Any, categories: Any) -> None:
    spec = crd(next(known for known in KINDS if known.kind == kind))["spec"]

    assert (spec["names"]["plural"], spec["scope"]) == (plural, scope)
    assert (spec["names"].get("shortNames"), spec["names"].get("categories")) == (short, categories)


def test_a_pool_can_be_scaled_and_shows_its_columns() -> None:
    [version] = crd(NodePool)["spec"]["versions"]

    columns = [(column["name"], column.get("priority", 0)) for column in version["additionalPrinterColumns"]]
    assert [name for name, priority in columns if priority == 0] == ["NodeClass", "Nodes", "Ready", "Age"]
    assert [name for name, priority in columns if priority == 1] == ["Weight", "CPU", "Memory"]
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.nodes"}
    assert version["subresources"] == {"status": {}, "scale": scale}


def test_an_offering_takes_a_bare_number() -> None:
    offerings = SCHEMAS["InstanceType"]["properties"]["spec"]["properties"]["offerings"]

    assert offerings["items"]["additionalProperties"] == {"x-kubernetes-preserve-unknown-fields": True}


def test_nothing_in_a_crd_looks_like_a_template_of_the_chart() -> None:
    assert not [name for name, text in crds(KINDS).items() if "{{" in text]
