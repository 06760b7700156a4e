"""Restarting machines: every way it can end, and that nobody is restarted twice by accident."""

from datetime import timedelta

import pytest
from tests.unit.controllers.repairworld import Clinic, in_clinic

from joiner.cloud.errors import Transient
from joiner.model import claimconditions
from joiner.model.conditions import Condition
from joiner.model.duration import Duration
from joiner.model.meta import replace
from joiner.model.node import Node
from joiner.model.nodeclaim import NodeClaim
from joiner.model.workload import Deployment
from joiner.sim.cloud.cloud import NoCloudInterceptor

FAULT = "KWOKRebootRequired"


class NoReboots(NoCloudInterceptor):
    """Calls for a restart fail until a moment, or their answers are lost."""

    def __init__(self, *, lost: bool = False, times: int = 1_000) -> None:
        self.lost, self.times, self.calls = lost, times, 0

    def _fail(self, call: str, at_all: bool) -> float:
        if call == "reboot" and at_all:
            self.calls += 1
            if self.calls <= self.times:
                raise Transient("no answer")
        return 0.0

    def before(self, call: str, about: str) -> float:
        return self._fail(call, not self.lost)

    def after(self, call: str, about: str) -> float:
        return self._fail(call, self.lost)


def test_a_restart_keeps_the_claim_and_ends_with_a_new_boot() -> None:
    async def test(clinic: Clinic) -> None:
        before, claim = clinic.node().status.node_info.boot_id, clinic.claims()[0]
        clinic.sicken(kind=FAULT)
        await clinic.wait(300)

        assert clinic.node().status.node_info.boot_id != before
        assert [each.name for each in clinic.claims()] == [claim.name]
        assert (clinic.said("Rebooting"), clinic.said("Initialized")) == ("False RebootSucceeded", "True Initialized")
        assert clinic.said("DisruptionReason") == "none"
        assert clinic.counted(clinic.joiner.metrics.nodes_reboots_total) == {"succeeded": 1.0}
        assert "karpenter.sh/reboot-pre-boot-id" not in clinic.claims()[0].metadata.annotations

    in_clinic(test)


def test_a_restart_is_written_down_with_its_cause_and_nothing_else_is_done_to_the_node() -> None:
    async def test(clinic: Clinic) -> None:
        clinic.annotate(clinic.claims()[0], reboot_pre_boot_id="of an earlier restart")
        clinic.sicken(kind=FAULT, reason="Kernel")
        await clinic.wait(31)

        (claim,) = clinic.claims()
        state = clinic.condition("Rebooting")
        assert state is not None
        assert (state.reason, state.message) == ("RebootRequested", f"{FAULT}/Kernel")
        assert clinic.said("DisruptionReason") == "True Unhealthy"
        assert claim.metadata.annotations["karpenter.sh/reboot-termination-grace-period"] == "1m0s"
        assert "karpenter.sh/reboot-pre-boot-id" not in claim.metadata.annotations
        assert clinic.taints() == ["rebooting"]
        decided = clinic.counted(clinic.joiner.metrics.voluntary_disruption_decisions_total)
        assert decided == {"reboot unhealthy ": 1.0}

    in_clinic(test)


def test_a_bound_that_is_left_from_before_does_not_count() -> None:
    async def test(clinic: Clinic) -> None:
        clinic.annotate(clinic.claims()[0], reboot_termination_grace_period="0s")
        clinic.sicken(kind=FAULT)
        await clinic.wait(31)

        assert clinic.claims()[0].metadata.annotations["karpenter.sh/reboot-termination-grace-period"] == "30s"

    in_clinic(test, termination_grace_period=Duration.parse("30s"))


def test_the_provider_is_asked_in_words_that_tell_one_restart_from_another() -> None:
    async def test(clinic: Clinic) -> None:
        boot, uid = clinic.node().status.node_info.boot_id, clinic.claims()[0].metadata.uid
        clinic.sicken(kind=FAULT)
        await clinic.wait(31)
        state = clinic.condition("Rebooting")
        assert state is not None
        assert state.last_transition_time is not None
        nanoseconds = int(state.last_transition_time.timestamp()) * 10**9
        await clinic.wait(30)

        assert clinic.machine().last_reboot == f"{uid}-{nanoseconds}-{boot}"

    in_clinic(test)


def test_nobody_buys_a_node_while_one_is_being_restarted() -> None:
    async def test(clinic: Clinic) -> None:
        clinic.sicken(kind=FAULT)
        for _ in range(60):
            await clinic.wait(5)
            assert len(clinic.claims()) == 1

    in_clinic(test)


@pytest.mark.parametrize("grace", ["soon", "-1m", "5"])
def test_a_wish_that_cannot_be_read_leaves_the_node_alone(grace: str) -> None:
    async def test(clinic: Clinic) -> None:
        clinic.annotate(clinic.claims()[0], reboot_termination_grace_period=grace)
        clinic.say("Rebooting", "RebootRequested")
        await clinic.wait(60)

        assert clinic.said("Rebooting") == "False RebootFailed"
        assert "reboot-termination-grace-period" in clinic.told("RebootFailed")[0]
        assert (clinic.taints(), clinic.machines.reboots()) == ([], 0)
        assert clinic.counted(clinic.joiner.metrics.nodes_reboots_total) == {"invalid_request": 1.0}

    in_clinic(test)


def test_a_machine_that_was_restarted_before_we_were_is_not_restarted_again() -> None:
    async def test(clinic: Clinic) -> None:
        clinic.annotate(clinic.claims()[0], reboot_pre_boot_id="the boot before")
        clinic.say("Rebooting", "RebootRequested")
        await clinic.wait(60)

        assert clinic.said("Rebooting") == "False RebootSucceeded"
        assert clinic.machines.reboots() == 0

    in_clinic(test)


def test_an_answer_that_was_lost_does_not_restart_twice() -> None:
    async def test(clinic: Clinic) -> None:
        clinic.sicken(kind=FAULT)
        await clinic.wait(300)

        assert clinic.said("Rebooting") == "False RebootSucceeded"
        assert clinic.machines.reboots() == 1

    in_clinic(test, cloud_interceptor=NoReboots(lost=True, times=2))


@pytest.mark.parametrize("seconds", [1, 4, 8, 12, 20, 45])
def test_whenever_we_are_restarted_the_machine_is_restarted_once(seconds: float) -> None:
    async def test(clinic: Clinic) -> None:
        clinic.sicken(kind=FAULT)
        await clinic.wait(30 + seconds)
        await clinic.world.restart()
        await clinic.wait(300)

        assert clinic.said("Rebooting") == "False RebootSucceeded"
        assert (clinic.machines.reboots(), clinic.taints()) == (1, [])

    in_clinic(test)


def test_a_provider_that_fails_for_five_minutes_costs_the_machine() -> None:
    async def test(clinic: Clinic) -> None:
        (claim,) = clinic.claims()
        clinic.sicken(kind=FAULT)
        await clinic.wait(300)
        assert clinic.said("Rebooting") == "True RebootRequested"
        await clinic.wait(300)

        assert "provider_error" in clinic.counted(clinic.joiner.metrics.nodes_reboots_total)
        assert clinic.server.find(NodeClaim, claim.name) is None

    in_clinic(test, cloud_interceptor=NoReboots())


def test_a_machine_that_does_not_come_back_in_twenty_minutes_is_given_up() -> None:
    async def test(clinic: Clinic) -> None:
        (claim,) = clinic.claims()
        clinic.alter(never_ready=True)
        clinic.sicken(kind=FAULT)
        await clinic.wait(60 + 19 * 60)
        assert clinic.said("Initialized") == "Unknown Rebooting"
        await clinic.wait(180)

        assert clinic.counted(clinic.joiner.metrics.nodes_reboots_total) == {"recovery_timeout": 1.0}
        assert clinic.server.find(NodeClaim, claim.name) is None

    in_clinic(test)


def test_a_node_that_vanished_is_given_up_after_five_minutes() -> None:
    async def test(clinic: Clinic) -> None:
        (claim,) = clinic.claims()
        clinic.say("Rebooting", "RebootRequested")
        node = clinic.node()
        clinic.server.patch("test", node, replace(node, metadata=replace(node.metadata, finalizers=())))
        clinic.server.delete("test", Node, node.name)
        await clinic.wait(290)
        assert clinic.server.find(NodeClaim, claim.name) is not None
        await clinic.wait(60)

        assert "its node is gone" in clinic.told("RebootFailed")[0]

    in_clinic(test)


def test_the_drain_before_a_restart_never_forces_a_pod() -> None:
    async def test(clinic: Clinic) -> None:
        (pod,) = clinic.pods()
        clinic.sicken(kind=FAULT)
        await clinic.wait(80)
        assert clinic.said("Rebooting") == "True RebootRequested"
        await clinic.wait(120)

        assert clinic.said("Rebooting") == "False RebootSucceeded"
        assert [each.metadata.uid for each in clinic.pods()] == [pod.metadata.uid]

    in_clinic(test, pod={"do_not_disrupt": True})


def test_without_a_bound_the_drain_waits_until_everybody_has_left() -> None:
    async def test(clinic: Clinic) -> None:
        clinic.say("Rebooting", "RebootRequested")
        await clinic.wait(3600)
        assert (clinic.said("Rebooting"), clinic.taints()) == ("True RebootRequested", ["rebooting"])
        await clinic.world.user.delete(Deployment, "web", "default")
        await clinic.wait(120)

        assert clinic.said("Rebooting") == "False RebootSucceeded"

    in_clinic(test, pod={"do_not_disrupt": True})


def test_a_machine_that_cannot_be_restarted_is_drained_as_long_as_the_restart_would_have_been() -> None:
    async def test(clinic: Clinic) -> None:
        clinic.alter(refuses_reboot=True)
        clinic.annotate(clinic.claims()[0], reboot_termination_grace_period="10s")
        clinic.say("Rebooting", "RebootRequested")
        await clinic.wait(11)

        (claim,) = [each for each in clinic.claims() if claimconditions.is_leaving(each)]
        deadline = claimconditions.deadline(claim)
        assert deadline is not None
        assert timedelta(seconds=8) <= deadline - clinic.now() <= timedelta(seconds=10)
        assert claimconditions.holds(claim, "Rebooting")
        assert "rebooting" not in clinic.taints()
        assert clinic.counted(clinic.joiner.metrics.nodes_reboots_total) == {"provider_error": 1.0}

    in_clinic(test, pod={"do_not_disrupt": True})


def test_a_bound_of_zero_waits_for_nobody() -> None:
    async def test(clinic: Clinic) -> None:
        clinic.annotate(clinic.claims()[0], reboot_termination_grace_period="0s")
        clinic.say("Rebooting", "RebootRequested")
        await clinic.wait(2)

        assert clinic.said("Rebooting") == "True RebootIssued"

    in_clinic(test)


def test_even_an_empty_node_is_drained_for_five_seconds() -> None:
    async def test(clinic: Clinic) -> None:
        clinic.annotate(clinic.claims()[0], reboot_termination_grace_period="1s")
        clinic.say("Rebooting", "RebootRequested")
        await clinic.wait(4)
        assert clinic.said("Rebooting") == "True RebootRequested"
        await clinic.wait(2)

        assert clinic.said("Rebooting") == "True RebootIssued"

    in_clinic(test)


def test_a_machine_that_was_never_complete_gets_its_time_to_come_back_all_the_same() -> None:
    async def test(clinic: Clinic) -> None:
        (claim,) = clinic.claims()
        long_ago = clinic.now() - timedelta(hours=1)
        others = tuple(each for each in claim.status.conditions if each.type != "Initialized")
        never = Condition(type="Initialized", status="Unknown", reason="NodeNotReady", last_transition_time=long_ago)
        asked = Condition(type="Rebooting", status="True", reason="RebootRequested", last_transition_time=clinic.now())
        status = replace(claim.status, conditions=(*others, never, asked))
        clinic.server.patch_status("test", claim, replace(claim, status=status))
        await clinic.wait(120)

        assert [each.name for each in clinic.claims()] == [claim.name]
        assert clinic.said("Rebooting") == "False RebootSucceeded"

    in_clinic(test)
