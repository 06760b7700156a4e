from typing import Any

import pytest

from joiner.model.duration import Duration
from joiner.sim.story import phrases
from joiner.sim.story.document.format import NeverJoin, Outage, Price, Reclaim, Shortage, Withdraw
from joiner.sim.story.document.given import MarketWords

SHORT = Duration.parse("90s")


@pytest.mark.parametrize(
    ("long", "short"),
    [("1h", "1h"), ("1h30m", "1h30m"), ("10m", "10m"), ("1h0m5s", "1h0m5s"), ("0s", "0s"), ("1.5s", "1.5s")],
)
def test_a_length_of_time_has_no_zeros_at_its_end(long: str, short: str) -> None:
    assert phrases.brief(Duration.parse(long)) == short


def test_a_moment_is_told_in_hours_minutes_and_seconds() -> None:
    assert phrases.clock_time(36063.4) == "10:01:03"
    assert phrases.clock_time(360_000) == "100:00:00"


@pytest.mark.parametrize(("seconds", "told"), [(0.2, "less than a second"), (44.871, "45s"), (947.2, "15m47s")])
def test_a_wait_is_told_in_whole_seconds(seconds: float, told: str) -> None:
    assert phrases.wait(seconds) == told


def test_one_is_not_many() -> None:
    assert [phrases.counted(number, "pod") for number in (0, 1, 2)] == ["0 pods", "1 pod", "2 pods"]


def test_data_are_told_as_people_write_them() -> None:
    data = {"claims": [{"zone": "a"}, {}], "status": True, "nodes": 2}

    assert phrases.flow(data) == "{claims: [{zone: a}, {}], status: true, nodes: 2}"


@pytest.mark.parametrize(
    ("step", "told"),
    [
        (
            Shortage(shortage=MarketWords(capacity_type="spot"), lasts=SHORT),
            "the cloud has run out of spot machines, for 1m30s",
        ),
        (
            Shortage(shortage=MarketWords(instance_type="c5.large", zone="a", count=3)),
            "the cloud has no more than 3 of c5.large machines in a",
        ),
        (Price(price=MarketWords(zone="b"), factor=1.5), "machines in b cost 1.5 times what the catalogue says"),
        (Withdraw(withdraw=MarketWords()), "the cloud no longer sells machines"),
        (Outage(outage="everything"), "the cloud answers no call"),
        (NeverJoin(never_join=2), "the next 2 machines to be bought will never join"),
        (Reclaim(reclaim=1), ""),
    ],
)
def test_a_step_is_a_sentence_unless_it_can_be_seen(step: Any, told: str) -> None:
    assert phrases.sentence(step) == told
