"""The generated set: names, shapes, prices, and what a NodeClass does to them."""

import pytest

from joiner.catalog.market import InstanceType
from joiner.cloud.sources import generated
from joiner.cloud.sources.reservation import Reservation
from joiner.model import labels, resources
from joiner.model.codec import decode
from joiner.model.kubelet import Kubelet


def types(kubelet: object = None, *reservations: Reservation) -> dict[str, InstanceType]:
    made = generated.instance_types(kubelet=decode(kubelet or {}, Kubelet), reservations=reservations)
    return {instance_type.name: instance_type for instance_type in made}


def test_there_are_144_of_them() -> None:
    expected = {
        f"{family}-{cpu}x-{arch}-{system}"
        for cpu in (1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256)
        for family in "csm"
        for arch in ("amd64", "arm64")
        for system in ("linux", "windows")
    }

    assert len(generated.instance_types()) == 144
    assert set(types()) == expected


@pytest.mark.parametrize(
    ("name", "cpu", "memory", "pods", "price"),
    [
        ("c-1x-amd64-linux", "1", "2Gi", "16", 0.025 + 0.002147483648),
        ("s-4x-arm64-windows", "4", "16Gi", "64", 0.1 + 0.017179869184),
        ("m-64x-amd64-linux", "64", "512Gi", "1024", 1.6 + 0.549755813888),
        ("m-256x-arm64-linux", "256", "2Ti", "1024", 6.4 + 2.199023255552),
    ],
)
def test_shape_and_price_follow_the_formula(name: str, cpu: str, memory: str, pods: str, price: float) -> None:
    found = types()[name]

    expected = {"cpu": cpu, "memory": memory, "pods": pods, "ephemeral-storage": "20Gi"}
    assert resources.written(found.capacity) == expected
    assert [o.price for o in found.offerings if o.capacity_type == "on-demand"] == pytest.approx([price] * 4, rel=1e-12)
    assert [o.price for o in found.offerings if o.capacity_type == "spot"] == pytest.approx(
        [0.7 * price] * 4, rel=1e-12
    )


def test_each_is_offered_as_spot_and_on_demand_in_four_zones() -> None:
    for found in types().values():
        offered = {(o.zone, o.capacity_type) for o in found.offerings if o.launchable}
        assert offered == {(f"test-zone-{z}", kind) for z in "abcd" for kind in ("spot", "on-demand")}


def test_the_labels_tell_family_size_cpu_and_memory() -> None:
    found = types()["m-256x-arm64-windows"].requirements.labels()

    own = {key.rpartition("/")[2]: value for key, value in found.items() if key in generated.LABELS}
    assert own == {"instance-size": "256", "instance-family": "m", "instance-cpu": "256", "instance-memory": "2Ti"}
    assert (found[labels.ARCH], found[labels.OS]) == ("arm64", "windows")


@pytest.mark.parametrize(
    ("name", "size", "family"),
    [
        ("m5.large", "large", "m5"),
        ("c7g.12xlarge", "12xlarge", "c7g"),
        ("x1.metal", "metal", "x1"),
        ("m5.large.extra", "4", "m5"),
        ("n2-standard-4", "4", "n2"),
        ("Standard_D4", "4", "S"),
    ],
)
def test_size_and_family_are_read_from_a_name(name: str, size: str, family: str) -> None:
    assert (generated.size_of(name, "4"), generated.family_of(name)) == (size, family)


def test_a_node_keeps_back_little_unless_its_class_says_more() -> None:
    plain = types()["c-1x-amd64-linux"]
    tuned = types({"systemReserved": {"cpu": "50m"}, "evictionHard": {"memory.available": "10%"}})["c-1x-amd64-linux"]

    assert resources.written(plain.allocatable())["cpu"] == "900m"
    assert resources.written(plain.allocatable())["memory"] == "2038Mi"
    assert plain.overhead.eviction(plain.capacity) == {}
    assert resources.written(tuned.allocatable())["cpu"] == "850m"
    assert tuned.overhead.eviction(tuned.capacity) == {"memory": -(-2048 * 2**20 // 10) * 1000}


def test_the_class_may_lower_the_pods_and_not_raise_them() -> None:
    assert types({"maxPods": 8})["c-1x-amd64-linux"].capacity["pods"] == 8000
    assert types({"maxPods": 80})["c-1x-amd64-linux"].capacity["pods"] == 16_000
    assert types({"podsPerCore": 10})["c-2x-amd64-linux"].pods_limit == 20_000


def test_a_reservation_adds_an_offering() -> None:
    found = types(None, Reservation(id="cr-1", instance_type="c-1x-amd64-linux", zone="test-zone-b", count=2))

    (offering,) = (o for o in found["c-1x-amd64-linux"].offerings if o.reserved)
    assert (offering.zone, offering.available) == ("test-zone-b", 2)
    assert offering.price == pytest.approx(0.027147483648)


def test_its_prices_have_no_date() -> None:
    found = generated.catalogue()

    assert (found.unpriced, found.price_date, found.region) == (0, "no date", "")
