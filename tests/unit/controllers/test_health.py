"""Node repair as older releases did it: what counts, when, and what is left out."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.unit.controllers.repairworld import Clinic, in_clinic

from joiner.cloud.repair import RepairPolicy
from joiner.controllers.node.health import Health
from joiner.model import claimconditions, labels
from joiner.model.duration import Duration
from joiner.model.meta import replace
from joiner.model.nodeclaim import NodeClaim


def as_before(test: Callable[[Clinic], Awaitable[None]], **world: Any) -> None:
    """Run a test in a world with the older repair."""
    in_clinic(test, flags=["--legacy-node-repair=true"], **world)


def leaving(clinic: Clinic) -> list[str]:
    return [each.name for each in clinic.claims() if claimconditions.is_leaving(each)]


def policy(kind: str, toleration: str, regex: str = ".*", **more: Any) -> RepairPolicy:
    return RepairPolicy(
        condition_type=kind,
        condition_status="True",
        toleration=Duration.parse(toleration),
        reason_regex=regex,
        **more,
    )


def test_a_broken_node_goes_by_force_as_soon_as_its_time_has_come() -> None:
    async def test(clinic: Clinic) -> None:
        (claim,) = clinic.claims()
        clinic.sicken()
        await clinic.wait(29)
        assert not leaving(clinic)
        await clinic.wait(2)

        assert leaving(clinic) == [claim.name]
        deadline = claimconditions.deadline(clinic.server.get(NodeClaim, claim.name))
        assert deadline is not None
        assert deadline <= clinic.now()

    as_before(test)


@pytest.mark.parametrize("annotation", [labels.DO_NOT_REPAIR, labels.DO_NOT_DISRUPT])
def test_nobody_is_asked(annotation: str) -> None:
    async def test(clinic: Clinic) -> None:
        clinic.mark(clinic.node(), annotation, "true")
        clinic.sicken()
        await clinic.wait(32)

        assert leaving(clinic)

    as_before(test, budgets=({"nodes": "0"},))


def test_an_earlier_end_of_the_drain_is_kept() -> None:
    async def test(clinic: Clinic) -> None:
        moment = claimconditions.written_deadline(clinic.now())
        claim = clinic.annotate(clinic.claims()[0], nodeclaim_termination_timestamp=moment)
        clinic.sicken()
        await clinic.wait(32)

        assert claimconditions.deadline(clinic.server.get(NodeClaim, claim.name)) == claimconditions.deadline(claim)

    as_before(test)


POLICIES = (
    policy("Slow", "10m"),
    policy("Bad", "1m", "^Disk"),
    policy("Odd", "1m", ""),
    policy("Tired", "1m", action="RebootNode"),
)


@pytest.mark.parametrize(
    ("told", "goes"),
    [
        pytest.param([("Bad", "Disk0")], True, id="a reason that is meant"),
        pytest.param([("Bad", "Fan")], False, id="a reason that is not"),
        pytest.param([("Odd", "Whatever")], True, id="no regex means any reason"),
        pytest.param([("Tired", "")], False, id="restarts are not done"),
        pytest.param([("Slow", ""), ("Bad", "Disk0")], True, id="the earliest counts"),
        pytest.param([("Slow", "")], False, id="too early"),
    ],
)
def test_policies_that_replace_count_by_condition_and_reason(told: list[tuple[str, str]], goes: bool) -> None:
    async def test(clinic: Clinic) -> None:
        for kind, reason in told:
            clinic.sicken(kind=kind, reason=reason)
        await clinic.wait(63)

        assert bool(leaving(clinic)) is goes

    as_before(test, policies=POLICIES)


def test_claims_without_a_pool_are_held_against_the_whole_cluster() -> None:
    async def test(clinic: Clinic) -> None:
        claim = clinic.server.get(NodeClaim, clinic.machine().claim_name)
        own = {key: value for key, value in claim.metadata.labels.items() if key != labels.NODEPOOL}
        clinic.server.patch("test", claim, replace(claim, metadata=replace(claim.metadata, labels=own)))
        clinic.sicken(0)
        clinic.sicken(1)
        await clinic.wait(60)

        assert not leaving(clinic)
        assert "2 of 5 nodes of the cluster" in " ".join(clinic.told("NodeRepairBlocked"))

    as_before(test, nodes=5)


def test_it_takes_the_place_of_the_newer_way() -> None:
    async def test(clinic: Clinic) -> None:
        names = [each.name for each in clinic.joiner.controllers]

        assert any(isinstance(each, Health) for each in clinic.joiner.controllers)
        assert "disruption.repair" not in names

    as_before(test)
