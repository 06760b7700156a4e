"""The disruption loop: what waits for a second look, what the second look takes back, and when nothing is asked again."""

import itertools
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any

import pytest
from tests.unit.controllers.repairworld import Clinic, in_clinic

from joiner.controllers.disruption import controller as loop
from joiner.controllers.disruption.controller import FORGET, POLL_S, VALIDATION_S, Disruption
from joiner.controllers.disruption.queue import CommandQueue
from joiner.controllers.disruption.softtaint import A_MINUTE
from joiner.disruption.decision import Decision
from joiner.disruption.methods.emptiness import emptiness
from joiner.disruption.situation import Situation
from joiner.model.duration import NEVER, Duration
from joiner.model.labels import DO_NOT_DISRUPT
from joiner.model.meta import ObjectMeta, replace
from joiner.model.node import Node
from joiner.model.nodepool import NodePool
from joiner.model.taints import DISRUPTED, TO_BE_REMOVED, is_among
from joiner.model.workload import Deployment
from joiner.sim.story import objects
from joiner.sim.story.document.format import Deploy

AT_ONCE = Duration.parse("0s")
A_PASS = POLL_S + 1
"""After so long an idle loop has looked at the cluster again."""


def loop_of(clinic: Clinic) -> Disruption:
    return next(each for each in clinic.joiner.controllers if isinstance(each, Disruption))


def scale(clinic: Clinic, replicas: int, name: str = "web") -> None:
    known = clinic.server.get(Deployment, name, "default")
    clinic.server.patch("test", known, replace(known, spec=replace(known.spec, replicas=replicas)))


def deploy(clinic: Clinic, name: str, **words: object) -> None:
    for each in objects.workload(Deploy(deploy=name, **{"replicas": 1, **words})):  # type: ignore[arg-type]
        clinic.server.create("test", each)


def tainted(clinic: Clinic) -> list[str]:
    return sorted(node.name for node in clinic.server.objects(Node) if is_among(TO_BE_REMOVED, node.spec.taints))


def begun(clinic: Clinic) -> bool:
    """Whether a node is on its way out."""
    return any(is_among(DISRUPTED, node.spec.taints) for node in clinic.server.objects(Node))


async def until_decided(clinic: Clinic) -> None:
    """Wait until the empty node is decided about; the second look is still to come."""
    metric = clinic.joiner.metrics.voluntary_disruption_eligible_nodes.labels(reason="empty")
    for _ in range(60):
        if metric._value.get():
            return
        await clinic.wait(1)
    raise AssertionError("the empty node was never eligible")


def test_an_empty_node_goes_after_the_second_look_and_not_before() -> None:
    async def test(clinic: Clinic) -> None:
        scale(clinic, 0)
        await until_decided(clinic)
        await clinic.wait(VALIDATION_S - 2)
        assert [claim.metadata.deletion_timestamp for claim in clinic.claims()] == [None]

        await clinic.wait(4)
        assert clinic.taints() == ["disrupted"]
        assert clinic.told("DisruptionTerminating")[0].startswith("disrupted for reason Empty: it is empty: saves")

    in_clinic(test, consolidate_after=AT_ONCE)


def test_a_pod_that_comes_before_the_second_look_keeps_the_node() -> None:
    async def test(clinic: Clinic) -> None:
        scale(clinic, 0)
        await until_decided(clinic)
        scale(clinic, 1)
        await clinic.wait(VALIDATION_S + 5)

        assert len(clinic.claims()) == 1
        assert clinic.taints() == []
        assert "it stays: the nodes are no longer empty" in clinic.told("ConsolidationRejected")[0]
        assert clinic.counted(clinic.joiner.metrics.voluntary_disruption_failed_validations_total) == {"empty": 1.0}

    in_clinic(test, consolidate_after=AT_ONCE)


def test_a_node_that_a_plan_in_the_making_counts_on_stays() -> None:
    async def test(clinic: Clinic) -> None:
        commands = next(each for each in clinic.joiner.controllers if isinstance(each, CommandQueue))
        scale(clinic, 0)
        await until_decided(clinic)
        async with commands.deciding:  # as provisioning holds it while it plans
            await clinic.wait(VALIDATION_S + 5)
            assert clinic.taints() == []
            now = clinic.now()
            clinic.joiner.cluster.nominate(clinic.claims()[0].name, now + timedelta(seconds=20), now)
        await clinic.wait(5)

        assert clinic.taints() == []
        assert clinic.told("ConsolidationRejected")

    in_clinic(test, consolidate_after=AT_ONCE)


def test_no_move_begins_while_claims_of_a_plan_are_written() -> None:
    async def test(clinic: Clinic) -> None:
        deploy(clinic, "small", cpu=100)
        await clinic.wait(10)
        scale(clinic, 0)
        while not clinic.told("ConsolidationCandidate"):
            await clinic.wait(1)
        async with next(each for each in clinic.joiner.controllers if isinstance(each, CommandQueue)).deciding:
            await clinic.wait(VALIDATION_S + 5)
            assert not begun(clinic)
        await clinic.wait(5)

        assert begun(clinic)

    in_clinic(test, consolidate_after=AT_ONCE, pod={"cpu": 7000})


def test_a_move_that_is_forbidden_before_the_second_look_is_not_made() -> None:
    async def test(clinic: Clinic) -> None:
        deploy(clinic, "small", cpu=100)
        await clinic.wait(10)
        scale(clinic, 0)
        for _ in range(120):
            if clinic.told("ConsolidationCandidate"):
                break
            await clinic.wait(1)
        (pod,) = (pod for pod in clinic.pods() if pod.name.startswith("small-"))
        clinic.mark(pod, DO_NOT_DISRUPT, "true")
        await clinic.wait(VALIDATION_S + 5)

        assert clinic.told("ConsolidationRejected")
        assert clinic.server.get(Node, pod.spec.node_name).metadata.deletion_timestamp is None
        assert clinic.taints() == []

    in_clinic(test, consolidate_after=AT_ONCE, pod={"cpu": 7000})


def test_what_should_go_later_is_tainted_softly_until_it_need_not_go() -> None:
    async def test(clinic: Clinic) -> None:
        node = clinic.node()
        clinic.server.patch("test", node, replace(node, spec=replace(node.spec, taints=(TO_BE_REMOVED,))))
        deploy(clinic, "another")  # something changes: a pass is due
        await clinic.wait(2 * A_PASS)

        assert tainted(clinic) == []

    in_clinic(test, consolidate_after=AT_ONCE)


@pytest.mark.parametrize(("changes", "asked"), [(False, 0), (True, 1)])
def test_a_pass_that_found_nothing_is_repeated_only_after_a_change(
    changes: bool, asked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[Situation] = []

    def counted(situation: Situation) -> Decision:
        calls.append(situation)
        return emptiness(situation)

    monkeypatch.setattr(loop, "emptiness", counted)

    async def test(clinic: Clinic) -> None:
        await clinic.wait(FORGET.total_seconds() + A_PASS)  # until a pass has just found nothing
        before = len(calls)
        if changes:
            clinic.mark(clinic.pods()[0], "example.com/note", "changed")
        await clinic.wait(2 * A_PASS)

        assert min(len(calls) - before, 1) == asked

    in_clinic(test, consolidate_after=AT_ONCE)


def test_a_pass_that_found_nothing_is_repeated_after_five_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    times: list[float] = []

    async def test(clinic: Clinic) -> None:
        def timed(situation: Situation) -> Decision:
            times.append(clinic.clock.monotonic())
            return emptiness(situation)

        monkeypatch.setattr(loop, "emptiness", timed)
        await clinic.wait(3 * FORGET.total_seconds())

        assert 2 <= len(times) <= 3
        gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
        assert all(FORGET.total_seconds() <= gap <= FORGET.total_seconds() + A_PASS for gap in gaps)

    in_clinic(test, consolidate_after=AT_ONCE)


def test_soft_taints_are_written_so_many_times_a_minute() -> None:
    async def test(clinic: Clinic) -> None:
        await clinic.world._end()
        (first,) = clinic.server.objects(Node)
        for number in range(A_MINUTE + 5):
            name = f"by-hand-{number:02d}"
            meta = ObjectMeta(name=name, labels={**first.metadata.labels, "kubernetes.io/hostname": name})
            clinic.server.create(
                "test", replace(first, metadata=meta, spec=replace(first.spec, provider_id="", taints=(TO_BE_REMOVED,)))
            )
        clinic.world._begin()
        await clinic.wait(30)
        assert len(tainted(clinic)) == 5

        await clinic.wait(60)
        assert tainted(clinic) == []

    in_clinic(test, consolidate_after=AT_ONCE)


def deliberate(clinic: Clinic, seconds: float) -> None:
    """Have every decision of the loop take that long, as in a process of its own."""

    async def slow(work: Callable[[], Any], shared: Iterable[object] = ()) -> Any:
        found = work()
        await clinic.wait(seconds)
        return found

    loop_of(clinic)._apart = slow


def test_what_comes_while_the_second_look_is_taken_counts() -> None:
    async def test(clinic: Clinic) -> None:
        deliberate(clinic, 10)
        scale(clinic, 0)
        await until_decided(clinic)
        await clinic.wait(VALIDATION_S + 2)
        scale(clinic, 1)
        await clinic.wait(15)

        assert clinic.taints() == []
        assert clinic.told("ConsolidationRejected")

    in_clinic(test, consolidate_after=AT_ONCE)


def test_pods_get_nodes_while_it_is_decided_what_is_to_be_replaced() -> None:
    async def test(clinic: Clinic) -> None:
        (pool,) = clinic.server.objects(NodePool)
        deliberate(clinic, 300)
        template = replace(pool.spec.template, metadata=replace(pool.spec.template.metadata, labels={"a": "1"}))
        clinic.server.patch("test", pool, replace(pool, spec=replace(pool.spec, template=template)))
        while not clinic.condition("Drifted"):
            await clinic.wait(10)
        await clinic.wait(320)  # what is empty was decided, now it is what has drifted
        deploy(clinic, "another", replicas=3, apart="hostname")
        await clinic.wait(100)
        assert len(clinic.claims()) == 3

        await clinic.wait(7200)
        assert {each.metadata.labels.get("a") for each in clinic.claims()} == {"1"}

    in_clinic(test, consolidate_after=NEVER)
