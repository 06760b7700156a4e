"""A real control plane for the tests, one for the whole run whatever the number of workers.

The first worker that needs it starts a process that keeps it. That process ends, and the control plane with it, when the test run
ends, however that happens. Where it cannot be built or started every test that needs it fails and says why.
"""

import fcntl
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tools.control_plane import FAILED, READY
from tools.controlplane.cluster import Cluster

ROOT = Path(__file__).resolve().parent.parent
WORKER = "PYTEST_XDIST_WORKER"
CONTROLLERS = "disruption-controller,garbage-collector-controller,serviceaccount-controller,namespace-controller"
"""None that changes nodes or deletes pods by itself: what a test made stays as it was."""
_KEEPERS: list[subprocess.Popen[bytes]] = []
"""Processes that outlive the fixtures that started them: they end with the test run."""


def _run_of(factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """The folder that all workers of this test run share, and the process that ends with it."""
    base = factory.getbasetemp()
    return (base.parent, os.getppid()) if WORKER in os.environ else (base, os.getpid())


def kept(request: pytest.FixtureRequest, factory: pytest.TempPathFactory, name: str, *flags: str) -> Cluster:
    """The cluster of that name, started by the first who asks."""
    shared, run = _run_of(factory)
    folder = shared / f"control-plane-{name}"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / READY).exists() and not (folder / FAILED).exists():
            command = [sys.executable, "-m", "tools.control_plane", "hold", str(folder), "--until", str(run), *flags]
            capture = request.config.pluginmanager.getplugin("capturemanager")
            with capture.global_and_fixture_disabled():  # a build shows its progress
                keeper = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, start_new_session=True)
                _KEEPERS.append(keeper)
                while keeper.poll() is None and not (folder / READY).exists():
                    time.sleep(0.05)
    if (folder / FAILED).exists():
        pytest.fail(f"There is no real control plane: {(folder / FAILED).read_text(encoding='utf-8')}", pytrace=False)
    if not (folder / READY).exists():
        pytest.fail(
            f"There is no real control plane: its keeper ended without a word; logs are in {folder}", pytrace=False
        )
    return Cluster.read(folder / READY)


@pytest.fixture(scope="session")
def real_cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Cluster:
    """A cluster that many tests use at the same time: each keeps to objects of its own. No Joiner runs in it."""
    return kept(request, tmp_path_factory, "shared", "--controllers", CONTROLLERS)
