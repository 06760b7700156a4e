"""Sums of resource lists."""

import pytest

from joiner.model import quantity, resources
from joiner.model.resources import of


def test_keywords_name_resources() -> None:
    assert of(cpu="1", ephemeral_storage="1Ki") == {"cpu": 1000, "ephemeral-storage": 1024_000}


def test_a_sum_has_every_name() -> None:
    assert resources.add(of(cpu=1), of(cpu="500m", memory=1), {}) == of(cpu="1500m", memory=1)
    assert resources.add() == {}


def test_what_is_not_there_cannot_be_taken_away() -> None:
    assert resources.subtract(of(cpu=1, pods=3), of(cpu=2, memory=1)) == {"cpu": -1000, "pods": 3000}


def test_amounts_can_be_kept_from_going_below_zero() -> None:
    assert resources.at_least_zero({"cpu": -1, "memory": 5}) == {"cpu": 0, "memory": 5}


def test_something_fits_when_every_amount_is_there() -> None:
    assert resources.fits(of(cpu=1), of(cpu=1, memory=1))
    assert not resources.fits(of(cpu=1, memory=2), of(cpu=1, memory=1))
    assert not resources.fits({"gpu": 1}, of(cpu=1))
    assert resources.fits({"gpu": 0}, of(cpu=1))


def test_the_largest_is_taken_name_by_name() -> None:
    assert resources.largest([of(cpu=1, memory=2), of(cpu=3)]) == of(cpu=3, memory=2)
    assert resources.largest([{"cpu": -5}]) == {"cpu": -5}


def test_bytes_are_written_with_binary_suffixes() -> None:
    amounts = {**of(cpu="1930m", memory="6903Mi", pods=110), "hugepages-2Mi": 4096_000, "example.com/gpu": 2000}

    assert resources.written(amounts) == {
        "cpu": "1930m",
        "example.com/gpu": "2",
        "hugepages-2Mi": "4Ki",
        "memory": "6903Mi",
        "pods": "110",
    }


@pytest.mark.parametrize(
    ("name", "amount", "text"),
    [
        pytest.param("cpu", "7840m", "7.84", id="cores"),
        pytest.param("cpu", "2k", "2000", id="many cores"),
        pytest.param("memory", "28206Mi", "27.545Gi", id="memory"),
        pytest.param("memory", "22Gi", "22Gi", id="whole memory"),
        pytest.param("memory", "1Ki", "1Ki", id="too little to be seen"),
        pytest.param("example.com/gpu", "2", "2", id="anything else"),
        pytest.param("cpu", "0", "0", id="nothing"),
    ],
)
def test_amounts_side_by_side_are_in_one_unit(name: str, amount: str, text: str) -> None:
    assert resources.plain(name, quantity.parse(amount)) == text
