"""Joiner is killed, stopped and replaced at bad moments: the cluster converges, and nothing is launched twice."""

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.case import Case, name_of
from tests.cluster.controller import LEASE, Controller

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("joiner")]
APART = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
ALONE = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [APART]}}


def machines(case: Case) -> list[str]:
    """What the claims and the nodes say was launched."""
    ids = [each.get("status", {}).get("providerID", "") for each in case.claims()]
    return sorted({*ids, *(each["spec"]["providerID"] for each in case.nodes())})


def test_killed_while_it_launches(case: Case, joiner: Controller) -> None:
    case.pool()  # without a delay: machines that are only on their way live in the memory of the process with KWOK
    case.deployment(5, affinity=ALONE)

    case.until(case.claims, "the first claim is there")
    joiner.kill()
    joiner.start()

    case.until_running(5)
    case.until_ready(5)
    assert len(machines(case)) == 5


def test_killed_while_it_drains(case: Case, joiner: Controller) -> None:
    case.pool()
    case.deployment(2, affinity=ALONE)
    case.budget(minAvailable=2)
    case.until_running(2)
    nodes = [name_of(node) for node in case.until_ready(2)]

    for claim in case.claims():
        case.delete_claim(name_of(claim))
    case.until(lambda: all("deletionTimestamp" in node["metadata"] for node in case.nodes()), "both are to go")
    joiner.kill()
    case.budget(minAvailable=1)
    joiner.start()

    case.until_gone(nodes)
    case.until_running(2)
    case.until_ready(2)


@pytest.fixture
def second(joiner: Controller, tmp_path: Path) -> Iterator[Controller]:
    """Another replica, which waits for its turn. The first leads again afterwards."""
    controller = Controller(joiner.cluster, tmp_path, "joiner-1").start(leads=False)
    yield controller
    controller.stop()
    if joiner.process is None or joiner.process.poll() is not None:
        joiner.start()


@pytest.mark.soak
def test_a_replica_that_ends_hands_over_at_once(case: Case, joiner: Controller, second: Controller) -> None:
    case.pool()
    assert not second.leads()
    first = joiner.holder()

    assert joiner.stop() == 0
    spec = case.cluster.request("GET", LEASE)[1]["spec"]
    assert spec.get("holderIdentity") != first or spec["leaseDurationSeconds"] == 1  # released, or taken since
    case.until(second.leads, "the second leads")

    case.deployment(2)
    case.until_running(2)


@pytest.mark.soak
def test_a_replica_takes_over_from_one_that_was_killed(case: Case, joiner: Controller, second: Controller) -> None:
    case.pool()
    case.deployment(3, affinity=ALONE)
    case.until(case.claims, "the first claim is there")

    joiner.kill()
    case.until(second.leads, "the second leads", 60)

    case.until_running(3)
    case.until_ready(3)
    assert len(machines(case)) == 3


@pytest.mark.soak
def test_a_replica_that_stood_still_for_a_minute_does_nothing_more(
    case: Case, joiner: Controller, second: Controller
) -> None:
    case.pool()
    joiner.signal(signal.SIGSTOP)
    case.deployment(3, affinity=ALONE)
    case.until(second.leads, "the second leads", 60)
    case.until_running(3)
    time.sleep(40)
    joiner.signal(signal.SIGCONT)

    assert joiner.process is not None
    assert joiner.process.wait(60) == 3  # it tells that it lost its lease
    case.until_ready(3)
    assert len(machines(case)) == 3


@pytest.mark.soak
def test_etcd_forgets_and_joiner_goes_on(case: Case, joiner: Controller) -> None:
    case.pool()
    case.deployment(1)
    case.until_running(1)

    joiner.signal(signal.SIGSTOP)
    case.cluster.compact()
    time.sleep(5)
    joiner.signal(signal.SIGCONT)

    case.deployment(3, affinity=ALONE)
    case.until_running(3)
