"""Laws of quantities and durations: what is written can be read again."""

from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from joiner.model import quantity, resources
from joiner.model.duration import LONGEST, Duration, DurationError
from joiner.model.quantity import MAX, QuantityError

AMOUNTS = st.integers(-MAX, MAX) | st.integers(-2000, 2000).map(lambda number: number * 1024 * 1000)


@given(AMOUNTS, st.booleans())
def test_reading_what_was_written_gives_the_amount(amount: int, binary: bool) -> None:
    assert quantity.parse(quantity.text(amount, binary=binary)) == amount


@given(AMOUNTS, st.sampled_from(["cpu", "memory", "hugepages-1Gi", "example.com/gpu"]))
def test_a_resource_reads_back_by_its_name(amount: int, name: str) -> None:
    assert quantity.parse(resources.text(name, amount)) == amount


@given(st.text(alphabet="0123456789.+-eEmkKMGi", max_size=8) | st.text(max_size=8))
def test_any_text_is_a_quantity_or_refused(text: str) -> None:
    with suppress(QuantityError):
        assert abs(quantity.parse(text)) <= MAX


@given(st.integers(-LONGEST - 1, LONGEST) | st.integers(-10_000, 10_000))
def test_a_duration_reads_back(nanoseconds: int) -> None:
    assert Duration.parse(Duration(nanoseconds).text()) == nanoseconds


@given(st.text(alphabet="0123456789.+-hmsunµ", max_size=8) | st.text(max_size=8))
def test_any_text_is_a_duration_or_refused(text: str) -> None:
    with suppress(DurationError):
        assert abs(Duration.parse(text)) <= LONGEST + 1
