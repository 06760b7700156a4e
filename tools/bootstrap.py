"""Make a virtual environment with everything the project needs: `python tools/bootstrap.py .venv`.

Only the standard library is used, and the versions come from `requirements/` with their hashes.
"""

import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOWEST = (3, 11)


def main() -> int:
    """Make the environment named on the command line, with the Python that runs this."""
    if sys.version_info < LOWEST:
        print(
            f"Joiner needs Python {LOWEST[0]}.{LOWEST[1]} or newer; this is {sys.version.split()[0]} ({sys.executable})."
        )
        print("Name a newer one: make PYTHON=/path/to/python3.12 …")
        return 1
    target = ROOT / (sys.argv[1] if len(sys.argv) > 1 else ".venv")
    print(f"Setting up {target.name} with Python {sys.version.split()[0]} (once) …", flush=True)
    try:
        if not (target / "bin" / "python").exists():  # one that is there is brought up to date, not thrown away
            venv.EnvBuilder(with_pip=True).create(target)
    except (subprocess.CalledProcessError, SystemExit):
        shutil.rmtree(target, ignore_errors=True)
        print("This Python cannot make virtual environments with pip (on Debian: install python3-venv).")
        return 1
    python = target / "bin" / "python"
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes"]
    uv = [str(target / "bin" / "uv"), "pip", "install", "--system-certs", "--quiet", "--python", str(python)]
    for command in (
        [*pip, "-r", str(ROOT / "requirements" / "uv.txt")],
        [*uv, "--require-hashes", "-r", str(ROOT / "requirements" / "dev.txt")],
        [*uv, "--no-deps", "--no-build-isolation", "--editable", str(ROOT)],
    ):
        if subprocess.run(command).returncode:
            print("The packages could not be installed; the message above says why. `make clean` starts from scratch.")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
