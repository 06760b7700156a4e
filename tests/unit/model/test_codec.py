"""Reading and writing values."""

import importlib
import pkgutil
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from msgspec import inspect

import joiner.model
from joiner.model import codec, resources
from joiner.model.clusterobjects import Event, Lease
from joiner.model.conditions import Condition
from joiner.model.duration import Duration
from joiner.model.meta import KubeObject, replace
from joiner.model.microtime import MicroTime
from joiner.model.node import Node, NodeStatus
from joiner.model.pod import Pod
from joiner.model.quantity import Quantity

MOMENT = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
CUSTOM = {Quantity: Quantity(1500), Duration: Duration.parse("1h30m"), MicroTime: MicroTime.of(MOMENT)}
SIMPLE = {
    inspect.StrType: "text",
    inspect.IntType: 7,
    inspect.FloatType: 0.5,
    inspect.BoolType: True,
    inspect.DateTimeType: MOMENT,
}


def kinds() -> Iterator[type[KubeObject]]:
    for module in pkgutil.iter_modules(joiner.model.__path__):
        found = vars(importlib.import_module(f"joiner.model.{module.name}")).values()
        yield from (each for each in found if isinstance(each, type) and issubclass(each, KubeObject) and each.kind)


KINDS = sorted(set(kinds()), key=lambda each: each.kind)


def filled(shape: inspect.Type) -> Any:
    """A value of the type with something in every field."""
    if isinstance(shape, inspect.Metadata):
        return filled(shape.type)
    if isinstance(shape, inspect.StructType):
        return shape.cls(**{each.name: filled(each.type) for each in shape.fields})
    if isinstance(shape, inspect.VarTupleType):
        return (filled(shape.item_type),)
    if isinstance(shape, inspect.DictType):
        return {"memory": filled(shape.value_type)}
    if isinstance(shape, inspect.UnionType):
        return filled(shape.types[0])
    if isinstance(shape, inspect.LiteralType):
        return shape.values[-1]
    if isinstance(shape, inspect.CustomType):
        return CUSTOM[shape.cls]
    return SIMPLE[type(shape)]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_field_of_every_kind_survives_the_round_trip(kind: type[KubeObject]) -> None:
    value = filled(inspect.type_info(kind))
    raw = codec.encode(value)

    assert codec.decode(raw, kind) == value
    assert codec.decode_json(msgspec.json.encode(raw), kind) == value


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_an_empty_object_of_every_kind_can_be_read_and_says_what_it_is(kind: type[KubeObject]) -> None:
    raw = codec.encode(codec.decode({}, kind))

    assert (raw["apiVersion"], raw["kind"]) == (kind.api_version(), kind.kind)
    assert kind.plural == kind.plural.lower() != ""


def test_amounts_are_written_as_people_write_them() -> None:
    node = codec.decode({"status": {"capacity": {"cpu": "1.5", "memory": "1024Mi", "pods": 110}}}, Node)

    assert codec.encode(node)["status"] == {"capacity": {"cpu": "1500m", "memory": "1Gi", "pods": "110"}}


def test_moments_are_written_in_utc_without_fractions() -> None:
    node = codec.decode({"metadata": {"creationTimestamp": "2026-01-01T00:00:00.5+02:00"}}, Node)

    assert codec.encode(node)["metadata"] == {"creationTimestamp": "2025-12-31T22:00:00Z"}


def test_moments_of_leases_have_all_their_digits() -> None:
    lease = codec.decode({"spec": {"renewTime": "2026-01-01T00:00:00.000000Z"}}, Lease)

    assert codec.encode(lease)["spec"] == {"renewTime": "2026-01-01T00:00:00.000000Z"}


def test_conditions_are_written_with_their_empty_messages() -> None:
    assert codec.encode(Condition(type="Ready", status="True", reason="Ready")) == {
        "type": "Ready",
        "status": "True",
        "reason": "Ready",
        "message": "",
        "observedGeneration": 0,
    }


def test_the_type_of_an_event_is_always_written() -> None:
    assert codec.encode(Event(reason="Evicted"))["type"] == "Normal"


def test_null_counts_as_absent() -> None:
    raw = {"metadata": {"creationTimestamp": None, "labels": None}, "spec": {"taints": None}, "status": None}

    assert codec.decode(raw, Node) == Node()
    assert codec.decode_json(msgspec.json.encode(raw), Node) == Node()


@pytest.mark.parametrize(
    ("raw", "path", "words"),
    [
        ({"spec": {"priority": "high"}}, "spec.priority", "Expected `int | null`, got `str`"),
        ({"spec": {"tolerations": [{}, {"key": 5}]}}, "spec.tolerations[1].key", "Expected `str`, got `int`"),
        ({"spec": {"overhead": {"cpu": "1", "memory": "1GB"}}}, "spec.overhead.memory", "'1GB' is not a quantity"),
        ({"spec": {"nodeSelector": {"a.b/c": True}}}, "spec.nodeSelector[a.b/c]", "Expected `str`, got `bool`"),
        (
            {"spec": {"containers": [{"resources": {"limits": {"cpu": "x"}}}]}},
            "spec.containers[0].resources.limits.cpu",
            "",
        ),
        ({"spec": {"nodeSelector": {5: "a"}}}, "spec.nodeSelector", "Expected `str`, got `int`"),
        ([], "", "Expected `object`, got `array`"),
    ],
    ids=["field", "entry", "amount", "dotted key", "deep", "key", "whole"],
)
def test_a_wrong_shape_is_blamed_where_it_is(raw: object, path: str, words: str) -> None:
    with pytest.raises(codec.DecodeError) as caught:
        codec.decode(raw, Pod)

    assert caught.value.path == path
    assert words in caught.value.problem


def test_text_that_is_not_json_is_refused() -> None:
    with pytest.raises(codec.DecodeError, match="not JSON"):
        codec.decode_json(b'{"a":', Pod)


def test_sums_of_amounts_are_written_as_amounts() -> None:
    total = resources.add(resources.of(cpu=1), resources.of(cpu="500m", memory="1Gi"))
    status = replace(NodeStatus(), capacity=total)

    assert codec.encode(Node(status=status))["status"] == {"capacity": {"cpu": "1500m", "memory": "1Gi"}}
