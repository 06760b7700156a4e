"""What the checkers take for a violation, and what they do not."""

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from joiner.model.codec import decode
from joiner.model.meta import replace
from joiner.model.node import Node
from joiner.model.nodeclaim import NodeClaim
from joiner.model.pod import Pod
from joiner.sim.hunt.checkers import DEADLINE, DO_NOT_DISRUPT, Checks
from joiner.sim.hunt.movecheckers import REPLACES
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


def gone_early(monkeypatch: pytest.MonkeyPatch, user_deletes: str = "") -> list[str]:
    """What the checkers say when a drifted node goes before the one in its place is complete, perhaps after a user's deletion."""

    async def play(loop: VirtualLoop) -> list[str]:
        world = World(loop, seed=0)
        checks = Checks(world)
        machine = SimpleNamespace(alive=True, notice_at=None)
        monkeypatch.setattr(world.cloud.machines, "of_claim", lambda uid: machine)
        kept = {"finalizers": ["karpenter.sh/termination"]}
        old = decode({"metadata": {"name": "old", **kept}, "status": {"nodeName": "node-a"}}, NodeClaim)
        marked = {"type": "DisruptionReason", "status": "True", "reason": "Drifted", "message": ""}
        marked["lastTransitionTime"] = world.clock.now().isoformat()
        world.server.load((old, decode({"metadata": {"name": "node-a", **kept}}, Node)))
        found = world.server.find(NodeClaim, "old")
        assert found is not None
        status = decode({"metadata": {}, "status": {"nodeName": "node-a", "conditions": [marked]}}, NodeClaim).status
        world.server.patch_status(JOINER, found, replace(found, status=status))
        made = {"name": "new", "annotations": {REPLACES: "old"}, "creationTimestamp": world.clock.now().isoformat()}
        world.server.load((decode({"metadata": made}, NodeClaim),))
        if user_deletes:
            world.server.delete("user", Node, user_deletes)
        world.server.delete(JOINER, NodeClaim, "old")
        return [each for each in checks.violations if " replacement first: " in each]

    return run(play)


def test_a_node_may_not_go_before_the_one_in_its_place_is_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(gone_early(monkeypatch)) == 1


def test_a_node_that_a_user_deletes_goes_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert gone_early(monkeypatch, user_deletes="node-a") == []
