"""Every lesson runs, and does what it promises."""

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tools import gen_reference

from joiner.cli.main import cli

ROOT = Path(__file__).resolve().parent.parent
LESSONS = sorted(path.name for path in (ROOT / "examples").iterdir() if path.name[:1].isdigit())
MISTAKES = {"16-mistakes"}
"""Lessons whose manifests are wrong on purpose."""
STORIES = {"19-an-hour-of-a-web-shop"}
"""Lessons that have a story instead of manifests."""

every_lesson = pytest.mark.parametrize("lesson", LESSONS)


@pytest.fixture(autouse=True)
def at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lessons are read from the root of the repository."""
    monkeypatch.chdir(ROOT)


def read_me(lesson: str) -> str:
    return (ROOT / "examples" / lesson / "README.md").read_text(encoding="utf-8")


def manifests(lesson: str) -> list[str]:
    return sorted(str(path.relative_to(ROOT)) for path in (ROOT / "examples" / lesson).glob("*.yaml"))


@lru_cache
def catalog(lesson: str, nodepool: str = "default") -> dict[str, Any]:
    files = [part for path in manifests(lesson) for part in ("-f", path)]
    types = ["--instance-types", "ec2/us-east-1"] if lesson == "20-a-cluster-on-eks" else []
    result = CliRunner().invoke(cli, ["catalog", *files, *types, "-o", "json", "--explain"])
    assert not result.exit_code, result.output
    (found,) = (pool for pool in json.loads(result.stdout)["nodePools"] if pool["name"] == nodepool)
    return dict(found)


def instance_type(lesson: str, name: str, nodepool: str = "default") -> dict[str, Any]:
    (found,) = (each for each in catalog(lesson, nodepool)["types"] if each["name"] == name)
    return dict(found)


def offerings(lesson: str, name: str, capacity_type: str, nodepool: str = "default") -> dict[str, dict[str, Any]]:
    """Zone to offering."""
    found = instance_type(lesson, name, nodepool)["offerings"]
    return {each["zone"]: each for each in found if each["capacityType"] == capacity_type}


def test_the_lessons_are_numbered_without_a_gap() -> None:
    assert [int(lesson[:2]) for lesson in LESSONS] == list(range(1, len(LESSONS) + 1))


@every_lesson
def test_a_lesson_says_what_to_run(lesson: str) -> None:
    commands = gen_reference.commands(read_me(lesson))

    assert any(command.startswith("joiner ") and f"examples/{lesson}" in command for command in commands)


@pytest.mark.parametrize("lesson", [lesson for lesson in LESSONS if lesson not in MISTAKES | STORIES])
def test_the_manifests_of_a_lesson_are_sound(lesson: str) -> None:
    result = CliRunner().invoke(cli, ["validate", "--strict", *manifests(lesson)])

    assert not result.exit_code, result.output


PRICES: dict[str, tuple[str, str, str, str, float]] = {
    "a pool pays the list price": ("01-what-a-pool-can-buy", "m5.large", "on-demand", "us-west-2a", 0.096),
    "ninety percent on demand": ("02-a-discount-for-everything", "m5.large", "on-demand", "us-west-2a", 0.0864),
    "ninety percent of spot": ("02-a-discount-for-everything", "m5.large", "spot", "us-west-2a", 0.0359325),
    "a discount beside an override": ("05-overlays-together", "m5.large", "on-demand", "us-west-2b", 0.0864),
    "the later name wins": ("06-conflicting-overlays", "m5.large", "on-demand", "us-west-2a", 0.146),
    "no conflict, no fee": ("06-conflicting-overlays", "c5.large", "on-demand", "us-west-2a", 0.0765),
    "the design's spelling": ("07-two-spellings", "c5.large", "on-demand", "us-west-2a", 0.0765),
    "Karpenter's spelling": ("07-two-spellings", "m5.large", "on-demand", "us-west-2a", 0.0864),
    "a price outright": ("07-two-spellings", "t3.medium", "on-demand", "us-west-2a", 0.05),
    "spot is not meant": ("07-two-spellings", "t3.medium", "spot", "us-west-2a", 0.0162),
    "a contract in one zone": ("10-offerings-of-your-own", "c4.large", "on-demand", "us-west-2b", 0.6),
    "spot in this zone": ("10-offerings-of-your-own", "c4.large", "spot", "us-west-2a", 0.4),
    "spot in that zone": ("10-offerings-of-your-own", "c4.large", "spot", "us-west-2c", 0.4),
    "an entry with a price": ("11-settings-together", "c5.large", "spot", "us-west-2b", 0.4),
    "an entry without a price": ("11-settings-together", "c5.large", "spot", "us-west-2c", 0.030825),
    "a machine of one's own": ("14-your-own-catalogue", "rack-large", "on-demand", "attic", 0.64),
}


@pytest.mark.parametrize(("lesson", "name", "kind", "zone", "price"), PRICES.values(), ids=PRICES)
def test_a_lesson_shows_the_price_it_promises(lesson: str, name: str, kind: str, zone: str, price: float) -> None:
    assert offerings(lesson, name, kind)[zone]["price"] == pytest.approx(price, rel=1e-12)


LEFT: dict[str, tuple[str, str, str, str, dict[str, str | None]]] = {
    "the usual overhead": ("01-what-a-pool-can-buy", "default", "c5.large", "spot", {"memory": "3114Mi"}),
    "fuse on demand": ("03-extended-resources", "default", "m5.large", "on-demand", {"smarter-devices/fuse": "1"}),
    "no fuse on spot": ("03-extended-resources", "default", "m5.large", "spot", {"smarter-devices/fuse": None}),
    "no fuse off the list": ("03-extended-resources", "default", "m5.xlarge", "on-demand", {"smarter-devices/fuse": None}),
    "10Mi up to 2Gi": ("04-memory-overhead-by-weight", "default", "t3.small", "spot", {"memory": "1408Mi"}),
    "50Mi above 2Gi": ("04-memory-overhead-by-weight", "default", "t3.medium", "on-demand", {"memory": "3196Mi"}),
    "merged, small": ("05-overlays-together", "default", "t3.nano", "on-demand", {"memory": "64Mi"}),
    "merged, large": (
        "05-overlays-together", "default", "m5.large", "on-demand", {"memory": "6853Mi", "smarter-devices/fuse": "1"},
    ),
    "measured overhead": ("08-memory-overhead-of-a-type", "default", "c5.large", "spot", {"memory": "3222Mi"}),
    "no settings": ("08-memory-overhead-of-a-type", "default", "c5.xlarge", "spot", {"memory": "6584Mi"}),
    "devices": ("09-devices-on-a-type", "default", "c4.large", "spot", {"hardware-vendor.example/foo": "2"}),
    "everything": (
        "11-settings-together", "default", "c5.large", "spot",
        {"memory": "3222Mi", "pods": "10", "hardware-vendor.example/foo": "2", "hardware-vendor.example/bar": "20"},
    ),
    "usual kubelet": (
        "12-kubelet-reservations", "as-usual", "m5.xlarge", "spot",
        {"cpu": "3920m", "memory": "14162Mi", "ephemeral-storage": "17Gi"},
    ),
    "kubelet's words": (
        "12-kubelet-reservations", "kubelet-words", "m5.xlarge", "spot",
        {"cpu": "3400m", "memory": "12083Mi", "ephemeral-storage": "15Gi"},
    ),
    "design's words": (
        "12-kubelet-reservations", "design-words", "m5.xlarge", "spot",
        {"cpu": "3400m", "memory": "12083Mi", "ephemeral-storage": "15Gi"},
    ),
    "a machine of one's own": (
        "14-your-own-catalogue", "default", "rack-small", "on-demand", {"cpu": "7900m", "memory": "32758Mi", "pods": "110"},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("lesson", "nodepool", "name", "kind", "left"), LEFT.values(), ids=LEFT)
def test_a_lesson_leaves_to_pods_what_it_promises(
    lesson: str, nodepool: str, name: str, kind: str, left: dict[str, str | None]
) -> None:
    of_type = instance_type(lesson, name, nodepool)["allocatable"]

    for offering in offerings(lesson, name, kind, nodepool).values():
        allocatable = offering.get("allocatable", of_type)
        assert {resource: allocatable.get(resource) for resource in left} == left


ZONES: dict[str, tuple[str, str, str, set[str]]] = {
    "on demand in one zone": ("10-offerings-of-your-own", "c4.large", "on-demand", {"us-west-2b"}),
    "spot anywhere": ("10-offerings-of-your-own", "c4.large", "spot", {"us-west-2a", "us-west-2b", "us-west-2c"}),
    "spot in two zones": ("11-settings-together", "c5.large", "spot", {"us-west-2b", "us-west-2c"}),
    "nothing on demand": ("11-settings-together", "c5.large", "on-demand", set()),
    "two places of one's own": ("14-your-own-catalogue", "rack-large", "on-demand", {"cellar", "attic"}),
}


@pytest.mark.parametrize(("lesson", "name", "kind", "zones"), ZONES.values(), ids=ZONES)
def test_a_lesson_offers_where_it_promises(lesson: str, name: str, kind: str, zones: set[str]) -> None:
    assert set(offerings(lesson, name, kind)) == zones


BUYABLE = {
    ("01-what-a-pool-can-buy", "default"): 18,
    ("04-memory-overhead-by-weight", "default"): 7,
    ("05-overlays-together", "default"): 16,
    ("13-capacity-reservations", "only-reserved"): 2,
    ("13-capacity-reservations", "with-fallback"): 9,
    ("13-capacity-reservations", "anything"): 9,
    ("14-your-own-catalogue", "default"): 2,
}


@pytest.mark.parametrize(("where", "count"), BUYABLE.items(), ids=[" ".join(where) for where in BUYABLE])
def test_a_lesson_leaves_so_many_types(where: tuple[str, str], count: int) -> None:
    assert catalog(*where)["typesBuyable"] == count


def test_a_conflict_is_told_and_does_not_stop_anything() -> None:
    (conflict,) = catalog("06-conflicting-overlays")["conflicts"]

    assert (conflict["loser"], conflict["winner"], conflict["field"]) == ("finance-discount", "licence-fee", "price")
    assert conflict["example"].startswith("m5.")


@pytest.mark.parametrize(
    "lesson", [lesson for lesson in LESSONS if lesson not in MISTAKES | STORIES | {"06-conflicting-overlays"}]
)
def test_no_other_lesson_has_a_conflict(lesson: str) -> None:
    nodepool = {"12-kubelet-reservations": "as-usual", "13-capacity-reservations": "anything"}.get(lesson, "default")

    assert catalog(lesson, nodepool)["conflicts"] == []


def test_the_highest_weight_wins_and_the_effects_are_counted() -> None:
    effects = {
        (each["name"], each["field"]): (each["types"], each["offerings"])
        for each in catalog("05-overlays-together")["effects"]
    }

    assert effects == {
        ("default", "price"): (16, 128),
        ("default", "overhead.memory"): (3, 24),
        ("memory", "overhead.memory"): (13, 104),
        ("extended-resource", "capacity.smarter-devices/fuse"): (5, 20),
    }


def test_reserved_machines_come_first_and_are_counted() -> None:
    first, second, third, *_ = catalog("13-capacity-reservations", "anything")["types"]

    assert [first["name"], second["name"]] == ["m5.large", "m5.4xlarge"]
    assert first["cheapest"]["reserved"]["available"] == 3
    assert first["cheapest"]["reserved"]["price"] == pytest.approx(0.096 / 10_000_000)
    assert second["cheapest"]["reserved"]["available"] == 10
    assert "reserved" not in third["cheapest"]


def test_a_reservation_that_has_ended_is_not_offered_and_is_in_the_generation() -> None:
    lesson = "13-capacity-reservations"

    assert not offerings(lesson, "m5.xlarge", "reserved", "anything")
    assert "reservations_ended 1" in catalog(lesson, "anything")["generation"]


def test_the_cache_builds_exactly_when_something_moved() -> None:
    code, output = gen_reference.run("python examples/15-what-moves-the-generation/moves.py")

    assert not code
    assert [line[43:] for line in output.splitlines()] == [
        "built anew, because of: first build; provider asked",
        "the same object",
        "built anew, because of: overlays",
        "built anew, because of: provider unavailable; provider asked",
        "the same object",
        "built anew, because of: provider unavailable; provider asked",
        "built anew, because of: provider node_class; provider asked",
        "built anew, because of: provider reservations_ended; provider asked",
        "the same object",
    ]


def test_mistakes_are_told_all_at_once() -> None:
    result = CliRunner().invoke(cli, ["validate", "examples/16-mistakes", "-o", "json"])

    problems = json.loads(result.output)["problems"]
    assert [(each["object"], each["severity"]) for each in problems] == [
        *[("NodePool/default", "error")] * 5,
        ("NodeOverlay/two-prices", "error"),
        ("NodeOverlay/more-memory", "error"),
        *[("NodeOverlay/as-the-design-writes-it", "warning")] * 2,
        ("Provisioner/default", "error"),
    ]
    assert all(each["line"] for each in problems)


def test_a_first_plan_keeps_the_database_apart_and_says_who_is_left_over() -> None:
    result = CliRunner().invoke(cli, ["plan", "-f", "examples/17-a-first-plan", "-o", "json"])
    plan = json.loads(result.output)

    databases = [claim for claim in plan["claims"] if any(name.startswith("default/db-") for name in claim["pods"])]
    assert len(databases) == 2
    assert {claim["options"][0]["capacityType"] for claim in databases} == {"on-demand"}
    assert [refused["pod"] for refused in plan["leftOver"]] == ["default/report-0"]


def test_a_cluster_on_eks_counts_its_root_volume_its_daemons_and_its_zones() -> None:
    arguments = ["plan", "-f", "examples/20-a-cluster-on-eks", "--instance-types", "ec2/us-east-1", "-o", "json"]
    plan = json.loads(CliRunner().invoke(cli, [*arguments, "--zones", "us-east-1a,us-east-1b"]).stdout)

    assert plan["summary"]["leftOver"] == 0
    assert {option["zone"] for claim in plan["claims"] for option in claim["options"]} <= {"us-east-1a", "us-east-1b"}
    assert plan["ignored"] == []
    everywhere = json.loads(CliRunner().invoke(cli, arguments).stdout)
    assert [each["field"] for each in everywhere["ignored"]] == ["spec.subnetSelectorTerms"]
