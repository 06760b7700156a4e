"""The checkers see EC2: for each rule that a provider can break, an AWS provider that is broken on purpose, and a seed that
catches it."""

from collections.abc import Callable, Sequence
from typing import Any
from uuid import uuid4

import pytest

from joiner.cloud.aws.account import ReservationAccount
from joiner.cloud.aws.launch import tags
from joiner.cloud.aws.launch.fleet import Fleet
from joiner.cloud.aws.launch.machines import Machines
from joiner.cloud.aws.live import LiveAwsProvider
from joiner.cloud.errors import InstanceNotFound
from joiner.model.nodeclaim import NodeClaim
from joiner.sim.hunt.hunt import hunt

Break = Callable[[pytest.MonkeyPatch], None]


def changes_requests(patch: pytest.MonkeyPatch, change: Callable[[dict[str, Any]], None]) -> None:
    made = Fleet._request

    def request(self: Any, *arguments: Any) -> dict[str, Any]:
        asked = made(self, *arguments)
        change(asked)
        return asked

    patch.setattr(Fleet, "_request", request)


def launches_without_asking_what_it_launched(patch: pytest.MonkeyPatch) -> None:
    async def of_claim(self: Any, uid: str) -> tuple[None, int]:
        return None, 0

    patch.setattr(Machines, "of_claim", of_claim)
    changes_requests(patch, lambda asked: asked.update(ClientToken=str(uuid4())))


def tags_machines_with_nothing(patch: pytest.MonkeyPatch) -> None:
    def untagged(asked: dict[str, Any]) -> None:
        for each in asked["TagSpecifications"]:
            each["Tags"] = [tag for tag in each["Tags"] if tag["Key"] != tags.NODECLAIM_UID]

    changes_requests(patch, untagged)


def names_one_type_only(patch: pytest.MonkeyPatch) -> None:
    def cut(asked: dict[str, Any]) -> None:
        first = asked["LaunchTemplateConfigs"][0]
        asked["LaunchTemplateConfigs"] = [{**first, "Overrides": first["Overrides"][:1]}]

    changes_requests(patch, cut)


def asks_for_the_zone_it_likes(patch: pytest.MonkeyPatch) -> None:
    def moved(asked: dict[str, Any]) -> None:
        for config in asked["LaunchTemplateConfigs"]:
            for each in config["Overrides"]:
                each.update(AvailabilityZone="us-east-1a", SubnetId="subnet-1")

    changes_requests(patch, moved)


def counts_no_machines_in_reservations(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ReservationAccount, "left", lambda self, identity: 9)


def says_that_machines_are_gone_at_once(patch: pytest.MonkeyPatch) -> None:
    async def delete(self: Any, provider_id: str) -> None:
        raise InstanceNotFound(provider_id, certain=True)

    patch.setattr(LiveAwsProvider, "delete", delete)


def ends_no_machine(patch: pytest.MonkeyPatch) -> None:
    async def end(self: Any, ids: Sequence[str]) -> dict[str, Any]:
        return {}

    patch.setattr(Machines, "_end", end)


def ends_machines_that_it_is_asked_about(patch: pytest.MonkeyPatch) -> None:
    async def drift_reason(self: Any, claim: NodeClaim) -> str:
        if claim.status.provider_id:
            await self._machines.terminate(claim.status.provider_id)
        return ""

    patch.setattr(LiveAwsProvider, "drift_reason", drift_reason)


MUTANTS: tuple[tuple[str, Break], ...] = (
    ("launch: claim", launches_without_asking_what_it_launched),
    ("launch: machine", tags_machines_with_nothing),
    ("minValues", names_one_type_only),
    ("launched: claim", asks_for_the_zone_it_likes),
    ("reservation", counts_no_machines_in_reservations),
    ("finalizer: claim", says_that_machines_are_gone_at_once),
    ("liveness", ends_no_machine),
    ("drain", ends_machines_that_it_is_asked_about),
)
SEEDS = range(20)


@pytest.mark.parametrize(("rule", "broken"), MUTANTS, ids=[rule for rule, _ in MUTANTS])
def test_a_broken_provider_is_caught(rule: str, broken: Break, monkeypatch: pytest.MonkeyPatch) -> None:
    broken(monkeypatch)

    played = (hunt(seed, kind="ec2") for seed in SEEDS)
    found = next((text for outcome in played for text in outcome.violations if rule in text), "")

    assert found, f"no seed of {SEEDS} trips the rule {rule}"
