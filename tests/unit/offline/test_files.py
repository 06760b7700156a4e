"""What `-f` reads, and what it says about what it cannot read."""

import os
from pathlib import Path

import pytest

from joiner.offline import files
from joiner.offline.files import BadInput

OBJECT = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\n"


def names(manifests: files.Documents) -> list[str]:
    assert not manifests.problems
    return [item.data["metadata"]["name"] for item in manifests.objects]


def complaint(*filenames: str | Path) -> str:
    (problem,) = files.read(map(str, filenames)).problems
    return str(problem)


def test_a_folder_gives_its_manifests_at_any_depth_in_order_of_name(tmp_path: Path) -> None:
    for name in ("b.yaml", "a/z.yml", "c.JSON", "a/b/y.yaml", "notes.txt", ".hidden.yaml", ".git/x.yaml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(OBJECT % name.replace("/", "-"))

    assert names(files.read([str(tmp_path)])) == ["b.yaml", "c.JSON", "a-z.yml", "a-b-y.yaml"]


def test_files_are_read_in_the_order_they_are_named_and_only_once(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).write_text(OBJECT % name)
    paths = [str(tmp_path / "b"), str(tmp_path / "a"), str(tmp_path / "." / "b")]

    assert names(files.read(paths)) == ["b", "a"]


def test_items_of_a_list_are_objects_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "list.json").write_text('{"kind": "List", "items": [{"metadata": {"name": "x"}}, null]}')

    assert names(files.read([str(tmp_path)])) == ["x"]


def test_a_file_of_a_folder_may_be_empty_but_not_one_that_is_named(tmp_path: Path) -> None:
    (tmp_path / "empty.yaml").write_text("# nothing yet\n---\n")

    assert names(files.read([str(tmp_path)])) == []
    assert "holds no object" in complaint(tmp_path / "empty.yaml")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "holds no object"),
        (b"\n# only a comment\n", "holds no object"),
        (b"\x7fELF\x02\x00\x00", "is a binary file: byte 5 is NUL"),
        ("name: Zoë".encode("latin-1"), "is not UTF-8 text: byte 8 is 0xeb"),
        ("name: x".encode("utf-16"), "is written in UTF-16; save it as UTF-8"),
        (b"- a\n- b\n", "this is a list, not an object"),
        (b"just text\n", "this is text or a number, not an object"),
        (b"kind: List\nitems: [[1]]\n", "items[0] is a list, not an object"),
        (b"a: 1\na: 2\n", ":2:1: the key 'a' stands twice, at lines 1 and 2"),
        (b"[" * 100_000, "nested more than 100 deep"),
    ],
    ids=["empty", "comment", "binary", "latin", "utf-16", "list", "text", "item", "duplicate", "deep"],
)
def test_a_file_that_cannot_be_used_is_named_with_the_reason(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "file.yaml"
    path.write_bytes(content)

    assert complaint(path).startswith(f"{path}:")
    assert words in complaint(path)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("https://example.com/a.yaml", "addresses are not read; fetch it first: curl"),
        ("no/such.yaml", "there is no such file or folder"),
    ],
)
def test_a_name_that_leads_nowhere_is_explained(name: str, words: str) -> None:
    assert words in complaint(name)


def test_a_folder_without_manifests_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")

    assert "has no file that ends in .yaml, .yml, .json" in complaint(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read everything")
def test_an_unreadable_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "secret.yaml").write_text(OBJECT % "x")
    (tmp_path / "secret.yaml").chmod(0)

    assert "may not be read" in complaint(tmp_path / "secret.yaml")


def test_a_file_beyond_the_limit_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "huge.yaml").open("wb") as file:
        file.truncate(files.FILE_BYTES_MAX + 1)

    assert "is larger than 256 MiB" in complaint(tmp_path / "huge.yaml")


def test_everything_that_is_wrong_is_gathered_and_raised_together(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("a: b: c")
    manifests = files.read([str(tmp_path), "no/such.yaml"])

    with pytest.raises(BadInput, match=r"(?s)a\.yaml:1:5: is not YAML.*no/such\.yaml: there is no such file"):
        manifests.sound()


@pytest.mark.parametrize(
    "content",
    ['[{"name": "m5.large"}]', "- a\n- b\n", '{"instanceTypes": []}', "a: 1\n---\nb: 2\n", "[" * 100_000],
    ids=["JSON list", "YAML list", "mapping", "two mappings", "endless list"],
)
def test_a_file_of_a_folder_that_holds_no_kubernetes_object_is_passed_over_with_a_note(
    tmp_path: Path, content: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.json").write_text(content)
    (tmp_path / "b.yaml").write_text(OBJECT % "b")
    manifests = files.read([str(tmp_path)])

    assert (names(manifests), manifests.files) == (["b"], 1)
    assert f"{tmp_path / 'a.json'}: passed over: it holds no Kubernetes object" in manifests.notes[0]


def test_a_document_that_says_half_of_what_it_is_is_not_passed_over(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("kind: NodePool\nmetadata: {name: half}\n---\n- a\n")
    manifests = files.read([str(tmp_path)])

    assert [item.data["metadata"]["name"] for item in manifests.objects] == ["half"]
    assert "a.yaml:4:1: this is a list, not an object" in str(manifests.problems[0])


def test_a_named_pipe_in_a_folder_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.yaml")
    (tmp_path / "b.yaml").write_text(OBJECT % "b")

    assert names(files.read([str(tmp_path)])) == ["b"]
