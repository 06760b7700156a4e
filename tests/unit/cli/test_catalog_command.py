"""`joiner catalog`: what it shows, what it warns of, and what it does with pools that cannot be shown."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from joiner.cli.main import cli
from joiner.offline.catalogs import PoolCatalogs
from joiner.yamldoc import dump

ON_DEMAND = {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}
SMALL = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["s-2x-amd64-linux"]}
LARGE = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["c-4x-amd64-linux"]}


def pool(name: str = "default", *requirements: dict[str, Any], node_class: str = "default") -> dict[str, Any]:
    reference = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": node_class}
    spec = {"requirements": list(requirements), "nodeClassRef": reference}
    return {**_head("karpenter.sh/v1", "NodePool", name), "spec": {"template": {"spec": spec}}}


def node_class(name: str = "default", **spec: Any) -> dict[str, Any]:
    return {**_head("karpenter.kwok.sh/v1alpha1", "KWOKNodeClass", name), "spec": spec}


def overlay(name: str, labels: dict[str, str], **spec: Any) -> dict[str, Any]:
    return {
        **_head("karpenter.sh/v1alpha1", "NodeOverlay", name),
        "spec": {"selector": {"matchLabels": labels}, **spec},
    }


def _head(api_version: str, kind: str, name: str) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}}


def run(*objects: dict[str, Any], arguments: tuple[str, ...] = ()) -> Result:
    text = "---\n".join(dump(each) for each in objects)
    return CliRunner().invoke(cli, ["catalog", "-f", "-", *arguments], input=text)


def data(*objects: dict[str, Any], arguments: tuple[str, ...] = ()) -> Any:
    result = run(*objects, arguments=("-o", "json", *arguments))
    assert not result.exit_code, result.output
    return json.loads(result.stdout)


def reservation(identity: str, **more: Any) -> dict[str, Any]:
    return {"id": identity, "instanceType": "s-2x-amd64-linux", "zone": "test-zone-a", "count": 3, **more}


def test_a_missing_node_class_does_not_hide_the_other_pools() -> None:
    result = run(pool("a", node_class="defualt"), pool("b", SMALL), pool("c", node_class="zzz"), node_class())

    assert result.exit_code == 1
    assert "NodePool b: 1 of 144 instance types can be bought" in result.stdout
    assert result.stderr == (
        "Error: NodePool a: there is no KWOKNodeClass defualt in these files; name the file that has it with -f,"
        " or correct spec.template.spec.nodeClassRef.name (did you mean default?)\n"
        "Error: NodePool c: there is no KWOKNodeClass zzz in these files; name the file that has it with -f,"
        " or correct spec.template.spec.nodeClassRef.name\n"
    )


def test_problems_of_pools_are_in_the_data_too() -> None:
    result = run(pool("a", node_class="zzz"), pool("b", SMALL), node_class(), arguments=("-o", "json"))
    found = json.loads(result.stdout)

    assert result.exit_code == 1
    assert [each["name"] for each in found["nodePools"]] == ["b"]
    assert [each["nodePool"] for each in found["problems"]] == ["a"]


def test_a_catalogue_that_cannot_be_had_is_told_with_the_field() -> None:
    result = run(pool(), node_class(instanceTypes="ec2/us-west-9"))

    assert result.exit_code == 1
    assert "NodePool default: NodeClass default is not ready: spec.instanceTypes: region 'us-west-9'" in result.stderr


def test_the_age_of_prices_stands_beside_them_and_sources_are_told_once_when_asked() -> None:
    objects = (pool("a", SMALL), pool("b", SMALL), node_class())

    assert run(*objects).stdout.count("made by formula") == 0
    assert run(*objects, arguments=("--explain",)).stdout.count("made by formula") == 1
    assert "  catalogue: generated types (no date)\n" in run(*objects).stdout
    assert data(*objects)["nodePools"][0]["sources"] == ["types and prices: made by formula, no date"]


def test_a_type_that_the_pool_excludes_comes_with_the_reason() -> None:
    objects = (pool("default", LARGE, ON_DEMAND), node_class())
    text = run(*objects, arguments=("--type", "s-2x-amd64-linux")).stdout
    (found,) = data(*objects, arguments=("--type", "s-2x-amd64-linux"))["nodePools"][0]["types"]

    assert "  cannot be bought\n" in text
    assert (
        "NodePool default cannot buy s-2x-amd64-linux: the pool wants node.kubernetes.io/instance-type In"
        " [c-4x-amd64-linux], and this type has s-2x-amd64-linux\n" in text
    )
    assert not found["buyable"]
    assert len(found["excludedBy"]) == 1


def test_a_type_that_nobody_sells_is_refused_with_the_nearest() -> None:
    result = run(pool(), node_class(), arguments=("--type", "s-2x-amd64-linus"))

    assert result.exit_code == 1
    assert "there is no instance type s-2x-amd64-linus; did you mean s-2x-amd64-linux?" in result.stderr


def test_a_device_that_only_some_ways_of_buying_have_is_shown_with_the_way() -> None:
    device = overlay("d", {"karpenter.sh/capacity-type": "on-demand"}, capacity={"a.example/device": "1"})
    text = run(pool("default", SMALL), node_class(), device).stdout

    assert "s-2x-amd64-linux*" in text
    assert "a.example/device: 1 (on-demand)" in text
    assert "\n* nodes of this type differ by how they are bought" in text


def test_memory_that_one_zone_lacks_is_shown_with_the_zone_and_only_where_the_pool_buys() -> None:
    labels = {"karpenter.sh/capacity-type": "spot", "topology.kubernetes.io/zone": "test-zone-b"}
    less = overlay("d", labels, overhead={"memory": "1Gi"})

    assert "memory: 7158Mi (spot/test-zone-b)" in run(pool("default", SMALL), node_class(), less).stdout
    assert "*" not in run(pool("default", SMALL, ON_DEMAND), node_class(), less).stdout


def test_an_overlay_for_nothing_is_warned_of() -> None:
    nothing = overlay("typo", {"karpenter.kwok.sh/instance-family": "x"}, pricePercent=90)

    assert run(pool("a", SMALL), pool("b", SMALL), node_class(), nothing).stdout.endswith(
        "\nwarning: NodeOverlay typo matches nothing that NodePools a, b can buy:"
        " nothing there has karpenter.kwok.sh/instance-family In [x]\n"
    )
    assert data(pool("a", SMALL), node_class(), nothing)["nodePools"][0]["idleOverlays"] == [
        {"name": "typo", "excludedBy": "karpenter.kwok.sh/instance-family In [x]"}
    ]


@pytest.mark.parametrize("arguments", [(), ("--nodepool", "b")], ids=["both pools", "the other pool"])
def test_an_overlay_for_another_pool_is_not_warned_of(arguments: tuple[str, ...]) -> None:
    for_one = overlay("mine", {"karpenter.sh/nodepool": "a"}, pricePercent=90)

    assert "warning" not in run(pool("a"), pool("b"), node_class(), for_one, arguments=arguments).stdout


def test_an_overlay_may_select_by_node_class_without_a_warning() -> None:
    by_class = overlay("mine", {"karpenter.kwok.sh/kwoknodeclass": "default"}, pricePercent=90)

    assert "warning" not in run(pool("default", SMALL), node_class(), by_class).output


def test_reservations_are_listed_with_what_is_left_and_when_they_end() -> None:
    known = [
        reservation("cr-a", endTime="2999-01-02T05:04:00+02:00"),
        reservation("cr-b", endTime="2001-01-01T00:00:00Z"),
        reservation("cr-c", zone="moon"),
    ]
    objects = (pool("default", SMALL), node_class(capacityReservations=known))
    text = run(*objects).stdout
    found = data(*objects)["nodePools"][0]

    assert "cr-a         s-2x-amd64-linux  test-zone-a     3  2999-01-02 03:04 UTC  yes\n" in text
    assert "2001-01-01 00:00 UTC  no: it has ended\n" in text
    assert (
        "  warning: NodeClass default: capacity reservation cr-c fits nothing: s-2x-amd64-linux is not offered in zone"
        " moon; it is offered in test-zone-a, " in text
    )
    assert [(each["id"], each["endTime"], each["usable"]) for each in found["reservations"]] == [
        ("cr-a", "2999-01-02T03:04:00Z", True), ("cr-b", "2001-01-01T00:00:00Z", False), ("cr-c", None, False),
    ]  # fmt: skip
    assert found["types"][0]["cheapest"]["reserved"]["endTime"] == "2999-01-02T03:04:00Z"


def test_a_pool_that_wants_something_else_cannot_use_a_reservation() -> None:
    objects = (pool("default", SMALL, ON_DEMAND), node_class(capacityReservations=[reservation("cr-a")]))

    assert "no: the pool wants karpenter.sh/capacity-type In [on-demand]\n" in run(*objects).stdout


def test_settings_that_leave_a_reservation_out_are_named() -> None:
    settings = {
        **_head("karpenter.sh/v1alpha1", "InstanceType", "s-2x-amd64-linux"),
        "spec": {"offerings": [{"karpenter.sh/capacity-type": "spot"}]},
    }
    objects = (pool("default", SMALL), node_class(capacityReservations=[reservation("cr-a")]), settings)

    assert "no: the settings InstanceType s-2x-amd64-linux leave it out\n" in run(*objects).stdout


def test_a_number_that_nobody_counts_is_null() -> None:
    (found,) = data(pool("default", SMALL), node_class())["nodePools"][0]["types"]

    assert {each["available"] for each in found["offerings"]} == {None}


def test_entries_that_give_way_are_a_note_and_entries_without_effect_a_warning() -> None:
    spot = {"karpenter.sh/capacity-type": "spot"}
    entries = [spot, spot | {"topology.kubernetes.io/zone": "test-zone-a"}, spot]
    settings = {
        **_head("karpenter.sh/v1alpha1", "InstanceType", "s-2x-amd64-linux"),
        "spec": {"offerings": entries},
    }
    objects = (pool("default", SMALL), node_class(), settings)

    plain, explained = run(*objects).stdout, run(*objects, arguments=("--explain",)).stdout
    assert "spec.offerings[0]" not in plain.split("can never be bought")[0]
    assert "note: InstanceType s-2x-amd64-linux: spec.offerings[0] gives way to spec.offerings[1]" in explained
    assert "warning: InstanceType s-2x-amd64-linux: spec.offerings[2] can never be bought: spec.offerings[0]" in plain


def test_what_was_gathered_has_a_short_name_for_the_event_loop() -> None:
    opened = PoolCatalogs(views=(), problems=(("a" * 1000, "b"),), idle=())

    assert len(repr(opened)) < 200


def test_a_catalogue_of_ones_own_lies_beside_the_manifest(tmp_path: Path) -> None:
    machine = {
        "name": "rack", "architecture": "amd64", "operatingSystems": ["linux"],
        "resources": {"cpu": "2", "memory": "4Gi"},
        "offerings": [{"Price": 1, "Requirements": [ON_DEMAND, {**ON_DEMAND, "key": "topology.kubernetes.io/zone"}]}],
    }  # fmt: skip
    (tmp_path / "machines.json").write_text(json.dumps([machine]))
    (tmp_path / "pool.yaml").write_text(dump(pool()) + "---\n" + dump(node_class(instanceTypes="machines.json")))
    result = CliRunner().invoke(cli, ["catalog", "-f", str(tmp_path)])

    assert not result.exit_code, result.output
    assert f"  catalogue: {tmp_path / 'machines.json'} (no date)\n" in result.stdout
