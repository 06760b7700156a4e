"""A claim from its first day to its last."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from tests.builders import pod, requirement
from tests.unit.controllers.lifecycleworld import LifeWorld, claim, live, node_of

from joiner.cloud.errors import CloudError, LaunchFailed, Transient
from joiner.kube.errors import Invalid, Unreachable
from joiner.model import labels, taints
from joiner.model.claimconditions import TERMINATION_TIMESTAMP
from joiner.model.meta import replace
from joiner.model.node import Node
from joiner.model.nodeclaim import NodeClaim
from joiner.model.taints import Taint
from joiner.options import Options
from joiner.sim.apiserver.client import Call, NoInterceptor
from joiner.sim.cloud.cloud import Hook, NoCloudInterceptor

MINUTE = 60.0
STARTUP = {"key": "example.com/starting", "effect": "NoSchedule"}


class Refusing(NoCloudInterceptor):
    """A cloud that answers launches with errors, one after the other; lost ones come after the deed."""

    def __init__(self, *errors: Exception, lost: bool = False) -> None:
        self.asked = 0
        self._errors: Iterator[Exception] = iter(errors)
        self._lost = lost

    def before(self, call: str, about: str) -> float:
        return 0.0 if self._lost else self._answer(call)

    def after(self, call: str, about: str) -> float:
        return self._answer(call) if self._lost else 0.0

    def _answer(self, call: str) -> float:
        if call == "create":
            self.asked += 1
            error = next(self._errors, None)
            if error is not None:
                raise error
        return 0.0


class LosesStatus(NoInterceptor):
    """So many times a status that is written never arrives."""

    def __init__(self, times: int) -> None:
        self.left = times

    def before(self, call: Call) -> float:
        if call.verb == "status" and self.left:
            self.left -= 1
            raise Unreachable("no answer")
        return 0.0


def test_a_claim_is_launched_registered_and_initialised() -> None:
    async def story(world: LifeWorld) -> None:
        node = await world.settled()

        for kind in ("Launched", "Registered", "Initialized", "Ready"):
            assert world.condition(kind).status == "True"
        assert world.claim().status.node_name == node.name
        assert world.claim().metadata.labels[labels.CAPACITY_TYPE] == labels.ON_DEMAND
        assert node.metadata.labels[labels.REGISTERED] == node.metadata.labels[labels.INITIALIZED] == "true"
        assert not taints.is_among(taints.UNREGISTERED, node.spec.taints)
        assert node.metadata.finalizers == (labels.TERMINATION_FINALIZER,)
        assert [owner.uid for owner in node.metadata.owner_references] == [world.claim().metadata.uid]

    world = live(story)
    assert [told[:2] for told in world.health.told] == [("success", "default")]


def test_a_settled_claim_is_not_written_again() -> None:
    async def story(world: LifeWorld) -> None:
        await world.settled()
        version = world.server.version

        await asyncio.sleep(60 * MINUTE)

        assert world.server.version == version

    live(story)


def test_a_claim_of_another_provider_is_left_alone() -> None:
    async def story(world: LifeWorld) -> None:
        await asyncio.sleep(20 * MINUTE)

        assert not world.claim().metadata.finalizers
        assert not world.claim().status.conditions

    live(story, claim(nodeClassRef={"group": "example.com", "kind": "Other", "name": "default"}))


# -- launch --------------------------------------------------------------------------------------------------------------


def test_a_claim_without_a_pool_is_launched_too() -> None:
    async def story(world: LifeWorld) -> None:
        await world.settled()

        assert world.condition("Ready").status == "True"

    live(story, claim(pool=""))


def test_a_lost_answer_does_not_buy_a_second_machine() -> None:
    async def story(world: LifeWorld) -> None:
        await asyncio.sleep(10)

        assert world.condition("Launched").status == "True"
        assert world.cloud.machines.bought() == 1

    live(story, cloud_interceptor=Refusing(Transient("no answer"), lost=True))


def test_a_lost_status_does_not_buy_a_second_machine() -> None:
    cloud = Refusing()

    async def story(world: LifeWorld) -> None:
        await asyncio.sleep(10)

        assert world.condition("Launched").status == "True"
        assert cloud.asked == 1

    live(story, cloud_interceptor=cloud, interceptor=LosesStatus(1))


@pytest.mark.parametrize("at", [0.02, 0.1, 0.2, 0.245, 0.26])
def test_a_restart_in_the_middle_of_a_launch_buys_one_machine(at: float) -> None:
    async def story(world: LifeWorld) -> None:
        await asyncio.sleep(at)
        await world.restart()
        await asyncio.sleep(5)

        assert world.condition("Launched").status == "True"
        assert world.cloud.machines.bought() == 1

    live(story)


def test_a_failed_launch_tells_why_and_is_tried_again_with_patience() -> None:
    cloud = Refusing(*(LaunchFailed("BadImage", f"no such image, request {number}") for number in range(4)))

    async def story(world: LifeWorld) -> None:
        await asyncio.sleep(6)
        assert (world.condition("Launched").status, world.condition("Launched").reason) == ("Unknown", "BadImage")
        assert cloud.asked == 3

        await asyncio.sleep(30)
        assert world.condition("Launched").status == "True"

    live(story, cloud_interceptor=cloud)


def test_an_error_that_nobody_thought_of_is_told_and_does_not_stop_the_clock() -> None:
    async def story(world: LifeWorld) -> None:
        await asyncio.sleep(10)
        assert world.condition("Launched").reason == "LaunchFailed"

        await asyncio.sleep(6 * MINUTE)
        assert world.disrupted() == {"launch_timeout": 1.0}

    live(story, cloud_interceptor=Refusing(*(CloudError("something odd") for _ in range(100))))


def test_a_message_that_is_too_long_is_cut() -> None:
    async def story(world: LifeWorld) -> None:
        await asyncio.sleep(1)

        assert len(world.condition("Launched").message) == 1024
        assert world.condition("Launched").message.endswith("...")

    live(story, cloud_interceptor=Refusing(LaunchFailed("BadImage", "x" * 2000)))


def test_a_claim_that_the_cloud_cannot_serve_goes_and_its_pods_are_told() -> None:
    async def story(world: LifeWorld) -> None:
        world.planned["c"] = (pod("web"),)
        world.cloud.withdraw()
        await asyncio.sleep(5)

        assert not world.there(NodeClaim, "c")
        assert world.events("InsufficientCapacityError") == ["NodeClaim c", "Pod default/web"]
        assert world.disrupted() == {"insufficient_capacity": 1.0}

    live(story)


MANY = requirement(labels.INSTANCE_TYPE, "In", "c-1x-amd64-linux", "c-2x-amd64-linux", "c-4x-amd64-linux", minValues=3)


@pytest.mark.parametrize(
    ("policy", "launched"), [("Strict", False), ("BestEffort", True)], ids=["strict", "best effort"]
)
def test_a_claim_that_lost_its_choice_is_bought_only_where_that_is_allowed(policy: Any, launched: bool) -> None:
    async def story(world: LifeWorld) -> None:
        world.cloud.withdraw(instance_type="c-2x-amd64-linux")
        await asyncio.sleep(5)

        assert world.there(NodeClaim, "c") is launched
        assert world.cloud.machines.bought() == launched

    live(story, claim(requirements=[MANY], resources={}), options=Options(min_values_policy=policy))


def test_a_claim_whose_node_class_is_missing_goes() -> None:
    async def story(world: LifeWorld) -> None:
        await asyncio.sleep(5)

        assert not world.there(NodeClaim, "c")
        assert world.disrupted() == {"nodeclass_not_ready": 1.0}

    live(story, claim(nodeClassRef={"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "gone"}))


# -- registration --------------------------------------------------------------------------------------------------------


def test_a_node_gets_the_taints_labels_and_annotations_of_its_claim() -> None:
    made = claim(taints=[{"key": "example.com/team", "value": "a", "effect": "NoSchedule"}], startupTaints=[STARTUP])
    marked = replace(made.metadata, labels={**made.metadata.labels, "team": "a"}, annotations={"note": "x"})

    async def story(world: LifeWorld) -> None:
        node = await world.settled()

        assert [taint.key for taint in node.spec.taints] == ["example.com/team", "example.com/starting"]
        assert node.metadata.labels["team"] == "a"
        assert node.metadata.annotations["note"] == "x"

    live(story, replace(made, metadata=marked))


def test_a_node_that_wants_no_taints_keeps_its_own() -> None:
    async def story(world: LifeWorld) -> None:
        await asyncio.sleep(5)
        machine = world.cloud.machines.alive()[0]
        node = node_of(machine.provider_id, "node-c", machine.capacity)
        world.put(replace(node, metadata=replace(node.metadata, labels={labels.DO_NOT_SYNC_TAINTS: "true"})))
        await asyncio.sleep(5)

        assert world.node("node-c").spec.taints == ()

    live(story, claim(startupTaints=[STARTUP]))


def test_a_startup_taint_that_was_removed_does_not_come_back() -> None:
    async def story(world: LifeWorld) -> None:
        node = await world.settled()
        world.change(node, spec=replace(node.spec, taints=()))
        await asyncio.sleep(5)
        await world.restart()
        await asyncio.sleep(5)

        assert world.node(node.name).spec.taints == ()
        assert world.condition("Initialized").status == "True"

    live(story, claim(startupTaints=[STARTUP]))


def test_a_startup_taint_does_not_come_back_though_the_registration_was_not_written_down() -> None:
    interceptor = LosesStatus(0)

    async def story(world: LifeWorld) -> None:
        await asyncio.sleep(5)
        interceptor.left = 3
        world.join()
        await asyncio.sleep(1)
        node = world.node("node-c")
        assert [taint.key for taint in node.spec.taints] == ["example.com/starting"]
        world.change(node, spec=replace(node.spec, taints=()))
        await asyncio.sleep(MINUTE)

        assert world.condition("Registered").status == "True"
        assert world.node("node-c").spec.taints == ()
        assert not world.events("UnregisteredTaintMissing")

    live(story, claim(startupTaints=[STARTUP]), interceptor=interceptor)


def test_two_nodes_of_one_machine_register_neither() -> None:
    async def story(world: LifeWorld) -> None:
        await asyncio.sleep(5)
        machine = world.cloud.machines.alive()[0]
        world.put(*(node_of(machine.provider_id, name, machine.capacity) for name in ("one", "two")))
        await asyncio.sleep(5)

        assert world.condition("Registered").reason == "MultipleNodesFound"
        assert world.condition("Ready").status == "False"

    live(story)


def test_a_node_that_joins_without_the_unregistered_taint_is_told_of() -> None:
    async def story(world: LifeWorld) -> None:
        await asyncio.sleep(5)
        machine = world.cloud.machines.alive()[0]
        node = node_of(machine.provider_id, "node-c", machine.capacity)
        world.put(replace(node, spec=replace(node.spec, taints=())))
        await asyncio.sleep(5)

        assert world.events("UnregisteredTaintMissing") == ["NodeClaim c"]
        assert world.condition("Registered").status == "True"

    live(story)


def test_a_node_stays_closed_until_every_hook_of_the_provider_is_done() -> None:
    async def story(world: LifeWorld) -> None:
        await asyncio.sleep(5)
        world.join()
        for after, waiting in ((5, "one, two"), (30, "two")):
            await asyncio.sleep(after)
            told, node = world.condition("Registered"), world.node("node-c")
            assert (told.status, told.reason) == ("Unknown", "RegistrationHookPending")
            assert told.message.endswith(f"with {waiting}")
            assert taints.is_among(taints.UNREGISTERED, node.spec.taints)
            assert labels.REGISTERED not in node.metadata.labels
            assert node.metadata.finalizers == (labels.TERMINATION_FINALIZER,)
        await asyncio.sleep(30)

        assert world.condition("Ready").status == "True"
        assert world.claim().metadata.labels["rack"] == world.node("node-c").metadata.labels["rack"] == "r7"
        assert [told[0] for told in world.health.told] == ["success"]

    live(story, hooks=[Hook("one", 20.0, {}), Hook("two", 60.0, {"rack": "r7"})])


def test_a_startup_taint_that_is_removed_while_a_hook_works_does_not_come_back() -> None:
    async def story(world: LifeWorld) -> None:
        await asyncio.sleep(5)
        world.join()
        await asyncio.sleep(5)
        node = world.node("node-c")
        assert [taint.key for taint in node.spec.taints] == [taints.UNREGISTERED.key, "example.com/starting"]
        world.change(node, spec=replace(node.spec, taints=(taints.UNREGISTERED,)))
        await asyncio.sleep(MINUTE)

        assert world.node("node-c").spec.taints == ()
        assert world.condition("Initialized").status == "True"

    live(story, claim(startupTaints=[STARTUP]), hooks=[Hook("one", 30.0, {})])


class RefusesClaims(NoInterceptor):
    """So many times a claim cannot be changed."""

    left = 0

    def before(self, call: Call) -> float:
        if call.verb == "patch" and call.kind is NodeClaim and self.left:
            self.left -= 1
            raise Unreachable("no answer")
        return 0.0


def test_what_a_hook_found_out_reaches_the_claim_though_it_could_not_be_written_at_first() -> None:
    interceptor = RefusesClaims()

    async def story(world: LifeWorld) -> None:
        await asyncio.sleep(5)
        interceptor.left = 2
        world.join()
        await asyncio.sleep(MINUTE)

        assert (interceptor.left, world.condition("Registered").status) == (0, "True")
        assert world.claim().metadata.labels["rack"] == world.node("node-c").metadata.labels["rack"] == "r7"

    live(story, interceptor=interceptor, hooks=[Hook("one", 0.0, {"rack": "r7"})])


class Silent(NoCloudInterceptor):
    """A cloud that tells nothing about machines for a while."""

    def __init__(self, times: int) -> None:
        self.left = times

    def before(self, call: str, about: str) -> float:
        if call == "get" and self.left:
            self.left -= 1
            raise Transient("no answer")
        return 0.0


def test_a_hook_that_fails_is_asked_again() -> None:
    async def story(world: LifeWorld) -> None:
        await asyncio.sleep(5)
        world.join()
        await asyncio.sleep(2)
        assert world.condition("Registered").reason == "RegistrationHookPending"
        await asyncio.sleep(MINUTE)

        assert world.condition("Ready").status == "True"

    live(story, cloud_interceptor=Silent(3), hooks=[Hook("one", 0.0, {})])


def test_a_hook_that_is_never_done_costs_the_machine_after_fifteen_minutes() -> None:
    async def story(world: LifeWorld) -> None:
        await asyncio.sleep(5)
        world.join()
        await asyncio.sleep(14 * MINUTE)
        assert world.there(NodeClaim, "c")
        await asyncio.sleep(2 * MINUTE)

        assert not world.there(NodeClaim, "c")
        assert world.disrupted() == {"registration_timeout": 1.0}

    live(story, hooks=[Hook("one", 1e6, {})])


# -- initialization ------------------------------------------------------------------------------------------------------


def test_a_node_is_initialised_when_nothing_is_missing_any_more() -> None:
    async def story(world: LifeWorld) -> None:
        await asyncio.sleep(5)
        capacity = world.claim().status.capacity
        ephemeral = Taint(key="readiness.k8s.io/network", effect="NoSchedule")
        world.join(ready=False, more=(ephemeral,), allocatable={**capacity, "pods": 0})
        await asyncio.sleep(5)
        assert world.condition("Initialized").reason == "NodeNotReady"

        world.set_ready("node-c", True)
        await asyncio.sleep(5)
        assert world.condition("Initialized").reason == "StartupTaintsExist"

        node = world.node("node-c")
        world.change(node, spec=replace(node.spec, taints=(ephemeral,)))
        await asyncio.sleep(5)
        assert world.condition("Initialized").reason == "KnownEphemeralTaintsExist"

        node = world.node("node-c")
        world.change(node, spec=replace(node.spec, taints=()))
        await asyncio.sleep(5)
        assert world.condition("Initialized").reason == "ResourceNotRegistered"

        node = world.node("node-c")
        world.change(node, status=replace(node.status, allocatable=capacity))
        await asyncio.sleep(5)
        assert world.condition("Initialized").status == "True"

    live(story, claim(startupTaints=[STARTUP], resources={"requests": {"cpu": "1", "pods": "1"}}))


def test_initialization_waits_while_a_node_reboots() -> None:
    async def story(world: LifeWorld) -> None:
        await world.settled()
        found, now = world.claim(), world.now()
        said, _ = found.condition_set.set_true(found.status.conditions, "Rebooting", found.metadata, now)
        said, _ = found.condition_set.set_unknown(said, "Initialized", found.metadata, now, reason="Rebooting")
        world.change(found, status=replace(found.status, conditions=said))
        await asyncio.sleep(MINUTE)

        assert world.condition("Initialized").reason == "Rebooting"

    live(story)


# -- liveness ------------------------------------------------------------------------------------------------------------


def test_a_claim_that_is_not_launched_in_five_minutes_goes() -> None:
    async def story(world: LifeWorld) -> None:
        await asyncio.sleep(5 * MINUTE - 2)
        assert world.there(NodeClaim, "c")

        await asyncio.sleep(10)
        assert not world.there(NodeClaim, "c")
        assert world.disrupted() == {"launch_timeout": 1.0}

    world = live(story, cloud_interceptor=Refusing(*[Transient("busy")] * 100))
    assert [(told[0], told[3]) for told in world.health.told] == [("failure", "LaunchFailed")]


@pytest.mark.parametrize("restarts", [False, True], ids=["in one life", "over a restart"])
def test_a_node_that_does_not_join_in_fifteen_minutes_goes_with_its_machine(restarts: bool) -> None:
    async def story(world: LifeWorld) -> None:
        await asyncio.sleep(10 * MINUTE)
        if restarts:
            await world.restart()
        await asyncio.sleep(5 * MINUTE - 2)
        assert world.there(NodeClaim, "c")

        await asyncio.sleep(MINUTE)
        assert not world.there(NodeClaim, "c")
        assert not world.cloud.machines.alive()
        assert world.disrupted() == {"registration_timeout": 1.0}

    world = live(story)
    assert [(told[0], told[3]) for told in world.health.told] == [("failure", "RegistrationFailed")]


# -- deletion ------------------------------------------------------------------------------------------------------------


def test_a_deleted_claim_takes_its_node_and_machine_along() -> None:
    async def story(world: LifeWorld) -> None:
        await world.settled()

        world.delete(world.claim())
        await asyncio.sleep(MINUTE)

        assert not world.there(NodeClaim, "c")
        assert not world.there(Node, "node-c")
        assert not world.cloud.machines.alive()

    live(story)


def test_a_claim_outlives_its_machine() -> None:
    async def story(world: LifeWorld) -> None:
        await asyncio.sleep(5)
        world.delete(world.claim())
        while world.there(NodeClaim, "c"):
            gone = not world.cloud.machines.alive()
            await asyncio.sleep(0.5)

        assert gone

    live(story)


@pytest.mark.parametrize("at", [0.1, 0.18, 0.2, 0.245, 0.26])
@pytest.mark.parametrize("restarts", [False, True], ids=["in one life", "over a restart"])
def test_a_claim_that_is_deleted_while_it_is_launched_leaks_no_machine(at: float, restarts: bool) -> None:
    async def story(world: LifeWorld) -> None:
        await asyncio.sleep(at)
        world.delete(world.claim())
        if restarts:
            await world.restart()
        await asyncio.sleep(MINUTE + 20)

        assert not world.there(NodeClaim, "c")
        assert not world.cloud.machines.alive()

    live(story)


def test_a_node_that_never_registered_is_left_to_whoever_made_it() -> None:
    async def story(world: LifeWorld) -> None:
        await asyncio.sleep(5)
        world.delete(world.claim())
        await asyncio.sleep(1)
        machine = world.cloud.machines.alive()[0]
        world.put(node_of(machine.provider_id, "node-c", machine.capacity))
        await asyncio.sleep(MINUTE)

        assert not world.there(NodeClaim, "c")
        assert world.node("node-c").metadata.deletion_timestamp is None

    live(story)


def test_a_claim_with_a_grace_period_is_told_when_force_begins() -> None:
    async def story(world: LifeWorld) -> None:
        await asyncio.sleep(5)
        world.delete(world.claim())
        await asyncio.sleep(1)

        assert world.claim().metadata.annotations[TERMINATION_TIMESTAMP] == "2030-01-07T01:00:05Z"
        assert world.events("TerminationGracePeriodExpiring") == ["NodeClaim c"]

    live(story, claim(terminationGracePeriod="1h"))


def test_a_deadline_that_somebody_else_set_stays() -> None:
    async def story(world: LifeWorld) -> None:
        await asyncio.sleep(5)
        world.annotate(world.claim(), **{TERMINATION_TIMESTAMP: "2030-01-07T00:10:00Z"})
        world.delete(world.claim())
        await asyncio.sleep(1)

        assert world.claim().metadata.annotations[TERMINATION_TIMESTAMP] == "2030-01-07T00:10:00Z"

    live(story, claim(terminationGracePeriod="1h"))


class TurnsNodesAway(NoInterceptor):
    """A cluster that lets nobody write to Nodes."""

    def before(self, call: Call) -> float:
        if call.verb == "patch" and call.kind is Node:
            raise Invalid("nodes are not to be touched")
        return 0.0


def test_a_claim_whose_node_may_not_be_written_is_given_up_in_time() -> None:
    async def story(world: LifeWorld) -> None:
        await asyncio.sleep(5)
        world.join()
        await asyncio.sleep(5 * MINUTE)
        assert (world.condition("Launched").status, world.condition("Registered").status) == ("True", "Unknown")

        await asyncio.sleep(11 * MINUTE)

        assert not world.there(NodeClaim, "c")
        assert world.disrupted() == {"registration_timeout": 1.0}

    live(story, interceptor=TurnsNodesAway())


def test_the_end_of_a_machine_is_measured_also_if_it_is_gone_when_asked_to_go() -> None:
    async def story(world: LifeWorld) -> None:
        await asyncio.sleep(5)
        world.cloud.machines.vanish(world.claim().status.provider_id)
        world.delete(world.claim())
        await asyncio.sleep(70)

        assert not world.there(NodeClaim, "c")
        samples = next(iter(world.metrics.nodeclaims_instance_termination_duration_seconds.collect())).samples
        assert [each.value for each in samples if each.name.endswith("_count")] == [1.0]

    live(story)
