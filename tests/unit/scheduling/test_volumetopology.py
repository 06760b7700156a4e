"""Volumes: where a pod's storage can be reached."""

from datetime import UTC, datetime
from typing import Any

import pytest
from tests.builders import VOCABULARY, instance_type, offering, pod, problem, requirement

from joiner.model.codec import decode
from joiner.model.labels import HOSTNAME, ZONE
from joiner.model.meta import replace
from joiner.model.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from joiner.scheduling.plan import Plan
from joiner.scheduling.pods.volumetopology import VolumeIndex
from joiner.scheduling.problem import Storage
from joiner.scheduling.schedule import schedule

BOUND = {"pv.kubernetes.io/bind-completed": "yes"}


def volume(*places: Any, **more: Any) -> PersistentVolume:
    terms = [
        {"matchExpressions": [place if isinstance(place, dict) else requirement(ZONE, "In", place)]} for place in places
    ]
    spec = {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}, "csi": {"driver": "ebs"}, **more}
    return decode({"metadata": {"name": "pv"}, "spec": spec}, PersistentVolume)


def claim(name: str = "data", bound: bool = False, **spec: Any) -> PersistentVolumeClaim:
    metadata = {"name": name, "namespace": "default", "annotations": BOUND if bound else {}}
    return decode({"metadata": metadata, "spec": {"volumeName": "pv"} if bound else spec}, PersistentVolumeClaim)


def storage_class(name: str, *zones: list[str], **more: Any) -> StorageClass:
    terms = [{"matchLabelExpressions": [{"key": ZONE, "values": some}]} for some in zones]
    body = {"provisioner": "ebs", "volumeBindingMode": "WaitForFirstConsumer", "allowedTopologies": terms, **more}
    return decode({"metadata": {"name": name}, **body}, StorageClass)


def planned(*claims: PersistentVolumeClaim, asked: dict[str, Any] | None = None, **more: Any) -> Plan:
    waiting = [pod(claims=[each.name for each in claims], **(asked or {}))]
    return schedule(problem(waiting, storage=Storage(claims=claims, **more)))


def zones(plan: Plan) -> set[str]:
    return set(plan.claims[0].requirements.at(ZONE).values)


def test_a_pod_goes_to_where_its_volume_is() -> None:
    assert zones(planned(claim(bound=True), volumes=(volume("b"),))) == {"b"}


@pytest.mark.parametrize(("selector", "expected"), [({}, "a"), ({ZONE: "c"}, "c"), ({ZONE: "b"}, None)])
def test_of_the_places_of_a_volume_one_must_hold(selector: dict[str, str], expected: str | None) -> None:
    plan = planned(claim(bound=True), volumes=(volume("a", "c"),), asked={"nodeSelector": selector})

    assert (zones(plan) if plan.claims else None) == ({expected} if expected else None)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ([["a"]], [["a"], ["b"]], {"a"}),
        ([["a"], ["b"]], [["b"], ["c"]], {"b"}),
        ([["a", "b"]], [["b", "c"]], {"b"}),
        ([["a"]], [["b"]], None),
        ([], [["c"]], {"c"}),
    ],
    ids=["one of two", "what both allow", "what is left of lists", "nothing in common", "anywhere"],
)
def test_volumes_must_be_reached_together(one: Any, other: Any, expected: set[str] | None) -> None:
    classes = (storage_class("one", *one), storage_class("other", *other))

    plan = planned(claim("x", storageClassName="one"), claim("y", storageClassName="other"), classes=classes)

    assert (zones(plan) if plan.claims else None) == expected


def test_the_host_of_a_local_volume_is_not_asked_for() -> None:
    local = volume(requirement(HOSTNAME, "In", "long-gone"), local={"path": "/data"}, csi=None)

    assert len(planned(claim(bound=True), volumes=(local,)).claims) == 1


@pytest.mark.parametrize(
    ("claims", "more", "words"),
    [
        ((), {}, "does not exist"),
        ((claim(storageClassName=""),), {}, "names no StorageClass"),
        ((claim(storageClassName="gone"),), {}, "StorageClass gone"),
        (
            (claim(storageClassName="now"),),
            {"classes": (storage_class("now", volumeBindingMode="Immediate"),)},
            "binds immediately",
        ),
        ((claim(bound=True),), {}, "PersistentVolume pv"),
    ],
    ids=["no claim", "no class", "unknown class", "immediate binding", "no volume"],
)
def test_a_pod_whose_volume_cannot_be_understood_is_left_alone(claims: Any, more: Any, words: str) -> None:
    plan = schedule(problem([pod(claims=["data"]), pod("fine")], storage=Storage(claims=claims, **more)))

    assert [(each.pod, each.ignored) for each in plan.refusals] == [("default/web", True)]
    assert words in str(plan.refusals[0])
    assert len(plan.claims) == 1


@pytest.mark.parametrize(
    ("provisioner", "driver"), [("kubernetes.io/aws-ebs", "ebs.csi.aws.com"), ("example.com/own", "example.com/own")]
)
def test_drivers_of_old_go_by_their_new_names(provisioner: str, driver: str) -> None:
    classes = (storage_class("c", provisioner=provisioner),)
    shelf = VolumeIndex(Storage(claims=(claim(storageClassName="c"),), classes=classes), VOCABULARY)

    assert shelf.volumes_of(pod(claims=["data"])).attachments == {driver: frozenset({"default/data"})}


def test_a_type_that_can_attach_too_few_volumes_is_not_bought() -> None:
    types = (
        instance_type("few", [offering(price=1.0)], volume_limits={"ebs": 1}),
        instance_type("many", [offering(price=2.0)], volume_limits={"ebs": 5}),
        instance_type("untold", [offering(price=3.0)]),
    )
    claims = tuple(claim(name, storageClassName="c") for name in ("x", "y"))
    kept = Storage(claims=claims, classes=(storage_class("c"),))

    plan = schedule(problem([pod(claims=["x", "y"])], types=types, storage=kept))

    assert [option.name for option in plan.claims[0].options] == ["many", "untold"]


def test_pods_that_share_a_volume_attach_it_once() -> None:
    types = (instance_type("few", volume_limits={"ebs": 1}),)
    kept = Storage(claims=(claim("x", storageClassName="c"),), classes=(storage_class("c"),))

    plan = schedule(problem([pod(n, "500m", claims=["x"]) for n in "ab"], types=types, storage=kept))

    assert [len(each.pods) for each in plan.claims] == [2]


def test_a_volume_stays_attached_while_its_claim_is_being_deleted() -> None:
    kept = claim(bound=True)
    going = replace(kept, metadata=replace(kept.metadata, deletion_timestamp=datetime(2026, 1, 1, tzinfo=UTC)))
    shelf = VolumeIndex(Storage(claims=(going,), volumes=(volume("a"),)), VOCABULARY)

    found = shelf.volumes_of(pod(claims=["data"]))

    assert found.problem
    assert found.attachments == {"ebs": {"default/data"}}
