"""Joiner behind a bad connection, or with an API server that restarts: it converges, and nothing is launched twice."""

import random
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.cluster.case import NODECLASS, Case, name_of
from tests.cluster.conftest import permissions
from tests.cluster.controller import LEASE, Controller
from tests.cluster.proxy import FINE, BadConnection, Fault, bad_connection
from tests.cluster.test_chaos import ALONE, machines
from tools.controlplane.manifests import install_crds
from tools.controlplane.plane import ControlPlane

pytestmark = [pytest.mark.cluster, pytest.mark.soak, pytest.mark.xdist_group("joiner")]
NODES = 5


@pytest.fixture
def proxy(joiner: Controller) -> Iterator[BadConnection]:
    with bad_connection(joiner.cluster) as made:
        yield made


@pytest.fixture
def unlucky(joiner: Controller, proxy: BadConnection, tmp_path: Path) -> Iterator[Controller]:
    """A replica that reaches the API server only through the proxy; the other one rests meanwhile."""
    joiner.stop()
    controller = Controller(joiner.cluster, tmp_path, "joiner-unlucky", server=proxy.url).start()
    yield controller
    proxy.judge = lambda method, path: FINE
    controller.stop()
    joiner.start()


def sometimes(fault: Fault, share: float, *, writes_only: bool = False) -> Callable[[str, str], Fault]:
    """A fault for a share of the requests, and not for more: what fails is tried again after ever longer pauses.

    The lease is left alone: losing it is a case of its own.
    """
    dice = random.Random(20)

    def judge(method: str, path: str) -> Fault:
        spared = "/leases/" in path or (writes_only and method == "GET")
        return FINE if spared or dice.random() >= share else fault

    return judge


def comes_and_goes(case: Case, controller: Controller) -> None:
    """Nodes are launched, two of them are replaced, and nothing is there twice."""
    case.pool()
    case.deployment(NODES, affinity=ALONE)
    case.until_running(NODES)
    case.until_ready(NODES)
    assert len(machines(case)) == NODES

    old = case.claims()[:2]
    for claim in old:
        case.delete_claim(name_of(claim))
    case.until_gone([claim["status"]["nodeName"] for claim in old])
    case.until_running(NODES)
    case.until_ready(NODES)

    assert len(machines(case)) == NODES
    assert controller.process is not None
    assert controller.process.poll() is None, "it is the same process as at the start"


@pytest.mark.parametrize(
    ("fault", "share", "writes_only"),
    [
        pytest.param(Fault(status=429, retry_after="1"), 0.3, False, id="throttled"),
        pytest.param(Fault(status=500), 0.15, False, id="internal-errors"),
        pytest.param(Fault(status=503), 0.15, False, id="unavailable"),
        pytest.param(Fault(delay_s=0.7), 1.0, False, id="slow"),
        pytest.param(Fault(unreachable=True), 0.15, False, id="broken-connections"),
        pytest.param(Fault(lost_answer=True), 0.2, True, id="lost-answers"),
    ],
)
def test_requests_that_go_wrong(
    case: Case, unlucky: Controller, proxy: BadConnection, fault: Fault, share: float, writes_only: bool
) -> None:
    proxy.judge = sometimes(fault, share, writes_only=writes_only)

    comes_and_goes(case, unlucky)

    assert sum(proxy.counted.values()) > 5, f"the faults happened: {proxy.counted}"


def test_watches_that_are_cut_in_the_middle(case: Case, unlucky: Controller, proxy: BadConnection) -> None:
    over = threading.Event()

    def cut() -> None:
        while not over.wait(0.7):
            proxy.cut_watches()

    cutting = threading.Thread(target=cut)
    cutting.start()
    try:
        comes_and_goes(case, unlucky)
    finally:
        over.set()
        cutting.join()

    assert proxy.counted["watch cut"] > 20


def test_no_connection_for_longer_than_the_lease_lasts(case: Case, unlucky: Controller, proxy: BadConnection) -> None:
    case.pool()
    case.deployment(NODES, affinity=ALONE)
    case.until(case.claims, "the first claim is there")

    proxy.judge = lambda method, path: Fault(unreachable=True)
    assert unlucky.process is not None
    assert unlucky.process.wait(60) == 3  # it tells that it lost its lease
    proxy.judge = lambda method, path: FINE
    unlucky.start()  # as a kubelet does

    case.until_running(NODES)
    case.until_ready(NODES)
    assert len(machines(case)) == NODES


def test_a_lease_that_another_takes(case: Case, joiner: Controller) -> None:
    case.pool()
    case.deployment(NODES, affinity=ALONE)
    case.until(case.claims, "the first claim is there")

    taken = {"spec": {"holderIdentity": "an-intruder_1"}}
    status, _ = case.cluster.request("PATCH", LEASE, taken, content="application/merge-patch+json")
    assert status == 200
    assert joiner.process is not None
    assert joiner.process.wait(60) == 3
    joiner.start()  # the intruder never renews the lease

    case.until_running(NODES)
    case.until_ready(NODES)
    assert len(machines(case)) == NODES


def test_an_api_server_that_restarts(tmp_path: Path) -> None:
    plane = ControlPlane(tmp_path / "control-plane")
    with plane as cluster:
        install_crds(cluster)
        for each in permissions():
            cluster.apply(each)
        classes = {"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "spec": {}}
        cluster.apply({**classes, "metadata": {"name": NODECLASS["name"]}})
        controller = Controller(cluster, tmp_path).start()
        try:
            case = Case(cluster, "restarts")
            case.pool()
            case.deployment(NODES, affinity=ALONE)
            case.until(case.claims, "the first claim is there")
            for away_s in (0.0, 3.0):
                plane.stop_apiserver()
                time.sleep(away_s)
                plane.start_apiserver()

            case.until_running(NODES)
            case.until_ready(NODES)
            assert len(machines(case)) == NODES
            assert controller.process is not None
            assert controller.process.poll() is None
        finally:
            controller.stop()
