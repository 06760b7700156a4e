"""Plug-ins: one that breaks is named with its error, and stops no other."""

import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

ROOT = Path(__file__).resolve().parents[3]
POOL = ROOT / "examples" / "01-what-a-pool-can-buy"
BROKEN = {
    "import": ("import nowhere", "ModuleNotFoundError: No module named 'nowhere'"),
    "connect": ("def connect(**given): raise RuntimeError('no licence')", "RuntimeError: no licence"),
    "signature": (
        "def connect(): return None",
        "TypeError: connect() got an unexpected keyword argument 'node_classes'",
    ),
    "missing": ("", "AttributeError: module 'shaky' has no attribute 'connect'"),
    "no function": ("connect = 7", "TypeError: shaky:connect is no function that connects"),
    "half": ("def connect(**given): return object()", "AttributeError: 'object' object has no attribute 'vocabulary'"),
}


def installed(folder: Path, module: str, text: str, name: str) -> None:
    (folder / f"{module}.py").write_text(text, encoding="utf-8")
    info = folder / f"{module}-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.2\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(f"[joiner.providers]\n{name} = {module}:connect\n", encoding="utf-8")


def joiner(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "joiner", *arguments],
        env={"PYTHONPATH": str(folder), "PATH": "", "PYTHONDONTWRITEBYTECODE": "1"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_one_is_named_and_stops_nothing_else(tmp_path: Path, how: str) -> None:
    text, error = BROKEN[how]
    installed(tmp_path, "shaky", text, "shaky")
    told = joiner(tmp_path, "catalog", "-f", str(POOL), "--limit", "1")

    assert told.returncode == 0, told.stderr
    assert "instance types can be bought" in told.stdout
    assert f"note: provider 'shaky' of the package shaky 1.2 cannot be used: {error}" in told.stderr
    assert told.stderr.count("shaky 1.2") == 1


def test_one_that_breaks_when_it_is_asked_for_types_is_named(tmp_path: Path) -> None:
    example = ROOT / "examples" / "provider"
    text = f"""
        import sys
        from pathlib import Path

        sys.path.insert(0, {str(example)!r})
        from rackcloud import provider

        class Forgetful(provider.RackProvider):
            async def instance_types(self, pool):
                raise KeyError("rack")

        def connect(*, node_classes, **given):
            return Forgetful(node_classes, Path("leases.json"))
    """
    installed(tmp_path, "forgetful", dedent(text), "rack")
    told = joiner(tmp_path, "catalog", "-f", str(POOL), "-f", str(example / "pool.yaml"), "--limit", "1")

    assert "instance types can be bought" in told.stdout
    assert (
        "NodePool racks: provider 'rack' of the package forgetful 1.2 cannot be used: KeyError: 'rack'" in told.stderr
    )
    assert "bug in joiner" not in told.stderr


def test_a_provider_may_ask_for_everything_that_it_can_be_given(tmp_path: Path) -> None:
    text = """
        from joiner.cloud.kwok import provider

        def connect(*, node_classes, clock, client, tasks):
            assert client is None and tasks is None
            return provider.connect(node_classes=node_classes, clock=clock)
    """
    installed(tmp_path, "whole", dedent(text), "whole")
    told = joiner(tmp_path, "catalog", "-f", str(POOL), "--limit", "1")

    assert told.returncode == 0, told.stderr
    assert "cannot be used" not in told.stderr


def test_the_provider_of_the_guide_is_found_once_it_is_installed(tmp_path: Path) -> None:
    example = ROOT / "examples" / "provider"
    installed(
        tmp_path,
        "rack",
        f"import sys\nsys.path.insert(0, {str(example)!r})\nfrom rackcloud.provider import connect",
        "rack",
    )
    told = joiner(tmp_path, "catalog", "-f", str(example / "pool.yaml"))

    assert told.returncode == 0, told.stderr
    assert "NodePool racks: 2 of 2 instance types can be bought" in told.stdout
    assert "note" not in told.stderr
