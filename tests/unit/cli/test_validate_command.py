"""`joiner validate`: every problem at once, with its place, and an exit code a script can trust."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from joiner.cli.main import cli
from joiner.yamldoc import documents

POOL = """\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata:
  name: default
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      requirements:
      - key: kubernetes.io/arch
        operator: In
        values: [amd64]
"""
DEPLOYMENT = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n"
WARNED = """\
apiVersion: karpenter.sh/v1alpha1
kind: NodeOverlay
metadata: {name: cheap}
spec:
  pricePercent: 90
  selector:
    matchExpressions: {key: kubernetes.io/arch, operator: In, values: [amd64]}
"""


def validate(text: str, *arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(cli, ["validate", "-f", "-", *arguments], input=text)
    return result.exit_code, result.output


def test_a_good_file_passes_and_is_counted() -> None:
    code, text = validate(f"{POOL}---\n{DEPLOYMENT}")

    assert code == 0
    assert text == "1 object checked in 1 file, 1 of other kinds (1 Deployment) not looked at: no problems\n"


def test_every_problem_is_printed_with_place_object_field_and_remedy(tmp_path: Path) -> None:
    path = tmp_path / "pool.yaml"
    path.write_text(POOL.replace("operator: In", "operator: Inn").replace("spec:\n  t", "spec:\n  weight: 500\n  t"))
    result = CliRunner().invoke(cli, ["validate", str(path)])

    assert result.exit_code == 1
    assert f"{path}:6: error: NodePool/default: spec.weight: " in result.output
    assert f"{path}:12: error: NodePool/default: spec.template.spec.requirements[0].operator: " in result.output
    assert "    did you mean: In\n    allowed: In, NotIn, Exists" in result.output
    assert result.output.endswith("1 object checked in 1 file: 2 errors\n")


@pytest.mark.parametrize(("flags", "code"), [([], 0), (["--strict"], 1)])
def test_warnings_fail_only_when_asked_to(flags: list[str], code: int) -> None:
    found, text = validate(WARNED, *flags)

    assert found == code
    assert "<stdin>:7: warning: NodeOverlay/cheap: spec.selector.matchExpressions: " in text
    assert text.endswith("1 object checked in 1 file: 1 warning\n")


def test_two_objects_of_one_kind_and_name_are_an_error() -> None:
    code, text = validate(f"{POOL}---\n{POOL}---\n{POOL.replace('default', 'other')}")

    assert code == 1
    assert "<stdin>:17: error: NodePool/default: metadata.name: the same object stands at <stdin>:1;" in text
    assert text.endswith("3 objects checked in 1 file: 1 error\n")


def test_json_for_machines_says_the_same() -> None:
    code, text = validate(POOL.replace("operator: In", "operator: Inn"), "-o", "json")
    (problem,) = json.loads(text)["problems"]

    assert code == 1
    assert (problem["line"], problem["object"], problem["nearest"]) == (11, "NodePool/default", "In")
    assert problem["field"] == "spec.template.spec.requirements[0].operator"
    assert json.loads(text)["summary"] == {"files": 1, "checked": 1, "passedOver": 0, "errors": 1, "warnings": 0}


def test_yaml_for_machines_is_the_same_data() -> None:
    _, as_json = validate(WARNED, "-o", "json")
    _, as_yaml = validate(WARNED, "-o", "yaml")

    assert documents(as_yaml, "").documents[0].data == json.loads(as_json)


def test_items_of_a_list_are_judged_one_by_one() -> None:
    items = [documents(text, "").documents[0].data for text in (POOL, DEPLOYMENT, POOL)]
    code, text = validate(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}, indent=1))

    assert code == 1
    assert "the same object stands at <stdin>:5" in text


def test_an_object_without_a_kind_is_refused() -> None:
    code, text = validate("spec: {}\n")

    assert code == 1
    assert "<stdin>:1: error: object/(no name): kind: is missing" in text


def test_text_from_a_file_cannot_steer_the_terminal() -> None:
    code, text = validate(POOL.replace("name: default\nspec", 'name: "a\\e[31m"\nspec'))

    assert code == 1
    assert "\x1b" not in text


CLASS = "apiVersion: karpenter.kwok.sh/v1alpha1\nkind: KWOKNodeClass\nmetadata: {name: %s}\n"
EC2_CLASS = """\
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: default}
spec:
  role: nodes
  amiSelectorTerms: [{alias: al2023@latest}]
  subnetSelectorTerms: [{tags: {a: b}}]
  securityGroupSelectorTerms: [{tags: {a: b}}]
"""


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ("", False),
        (CLASS % "default", False),
        (CLASS % "defualt", True),
        (EC2_CLASS, True),
        (f"{EC2_CLASS}---\n{CLASS % 'default'}", False),
    ],
    ids=["no class at all", "there", "misspelled", "another kind", "both"],
)
def test_a_pool_whose_class_is_not_among_the_given_ones_is_warned_about(more: str, told: bool) -> None:
    code, text = validate(f"{POOL}---\n{more}")

    assert code == 0
    assert ("there is no KWOKNodeClass default of karpenter.kwok.sh in these files" in text) is told
    assert ("did you mean: defualt" in text) is ("defualt" in more)


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("kind: KWOKNodeclass", "did you mean: KWOKNodeClass of karpenter.kwok.sh"),
        ("kind: [KWOKNodeClass]", ""),
        ("apiVersion: karpenter.kwok.sh/v1alpha1", "write group, without the version"),
    ],
    ids=["a misspelled kind", "no text", "as in former versions"],
)
def test_a_reference_to_a_class_that_cannot_be_is_answered_with_what_was_meant(written: str, told: str) -> None:
    pool = POOL.replace("kind: KWOKNodeClass, name", f"{written}, name")
    assert pool != POOL
    _, text = validate(f"{pool}---\n{CLASS % 'default'}")

    assert "None" not in text
    assert told in text
    assert ("in these files" in text) is ("did you mean" in told)


def test_a_catalogue_that_is_not_there_is_told() -> None:
    code, text = validate(CLASS % "a" + "spec: {instanceTypes: ec2/us-west-1}\n")

    assert code == 1
    assert "<stdin>:4: error: KWOKNodeClass/a: spec.instanceTypes: region 'us-west-1' is not in the bundled" in text
    assert (
        "did you mean: ec2/us-west-2\n    allowed: kwok, small, ec2/us-east-1, ec2/us-west-2, the path of a file"
        in text
    )


def test_a_catalogue_file_is_looked_for_beside_the_manifest(tmp_path: Path) -> None:
    path = tmp_path / "class.yaml"
    path.write_text(CLASS % "a" + "spec: {instanceTypes: machines.json}\n")

    missing = CliRunner().invoke(cli, ["validate", str(path)])
    (tmp_path / "machines.json").write_text("[]")
    there = CliRunner().invoke(cli, ["validate", str(path)])

    assert (
        f"warning: KWOKNodeClass/a: spec.instanceTypes: there is no file {tmp_path / 'machines.json'}" in missing.output
    )
    assert there.output == "1 object checked in 1 file: no problems\n"


LAUGHS = "a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [{f'*a{i - 1}, ' * 9}]\n" for i in range(1, 20))
MANY = "".join(f"---\n{DEPLOYMENT}# {'x' * 5_000}\n" for _ in range(2_100))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (
            POOL.replace("kind: NodePool", "kind: NodePool\nkind: NodePool").encode(),
            "'kind' stands twice, at lines 2 and 3",
        ),
        (b"[" * 100_000, "nested more than 100 deep"),
        (b"{a: " * 100_000, "nested more than 100 deep"),
        (LAUGHS.encode(), "aliases make the text grow"),
        (bytes(range(256)), "is a binary file: byte 0 is NUL"),
        (b"", "holds no object"),
        (b"a: " + b"x" * 10_000_000, "more than the 1.5 MiB a cluster can store"),
        (
            b"a:\n" + b"".join(b"  k%d: value\n" % i for i in range(200_000)),
            "more than the 1.5 MiB a cluster can store",
        ),
        (MANY.encode(), "2100 of other kinds (2100 Deployment) not looked at"),
        (b"a: b: c", "put quotes around text"),
        (b"a:\n\t- b", "indent with spaces"),
    ],
    ids=["duplicate", "lists", "mappings", "aliases", "binary", "empty", "scalar", "object", "10 MB", "colon", "tab"],
)
def test_a_bad_file_gets_a_clear_message_and_never_a_traceback(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "file.yaml").write_bytes(content)
    result = CliRunner().invoke(cli, ["validate", str(tmp_path / "file.yaml")])

    assert words in result.output
    assert result.exit_code == (0 if content == MANY.encode() else 1)
    assert "Traceback" not in result.output + result.stderr


def test_the_installed_command_reads_standard_input() -> None:
    command = [sys.executable, "-m", "joiner", "validate", "-f", "-"]
    done = subprocess.run(command, input=b"\x00\x01", capture_output=True, check=False)

    assert done.returncode == 1
    assert b"<stdin>: error: is a binary file: byte 0 is NUL" in done.stdout
    assert done.stderr == b""


def test_what_was_not_looked_at_is_not_called_sound() -> None:
    code, text = validate(DEPLOYMENT)

    assert code == 0
    assert text.endswith(
        "0 objects checked in 1 file, 1 of other kinds (1 Deployment) not looked at: nothing was checked\n"
    )


def test_the_same_object_in_folders_of_environments_is_only_a_warning(tmp_path: Path) -> None:
    for environment in ("dev", "prod"):
        (tmp_path / environment).mkdir()
        (tmp_path / environment / "pool.yaml").write_text(POOL)

    result = CliRunner().invoke(cli, ["validate", str(tmp_path)])

    assert result.exit_code == 0, result.output
    assert "warning: NodePool/default: metadata.name: the same object stands at" in result.output
