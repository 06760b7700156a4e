"""Reading manifests: the meaning of words, places, bounds, and never an exception."""

import json
import pickle
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from joiner.yamldoc import Loaded, Number, YamlProblem, documents, dump, plain

BOTH = pytest.mark.parametrize("pure", [False, True], ids=["fast parser", "slow parser"])


def load(text: str, pure: bool = False) -> Any:
    loaded = documents(text, "file.yaml", pure=pure)
    assert not loaded.problems
    return loaded.documents[0].data


def problem(text: str, pure: bool = False) -> YamlProblem:
    loaded = documents(text, "file.yaml", pure=pure)
    assert not loaded.documents
    return loaded.problems[0]


# --- what words mean


@pytest.mark.parametrize(
    ("word", "meaning"),
    [
        ("yes", True),
        ("On", True),
        ("y", True),
        ("no", False),
        ("OFF", False),
        ("n", False),
        ("true", True),
        ("tRue", "tRue"),
        ("null", None),
        ("~", None),
        ("", None),
        ("1", 1),
        ("-12", -12),
        ("+7", 7),
        ("010", 8),
        ("0o10", 8),
        ("08", 8.0),
        ("0x1F", 31),
        ("0b101", 5),
        ("1_000", 1000),
        ("18446744073709551615", 18446744073709551615),
        ("18446744073709551616", 1.8446744073709552e19),
        ("0.40", 0.4),
        (".5", 0.5),
        ("5.", 5.0),
        ("1e3", 1000.0),
        ("1e999", "1e999"),
        ("1:30", "1:30"),
        ("2024-01-02", "2024-01-02"),
        ("2024-01-02T03:04:05Z", "2024-01-02T03:04:05Z"),
        ("100m", "100m"),
        ("1.2.3", "1.2.3"),
        ("=", "="),
        ("'yes'", "yes"),
        ('"1"', "1"),
        ("!!str 1", "1"),
        ("!!int '3'", 3),
        ("!!float 3", 3.0),
        ("!!timestamp 2024-01-02", "2024-01-02"),
    ],
)
@BOTH
def test_a_word_means_what_it_means_to_kubernetes(word: str, meaning: Any, pure: bool) -> None:
    found = load(f"word: {word}", pure)["word"]

    assert found == meaning
    assert type(plain(found)) is type(meaning)


def test_a_number_keeps_its_spelling() -> None:
    number = load("price: 0.40")["price"]

    assert isinstance(number, Number)
    assert (number.text, str(number), number * 2) == ("0.40", "0.40", 0.8)


def test_a_number_keeps_its_spelling_in_json_and_when_pickled() -> None:
    number = load('{"price": 0.40}')["price"]

    assert pickle.loads(pickle.dumps(number)).text == "0.40"


def test_merge_keys_give_defaults_that_own_keys_win_over() -> None:
    text = "base: &base {a: 1, b: 2}\nmore: &more {b: 3, c: 4}\nall:\n  a: 9\n  <<: [*base, *more]\n"

    assert load(text)["all"] == {"a": 9, "b": 2, "c": 4}


def test_a_quoted_merge_sign_is_a_key_like_any_other() -> None:
    assert load("'<<': {a: 1}") == {"<<": {"a": 1}}


def test_every_document_is_read_and_empty_ones_are_passed_over() -> None:
    loaded = documents("\ufeff---\n# nothing\n---\na: 1\n---\nb: 2\n", "file.yaml")

    assert [document.data for document in loaded.documents] == [{"a": 1}, {"b": 2}]


# --- what is refused


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a: 1\nb:\n  c: 1\n  c: 2\n", 4, "'c' stands twice, at lines 3 and 4"),
        ('{"a": 1,\n "a": 2}', 2, "'a' stands twice, at lines 1 and 2"),
        ("1: a", 1, "a key must be text, not a number"),
        ("a: 1\nyes: a", 2, "a key must be text, not a boolean"),
        ("~: a", 1, "a key must be text, not nothing"),
        ("[a]: b", 1, "a key must be text, not a list or mapping"),
        ("a: !Ref b", 1, "the tag '!Ref' means nothing here"),
        ("a: !!python/object:os.system {}", 1, "means nothing here"),
        ("a: !!set {b}", 1, "means nothing here"),
        ("a: !!int b", 1, "'b' is not of the type !!int"),
        ("a: .nan", 1, ".nan is a number that JSON does not have"),
        ("a: *b", 1, "*b refers to nothing"),
        ("a: &a [*a]", 1, "*a refers to itself"),
        ("<<: 1", 1, "merges mappings"),
        ("<<: {a: 1}\n<<: {b: 1}", 2, "'<<' stands twice"),
        ("a:\n\tb: 1", 2, "indent with spaces"),
        ("a: b: c", 1, "put quotes around text that has a colon"),
        ("a: 'b\nc: d\n", 3, "began at line 1"),
        ("a: x\nb: \x07", 2, "characters are not allowed"),
        ("a: \ud800", 1, ""),
        ('a: "\\ud800"', 1, ""),
        ('{"a": "\\ud800"}', 1, ""),
        ('a: "\\UFFFFFFFF"', 1, ""),
    ],
)
def test_what_cannot_be_read_is_named_with_its_line(text: str, line: int, words: str) -> None:
    found = problem(text)

    assert found.line == line
    assert words in str(found)
    assert str(found).startswith(f"file.yaml:{line}:")


@pytest.mark.parametrize("text", ["a: \ud800", 'a: "\\ud800"', 'a: "\\UFFFFFFFF"', "a: \x07", "a: b: c"])
def test_the_slow_parser_refuses_the_same(text: str) -> None:
    assert problem(text, pure=True)


def test_all_duplicates_of_a_text_are_found_and_whole_documents_kept() -> None:
    loaded = documents("a: 1\na: 2\nb: 1\nb: 2\n---\nc: 1\n---\nd: 1\nd: 2\n", "file.yaml")

    assert [found.line for found in loaded.problems] == [2, 4, 9]
    assert [document.data for document in loaded.documents] == [{"c": 1}]


def test_after_a_hundred_problems_the_rest_is_not_read() -> None:
    loaded = documents("a: 1\n" * 5000, "file.yaml")

    assert len(loaded.problems) == 101
    assert "the rest was not read" in str(loaded.problems[-1])


# --- bounds


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "{a: " * 100_000,
        "- " * 100_000,
        "? " * 100_000,
        '{"a": ' * 100_000 + "1" + "}" * 100_000,
        "[" * 150 + "]" * 150,
        "a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}]\n" for i in range(1, 200)),
    ],
    ids=["lists", "mappings", "blocks", "keys", "json", "closed", "through aliases"],
)
@BOTH
def test_deep_nesting_is_refused(text: str, pure: bool) -> None:
    assert "nested more than 100 deep" in str(problem(text, pure))


@pytest.mark.parametrize("text", ["[" * 100 + "]" * 100, "[" * 100 + " ]" * 100 + "#"], ids=["json", "yaml"])
def test_a_hundred_levels_are_fine(text: str) -> None:
    assert not documents(text, "file.yaml").problems


@pytest.mark.parametrize(
    "text",
    [
        "a0: &a0 [lol, lol]\n" + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 20)),
        "a0: &a0 {x: y}\n" + "".join(f"a{i}: &a{i} {{k{i}: [*a{i - 1}, *a{i - 1}]}}\n" for i in range(1, 40)),
        "a0: &a0 {x: y}\n" + "".join(f"a{i}: &a{i} {{<<: *a{i - 1}, k{i}: *a{i - 1}}}\n" for i in range(1, 40)),
        "a: &a " + "x" * 1_000_000 + "\nb: [" + "*a, " * 100 + "]\n",
    ],
    ids=["lists", "mappings", "merges", "long text"],
)
def test_aliases_that_explode_are_refused(text: str) -> None:
    assert "aliases make the text grow too large" in str(problem(text))


def test_modest_aliases_are_fine() -> None:
    assert load("a: &a [1, 2]\nb: [*a, *a]\n")["b"] == [[1, 2], [1, 2]]


MIB = 1 << 20


@pytest.mark.parametrize(
    "text",
    [
        "kind: ConfigMap\ndata:\n  a: " + "x" * (10 * MIB),
        "kind: ConfigMap\ndata: {a: " + "1" * (10 * MIB) + "}",
        json.dumps({"kind": "ConfigMap", "data": "x" * (10 * MIB)}),
        "kind: List\nitems:\n- {kind: ConfigMap, a: " + "x" * (2 * MIB) + "}",
        "kind: ConfigMap\na: " + "ß" * MIB,
    ],
    ids=["text", "digits", "json", "item", "bytes, not characters"],
)
def test_an_object_no_cluster_could_store_is_refused(text: str) -> None:
    assert "more than the 1.5 MiB a cluster can store" in str(problem(text))


def test_a_list_may_be_larger_than_an_object() -> None:
    item = "- {kind: ConfigMap, a: " + "x" * MIB + "}\n"

    assert len(documents("kind: List\nitems:\n" + item * 3, "file.yaml").items()) == 3


def test_a_file_of_ten_megabytes_with_many_documents_is_read() -> None:
    loaded = documents(("a: " + "x" * 10_000 + "\n---\n") * 1_050, "file.yaml")

    assert (len(loaded.documents), loaded.problems) == (1_050, ())


# --- places

POOL = """\
# a comment
apiVersion: karpenter.sh/v1
kind: NodePool
metadata:
  name: default
  labels:
    example.com/team: a
    example.com: b
spec:
  requirements:
  - key: a
    operator: In
  - {key: b,
     operator: In}
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("", 2),
        ("kind", 3),
        ("metadata.name", 5),
        ("metadata.labels.example.com/team", 7),
        ("metadata.labels[example.com/team]", 7),
        ('metadata.labels["example.com"]', 8),
        ("spec.requirements", 10),
        ("spec.requirements[0].operator", 12),
        ("spec.requirements[1]", 13),
        ("spec.requirements[1].operator", 14),
        ("spec.requirements[1].values[0]", 13),
        ("spec.requirements[7].key", 10),
        ("spec.nonsense.deep", 9),
        ("metadata.name.x", 5),
        (".", 2),
        ("[", 2),
    ],
)
def test_a_field_path_leads_to_its_line_or_the_nearest(path: str, line: int) -> None:
    assert documents(POOL, "file.yaml").documents[0].line_of(path) == line


def test_lines_are_known_in_json_too() -> None:
    text = json.dumps({"kind": "NodePoolList", "items": [{"a": 1}, {"spec": {"b": [1, 2]}}]}, indent=1)
    first, second = documents(text, "file.json").items()

    assert (second.inside, second.line) == ("items[1]", text[: text.index('"spec"')].count("\n"))
    assert text.splitlines()[second.line_of("spec.b[1]") - 1].strip() == "2"
    assert text.splitlines()[first.line_of("a") - 1].strip() == '"a": 1'


def test_merged_fields_are_found_where_they_were_written() -> None:
    document = documents("base: &base\n  a: 1\nall:\n  b: 1\n  <<: *base\n", "file.yaml").documents[0]

    assert (document.line_of("all.a"), document.line_of("all.b")) == (2, 4)


def test_lists_are_taken_apart_at_any_depth() -> None:
    text = "kind: List\nitems:\n- kind: A\n- kind: BList\n  items:\n  - kind: B\n---\nkind: AllowList\n"
    items = documents(text, "file.yaml").items()

    assert [(item.data["kind"], item.inside, item.line) for item in items] == [
        ("A", "items[0]", 3),
        ("B", "items[1].items[0]", 6),
        ("AllowList", "", 8),
    ]


# --- laws

texts = st.text(st.characters(codec="utf-8"), max_size=40)
data = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
signs = st.sampled_from("[]{},:-?&*!|>'\"#~%\\\n\t a1")
pieces = st.sampled_from(["yes", "0.5", "<<", "&a ", "*a ", "!!int ", "---\n", "%YAML 1.1\n", ": ", "  "])
words = st.lists(signs | pieces, max_size=40)


@given(st.text() | words.map("".join) | st.binary().map(lambda raw: raw.decode("latin-1")), st.booleans())
@example("", False)
@example("\ud800", True)
@example("&x <<: 1\nb: *x", False)
def test_any_text_gives_documents_and_problems_and_never_an_exception(text: str, pure: bool) -> None:
    loaded = documents(text, "file.yaml", pure=pure)

    assert isinstance(loaded, Loaded)
    assert all(isinstance(found, YamlProblem) and found.line >= 1 for found in loaded.problems)
    assert json.dumps([document.data for document in loaded.documents]).encode()


@given(data)
def test_what_is_written_is_read_back(value: Any) -> None:
    assert [document.data for document in documents(dump({"value": value}), "").documents] == [{"value": value}]


@given(data)
def test_yaml_and_json_of_the_same_data_are_read_alike(value: Any) -> None:
    assert load(json.dumps({"value": value})) == load("# YAML\n" + dump({"value": value})) == {"value": value}


@pytest.mark.parametrize(
    "text", ["y", "No", "1e3", "0o7", "08", "1_0", "2024-01-02", "1:30", "", "~", "<<", "a: b", "0.40"]
)
def test_text_that_looks_like_something_else_is_written_in_quotes(text: str) -> None:
    assert load(dump({text: text})) == {text: text}


def test_numbers_are_written_as_they_were() -> None:
    assert dump({"price": Number("0.40"), "text": "a\nb\n"}) == "price: 0.40\ntext: |\n  a\n  b\n"


def test_several_objects_become_several_documents() -> None:
    assert [document.data for document in documents(dump({"a": 1}, {"b": 2}), "").documents] == [{"a": 1}, {"b": 2}]
