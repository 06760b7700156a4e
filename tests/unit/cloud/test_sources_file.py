"""A user's own catalogue file: both forms, and every way to get one wrong."""

import json
from pathlib import Path
from typing import Any

import pytest

from joiner.catalog.market import UNLIMITED
from joiner.cloud.sources import file, generated
from joiner.cloud.sources.file import CatalogueFileError
from joiner.cloud.sources.reservation import DEFAULT_LABELS, Reservation, reserve
from joiner.model import labels, resources
from joiner.model.kubelet import Kubelet


def requirement(key: str, *values: str, operator: str = "In") -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


def place(capacity_type: str = "on-demand", zone: str = "a") -> list[dict[str, Any]]:
    return [requirement(labels.CAPACITY_TYPE, capacity_type), requirement(labels.ZONE, zone)]


def kwok(**changes: Any) -> dict[str, Any]:
    offering = {"Price": 0.1, "Available": False, "Requirements": place()}
    plain = {"name": "m5.large", "architecture": "amd64", "operatingSystems": ["linux"]}
    return {**plain, "resources": {"cpu": "2", "memory": "8Gi"}, "offerings": [offering], **changes}


def scenario(**changes: Any) -> dict[str, Any]:
    offering = {"price": 0.1, "available": True, "requirements": place()}
    return {"name": "m5.large", "offerings": [offering], "capacity": {"cpu": 2, "memory": "8Gi", "pods": 29}, **changes}


def kwok_offering(**changes: Any) -> dict[str, Any]:
    return kwok(offerings=[{"Price": 0.1, "Requirements": place(), **changes}])


def read(*entries: Any) -> Any:
    return file.parse(json.dumps(entries).encode())


def read_scenario(*entries: Any) -> Any:
    return file.parse(json.dumps({"instanceTypes": entries, "pods": []}).encode())


def test_the_kwok_form_is_always_available_and_takes_110_pods() -> None:
    (found,) = read(kwok())

    assert [o.available for o in found.offerings] == [UNLIMITED]
    assert resources.written(found.capacity) == {"cpu": "2", "memory": "8Gi", "pods": "110"}
    assert found.overhead == generated.USUAL_OVERHEAD
    assert found.requirements.labels()[generated.SIZE] == "large"
    assert found.requirements.labels()[labels.ZONE] == "a"


def test_names_of_fields_are_read_in_any_case() -> None:
    entry = kwok_offering(RESERVATIONCAPACITY=4, requirements=place("reserved"))
    del entry["offerings"][0]["Requirements"]

    (found,) = read({key.upper(): value for key, value in entry.items()})

    assert (found.name, found.offerings[0].available, found.offerings[0].divisor) == ("m5.large", 4, 1)


def test_the_scenario_form_says_everything_itself() -> None:
    overhead = {"kubeReserved": {"cpu": "70m"}, "evictionThreshold": {"memory": "100Mi"}}
    offerings = [
        {"price": 0.1, "available": False, "requirements": place()},
        {"price": 1e-8, "available": True, "reservationCapacity": 2, "requirements": place("reserved")},
        {"price": 0.05, "requirements": place("spot")},
    ]
    (found,) = read_scenario(
        scenario(overhead=overhead, offerings=offerings, requirements=[requirement(labels.OS, "linux")])
    )

    assert [(o.available, o.cost) for o in found.offerings] == [(0, 0.1), (2, 1e-8), (UNLIMITED, 0.05)]
    assert resources.written(found.allocatable()) == {"cpu": "1930m", "memory": "8092Mi", "pods": "29"}
    assert found.requirements.labels() == {labels.INSTANCE_TYPE: "m5.large", labels.OS: "linux"}


def test_a_file_becomes_a_catalogue(tmp_path: Path) -> None:
    path = tmp_path / "types.json"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps([kwok()]).encode())
    reservation = Reservation(id="cr-1", instance_type="m5.large", zone="a", count=1)

    found = file.catalogue(path, kubelet=Kubelet(max_pods=10), reservations=[reservation])

    assert (found.name, found.unpriced, found.price_date) == (str(path), 0, "no date")
    assert found.prices == f"{path} (no date)"
    assert found.types[0].capacity["pods"] == 10_000
    assert [o.capacity_type for o in found.types[0].offerings] == ["on-demand", "reserved"]


def test_a_reservation_never_narrows_a_type_that_says_nothing_of_capacity_types() -> None:
    reservation = Reservation(id="cr-1", instance_type="m5.large", zone="a", count=1)

    (found,) = reserve(read_scenario(scenario()), [reservation])

    assert labels.CAPACITY_TYPE not in found.requirements
    assert [o.requirements[DEFAULT_LABELS.id].values for o in found.offerings if o.reserved] == [{"cr-1"}]


ONE = "entry 1 (m5.large): "


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        pytest.param(b"", "it is empty", id="empty"),
        pytest.param(b"\x00\xff\xfe", "it is not text: byte 0xff at position 1 is not UTF-8", id="binary"),
        pytest.param(b'[{"name": }]', "line 1, column 11: Expecting value", id="not JSON"),
        pytest.param(b"[" * 100_000, "it is nested too deeply", id="nested"),
        pytest.param(b'[{"name": NaN}]', "NaN is not a number that JSON knows", id="not a number"),
        pytest.param(b"3", "found 3; allowed is a list of instance types, or an object with", id="a number"),
        pytest.param(
            b"{}", "found an object with 0 fields; allowed is a list of instance types, or", id="other object"
        ),
        pytest.param(b'{"instanceTypes": 1}', "instanceTypes: found 1; allowed is a list", id="no list"),
        pytest.param(b"[7]", "entry 1: found 7; allowed is an object that describes", id="no object"),
        pytest.param(b'[{"a": 1, "a": 2}]', "entry 1: found a more than once; each name", id="a name twice"),
        pytest.param(
            b'[{"name": 1, "Name": 2}]', "entry 1: found Name, name more than once", id="twice in another case"
        ),
    ],
)
def test_what_is_no_catalogue_is_said_so(data: bytes, problem: str) -> None:
    with pytest.raises(CatalogueFileError) as caught:
        file.parse(data, "types.json")

    assert any(found.startswith(problem) or f": {problem}" in found for found in caught.value.problems), caught.value
    assert str(caught.value).startswith("types.json")


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        pytest.param(kwok(name=None), "entry 1: name: found nothing; allowed is the name of the type", id="no name"),
        pytest.param(
            kwok(name="a b"), 'entry 1 (a b): name: found "a b"; it becomes a label, which must be', id="bad name"
        ),
        pytest.param(
            kwok(architecture=5), ONE + "architecture: found 5; allowed is an architecture", id="architecture"
        ),
        pytest.param(
            kwok(operatingSystems="linux"), ONE + 'operatingSystems: found "linux"; allowed is a list', id="system"
        ),
        pytest.param(kwok(operatingSystems=[]), ONE + "operatingSystems: found a list of 0; allowed", id="no system"),
        pytest.param(kwok(resources=[]), ONE + "resources: found a list of 0; allowed is an object", id="resources"),
        pytest.param(
            kwok(resources={"memory": "1Gi"}), ONE + "resources[cpu]: found nothing; allowed is a quantity", id="no cpu"
        ),
        pytest.param(
            kwok(resources={"cpu": "1", "memory": "1GB"}),
            ONE + "resources[memory]: found \"1GB\"; '1GB' is not a",
            id="1GB",
        ),
        pytest.param(
            kwok(resources={"cpu": -1, "memory": 1}),
            ONE + "resources[cpu]: found -1; allowed is a quantity",
            id="negative",
        ),
        pytest.param(
            kwok(resources={"cpu": 1, "memory": 1, "a b": 1}),
            ONE + "resources[a b]: found 1; the name of",
            id="resource name",
        ),
        pytest.param(
            kwok(offerings={}), ONE + "offerings: found an object with 0 fields; allowed is a list", id="offerings"
        ),
        pytest.param(kwok(offerings=[1]), ONE + "offerings[0]: found 1; allowed is an object", id="offering"),
        pytest.param(
            kwok_offering(Price="1"), ONE + 'offerings[0].Price: found "1"; allowed is a number of', id="price as text"
        ),
        pytest.param(
            kwok_offering(Price=-1), ONE + "offerings[0].Price: found -1; allowed is a number of", id="negative price"
        ),
        pytest.param(kwok_offering(Price=None), ONE + "offerings[0].Price: found nothing; allowed is", id="no price"),
        pytest.param(kwok_offering(Price=True), ONE + "offerings[0].Price: found true; allowed is", id="price is true"),
        pytest.param(
            kwok_offering(Available="no"), ONE + 'offerings[0].Available: found "no"; allowed is true', id="available"
        ),
        pytest.param(
            kwok_offering(ReservationCapacity=1.5), ONE + "offerings[0].ReservationCapacity: found 1.5", id="count"
        ),
        pytest.param(
            kwok_offering(Requirements=5),
            ONE + "offerings[0].Requirements: found 5; allowed is a list",
            id="requirements",
        ),
        pytest.param(
            kwok_offering(Requirements=[5]),
            ONE + "offerings[0].Requirements[0]: found 5; allowed is an",
            id="requirement",
        ),
        pytest.param(
            kwok_offering(Requirements=place()[:1]),
            ONE + "offerings[0].Requirements: found nothing on topology",
            id="no zone",
        ),
        pytest.param(
            kwok_offering(Requirements=place("free")),
            ONE + "offerings[0].Requirements: found karpenter.sh/capacity",
            id="type",
        ),
        pytest.param(
            scenario(overhead=1), ONE + "overhead: found 1; allowed is an object with kubeReserved", id="overhead"
        ),
        pytest.param(
            scenario(overhead={"kubeReserved": 1}), ONE + "overhead.kubeReserved: found 1; allowed is", id="reserved"
        ),
        pytest.param(
            scenario(overhead={"evictionThreshold": {"memory": "200%"}}),
            ONE + "overhead.evictionThreshold[memory]: found \"200%\"; '200%' is not a share",
            id="threshold",
        ),
        pytest.param(scenario(capacity=None), ONE + "capacity: found nothing; allowed is an object", id="no capacity"),
    ],
)
def test_a_problem_is_told_with_its_place(entry: dict[str, Any], problem: str) -> None:
    with pytest.raises(CatalogueFileError) as caught:
        (read_scenario if "capacity" in entry else read)(entry)

    assert len(caught.value.problems) == 1
    assert caught.value.problems[0].startswith(problem)


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ({"key": "a/b/c", "operator": "Exists"}, 'key: found "a/b/c"; a label must'),
        ({"operator": "Exists"}, "key: found nothing; allowed is the name of a label"),
        ({"key": "a", "operator": "in", "values": ["x"]}, 'operator: found "in"; allowed is one of In, NotIn, Exists'),
        ({"key": "a"}, "operator: found nothing; allowed is one of In"),
        ({"key": "a", "operator": "In"}, "values: found nothing; In needs at least one value"),
        ({"key": "a", "operator": "Exists", "values": ["x"]}, "values: found a list of 1; Exists takes no values"),
        ({"key": "a", "operator": "Gt", "values": ["x"]}, "values: found a list of 1; Gt takes exactly one integer"),
        ({"key": "a", "operator": "In", "values": "x"}, 'values: found "x"; allowed is a list of texts'),
        ({"key": "a", "operator": "In", "values": [1]}, "values[0]: found 1; a label value must be a text"),
        ({"key": "a", "operator": "In", "values": ["-"]}, 'values[0]: found "-"; a label value must be at most'),
    ],
)
def test_a_malformed_requirement_is_told_with_its_place(written: dict[str, Any], problem: str) -> None:
    with pytest.raises(CatalogueFileError) as caught:
        read_scenario(scenario(requirements=[written]))

    assert [found.removeprefix(ONE + "requirements[0].")[: len(problem)] for found in caught.value.problems] == [
        problem
    ]


def test_all_problems_come_at_once() -> None:
    with pytest.raises(CatalogueFileError) as caught:
        read(kwok(architecture=None), 3, kwok(), kwok(name="b"), *(kwok(name=f"n{n}", resources={}) for n in range(20)))

    assert len(caught.value.problems) == 43
    assert caught.value.problems[2].startswith(
        'entry 3 (m5.large): name: found "m5.large"; each type needs a name of its own'
    )
    assert str(caught.value).endswith("and 23 more")


def test_a_file_that_is_not_there_is_a_problem_too(tmp_path: Path) -> None:
    with pytest.raises(CatalogueFileError, match=r"none\.json: cannot be read: No such file or directory"):
        file.catalogue(tmp_path / "none.json")


def test_a_price_of_minus_zero_is_zero() -> None:
    (only,) = read(kwok_offering(Price=-0.0))

    assert str(only.offerings[0].price) == "0.0"
