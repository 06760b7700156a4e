"""The frame of the command line: help, unknown commands, errors in words, quiet ends."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from joiner import __version__
from joiner.cli.main import COMMANDS, EXIT_BUG, EXIT_INTERRUPTED, CommandGroup, cli
from joiner.yamldoc import YamlProblem


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(cli, arguments, prog_name="joiner")
    return result.exit_code, result.output


def joiner(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "joiner", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=os.environ | environment, check=False)


def failing(error: BaseException) -> click.Group:
    """The frame around a command that raises."""

    class One(CommandGroup):
        def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
            @click.command()
            def command() -> None:
                raise error

            return command

    return One(params=[click.Option(["--debug"], is_flag=True, envvar="JOINER_DEBUG")])


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_lists_every_command_and_ends_with_examples(flag: str) -> None:
    code, text = run(flag)

    assert code == 0
    assert all(f"  {name} " in text and line in text for name, line in COMMANDS.items())
    assert "joiner validate -f manifests/" in text


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_examples(name: str) -> None:
    code, text = run(name, "-h")

    assert code == 0
    assert f"\n    joiner {name}" in text or f"(joiner {name}" in text


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_says_what_the_command_says_itself(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)

    assert command is not None
    assert (command.name, command.short_help) == (name, COMMANDS[name])


def test_looking_for_help_imports_nothing_heavy() -> None:
    heavy = {"msgspec", "rich", "yaml", "difflib", "joiner.model", "joiner.yamldoc", "asyncio", "prometheus_client"}

    assert heavy.isdisjoint(imported_by("--help"))
    assert {"msgspec", "numpy", "yaml"}.isdisjoint(imported_by("plan", "--help"))


_AT_NUMPY = """
import gc, os, sys
from joiner.cli.main import CommandGroup

class Witness:
    def find_spec(self, name, path, target=None):
        if name == "numpy":
            print(os.environ.get("OPENBLAS_NUM_THREADS"), gc.get_threshold()[0])

sys.meta_path.insert(0, Witness())
CommandGroup(commands={}).get_command(None, "simulate")
"""


@pytest.mark.parametrize(("given", "threads"), [({}, "1"), ({"OPENBLAS_NUM_THREADS": "3"}, "3")])
def test_a_command_does_its_sums_on_one_thread_unless_told_otherwise(given: dict[str, str], threads: str) -> None:
    rest = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    command = [sys.executable, "-c", _AT_NUMPY]

    done = subprocess.run(command, capture_output=True, text=True, check=True, env={**rest, **given})

    assert done.stdout.split() == [threads, "100000"]


def test_a_small_scenario_imports_only_what_it_needs(tmp_path: Path) -> None:
    (tmp_path / "one.json").write_text('{"pods": [{}]}')

    found = imported_by("plan", "--scenario", str(tmp_path / "one.json"))

    assert "joiner.scheduling.schedule" in found
    assert {"yaml", "joiner.state", "joiner.scheduling.planners.lprounding", "pathlib", "difflib", "json"}.isdisjoint(
        found
    )


def imported_by(*arguments: str) -> set[str]:
    code = f"import sys, joiner.cli.main as m; m.cli({[*arguments]}, standalone_mode=False); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["validat"], "There is no command 'validat'; did you mean 'validate'?"),
        (["zzz"], "there are plan, run, consolidate, explain, simulate, catalog, validate, dump, crds"),
        (["version", "-o", "xml"], "'xml' is not one of 'table', 'json', 'yaml'"),
        (["validate"], "Name a file or folder"),
        (["--colour"], "No such option"),
    ],
)
def test_wrong_usage_is_explained_and_exits_2(arguments: list[str], words: str) -> None:
    code, text = run(*arguments)

    assert code == 2
    assert words in text


def test_version_tells_what_a_bug_report_needs() -> None:
    assert run("--version") == (0, f"joiner {__version__}\n")
    assert __version__ in run("version")[1]
    assert json.loads(run("version", "-o", "json")[1]).keys() == {
        *("apiVersion", "kind"),
        *("version", "python", "platform"),
    }


@pytest.mark.parametrize(
    ("shell", "words"), [("bash", "complete -o"), ("zsh", "#compdef joiner"), ("fish", "complete")]
)
def test_completion_prints_a_script_for_the_shell(shell: str, words: str) -> None:
    code, text = run("completion", shell)

    assert code == 0
    assert words in text
    assert "_JOINER_COMPLETE" in text


def test_completion_knows_commands_and_options() -> None:
    commands = joiner(_JOINER_COMPLETE="bash_complete", COMP_WORDS="joiner v", COMP_CWORD="1")
    options = joiner(_JOINER_COMPLETE="bash_complete", COMP_WORDS="joiner validate --st", COMP_CWORD="2")

    assert commands.stdout.split() == ["plain,validate", "plain,version"]
    assert options.stdout.split() == ["plain,--strict"]


def test_a_foreseen_error_is_one_clear_line() -> None:
    result = CliRunner().invoke(failing(YamlProblem("a.yaml", 3, 1, "is odd", "fix it")), ["validate"])

    assert (result.exit_code, result.output) == (1, "Error: a.yaml:3:1: is odd; fix it\n")


def test_an_unforeseen_error_is_called_a_bug_without_a_traceback() -> None:
    result = CliRunner().invoke(failing(KeyError("spam")), ["validate"])

    assert result.exit_code == EXIT_BUG
    assert "this is a bug in joiner, not a mistake of yours: KeyError: 'spam'" in result.output
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("arguments", "environment"), [(["--debug", "validate"], {}), (["validate"], {"JOINER_DEBUG": "1"})]
)
def test_the_traceback_is_shown_when_asked_for(arguments: list[str], environment: dict[str, str]) -> None:
    result = CliRunner(env=environment).invoke(failing(KeyError("spam")), arguments)

    assert "Traceback" in result.output


def test_an_interrupt_is_quiet() -> None:
    result = CliRunner().invoke(failing(KeyboardInterrupt()), ["validate"])

    assert (result.exit_code, result.output.strip()) == (EXIT_INTERRUPTED, "")


def test_a_reader_that_goes_away_is_no_error() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([sys.executable, "-m", "joiner", "crds"], stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)

    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, b"")


def test_crds_are_written_one_file_a_kind(tmp_path: Path) -> None:
    code, text = run("crds", "--dir", str(tmp_path / "crds"))

    assert code == 0
    assert text.split() == sorted(map(str, (tmp_path / "crds").iterdir()))
    assert (tmp_path / "crds" / "karpenter.sh_nodepools.yaml").exists()


def test_crds_that_cannot_be_written_are_explained(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    code, text = run("crds", "--dir", str(tmp_path / "file" / "crds"))

    assert code == 1
    assert text.startswith("Error: cannot write ")


def test_crds_are_printed_as_yaml_and_json() -> None:
    names = [item["metadata"]["name"] for item in json.loads(run("crds", "-o", "json")[1])["items"]]

    assert "nodepools.karpenter.sh" in names
    assert "kwoknodeclasses.karpenter.kwok.sh" in names
    assert run("crds")[1].count("\nkind: CustomResourceDefinition\n") == len(names)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("validate -f - <&-", "<stdin>: error: is closed"),
        ("version >&-", "standard output is closed"),
        ("crds >/dev/full", "the output cannot be written: No space left on device"),
    ],
    ids=["no standard input", "no standard output", "a full disk"],
)
def test_an_end_that_is_closed_or_full_is_no_bug_of_ours(line: str, said: str) -> None:
    command = f"{sys.executable} -m joiner {line}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60)

    assert done.returncode == 1
    assert re.search(said, done.stdout + done.stderr)
    assert "bug" not in done.stderr


@pytest.mark.parametrize("command", [["plan"], ["catalog"], ["consolidate"], ["explain", "node", "n"]], ids=" ".join)
def test_files_without_their_option_are_answered_with_it(command: list[str]) -> None:
    result = CliRunner().invoke(cli, [*command, "pools.yaml"])

    assert result.exit_code == 2
    assert "(pools.yaml); files and folders are named with -f" in result.output


def test_zones_with_spaces_between_are_answered_with_commas() -> None:
    result = CliRunner().invoke(cli, ["plan", "-f", "x", "--zones", "a", "b"])

    assert "several zones with commas" in result.output
