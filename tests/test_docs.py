"""What exists is documented, what is documented exists, and what is shown is what is printed."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from benchmarks import growth, page
from tools import gen_reference

from joiner.cli.main import COMMANDS, cli
from joiner.observe.catalogs import CATALOG_METRICS, CATALOG_STALE
from joiner.observe.events import REASONS
from joiner.observe.metrics import Metrics

ROOT = Path(__file__).resolve().parent.parent
PAGES = list(gen_reference.pages())
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"(?m)^#+ (.*)$")
FENCE = re.compile(r"(?ms)^```.*?^```$")
ENTRY_PAGES = ("README.md", "docs/README.md")
KEEPING = {"dict", "set", "list", "deque", "Counter", "defaultdict", "Waits", "Memory"}
SHORT_LIVED = {"Draft", "DryRunClient", "Store", "Informer", "Informers", "Tasks"}
"""A draft lives as long as one look at a claim; caches and tasks are told of above the table."""


@pytest.fixture(autouse=True)
def at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands in the documentation are run from the root of the repository."""
    monkeypatch.chdir(ROOT)


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def prose(path: Path) -> str:
    """A page without its code."""
    return FENCE.sub("", path.read_text(encoding="utf-8"))


def anchors(path: Path) -> set[str]:
    """The places of a page that a link can name, spelled as the usual renderers spell them."""
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in HEADING.findall(prose(path))}


def options() -> Iterator[tuple[str, str]]:
    context = click.Context(cli)
    found = {"joiner": cli, **{f"joiner {each}": cli.get_command(context, each) for each in COMMANDS}}
    for title, command in found.items():
        assert command is not None
        for parameter in command.params:
            yield from ((title, spelling) for spelling in parameter.opts if spelling.startswith("-"))


def section(title: str) -> str:
    text = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    return text.split(f"## {title}\n")[1].split("\n## ")[0]


@pytest.mark.parametrize(("command", "option"), list(options()), ids=[" ".join(pair) for pair in options()])
def test_every_option_of_every_command_is_documented(command: str, option: str) -> None:
    assert option in section(command)


def test_every_metric_is_documented() -> None:
    text = (ROOT / "docs" / "reference" / "metrics.md").read_text(encoding="utf-8")
    known = [metric for _, metric, _ in CATALOG_METRICS] + [CATALOG_STALE[0]]
    known += [family.name for family in Metrics().families]

    assert [metric for metric in known if f"`{metric}" not in text] == []


def test_every_reason_of_an_event_is_documented() -> None:
    text = (ROOT / "docs" / "reference" / "events.md").read_text(encoding="utf-8")

    assert [reason for reason in REASONS if f"`{reason}`" not in text] == []


@pytest.mark.parametrize("page", list(gen_reference.wanted_pages()), ids=name)
def test_what_a_page_shows_is_what_is_printed(page: Path) -> None:
    assert page.read_text(encoding="utf-8") == gen_reference.wanted(page), "run: python tools/gen_reference.py"


def test_no_page_shows_a_traceback() -> None:
    assert [name(page) for page in PAGES if "Traceback (most" in page.read_text(encoding="utf-8")] == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in LINK.findall(prose(page)):
        if target.startswith(("http://", "https://", "mailto:")):
            continue
        file, _, anchor = target.partition("#")
        linked = (page.parent / file).resolve() if file else page
        assert linked.exists(), target
        assert not anchor or anchor in anchors(linked), target


def test_every_page_can_be_reached_from_the_first() -> None:
    reached: set[Path] = set()
    waiting = [ROOT / entry for entry in ENTRY_PAGES]
    while waiting:
        page = waiting.pop()
        if page not in reached and page.suffix == ".md" and page.exists():
            reached.add(page)
            waiting += [(page.parent / target.partition("#")[0]).resolve() for target in LINK.findall(prose(page))]

    fragments = {page for page in PAGES if page.parent.name == "changelog.d"}
    assert [name(page) for page in PAGES if page not in reached | fragments] == []


def test_every_lesson_is_listed() -> None:
    text = (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
    lessons = sorted(path.name for path in (ROOT / "examples").iterdir() if path.is_dir())

    assert [lesson for lesson in lessons if f"({lesson}/README.md)" not in text] == []


def test_every_room_is_on_the_map() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    rooms = sorted(
        path.stem
        for path in (ROOT / "src" / "joiner").iterdir()
        if path.suffix in ("", ".py") and not path.name.startswith("__")
    )

    assert [room for room in rooms if f"**{room}**" not in text] == []


@pytest.mark.parametrize("path", [page for page in PAGES if not name(page).startswith("examples/")], ids=name)
def test_every_source_file_that_a_page_names_exists(path: Path) -> None:
    files = [
        f"/{name(each)}" for folder in ("src", "tests", "tools", "benchmarks") for each in (ROOT / folder).rglob("*.py")
    ]
    named = re.findall(r"`([\w./]+\.py)`", prose(path))

    assert [each for each in named if not any(file.endswith(f"/{each}") for file in files)] == []


def is_empty(value: ast.expr) -> bool:
    made = isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in KEEPING
    return made or (isinstance(value, ast.Dict) and not value.keys) or (isinstance(value, ast.List) and not value.elts)


def keeps(made: ast.ClassDef) -> bool:
    """Whether objects of a class begin with something empty, to be filled later."""
    begins = (each for each in made.body if isinstance(each, ast.FunctionDef) and each.name == "__init__")
    given = (each.value for begin in begins for each in ast.walk(begin) if isinstance(each, ast.Assign | ast.AnnAssign))
    values = (part for value in given if value for part in (value.elts if isinstance(value, ast.Tuple) else [value]))
    return any(map(is_empty, values))


def keepers() -> Iterator[str]:
    """Public classes of the shell that keep something in memory."""
    source = ROOT / "src" / "joiner"
    folders = [source / "controllers", source / "cloud", source / "kube"]
    for path in sorted(each for folder in folders for each in folder.rglob("*.py") if "sources" not in each.parts):
        classes = (
            each for each in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(each, ast.ClassDef)
        )
        yield from (each.name for each in classes if keeps(each) and not each.name.startswith("_"))


def test_what_a_restart_does_is_said_of_everything_that_is_kept_in_memory() -> None:
    text = (ROOT / "docs" / "design" / "state-and-restarts.md").read_text(encoding="utf-8")
    kept = set(keepers())

    assert {"Batcher", "Tokens", "Catalogs"} <= kept
    assert [each for each in sorted(kept - SHORT_LIVED) if not re.search(rf"\b{each}\b", text)] == []


def test_the_page_of_measurements_is_made_from_the_numbers_that_are_kept() -> None:
    assert page.PAGE.read_text(encoding="utf-8") == page.text(), (
        "run: python -c 'from benchmarks import page; page.write()'"
    )
    assert growth.FIGURE.read_text(encoding="utf-8") == page.figure()
    assert page.FRONT_PAGE.read_text(encoding="utf-8") == page.front()
    assert all(row in page.front() for row in page.front_rows())


def test_a_measurement_without_another_scheduler_leaves_the_readme_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = page._kept
    alone = {name: {"ours": row["ours"]} for name, row in kept("market")["numbers"].items()}
    monkeypatch.setattr(page, "_kept", lambda name: {**kept(name), "numbers": alone})

    assert page.front() == page.FRONT_PAGE.read_text(encoding="utf-8")
