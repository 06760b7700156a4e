"""The provider of the guide keeps the contract, is as short as the guide says, and is found and used once it is installed."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "provider"


def test_it_keeps_the_contract() -> None:
    """In a process of its own, as its author runs it."""
    told = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-c",
            "/dev/null",
            "--rootdir",
            ".",
            "-rs",
            ".",
        ],
        cwd=EXAMPLE,
        env={"PYTHONPATH": ".", "PATH": "", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert told.returncode == 0, told.stdout
    assert "declared: the provider lacks reservations" in told.stdout


def test_it_is_short() -> None:
    assert len((EXAMPLE / "rackcloud" / "provider.py").read_text(encoding="utf-8").splitlines()) < 150
