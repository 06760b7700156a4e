from typing import Any

import pytest
from tests.builders import pod
from tests.clusterworld import Town, in_town, node

from joiner.model.codec import decode
from joiner.model.meta import replace
from joiner.model.node import Node, NodeCondition
from joiner.model.pod import Pod
from joiner.model.storage import (
    CSINode,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)

ZONE = "topology.kubernetes.io/zone"
SELECTED = "volume.kubernetes.io/selected-node"


def storage(name: str = "late", mode: str = "WaitForFirstConsumer", zones: tuple[str, ...] = ()) -> StorageClass:
    terms = [{"matchLabelExpressions": [{"key": ZONE, "values": list(zones)}]}] if zones else []
    body = {"provisioner": "ebs", "volumeBindingMode": mode, "allowedTopologies": terms}
    return decode({"metadata": {"name": name}, **body}, StorageClass)


def claim(name: str = "data", storage_class: str = "late", **spec: Any) -> PersistentVolumeClaim:
    body = {"storageClassName": storage_class, **spec}
    return decode({"metadata": {"name": name, "namespace": "default"}, "spec": body}, PersistentVolumeClaim)


def zone_of(volume: PersistentVolume) -> str:
    required = volume.spec.node_affinity.required
    assert required is not None
    return required.node_selector_terms[0].match_expressions[0].values[0]


def attached(town: Town) -> dict[str, bool]:
    return {each.spec.node_name: each.status.attached for each in town.all(VolumeAttachment)}


def test_a_claim_that_waits_gets_its_volume_where_its_pod_will_be() -> None:
    async def test(town: Town) -> None:
        town.create(node("a", "a"), node("b", "b"), storage(), claim())
        await town.run(10)
        assert not town.all(PersistentVolume)

        town.create(pod(claims=["data"], nodeSelector={ZONE: "b"}))
        await town.run(1)
        (found,) = town.all(PersistentVolumeClaim)
        assert (found.metadata.annotations[SELECTED], town.where()) == ("b", {"web": ""})

        await town.run(10)
        (found,), (volume,) = town.all(PersistentVolumeClaim), town.all(PersistentVolume)
        assert (found.status.phase, found.spec.volume_name) == ("Bound", volume.name)
        assert found.metadata.annotations["pv.kubernetes.io/bind-completed"] == "yes"
        assert (zone_of(volume), volume.status.phase, volume.spec.csi and volume.spec.csi.driver) == (
            "b",
            "Bound",
            "ebs",
        )
        assert town.where() == {"web": "b"}
        assert not town.failures

    in_town(test)


def test_the_place_is_kept_while_the_volume_is_made() -> None:
    async def test(town: Town) -> None:
        town.create(node("a"), storage(), claim(), pod("first", cpu="3", claims=["data"]))
        await town.run(1)
        town.create(pod("second", cpu="3"))
        await town.run(10)

        assert town.where() == {"first": "a", "second": ""}

    in_town(test)


def test_a_node_that_goes_before_the_volume_is_made_is_chosen_anew() -> None:
    async def test(town: Town) -> None:
        town.create(node("a", "a"), storage(), claim(), pod(claims=["data"]))
        await town.run(1)
        await town.client.delete(Node, "a")
        town.create(node("b", "a"))
        await town.run(20)

        assert town.where() == {"web": "b"}

    in_town(test)


def test_a_claim_promised_to_a_node_that_is_gone_is_free_again() -> None:
    async def test(town: Town) -> None:
        promised = claim()
        promised = replace(promised, metadata=replace(promised.metadata, annotations={SELECTED: "ghost"}))
        town.create(storage(), promised)
        await town.run(10)

        assert SELECTED not in town.all(PersistentVolumeClaim)[0].metadata.annotations

    in_town(test)


def test_a_node_that_whoever_makes_volumes_declines_is_chosen_anew() -> None:
    async def test(town: Town) -> None:
        town.create(node("a", "a"), storage(), claim(), pod(claims=["data"]))
        await town.run(1)
        selected = town.server.get(PersistentVolumeClaim, "data", "default")
        assert selected.metadata.annotations == {SELECTED: "a"}

        declined = replace(selected, metadata=replace(selected.metadata, annotations={}))
        town.server.patch("test", selected, declined)
        await town.run(15)
        assert town.all(PersistentVolumeClaim)[0].metadata.annotations == {SELECTED: "a"}

    in_town(test, absent=("volumes",))


@pytest.mark.parametrize(("zones", "expected"), [((), "a"), (("c",), "c")], ids=["where nodes are", "where it may be"])
def test_an_immediate_class_makes_its_volume_at_once(zones: tuple[str, ...], expected: str) -> None:
    async def test(town: Town) -> None:
        town.create(node("a", "a"), storage("now", "Immediate", zones), claim(storage_class="now"))
        await town.run(10)

        assert [zone_of(volume) for volume in town.all(PersistentVolume)] == [expected]

    in_town(test)


def test_a_pod_follows_its_volume_and_waits_for_a_node_there() -> None:
    async def test(town: Town) -> None:
        town.create(node("a", "a"), storage("now", "Immediate", ("c",)), claim(storage_class="now"))
        town.create(pod(claims=["data"]))
        await town.run(10)
        assert town.where() == {"web": ""}
        town.create(node("c", "c"))
        await town.run(10)
        assert town.where() == {"web": "c"}

    in_town(test)


def test_a_claim_without_a_class_gets_the_default_one() -> None:
    async def test(town: Town) -> None:
        usual = storage("usual", "Immediate")
        marks = {"storageclass.kubernetes.io/is-default-class": "true"}
        usual = replace(usual, metadata=replace(usual.metadata, annotations=marks))
        bare = claim()
        town.create(node("a"), usual, replace(bare, spec=replace(bare.spec, storage_class_name=None)))
        await town.run(10)
        assert [each.spec.storage_class_name for each in town.all(PersistentVolume)] == ["usual"]

    in_town(test)


def test_a_volume_made_by_hand_is_bound_to_the_claim_that_names_it() -> None:
    async def test(town: Town) -> None:
        town.create(decode({"metadata": {"name": "mine"}, "spec": {}}, PersistentVolume), claim(volumeName="mine"))
        await town.run(10)
        (volume,) = town.all(PersistentVolume)
        assert volume.spec.claim_ref is not None
        assert (volume.spec.claim_ref.name, town.all(PersistentVolumeClaim)[0].status.phase) == ("data", "Bound")

        await town.client.delete(PersistentVolumeClaim, "data", "default")
        await town.run(10)
        assert [each.name for each in town.all(PersistentVolume)] == ["mine"]

    in_town(test)


def test_a_volume_that_was_made_goes_with_its_claim() -> None:
    async def test(town: Town) -> None:
        town.create(node("a"), storage("now", "Immediate"), claim(storage_class="now"))
        await town.run(10)
        await town.client.delete(PersistentVolumeClaim, "data", "default")
        await town.run(10)

        assert not town.all(PersistentVolume)

    in_town(test)


def test_an_ephemeral_claim_lives_with_its_pod() -> None:
    async def test(town: Town) -> None:
        template = {"spec": {"storageClassName": "late"}}
        volumes = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}]
        town.create(node("a"), storage(), pod(volumes=volumes))
        await town.run(20)
        assert (town.where(), [each.name for each in town.all(PersistentVolumeClaim)]) == (
            {"web": "a"},
            ["web-scratch"],
        )

        await town.client.delete(Pod, "web", "default")
        await town.run(60)
        assert not town.all(PersistentVolumeClaim)

    in_town(test)


def test_a_node_takes_no_more_volumes_than_its_driver_allows() -> None:
    async def test(town: Town) -> None:
        drivers = [{"name": "ebs", "allocatable": {"count": 2}}]
        town.create(node("a"), storage(), decode({"metadata": {"name": "a"}, "spec": {"drivers": drivers}}, CSINode))
        for name in ("one", "two", "three"):
            town.create(claim(name), pod(name, cpu="100m", claims=[name]))
        await town.run(30)

        assert sorted(town.where().values()) == ["", "a", "a"]

    in_town(test)


# -- attaching -------------------------------------------------------------------------------------------------------------


def test_a_volume_is_attached_while_a_pod_needs_it_and_for_a_few_seconds_more() -> None:
    async def test(town: Town) -> None:
        town.create(node("a"), storage(), claim(), pod(claims=["data"]))
        await town.run(2.5)
        assert attached(town) == {"a": False}
        await town.run(10)
        assert attached(town) == {"a": True}

        await town.client.delete(Pod, "web", "default", grace_period_s=0)
        await town.run(4)
        assert attached(town) == {"a": True}
        await town.run(2)
        assert attached(town) == {}

    in_town(test)


def test_a_pod_that_comes_back_in_time_keeps_its_attachment() -> None:
    async def test(town: Town) -> None:
        town.create(node("a"), storage(), claim(), pod(claims=["data"]))
        await town.run(20)
        (before,) = town.all(VolumeAttachment)
        await town.client.delete(Pod, "web", "default", grace_period_s=0)
        await town.run(3)
        town.create(pod("again", claims=["data"]))
        await town.run(20)

        assert [each.metadata.uid for each in town.all(VolumeAttachment)] == [before.metadata.uid]
        await town.client.delete(Pod, "again", "default", grace_period_s=0)
        await town.run(4)
        assert attached(town) == {"a": True}

    in_town(test)


@pytest.mark.parametrize("lost", ["gone", "silent"])
def test_a_volume_on_a_lost_node_is_taken_off_by_force_after_six_minutes(lost: str) -> None:
    async def test(town: Town) -> None:
        town.create(
            node("a"), node("b"), storage(), claim(), pod(claims=["data"], nodeSelector={"kubernetes.io/hostname": "a"})
        )
        await town.run(20)
        if lost == "gone":
            await town.client.delete(Node, "a")
        else:
            found = town.server.get(Node, "a")
            silent = replace(found.status, conditions=(NodeCondition(type="Ready", status="Unknown"),))
            await town.client.patch_status(found, replace(found, status=silent))
        await town.client.delete(Pod, "web", "default", grace_period_s=0)
        town.create(pod("next", claims=["data"], nodeSelector={"kubernetes.io/hostname": "b"}))
        await town.run(350)
        assert attached(town) == {"a": True}
        await town.run(20)
        assert attached(town) == {"b": True}

    in_town(test)


def test_a_volume_that_many_may_use_is_attached_to_many_nodes() -> None:
    async def test(town: Town) -> None:
        town.create(node("a"), node("b"), storage(), claim(accessModes=["ReadWriteMany"]))
        for name in "ab":
            town.create(pod(f"on-{name}", claims=["data"], nodeSelector={"kubernetes.io/hostname": name}))
            await town.run(20)

        assert attached(town) == {"a": True, "b": True}

    in_town(test)


def test_nothing_is_written_once_everything_is_in_its_place() -> None:
    async def test(town: Town) -> None:
        town.create(node("a"), storage(), claim(), pod(claims=["data"]))
        await town.run(30)
        written = len(town.server.trace)
        await town.run(10_000)

        assert len(town.server.trace) == written
        assert not town.failures

    in_town(test)
