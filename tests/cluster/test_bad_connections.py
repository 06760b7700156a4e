"""Joiner behind a bad connection, or with an API server that fails: it converges, launches nothing twice, and comes to rest."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.cluster.case import NODECLASS, Case, is_true, name_of
from tests.cluster.conftest import permissions
from tests.cluster.controller import LEASE, Controller
from tests.cluster.proxy import BadConnection, Fault, Judge, always, bad_connection, fine, in_turn
from tests.cluster.test_chaos import ALONE, machines
from tools.controlplane.manifests import install_crds
from tools.controlplane.plane import ControlPlane
from tools.controlplane.processes import tail

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("joiner")]
NODES = 5
REST_S = 5.0
"""A controller that has written nothing for so long has nothing more to do."""

THROTTLED = Fault(status=429, retry_after="1")
INTERNAL_ERROR = Fault(status=500)
UNAVAILABLE = Fault(status=503)
UNAVAILABLE_FOR_NOW = Fault(status=503, retry_after="2")
SLOW = Fault(delay_s=0.7)
BROKEN = Fault(unreachable=True)
LOST = Fault(lost_answer=True)
HALF = Fault(half_answer=True)

FAULTS = [
    pytest.param(in_turn(THROTTLED, every=3), id="throttled"),
    pytest.param(in_turn(INTERNAL_ERROR, every=7), id="internal-errors"),
    pytest.param(in_turn(UNAVAILABLE, every=7), id="unavailable"),
    pytest.param(in_turn(UNAVAILABLE_FOR_NOW, every=7), id="unavailable-for-now"),
    pytest.param(in_turn(SLOW, every=1), id="slow"),
    pytest.param(always(Fault(delay_s=2.0)), id="very-slow-the-lease-as-well"),
    pytest.param(in_turn(BROKEN, every=7), id="broken-connections"),
    pytest.param(in_turn(LOST, every=5), id="lost-answers"),
    pytest.param(in_turn(HALF, every=5), id="half-answers"),
]


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
    proxy.judge = fine
    controller.stop()
    joiner.start()


@pytest.fixture
def heir(unlucky: Controller, proxy: BadConnection, tmp_path: Path) -> Iterator[Controller]:
    """A second replica behind the same proxy, which waits for its turn."""
    controller = Controller(unlucky.cluster, tmp_path, "joiner-heir", server=proxy.url).start(leads=False)
    yield controller
    proxy.judge = fine
    controller.stop()


def has_all(case: Case, count: int) -> None:
    """As many pods run as there are nodes, and no machine is there that no claim and no node knows."""
    case.until_running(count)
    case.until_ready(count)
    assert len(machines(case)) == count


def replaces_two(case: Case) -> None:
    """Two nodes go, and two others come for their pods."""
    old = case.claims()[:2]
    for claim in old:
        case.delete_claim(name_of(claim))
    case.until_gone([claim["status"]["nodeName"] for claim in old])
    has_all(case, NODES)


def is_well(case: Case, controller: Controller, proxy: BadConnection) -> None:
    """It follows everything that it has to, each once, answers what happens now, and then rests."""
    case.until(lambda: set(proxy.watched().values()) == {1}, f"one watch for each kind: {proxy.watched()}")
    case.pool(name=f"{case.name}-2")
    case.until(
        lambda: all(is_true(each, "Ready") for each in case.all("nodepools") if name_of(each) == f"{case.name}-2"),
        "a new NodePool is seen",
    )
    case.deployment(NODES + 1, affinity=ALONE)
    has_all(case, NODES + 1)
    case.until(lambda: time.monotonic() > proxy.written_at + REST_S, "it rests")
    assert "karpenter_cluster_state_synced 1" in controller.get(controller.metrics_port, "/metrics")[1]


def comes_and_goes(case: Case, controller: Controller, proxy: BadConnection) -> None:
    """Nodes are launched, two of them are replaced, and nothing is there twice; then the connection is good again."""
    case.pool()
    case.deployment(NODES, affinity=ALONE)
    has_all(case, NODES)
    replaces_two(case)
    proxy.judge = fine

    assert proxy.claims_made == NODES + 2, f"none was written that was not needed:\n{tail(controller.log, 80)}"
    assert controller.process is not None
    assert controller.process.poll() is None, "it is the same process as at the start"
    is_well(case, controller, proxy)
    assert proxy.claims_made == NODES + 3, f"none was written that was not needed:\n{tail(controller.log, 80)}"


def test_requests_that_go_wrong_in_every_way(case: Case, unlucky: Controller, proxy: BadConnection) -> None:
    proxy.judge = in_turn(INTERNAL_ERROR, LOST, UNAVAILABLE_FOR_NOW, HALF, BROKEN, THROTTLED, SLOW, every=5)

    comes_and_goes(case, unlucky, proxy)

    assert len(proxy.counted) >= 7, f"all kinds of faults happened: {proxy.counted}"


@pytest.mark.soak
@pytest.mark.parametrize("judge", FAULTS)
def test_requests_that_go_wrong(case: Case, unlucky: Controller, proxy: BadConnection, judge: Judge) -> None:
    proxy.judge = judge

    comes_and_goes(case, unlucky, proxy)

    assert proxy.counted.total() > 5, f"the faults happened: {proxy.counted}"


@pytest.mark.soak
@pytest.mark.parametrize("judge", FAULTS)
def test_a_replica_takes_over_while_requests_go_wrong(
    case: Case, unlucky: Controller, heir: Controller, proxy: BadConnection, judge: Judge
) -> None:
    case.pool()
    proxy.judge = judge
    case.deployment(NODES, affinity=ALONE)
    case.until(case.claims, "the first claim is there")

    unlucky.kill()
    case.until(heir.leads, "the second leads")

    has_all(case, NODES)
    replaces_two(case)
    proxy.judge = fine
    assert proxy.claims_made == NODES + 2
    is_well(case, heir, proxy)


@pytest.mark.soak
@pytest.mark.parametrize("how", ["cut", "halved"])
def test_watches_that_break(case: Case, unlucky: Controller, proxy: BadConnection, how: str) -> None:
    over = threading.Event()

    def breaks() -> None:
        while not over.wait(0.7):
            (proxy.cut_watches if how == "cut" else proxy.halve_watches)()

    breaking = threading.Thread(target=breaks)
    breaking.start()
    try:
        case.pool()
        case.deployment(NODES, affinity=ALONE)
        has_all(case, NODES)
        replaces_two(case)
    finally:
        over.set()
        breaking.join()

    assert proxy.counted[f"watch {how}"] > 20
    assert proxy.claims_made == NODES + 2
    is_well(case, unlucky, proxy)


@pytest.mark.soak
def test_no_connection_for_a_minute(case: Case, unlucky: Controller, proxy: BadConnection) -> None:
    case.pool()
    case.deployment(NODES, affinity=ALONE)
    case.until(case.claims, "the first claim is there")

    proxy.judge = always(BROKEN)
    assert unlucky.process is not None
    assert unlucky.process.wait(60) == 3  # it tells that it lost its lease
    time.sleep(50)
    proxy.judge = fine
    unlucky.start()  # as a kubelet does

    has_all(case, NODES)
    assert proxy.claims_made == NODES
    is_well(case, unlucky, proxy)


@pytest.mark.soak
def test_the_leader_alone_has_no_connection(
    case: Case, joiner: Controller, unlucky: Controller, proxy: BadConnection
) -> None:
    case.pool()
    joiner.start(leads=False)
    case.deployment(NODES, affinity=ALONE)
    case.until(case.claims, "the first claim is there")

    proxy.judge = always(BROKEN)
    assert unlucky.process is not None
    assert unlucky.process.wait(60) == 3
    case.until(joiner.leads, "the other one leads")
    proxy.judge = fine
    unlucky.start(leads=False)

    has_all(case, NODES)
    replaces_two(case)
    joiner.stop()  # the fixture starts it again
    case.until(unlucky.leads, "the first leads again")
    is_well(case, unlucky, proxy)


@pytest.mark.soak
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

    has_all(case, NODES)


# -- the API server itself ----------------------------------------------------------------------------------------------


class Rig:
    """A control plane that a case may stop, a proxy in front of it and two replicas behind that."""

    def __init__(self, plane: ControlPlane, proxy: BadConnection, folder: Path) -> None:
        self.plane, self.proxy = plane, proxy
        self.first, self.second = (
            Controller(plane.cluster, folder, name, server=proxy.url) for name in ("joiner-0", "joiner-1")
        )
        self.first.start()
        self.second.start(leads=False)
        self.case = Case(plane.cluster, "rig")
        self.case.pool()

    def leader(self) -> Controller:
        """The replica that leads, once one does. What has ended is started again, as a kubelet does."""
        replicas = (self.first, self.second)
        for each in replicas:
            if each.process is not None and each.process.poll() is not None:
                each.start(leads=False)
        found: Controller = self.case.until(
            lambda: next((each for each in replicas if each.leads()), None), "one of them leads"
        )
        return found


@contextmanager
def rig(folder: Path) -> Iterator[Rig]:
    """All of it, for one case."""
    plane = ControlPlane(folder / "control-plane")
    with plane as cluster, bad_connection(cluster) as proxy:
        install_crds(cluster)
        for each in permissions():
            cluster.apply(each)
        classes = {"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "spec": {}}
        cluster.apply({**classes, "metadata": {"name": NODECLASS["name"]}})
        made = Rig(plane, proxy, folder)
        try:
            yield made
        finally:
            made.first.stop()
            made.second.stop()


@pytest.mark.soak
def test_an_api_server_that_restarts(tmp_path: Path) -> None:
    with rig(tmp_path) as made:
        made.case.deployment(NODES, affinity=ALONE)
        made.case.until(made.case.claims, "the first claim is there")
        for away_s in (0.0, 3.0):
            made.plane.stop_apiserver()
            time.sleep(away_s)
            made.plane.start_apiserver()

        has_all(made.case, NODES)
        assert made.proxy.claims_made == NODES
        assert all(each.process is not None and each.process.poll() is None for each in (made.first, made.second))
        made.second.stop()
        is_well(made.case, made.first, made.proxy)


@pytest.mark.soak
@pytest.mark.parametrize("seconds", [5, 60])
def test_an_api_server_that_stands_still(tmp_path: Path, seconds: int) -> None:
    with rig(tmp_path) as made:
        made.case.deployment(NODES, affinity=ALONE)
        made.case.until(made.case.claims, "the first claim is there")
        made.plane.signal_apiserver(signal.SIGSTOP)
        time.sleep(seconds)
        made.plane.signal_apiserver(signal.SIGCONT)

        leader = made.leader()
        has_all(made.case, NODES)
        replaces_two(made.case)
        for each in {made.first, made.second} - {leader}:
            each.stop()
        is_well(made.case, leader, made.proxy)


@pytest.mark.soak
@pytest.mark.parametrize("handed_over", [False, True], ids=["", "handed-over"])
def test_a_history_that_is_gone(tmp_path: Path, handed_over: bool) -> None:
    """Nothing is heard while pods come; when the watches go on, neither API server nor etcd know what was missed."""
    with rig(tmp_path) as made:
        made.case.deployment(1, affinity=ALONE)
        has_all(made.case, 1)
        made.proxy.judge = lambda method, path: fine(method, path) if "/leases/" in path else BROKEN
        made.proxy.cut_watches()
        made.case.deployment(NODES, affinity=ALONE)
        made.case.until(lambda: len(made.case.pods()) == NODES, "the pods are there")
        made.plane.stop_apiserver()
        made.plane.cluster.compact()
        made.plane.start_apiserver()
        if handed_over:
            made.first.kill()
        made.proxy.judge = fine

        leader = made.leader()
        has_all(made.case, NODES)
        assert made.proxy.counted["gone"] > 0, "a watch was told that its version is too old"
        assert made.proxy.claims_made == NODES
        for each in {made.first, made.second} - {leader}:
            each.stop()
        is_well(made.case, leader, made.proxy)
