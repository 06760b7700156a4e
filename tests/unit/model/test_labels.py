"""Label syntax and vocabulary."""

import pytest

from joiner.model import labels
from joiner.model.labels import Vocabulary

VOCABULARY = Vocabulary()


@pytest.mark.parametrize(
    "key",
    ["a", "a/b", "example.com/name", "A_b.c-d", "x" * 63, f"{'a' * 63}.io/n", "0/0", "a." + "b." * 120 + "c/n"],
    ids=lambda key: key[:20],
)
def test_good_keys_have_no_problem(key: str) -> None:
    assert labels.key_problem(key) is None


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("", "1 to 63"),
        ("/a", "empty part before the slash"),
        ("a/", "1 to 63"),
        ("A.com/b", "DNS name"),
        ("a/b/c", "DNS name"),
        ("-a/b", "DNS name"),
        ("a..b/c", "DNS name"),
        ("a b", "beginning and ending"),
        ("_a", "beginning and ending"),
        ("a.", "beginning and ending"),
        ("x" * 64, "1 to 63"),
        ("a" * 254 + "/b", "at most 253"),
        ("ü", "letters"),
        ("a\n", "letters"),
    ],
    ids=lambda text: repr(text[:20]),
)
def test_bad_keys_are_explained(key: str, words: str) -> None:
    assert words in (labels.key_problem(key) or "")


@pytest.mark.parametrize("value", ["", "a", "A-b_c.d", "x" * 63, "07"])
def test_good_values_have_no_problem(value: str) -> None:
    assert labels.value_problem(value) is None


@pytest.mark.parametrize("value", ["x" * 64, "-a", "a-", "a b", "a/b", "é", "a\n"])
def test_bad_values_are_explained(value: str) -> None:
    assert "at most 63" in (labels.value_problem(value) or "")


@pytest.mark.parametrize(
    ("key", "restricted"),
    [
        ("karpenter.sh/anything", True),
        ("sub.karpenter.sh/anything", True),
        ("notkarpenter.sh/anything", False),
        (labels.CAPACITY_TYPE, False),
        (labels.NODEPOOL, False),
        (labels.HOSTNAME, True),
        ("karpenter.sh", False),
        ("team", False),
    ],
)
def test_our_own_domain_is_closed_but_for_well_known_labels(key: str, restricted: bool) -> None:
    assert VOCABULARY.is_restricted(key) is restricted


def test_old_spellings_are_read_as_todays() -> None:
    assert VOCABULARY.normal_key("beta.kubernetes.io/arch") == labels.ARCH
    assert VOCABULARY.normal_key("team") == "team"


def test_values_may_have_old_spellings_too() -> None:
    vocabulary = Vocabulary(value_aliases={labels.ZONE: {"zone-one": "1"}})

    assert vocabulary.normal_value(labels.ZONE, "zone-one") == "1"
    assert vocabulary.normal_value(labels.ARCH, "zone-one") == "zone-one"


def test_a_provider_adds_words_without_changing_ours() -> None:
    extended = VOCABULARY.extended(well_known=["example.com/size"], restricted_domains=["example.com"])

    assert not extended.is_restricted("example.com/size")
    assert extended.is_restricted("example.com/other")
    assert not VOCABULARY.is_restricted("example.com/other")


def test_two_vocabularies_are_joined_without_losing_a_word() -> None:
    one = Vocabulary().extended(well_known=["a.example/x"])
    other = Vocabulary(
        aliases={"old": "new"},
        value_aliases={labels.ZONE: {"zone-one": "1"}},
        closed_values={"b.example/size": ("s", "l")},
        offering_keys=frozenset({"b.example/reservation"}),
        reservation_id="b.example/reservation",
    ).with_node_classes("b.example/class")

    for joined in (one.joined(other), other.joined(one)):
        assert joined.well_known == one.well_known | other.well_known
        assert joined.given == {labels.NODEPOOL, "b.example/class"}
        assert joined.offering_keys == one.offering_keys | other.offering_keys
        assert joined.reservation_id == "b.example/reservation"
        assert (joined.normal_key("old"), joined.normal_key("beta.kubernetes.io/os")) == ("new", labels.OS)
        assert joined.normal_value(labels.ZONE, "zone-one") == "1"
        assert joined.closed_values.keys() == {"b.example/size", labels.CAPACITY_TYPE}
