"""The manners of the house that import rules cannot see. Each message says what to do instead."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "joiner"
FILES = sorted(SOURCE.rglob("*.py"))
CORE = ("model", "requirements.py", "admission", "catalog", "state", "scheduling", "disruption")

LONG_FILES: dict[str, str] = {}
"""Files over 600 lines, each with the reason why it is still one thing."""

NOT_IN_CORE = {
    "asyncio": "waiting belongs to the shell",
    "time": "the core is given `now` as a value",
    "random": "nothing in the core is decided by chance; order by a stated key",
    "uuid": "names come from assembly",
    "os": "the core knows no machine",
    "logging": "the core returns values; `observe` speaks",
    "socket": "the outside is reached through kube and cloud only",
}
ONE_PLACE = {
    ("datetime", "now"): "ask the Clock",
    ("time", "time"): "ask the Clock",
    ("time", "monotonic"): "ask the Clock",
    ("time", "perf_counter"): "ask the Clock",
    ("uuid", "uuid4"): "names come from assembly",
}
NEVER = {
    ("asyncio", "wait"): "it hands back sets; use the ordered task group",
    ("asyncio", "as_completed"): "it waits for a set; use the ordered task group",
    ("asyncio", "TaskGroup"): "it cancels in order of memory address; use the ordered task group",
    ("asyncio", "wait_for"): "it takes different turns in different versions of Python; use a timer of the loop",
    ("asyncio", "timeout"): "it takes different turns in different versions of Python; use a timer of the loop",
    ("asyncio", "to_thread"): "the shell has one thread",
    ("asyncio", "create_task"): "start it in an ordered group (kube.tasks), so that it ends in order",
    ("asyncio", "ensure_future"): "start it in an ordered group (kube.tasks), so that it ends in order",
}
THREADS = {"threading", "concurrent", "multiprocessing"}
MANY_WORLDS = "cli/simulate/hunt.py"
"""Plays worlds side by side, each in a process of its own; within a world there is one thread."""
BLOCKING_SDK = "cloud/aws/boto.py"
"""boto3 waits for its answers; only there, and nothing but a call runs on those threads."""
OUR_THINKING = ("joiner.scheduling", "joiner.catalog", "joiner.requirements", "joiner.state", "joiner.controllers")
SELLERS = {"sim/cloud/ec2/world.py", "sim/cloud/cloud.py", "sim/cloud/provider.py", "sim/cloud/market.py"}
"""The pretend cloud sells what a catalogue describes. Everybody else in the simulation judges by rules of their own."""
BANNED_NAMES = {"utils", "util", "common", "helpers", "helper", "core", "base", "misc"}

METAPHORS = (
    ("theatre", "the simulation"),
    ("rehearsal", "validation, or planning again"),
    ("town", "the cluster"),
    ("lodgers?", "pods"),
    (r"meddlers?|meddl\w+", "an interceptor, a fault"),
    ("storms?", "the time of faults"),
    ("court", "checkers"),
    ("weather", "faults"),
    ("fate", "a fault, a random event"),
    ("storefront", "the catalogue"),
    ("shelf", "the store, the index"),
    ("desk", "the prepared problem"),
    ("uphill", "ascent"),
    ("rents?", "dual prices"),
    ("somebody|nobody|everybody|whoever", "the actor: kubelet, provider, user, caller, pod"),
)
"""Words, and what to say instead. `people` is missing: it is the name of an actor in traces."""
GENERATED = {"events.md", "metrics.md"}
"""Pages made of texts that metrics and events have, which are an interface."""
PAGES = [path for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")) if path.name not in GENERATED]


def in_core(path: Path) -> bool:
    return path.relative_to(SOURCE).parts[0] in CORE


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(tree(path)))


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in nodes(path) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def imported(path: Path) -> Iterator[str]:
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield (node.module or "").partition(".")[0]


def modules(path: Path) -> Iterator[str]:
    return (node.module or "" for node in nodes(path) if isinstance(node, ast.ImportFrom) and not node.level)


def calls(path: Path) -> Iterator[tuple[str, str]]:
    for node in nodes(path):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield node.value.id, node.attr


def dice_of(path: Path) -> Iterator[str]:
    """What is used of the module random besides the class; a parameter may be called `random`, too."""
    for node in nodes(path):
        if isinstance(node, ast.Import) and any(alias.name == "random" for alias in node.names):
            yield from (f"random.{b}" for a, b in calls(path) if a == "random" and b != "Random")
        elif isinstance(node, ast.ImportFrom) and node.module == "random":
            yield from (f"random.{alias.name}" for alias in node.names if alias.name != "Random")


def name(path: Path) -> str:
    return str(path.relative_to(SOURCE))


core_files = pytest.mark.parametrize("path", [path for path in FILES if in_core(path)], ids=name)
every_file = pytest.mark.parametrize("path", FILES, ids=name)


@core_files
def test_the_core_imports_nothing_that_waits_or_reaches_out(path: Path) -> None:
    found = {module: NOT_IN_CORE[module] for module in imported(path) if module in NOT_IN_CORE}

    assert not found, f"{name(path)}: {found}"


@core_files
def test_the_core_is_plain_functions_without_io(path: Path) -> None:
    built_in = [
        node.func.id
        for node in nodes(path)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("open", "print", "input")
    ]

    assert not built_in, f"{name(path)} calls {built_in}: I/O belongs above the line"
    assert not [f.name for f in functions(path) if isinstance(f, ast.AsyncFunctionDef)], "waiting belongs to the shell"


@every_file
def test_time_and_chance_come_through_one_door(path: Path) -> None:
    doors = {"clock.py", "assembly.py"}
    found = [f"{a}.{b}: {ONE_PLACE[a, b]}" for a, b in calls(path) if (a, b) in ONE_PLACE and path.name not in doors]
    dice = [f"{each}: draw from the generator you were given" for each in dice_of(path)]

    assert not found + dice, f"{name(path)}: {found + dice}"


@every_file
def test_no_task_order_is_left_to_memory_addresses(path: Path) -> None:
    assert not [f"{a}.{b}: {NEVER[a, b]}" for a, b in calls(path) if (a, b) in NEVER]
    threads = THREADS & set(imported(path)) if name(path) not in (MANY_WORLDS, BLOCKING_SDK) else set()
    assert not threads, f"{name(path)}: the shell has one thread"


@pytest.mark.parametrize("path", [path for path in FILES if name(path).startswith("sim/")], ids=name)
def test_the_pretend_outside_does_not_think_with_our_head(path: Path) -> None:
    ours = [module for module in modules(path) if module.startswith(OUR_THINKING)]

    assert not ours or name(path) in SELLERS, (
        f"{name(path)} imports {ours}: write the rule again, to catch our mistakes"
    )


@every_file
def test_functions_fit_on_a_screen(path: Path) -> None:
    long = {f.name: lines for f in functions(path) if (lines := (f.end_lineno or 0) - f.lineno + 1) > 70}

    assert not long, f"{name(path)}: {long} lines; take the parts that have a name of their own out"


@every_file
def test_files_have_one_purpose(path: Path) -> None:
    lines = len(path.read_text(encoding="utf-8").splitlines())

    assert lines <= 600 or name(path) in LONG_FILES, (
        f"{name(path)} has {lines} lines; split it, or name the reason here"
    )


@pytest.mark.parametrize("folder", sorted({path.parent for path in FILES} - {SOURCE / "model"}), ids=name)
def test_a_folder_can_be_read_at_a_glance(folder: Path) -> None:
    modules = [path for path in folder.glob("*.py") if path.name != "__init__.py"]

    assert len(modules) <= 16, f"{name(folder)} has {len(modules)} modules; those that belong together get a folder"


@every_file
def test_a_parameter_is_named_after_what_it_is(path: Path) -> None:
    vague = [f.name for f in functions(path) for a in (*f.args.args, *f.args.kwonlyargs) if a.arg == "each"]

    assert not vague, f"{name(path)}: {vague} take a parameter `each`; a noun says what it is"


@every_file
def test_every_door_says_what_is_behind_it(path: Path) -> None:
    assert ast.get_docstring(tree(path)), f"{name(path)} has no docstring: say what it is for and what it never does"


@every_file
def test_everything_has_a_room_of_its_own(path: Path) -> None:
    assert path.stem not in BANNED_NAMES, f"{name(path)}: a thing without a room of its own has not been understood yet"


def metaphors(text: str) -> list[str]:
    """The words of the list that the text has, with what to say instead."""
    found = ((re.search(rf"(?i)\b({word})\b", text), plain) for word, plain in METAPHORS)
    return [f"{match[0]!r}: say {plain}" for match, plain in found if match]


def docstrings(path: Path) -> str:
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    return "\n".join(ast.get_docstring(node) or "" for node in nodes(path) if isinstance(node, kinds))


@every_file
def test_docstrings_use_the_words_of_the_field(path: Path) -> None:
    assert not metaphors(docstrings(path)), name(path)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_pages_use_the_words_of_the_field(path: Path) -> None:
    prose = re.sub(r"(?ms)^```.*?^```$|`[^`]*`", "", path.read_text(encoding="utf-8"))

    assert not metaphors(prose), path.name


def test_the_list_of_long_files_is_current() -> None:
    assert set(LONG_FILES) <= {name(path) for path in FILES}


def test_nothing_of_this_machine_is_in_the_repository() -> None:
    tracked = [path for folder in ("src", "tools", "docs", "examples", "charts") for path in (ROOT / folder).rglob("*")]
    texts = [path for path in tracked if path.suffix in {".py", ".md", ".yaml", ".toml", ".json"} and path.is_file()]

    assert not [path for path in texts if str(ROOT) in path.read_text(encoding="utf-8")]
