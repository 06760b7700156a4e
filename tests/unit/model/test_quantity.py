"""Quantities against the answers of Kubernetes' own library, kept in data/quantities.json."""

import json
from pathlib import Path

import pytest

from joiner.model import quantity
from joiner.model.quantity import BINARY, MAX, QuantityError

VECTORS = json.loads((Path(__file__).parents[2] / "data" / "quantities.json").read_text())
WITHOUT_DIGITS = {".", "+", "-", "e3", "E"}
"""Kubernetes reads these as zero, although its published pattern refuses them; so do we refuse them."""
READABLE = [row for row in VECTORS if "milli" in row and row["text"] not in WITHOUT_DIGITS]
UNREADABLE = [row["text"] for row in VECTORS if "milli" not in row] + sorted(WITHOUT_DIGITS)


@pytest.mark.parametrize("row", READABLE, ids=lambda row: row["text"])
def test_amounts_are_those_of_kubernetes_up_to_the_largest(row: dict[str, int | str]) -> None:
    milli = int(row["milli"])

    assert quantity.parse(str(row["text"])) == max(-MAX, min(MAX, milli))


@pytest.mark.parametrize(
    "row",
    [row for row in READABLE if abs(row["milli"]) <= MAX and "e" not in row["canonical"]],
    ids=lambda row: row["text"] + " is " + row["canonical"],
)
def test_the_canonical_spelling_is_that_of_kubernetes(row: dict[str, str]) -> None:
    binary = row["text"].endswith(tuple(BINARY))

    assert quantity.text(quantity.parse(row["text"]), binary=binary) == row["canonical"]


@pytest.mark.parametrize("text", UNREADABLE, ids=repr)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(QuantityError, match="is not a quantity"):
        quantity.parse(text)


@pytest.mark.parametrize(
    ("raw", "milli"),
    [(2, 2000), (0.5, 500), (0.1, 100), (1e-7, 1), (1e22, MAX), (-3, -3000)],
)
def test_bare_numbers_are_quantities(raw: float, milli: int) -> None:
    assert quantity.parse(raw) == milli


@pytest.mark.parametrize("raw", [True, None, [], float("nan"), float("inf")], ids=repr)
def test_other_values_are_refused(raw: object) -> None:
    with pytest.raises(QuantityError):
        quantity.parse(raw)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "hint"),
    [("1GB", "G or Gi"), ("1KB", "k or Ki"), ("1K", "k or Ki"), ("512mb", "M or Mi"), ("1 TiB", "T or Ti")],
)
def test_a_likely_suffix_is_proposed(text: str, hint: str) -> None:
    with pytest.raises(QuantityError, match=hint):
        quantity.parse(text)


@pytest.mark.parametrize("text", ["1e999999999999", "9" * 900, "9" * 900 + "Ei"], ids=["exponent", "digits", "binary"])
def test_what_is_too_large_becomes_the_largest(text: str) -> None:
    assert quantity.parse(text) == MAX
    assert quantity.parse("-" + text) == -MAX


def test_what_is_too_long_is_refused_without_arithmetic() -> None:
    with pytest.raises(QuantityError, match="is not a quantity"):
        quantity.parse("1" * 100_000)


def test_no_fraction_is_too_small_to_round_up() -> None:
    assert quantity.parse("1." + "0" * 60 + "1") == 1001
    assert quantity.parse("-1e-999999999") == -1


def test_one_amount_has_a_spelling_in_each_family() -> None:
    assert quantity.text(1048576 * 1000) == "1048576"
    assert quantity.text(1048576 * 1000, binary=True) == "1Mi"
