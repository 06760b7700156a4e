"""Whatever a NodePool or overlay looks like, the two sayings of its rules agree and the judge never stumbles."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.admission.rows import Document
from tests.unit.admission.server import KINDS
from tests.unit.admission.table import overlay, pool
from tests.unit.admission.test_crds import both_sayings

from joiner.admission.validate import judge, normalise
from joiner.model.labels import Vocabulary
from joiner.model.requirement import OPERATORS

KEYS = st.sampled_from(
    [
        "karpenter.sh/nodepool",
        "karpenter.sh/node-pool",
        "karpenter.sh/capacity-type",
        "kubernetes.io/hostname",
        "a.karpenter.sh/b",
        "karpenter.sh.example.com/b",
        "example.com/karpenter.sh",
    ]
) | st.from_regex(r"([a.]{0,2}karpenter[.x]sh/)?[a-z]{1,3}", fullmatch=True)
TEXTS = st.sampled_from(["0", "17", "007", "1.5", "a", "", "999999999999999999", "9999999999999999999"])
ENTRIES = st.fixed_dictionaries(
    {"key": KEYS, "operator": st.sampled_from(OPERATORS)}, optional={"values": st.lists(TEXTS, max_size=3)}
)
MIN_VALUES = st.fixed_dictionaries({}, optional={"minValues": st.integers(1, 4)})
POOL_ENTRIES = st.builds(lambda entry, more: {**entry, **more}, ENTRIES, MIN_VALUES)
BUDGETS = st.fixed_dictionaries({}, optional={"schedule": st.just("@daily"), "duration": st.just("1h")})
RESOURCES = st.dictionaries(st.sampled_from(["nodes", "cpu", "pods", "example.com/gpu"]), st.integers(0, 9), max_size=2)
POOL_SPECS = st.fixed_dictionaries(
    {"disruption": st.fixed_dictionaries({"budgets": st.lists(BUDGETS, max_size=2)})},
    optional={"replicas": st.integers(0, 2), "weight": st.integers(1, 2), "limits": RESOURCES},
)
OVERLAY_SPECS = st.fixed_dictionaries(
    {},
    optional={
        "requirements": st.lists(ENTRIES, max_size=2),
        "selector": st.fixed_dictionaries(
            {}, optional={"matchLabels": st.dictionaries(KEYS, st.just("a"), max_size=2)}
        ),
        "price": st.just("1"),
        "priceAdjustment": st.just("+1"),
        "pricePercent": st.just(90),
        "capacity": RESOURCES,
    },
)
ANYTHING: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def agrees(raw: Document, old: Document | None = None) -> None:
    python, engine = both_sayings(raw, old)
    is_refused = any(problem.is_error for problem in judge(raw, KINDS, Vocabulary(), old=old))

    assert python == engine
    assert is_refused or all(verdict.holds for verdict in engine)


@given(st.lists(POOL_ENTRIES, max_size=3), st.dictionaries(KEYS, st.just("a"), max_size=2), POOL_SPECS, POOL_SPECS)
def test_judge_and_cel_agree_about_every_pool(entries: Any, labels: Any, spec: Any, old: Any) -> None:
    agrees(pool(*entries, labels=labels, **spec), pool(**old))


@given(OVERLAY_SPECS)
def test_judge_and_cel_agree_about_every_overlay(spec: Any) -> None:
    agrees(overlay(**spec))


@given(ANYTHING, st.sampled_from(sorted({(kind.api_version(), kind.kind) for kind in KINDS})))
def test_the_judge_answers_whatever_it_is_given(anything: Any, identity: tuple[str, str]) -> None:
    api_version, kind = identity
    raw = {"apiVersion": api_version, "kind": kind, "metadata": anything, "spec": anything, "status": anything}

    for document in (
        anything,
        raw,
        {**raw, "spec": {"template": anything, "selector": anything, "offerings": anything}},
    ):
        assert isinstance(judge(normalise(document)[0], KINDS, Vocabulary()), tuple)
