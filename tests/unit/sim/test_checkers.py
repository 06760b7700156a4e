"""What the checkers take for a violation, and what they do not."""

from datetime import timedelta
from typing import Any

import pytest

from joiner.model.codec import decode
from joiner.model.node import Node
from joiner.model.nodeclaim import NodeClaim
from joiner.model.pod import Pod
from joiner.sim.hunt.checkers import DEADLINE, DO_NOT_DISRUPT, Checks
from joiner.sim.virtualtime import VirtualLoop, run
from joiner.sim.world import JOINER, World


def removed(minutes: float | None, **status: Any) -> list[str]:
    """What the checkers say when a protected pod is deleted so long before the time of its node is over."""

    async def play(loop: VirtualLoop) -> list[str]:
        world = World(loop, seed=0)
        checks = Checks(world)
        moment = None if minutes is None else world.clock.now() + timedelta(minutes=minutes)
        deadline = {} if moment is None else {DEADLINE: moment.isoformat()}
        pod = {"name": "web", "namespace": "default", "annotations": {DO_NOT_DISRUPT: "true"}}
        container = {"name": "main", "resources": {"requests": {"cpu": "1"}}}
        things = (
            decode({"metadata": {"name": "node-a"}, "spec": {"providerID": "sim://a/m-1"}}, Node),
            decode({"metadata": {"name": "claim", "annotations": deadline}, "status": status}, NodeClaim),
            decode({"metadata": pod, "spec": {"nodeName": "node-a", "containers": [container]}}, Pod),
        )
        world.server.load(things)
        world.server.delete(JOINER, Pod, "web", "default")
        return [each for each in checks.violations if " removal: " in each]

    return run(play)


KNOWS_ITS_NODE, KNOWS_ITS_MACHINE = {"nodeName": "node-a"}, {"providerID": "sim://a/m-1"}


@pytest.mark.parametrize("status", [KNOWS_ITS_NODE, KNOWS_ITS_MACHINE], ids=["node", "machine"])
def test_a_protected_pod_may_be_deleted_when_the_time_of_its_node_is_over(status: dict[str, str]) -> None:
    assert not removed(0.5, **status)


@pytest.mark.parametrize("minutes", [None, 10], ids=["never", "later"])
@pytest.mark.parametrize("status", [KNOWS_ITS_NODE, KNOWS_ITS_MACHINE], ids=["node", "machine"])
def test_a_protected_pod_may_not_be_deleted_before(minutes: float | None, status: dict[str, str]) -> None:
    assert len(removed(minutes, **status)) == 1


def test_the_deadline_of_another_node_is_no_excuse() -> None:
    assert len(removed(0.5, nodeName="node-b", providerID="sim://a/m-2")) == 1
    assert len(removed(0.5)) == 1
