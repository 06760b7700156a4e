"""Which policy a condition calls for, when, what is done then, and when nothing is."""

from datetime import timedelta

import pytest
from tests.unit.disruption.brokennodes import FALLBACK, LONG_AGO, NOW, ago, claim, ill, node, policy

from joiner.disruption import repair
from joiner.disruption.repair import REBOOT, REPLACE, Ailment, Reboots
from joiner.model.duration import Duration
from joiner.model.node import Node, NodeCondition

DISK = policy("Bad", "^Disk", "1h", priority=1)
ANY = policy("Bad", ".*", "10m", priority=2)
POLICIES = (DISK, ANY, FALLBACK)


@pytest.mark.parametrize(
    ("broken", "nodes", "frozen"),
    [
        (1, 1, False), (1, 2, False), (2, 2, True), (1, 5, False), (2, 5, True), (2, 6, False), (2, 10, False),
        (3, 10, True), (3, 11, False), (20, 100, False), (21, 100, True), (0, 0, False),
    ],
)  # fmt: skip
def test_more_than_a_fifth_rounded_up_is_too_many(broken: int, nodes: int, frozen: bool) -> None:
    assert repair.too_many(broken, nodes) is frozen


@pytest.mark.parametrize(
    ("condition", "policies", "called"),
    [
        pytest.param(ill(reason="Disk0"), POLICIES, (DISK, ANY), id="every regex that finds its reason"),
        pytest.param(ill(reason="BigDisk"), (DISK, FALLBACK), (FALLBACK,), id="no regex does: the fallback"),
        pytest.param(ill(reason="Disk0"), (DISK, FALLBACK), (DISK,), id="one that waits keeps the fallback away"),
        pytest.param(ill(status="False"), POLICIES, (), id="another status"),
        pytest.param(ill("Good"), POLICIES, (), id="another type"),
        pytest.param(ill("Ready", "Kubelet", status="False"), POLICIES, (FALLBACK,), id="the fallback's own condition"),
        pytest.param(ill(reason="x"), (policy(regex="y"),), (), id="no fallback there"),
    ],
)
def test_a_condition_calls_for_policies(condition: NodeCondition, policies: tuple, called: tuple) -> None:  # type: ignore[type-arg]
    found = repair.ailments(node(condition), None, policies)

    assert tuple(each.policy for each in found) == called


@pytest.mark.parametrize(
    ("broken", "ended", "since"),
    [
        pytest.param(node(ill(since=ago(hours=2))), None, ago(hours=2), id="the condition's own time"),
        pytest.param(node(ill(since=LONG_AGO), born=ago(hours=3)), None, ago(hours=3), id="not before the node came"),
        pytest.param(node(ill(since=LONG_AGO)), ago(minutes=5), ago(minutes=5), id="not before the last restart ended"),
        pytest.param(node(ill(since=ago(minutes=2))), ago(hours=1), ago(minutes=2), id="a restart long ago"),
    ],
)
def test_a_condition_counts_from_the_latest_of_three_moments(broken: Node, ended: object, since: object) -> None:
    of = claim(since=ended, Rebooting="False") if ended else claim()  # type: ignore[arg-type]

    (found,) = repair.ailments(broken, of, (ANY, FALLBACK))

    assert found.since == since + timedelta(minutes=10)  # type: ignore[operator]


def test_a_restart_under_way_has_no_end_to_count_from() -> None:
    (found,) = repair.ailments(node(ill(since=LONG_AGO)), claim(since=NOW, Rebooting="True"), (ANY, FALLBACK))

    assert found.since == LONG_AGO + timedelta(minutes=10)


def test_nothing_is_diagnosed_before_its_time() -> None:
    found = repair.ailments(node(ill(since=ago(minutes=9))), None, (ANY, FALLBACK))

    assert repair.diagnose(found, POLICIES, NOW) is None
    assert repair.next_due(found, NOW) == NOW + timedelta(minutes=1)


def test_what_is_due_now_is_not_due_later() -> None:
    found = repair.ailments(node(ill(since=ago(minutes=10))), None, (ANY, FALLBACK))

    assert repair.diagnose(found, POLICIES, NOW) is not None
    assert repair.next_due(found, NOW) is None


def due(kind: str, since: timedelta = timedelta(0), **more: object) -> Ailment:
    return Ailment(policy=policy(kind, **more), condition=ill(kind, f"Why{kind}"), since=NOW - since)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("found", "action", "governing"),
    [
        pytest.param([due("A", action=REBOOT, priority=9), due("B")], REPLACE, "B", id="the most disruptive action"),
        pytest.param([due("A"), due("B", priority=1)], REPLACE, "B", id="then the higher priority"),
        pytest.param([due("A"), due("B", timedelta(seconds=1))], REPLACE, "B", id="then the earlier one"),
        pytest.param([due("B"), due("A")], REPLACE, "A", id="then the smaller name"),
        pytest.param([due("A", action=REBOOT)], REBOOT, "A", id="a restart alone"),
        pytest.param([due("A", action=REBOOT), due("B", -timedelta(1))], REBOOT, "A", id="what waits does not count"),
    ],
)
def test_ailments_are_merged(found: list[Ailment], action: str, governing: str) -> None:
    told = repair.diagnose(found, [each.policy for each in found], NOW)

    assert told is not None
    assert (told.action, told.condition, told.reason) == (action, governing, f"Why{governing}")


@pytest.mark.parametrize(
    ("bounds", "shortest"),
    [((None, "1m", "45s"), "45s"), (("0s", "1m", None), "0s"), ((None, None, None), None)],
)
def test_the_shortest_bound_that_is_said_holds(bounds: tuple[str | None, ...], shortest: str | None) -> None:
    found = [due(f"C{number}", bound=bound) for number, bound in enumerate(bounds)]

    told = repair.diagnose(found, [each.policy for each in found], NOW)

    assert told is not None
    assert told.bound == (None if shortest is None else Duration.parse(shortest))


@pytest.mark.parametrize(
    ("policy_bound", "claim_bound", "bound"),
    [("1m", "30s", "30s"), ("1m", "2m", "1m"), ("0s", "1h", "0s"), (None, "1m", "1m"), ("1m", None, "1m"), (None,) * 3],
)
def test_a_drain_ends_at_the_shorter_of_two_bounds(
    policy_bound: str | None, claim_bound: str | None, bound: str | None
) -> None:
    said = None if policy_bound is None else Duration.parse(policy_bound)

    assert repair.drain_bound(said, claim(grace=claim_bound)) == (None if bound is None else Duration.parse(bound))


def test_priorities_are_ranked_without_gaps() -> None:
    policies = [policy(priority=each) for each in (70, 0, 70, 5)]

    assert repair.ranks(policies) == {0: 0, 5: 1, 70: 2}


@pytest.mark.parametrize(
    ("found", "score"),
    [
        pytest.param([due("A")], 0.0, id="just due, lowest rank"),
        pytest.param([due("A", priority=50)], 1.0, id="just due, next rank"),
        pytest.param([due("A", timedelta(minutes=45))], 1.5, id="half an hour is worth a rank"),
        pytest.param([due("A", timedelta(minutes=90)), due("B", priority=50)], 3.0, id="the most urgent counts"),
    ],
)
def test_urgency_grows_with_rank_and_time(found: list[Ailment], score: float) -> None:
    told = repair.diagnose(found, [policy(priority=0), policy(priority=50)], NOW)

    assert told is not None
    assert told.score == pytest.approx(score)


@pytest.mark.parametrize(
    ("condition", "broken"),
    [(ill(since=NOW), True), (ill(reason="whatever"), True), (ill(status="False"), False), (ill("Good"), False)],
)
def test_a_node_is_broken_whatever_its_reason_and_age(condition: NodeCondition, broken: bool) -> None:
    assert repair.is_broken(node(condition), POLICIES) is broken


def test_two_restarts_within_a_day_are_enough() -> None:
    reboots = Reboots()
    reboots.note("uid", ago(hours=24))
    reboots.note("uid", ago(hours=23))

    assert not reboots.exhausted("uid", NOW)
    assert reboots.exhausted("uid", ago(minutes=1))
    assert not reboots.exhausted("another", ago(minutes=1))


def test_restarts_of_long_ago_are_forgotten() -> None:
    reboots = Reboots()
    for hours in (30, 29, 1):
        reboots.note("uid", ago(hours=hours))

    assert not reboots.exhausted("uid", NOW)
