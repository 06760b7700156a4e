"""The pretend server changes typed values; a real one applies merge patches to JSON. Both come to the same."""

from datetime import timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from joiner.model import codec, patch
from joiner.model.conditions import Condition
from joiner.model.duration import Duration
from joiner.model.meta import KubeObject, ObjectMeta, OwnerReference, replace
from joiner.model.node import Node, NodeSpec, NodeStatus
from joiner.model.nodeclaim import NodeClaim, NodeClaimSpec, NodeClaimStatus
from joiner.model.nodeclass import NodeClassReference
from joiner.model.pod import ContainerStatus, Pod, PodCondition, PodSpec, PodStatus, ResourceRequirements
from joiner.model.podpolicy import PodDisruptionBudget, PodDisruptionBudgetSpec
from joiner.model.resources import of
from joiner.model.selector import LabelSelector
from joiner.model.taints import Taint
from joiner.sim.apiserver.mergepatch import as_written, merged
from joiner.sim.virtualtime import EPOCH

WORDS = st.sampled_from(["", "a", "b"])
NAMES = st.sampled_from(["a", "b", "c"])
MAPS = st.dictionaries(NAMES, WORDS, max_size=3)
MOMENTS = st.none() | st.sampled_from([0.0, 1.5, 60.0]).map(lambda seconds: EPOCH + timedelta(seconds=seconds))
AMOUNTS = st.dictionaries(st.sampled_from(["cpu", "memory"]), st.sampled_from(["0", "1", "1500m"]), max_size=2).map(
    lambda sizes: of(**sizes)
)
TAINTS = st.lists(st.builds(Taint, key=NAMES, effect=st.just("NoSchedule"), value=WORDS), max_size=2).map(tuple)
OWNERS = st.lists(st.builds(OwnerReference, uid=NAMES, controller=st.booleans()), max_size=2).map(tuple)
METADATA = st.builds(
    ObjectMeta,
    labels=MAPS,
    annotations=MAPS,
    finalizers=st.lists(NAMES, unique=True, max_size=2).map(tuple),
    owner_references=OWNERS,
)
CONDITIONS = st.lists(
    st.builds(
        Condition,
        type=NAMES,
        status=st.sampled_from(["True", "False"]),
        reason=WORDS,
        last_transition_time=MOMENTS,
        observed_generation=st.integers(0, 2),
    ),
    max_size=2,
).map(tuple)
NODES = st.builds(
    Node,
    metadata=METADATA,
    spec=st.builds(NodeSpec, provider_id=WORDS, taints=TAINTS, unschedulable=st.booleans()),
    status=st.builds(NodeStatus, capacity=AMOUNTS, allocatable=AMOUNTS),
)
CLAIMS = st.builds(
    NodeClaim,
    metadata=METADATA,
    spec=st.builds(
        NodeClaimSpec,
        taints=TAINTS,
        node_class_ref=st.builds(NodeClassReference, group=WORDS, kind=WORDS, name=WORDS),
        expire_after=st.sampled_from(["720h", "Never", "5m"]).map(Duration.parse),
        termination_grace_period=st.none() | st.sampled_from(["30s", "1h"]).map(Duration.parse),
    ),
    status=st.builds(NodeClaimStatus, capacity=AMOUNTS, last_pod_event_time=MOMENTS, conditions=CONDITIONS),
)
BUDGETS = st.builds(
    PodDisruptionBudget,
    metadata=METADATA,
    spec=st.builds(
        PodDisruptionBudgetSpec,
        selector=st.none() | st.builds(LabelSelector, match_labels=MAPS),
        min_available=st.none() | st.integers(0, 1) | st.just("50%"),
    ),
)
PODS = st.builds(
    Pod,
    metadata=METADATA,
    spec=st.builds(PodSpec, node_name=WORDS, priority=st.none() | st.integers(0, 1), node_selector=MAPS),
    status=st.builds(
        PodStatus,
        phase=WORDS,
        start_time=MOMENTS,
        conditions=st.lists(st.builds(PodCondition, type=NAMES, last_transition_time=MOMENTS), max_size=2).map(tuple),
        container_statuses=st.lists(
            st.builds(
                ContainerStatus,
                name=NAMES,
                resources=st.none() | st.builds(ResourceRequirements, requests=AMOUNTS, limits=AMOUNTS),
            ),
            max_size=2,
        ).map(tuple),
    ),
)
THREE = st.one_of(*(st.tuples(kind, kind, kind) for kind in (NODES, CLAIMS, BUDGETS, PODS)))


def wire(thing: KubeObject) -> Any:
    """The object as it comes back from a server."""
    return codec.decode(codec.encode(thing), type(thing))


@given(THREE)
def test_a_typed_change_is_what_a_merge_patch_does(three: tuple[Any, Any, Any]) -> None:
    stored, before, after = wire(three[0]), wire(three[1]), three[2]

    by_patch = patch.apply(patch.changes(before, after), codec.encode(stored))

    assert merged(stored, before, after) == codec.decode(by_patch, type(stored))


@given(THREE)
def test_what_was_read_and_changed_arrives(three: tuple[Any, Any, Any]) -> None:
    stored, _, after = three
    stored = wire(stored)

    assert merged(stored, stored, after) == wire(after)


@given(THREE)
def test_nothing_changed_is_the_same_object(three: tuple[Any, Any, Any]) -> None:
    stored, before, _ = three

    assert merged(stored, before, before) is stored
    assert merged(stored, before, replace(before)) is stored


@given(THREE)
def test_a_change_made_twice_is_made_once(three: tuple[Any, Any, Any]) -> None:
    stored, before, after = three
    once = merged(wire(stored), before, after)

    assert merged(once, before, after) == once


@given(THREE)
def test_what_is_written_is_what_comes_back(three: tuple[Any, Any, Any]) -> None:
    assert as_written(three[0]) == wire(three[0])


@given(THREE)
def test_only_the_fields_that_are_named_are_changed(three: tuple[Any, Any, Any]) -> None:
    stored, before, after = three
    result = merged(stored, before, after, frozenset({"spec"}))

    assert (result.metadata, result.status) == (stored.metadata, stored.status)
    assert result.spec == merged(stored, before, after).spec
