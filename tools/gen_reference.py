"""Write the parts of the documentation that the program itself knows best, or with --check say whether they are current.

python tools/gen_reference.py [--check]

These are the reference pages of commands, metrics, events and options, and, in every page, what commands print: in a code fence
tagged `console` each line `$ joiner …` or `$ python …` is run, and its output is put below it. `$ echo $?` shows the exit
code; a command that fails without being followed by it is an error.
"""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Final

import click
from click.testing import CliRunner

from joiner.cli.main import COMMANDS, cli
from joiner.cloud.aws import counts
from joiner.cloud.catalogcache import CacheStats
from joiner.cloud.kwok.nodeclass import KWOKNodeClass
from joiner.observe.catalogs import OFFERING_FAMILIES, CatalogCollector
from joiner.observe.cluster import CLUSTER_FAMILIES, STATE_FAMILIES
from joiner.observe.conditions import TOGETHER, watched_kinds
from joiner.observe.declare import Family
from joiner.observe.events import OF_ALL, REASONS, Reason
from joiner.observe.metrics import NOT_YET, Metrics
from joiner.observe.pods import POD_FAMILIES
from joiner.options import Gates, Options, flag_of, gate_name

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = ROOT / "docs" / "reference"
CONSOLE = re.compile(r"(?ms)^```console\n(.*?)^```$")
EXIT_CODE = "$ echo $?"
WIDTH = 100


class Failed(RuntimeError):
    """A command in the documentation does not do what it is shown to do."""


# -- the reference pages -----------------------------------------------------------------------------------------------


def cli_page() -> str:
    """Every command with its help."""
    parts = [
        "# The command line",
        "Made by `tools/gen_reference.py` from the help of the commands; `joiner COMMAND --help` prints the same.",
        *_command("joiner", cli),
    ]
    context = click.Context(cli, info_name="joiner")
    for name in COMMANDS:
        command = cli.get_command(context, name)
        assert command is not None
        parts += _command(f"joiner {name}", command)
        if isinstance(command, click.Group):
            for each in command.list_commands(context):
                parts += _command(f"joiner {name} {each}", command.commands[each])
    return "\n\n".join(parts) + "\n"


def _command(name: str, command: click.Command) -> tuple[str, str]:
    settings = {"terminal_width": WIDTH, **cli.context_settings}
    context = click.Context(command, info_name=name, **settings)
    return f"## {name}", f"```text\n{command.get_help(context).rstrip()}\n```"


def metrics_page() -> str:
    """Every metric with its labels and its meaning."""
    nothing = CacheStats(
        nodepool="default", hits=0, misses=0, refetches=0, stale_serves=0, build_seconds=0.0, stale=False,
        generation=None, moved=(),
    )  # fmt: skip
    catalogs = [
        Family(family.samples[0].name, family.type, tuple(family.samples[0].labels), family.documentation)
        for family in CatalogCollector(lambda: (nothing,)).collect()
    ]
    return "\n".join(
        [
            "# Metrics",
            "",
            "Made by `tools/gen_reference.py` from `joiner.observe`. Names and labels are an interface; those that begin with",
            "`karpenter_` or `operator_` are Karpenter's own, so that dashboards keep working. They are counted in the",
            "simulation as in a cluster; the endpoint that serves them comes with the command that runs the controllers.",
            "",
            "What can be read off the caches is read at every scrape, so nothing is left of objects that are gone, and",
            "nothing is computed in between. Two options leave things out: `--disable-detailed-metrics` whatever names single",
            "pods or single offerings, `--disable-cluster-state-observability` whatever names nodes, pods, pools' resources or",
            "conditions, with the events of conditions and finalizers.",
            "",
            "## Counted by the controllers",
            "",
            "With `--disable-cluster-state-observability` pods are not watched, and how long they took to be bound and to start",
            "is not counted.",
            "",
            *_metric_rows(Metrics().families),
            "",
            "## The state of the cluster",
            "",
            *_metric_rows(STATE_FAMILIES),
            "",
            "## Nodes and pools",
            "",
            "Left out by `--disable-cluster-state-observability`. The well-known labels stand there without their domain and in",
            "snake case: `nodepool`, `zone`, `region`, `instance_type`, `arch`, `os`, `capacity_type`, `windows_build`, and",
            "those of the provider.",
            "",
            *_metric_rows(CLUSTER_FAMILIES),
            "",
            "## Single pods",
            "",
            "Left out by `--disable-cluster-state-observability` and by `--disable-detailed-metrics`.",
            "",
            *_metric_rows(POD_FAMILIES),
            "",
            *_conditions_section(),
            "## What the provider sells",
            "",
            "Left out by `--disable-detailed-metrics`.",
            "",
            *_metric_rows(OFFERING_FAMILIES),
            "",
            "## The catalogue",
            "",
            *_metric_rows(catalogs),
            "",
            "## Counted by the provider `aws`",
            "",
            *_metric_rows(_of_aws()),
            "",
            "## Buckets",
            "",
            *_bucket_rows((*Metrics().families, *TOGETHER, *_of_aws())),
            "",
        ]
    )


def _of_aws() -> list[Family]:
    return [Family(*each) for each in counts.FAMILIES]


def _conditions_section() -> list[str]:
    rows = ["| Kind | Names begin with | Labels besides | Also among all kinds |", "| --- | --- | --- | --- |"]
    for each in watched_kinds((KWOKNodeClass,)):
        named = ", ".join(f"`{label}`" for label in each.names)
        rows.append(f"| {each.kind.kind} | `{each.prefix}_` | {named} | {'yes' if each.together else 'no'} |")
    return [
        "## Conditions",
        "",
        "Left out by `--disable-cluster-state-observability`. Once for all kinds together:",
        "",
        *_metric_rows(TOGETHER),
        "",
        "And once for each kind, with the kind in the name and not among the labels:",
        "`operator_nodeclaim_status_condition_count` and so on. There the buckets go from half a second to more than two hours.",
        "",
        *rows,
        "",
        "NodeClasses are those of the provider; CapacityBuffers and NodeOverlays count while their feature gate is on.",
        "",
    ]


def _metric_rows(families: Iterable[Family]) -> list[str]:
    rows = ["| Metric | Type | Labels | Meaning |", "| --- | --- | --- | --- |"]
    for family in families:
        named = ", ".join(f"`{label}`" for label in family.labels)
        missing = NOT_YET.get(family.name)
        meaning = family.meaning if missing is None else f"{family.meaning} Nothing is counted before {missing}."
        rows.append(f"| `{family.name}` | {family.type} | {named} | {meaning} |")
    return rows


def _bucket_rows(families: Iterable[Family]) -> list[str]:
    found: dict[tuple[float, ...], list[str]] = {}
    for family in families:
        if family.buckets:
            found.setdefault(family.buckets, []).append(f"`{family.name}`")
    rows = ["| Upper ends | Of |", "| --- | --- |"]
    return [*rows, *(f"| {', '.join(f'{end:.10g}' for end in ends)} | {', '.join(of)} |" for ends, of in found.items())]


def events_page() -> str:
    """Every reason for which an event is told."""
    return "\n".join(
        [
            "# Events",
            "",
            "Made by `tools/gen_reference.py` from `joiner.observe.events`. The same event about the same object is not told",
            "again within the time of the last column. Nominated pods, and pods whose machine could not be had, are told of at",
            "most 5 times a second, with bursts of 10. About one object there are never more than 25 events at once, and then",
            "one every five minutes. What is told again later is counted on the same event.",
            "",
            "| Reason | Type | About | Meaning | Quiet for |",
            "| --- | --- | --- | --- | --- |",
            *map(_event_row, REASONS.values()),
            "",
            "Of everything that has [metrics of conditions](metrics.md#conditions) it is told when a condition turns and when a",
            "finalizer is taken away. `--disable-cluster-state-observability` leaves these out.",
            "",
            "| Reason | Type | About | Meaning | Quiet for |",
            "| --- | --- | --- | --- | --- |",
            *map(_event_row, OF_ALL),
            "",
        ]
    )


def _event_row(reason: Reason) -> str:
    kind = "Warning" if reason.warning else "Normal"
    quiet = f"{reason.quiet_s:g} s" if reason.quiet_s else "–"
    if reason.pool_quiet_s is not None:
        quiet += f"; pools {reason.pool_quiet_s:g} s"
    name = f"`{reason.name}`" if reason.name.isalnum() else reason.name
    return f"| {name} | {kind} | {reason.about} | {reason.meaning} | {quiet} |"


def options_page() -> str:
    """Every option of the controllers, and every feature gate."""
    rows = []
    for option in fields(Options):
        flag = flag_of(option.name)
        default = "see below" if option.name == "feature_gates" else f"`{option.default}`"
        rows.append(f"| `--{flag}` | `{flag.upper().replace('-', '_')}` | {default} | {option.metadata['meaning']} |")
    gates = [f"| `{gate_name(gate.name)}` | {str(gate.default).lower()} |" for gate in fields(Gates)]
    return "\n".join(
        [
            "# Options of the controllers",
            "",
            "Made by `tools/gen_reference.py` from `joiner.options`. Flags, variables and defaults are Karpenter's; a flag wins",
            "over its variable. In a story they stand under `given.options`, without the dashes. Durations are shown in seconds",
            "and written like `10s` or `1m30s`.",
            "",
            "| Flag | Variable | Default | Meaning |",
            "| --- | --- | --- | --- |",
            *rows,
            "",
            "## Feature gates",
            "",
            "`--feature-gates=Name=true,Other=false`; names that are not known are passed over.",
            "",
            "| Gate | Default |",
            "| --- | --- |",
            *gates,
            "",
        ]
    )


# -- what commands print -----------------------------------------------------------------------------------------------


def pages() -> Iterator[Path]:
    """Every page of the repository that people wrote."""
    yield from sorted(ROOT.glob("*.md"))
    for folder in ("docs", "examples", "changelog.d"):
        yield from sorted((ROOT / folder).rglob("*.md"))


def commands(text: str) -> list[str]:
    """The command lines in the console fences of a page."""
    lines = [line for block in CONSOLE.findall(text) for line in block.splitlines()]
    return [line.removeprefix("$ ") for line in lines if line.startswith("$ ") and line != EXIT_CODE]


@cache
def run(line: str) -> tuple[int, str]:
    """What one command prints, and its exit code. Paths in it are seen from the root of the repository."""
    program, *arguments = shlex.split(line)
    if program == "joiner":
        result = CliRunner().invoke(cli, arguments, prog_name="joiner")
        return result.exit_code, result.output
    if program == "python":
        done = subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr
    raise Failed(f"only joiner and python can be run in a console fence, not {program!r}")


def _played(match: re.Match[str]) -> str:
    """The block with the output of today."""
    asked = [line for line in match[1].splitlines() if line.startswith("$ ")]
    shown: list[str] = []
    code = 0
    for line, following in zip(asked, [*asked[1:], ""], strict=True):
        if line == EXIT_CODE:
            shown += [line, str(code)]
            continue
        code, output = run(line.removeprefix("$ "))
        if code and following != EXIT_CODE:
            raise Failed(f"{line.removeprefix('$ ')} ends with exit code {code}:\n{output}")
        shown += [line, *(printed.rstrip() for printed in output.splitlines())]
    return "```console\n" + "\n".join(shown) + "\n```"


def wanted_pages() -> Iterator[Path]:
    """The pages that have something generated in them."""
    yield from _REFERENCE
    yield from (path for path in pages() if path not in _REFERENCE and CONSOLE.search(path.read_text(encoding="utf-8")))


def wanted(page: Path) -> str:
    """What a page should be."""
    if page in _REFERENCE:
        return _REFERENCE[page]()
    return CONSOLE.sub(_played, page.read_text(encoding="utf-8"))


_REFERENCE: Final = {
    REFERENCE / "cli.md": cli_page,
    REFERENCE / "metrics.md": metrics_page,
    REFERENCE / "events.md": events_page,
    REFERENCE / "options.md": options_page,
}


def main(arguments: list[str]) -> int:
    """Write, or check; the exit code says whether all is well."""
    if arguments not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    os.chdir(ROOT)
    try:
        if arguments:
            old = [
                page for page in wanted_pages() if not page.exists() or page.read_text(encoding="utf-8") != wanted(page)
            ]
            for path in old:
                print(f"{path.relative_to(ROOT)} is not current; run: python tools/gen_reference.py", file=sys.stderr)
            return 1 if old else 0
        for page in wanted_pages():
            page.write_text(wanted(page), encoding="utf-8")
    except Failed as problem:
        print(problem, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
