"""Restarting machines: every way it can end, and that nobody is restarted twice by accident."""

import pytest
from tests.unit.controllers.clinic import Clinic, in_clinic

from joiner.cloud.errors import Transient
from joiner.model.meta import replace
from joiner.model.node import Node
from joiner.model.nodeclaim import NodeClaim
from joiner.sim.cloud import NoCloudMeddler

FAULT = "KWOKRebootRequired"


class NoReboots(NoCloudMeddler):
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

    in_clinic(test, cloud_meddler=NoReboots(lost=True, times=2))


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

    in_clinic(test, cloud_meddler=NoReboots())


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
