"""Run the tests on the lowest and on the highest Python that this machine has and that Joiner supports.

The Python of `.venv` runs everything that `make check` has not just checked. Any other runs what can differ between versions of
Python: unit and contract tests, each story once and a few seeds of the simulation. Only one of them meets a real control plane.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FEWER_SEEDS = "4"
CHECKED = "tests/test_docs.py::test_what_a_page_shows_is_what_is_printed"
"""The same as `tools/gen_reference.py --check`, which is part of `make check`."""
DIFFERS = ("tests/unit", "tests/contract", "tests/test_stories.py", "tests/simulation/test_seeds.py")
"""What may differ from one Python to the other."""
SUPPORTED = tuple((3, minor) for minor in range(11, 20))


def answers(python: str, version: tuple[int, int]) -> bool:
    """Whether the program is there, runs, and is what its name says: a version manager's stand-ins may refuse."""
    ask = [python, "-c", "import sys, venv, ensurepip; print(sys.version_info[0], sys.version_info[1])"]
    try:
        answer = subprocess.run(ask, capture_output=True, text=True, timeout=60)
    except OSError:
        return False
    return answer.returncode == 0 and answer.stdout.split() == [str(part) for part in version]


def interpreters() -> dict[tuple[int, int], str]:
    """Version to interpreter: on the path, and where pyenv keeps its own."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found: dict[tuple[int, int], str] = {}
    for version in SUPPORTED:
        name = f"python{version[0]}.{version[1]}"
        managed = sorted(pyenv.glob(f"{version[0]}.{version[1]}.*/bin/{name}"))
        for candidate in [shutil.which(name), *map(str, managed)]:
            if candidate and answers(candidate, version):
                found[version] = candidate
                break
    return found


def main() -> int:
    """Test on both ends; the Python of `.venv` is always one of them."""
    own = sys.version_info[:2]
    known = {**interpreters(), own: sys.executable}
    chosen = sorted({min(known), max(known), own})
    print("Testing on Python", ", ".join(".".join(map(str, version)) for version in chosen), flush=True)
    for version in chosen:
        python = Path(sys.executable)
        if version != own:
            home = ROOT / f".venv-{version[0]}.{version[1]}"
            ready = home / ".ready"
            pins = ROOT / "requirements" / "dev.txt"
            if not ready.exists() or ready.stat().st_mtime < pins.stat().st_mtime:
                if subprocess.run([known[version], str(ROOT / "tools" / "bootstrap.py"), home.name]).returncode:
                    return 1
                ready.touch()
            python = home / "bin" / "python"
        command = [str(python), "-m", "pytest", "-n", "auto", "--dist", "loadgroup", *sys.argv[1:]]
        if version == own:
            command += ["--deselect", CHECKED]
        else:
            command += ["-m", "not soak and not cluster", "-k", "not once_failed", *DIFFERS]
        seeds = {} if version == own else {"JOINER_SEEDS": FEWER_SEEDS}
        if subprocess.run(command, cwd=ROOT, env={**os.environ, **seeds}).returncode:
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
