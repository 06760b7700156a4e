"""Commands: what is done before a node goes, and that nothing is left behind when it does not."""

from datetime import timedelta

import pytest
from tests.unit.controllers.repairworld import Clinic, in_clinic
from tests.unit.controllers.successors import succeed

from joiner.controllers.deadlines import hurried
from joiner.controllers.disruption.queue import STANDS_S, TIMEOUT_LEAST, Command, CommandQueue
from joiner.kube.errors import Throttled, Unreachable
from joiner.model import claimconditions
from joiner.model.duration import Duration
from joiner.model.labels import DO_NOT_DISRUPT
from joiner.model.meta import replace
from joiner.model.node import Node
from joiner.model.nodeclaim import NodeClaim
from joiner.model.nodepool import NodePool
from joiner.model.pod import Pod
from joiner.model.taints import DISRUPTED
from joiner.sim.apiserver.client import Call, NoInterceptor


def commands(clinic: Clinic) -> CommandQueue:
    return next(each for each in clinic.joiner.controllers if isinstance(each, CommandQueue))


def emptying(clinic: Clinic, number: int = 0, **more: object) -> Command:
    """A command to remove a node, with nothing in its place."""
    name = clinic.machine(number).node_name
    nodes = clinic.joiner.cluster.snapshot(clinic.now()).nodes
    chosen = tuple(each for each in nodes if each.node is not None and each.node.name == name)
    return Command(reason="Drifted", decision="delete", candidates=chosen, **more)  # type: ignore[arg-type]


def taint(clinic: Clinic) -> None:
    node = clinic.node()
    closed = replace(node, spec=replace(node.spec, taints=(*node.spec.taints, DISRUPTED)))
    clinic.server.patch("test", node, closed)


class Refusing(NoInterceptor):
    """Calls of one sort fail, while that is wanted."""

    def __init__(self, verb: str, kind: type) -> None:
        self.verb, self.kind, self.on = verb, kind, False

    def before(self, call: Call) -> float:
        if self.on and (call.verb, call.kind) == (self.verb, self.kind):
            raise Throttled("not now", 5.0)
        return 0.0


def test_a_taint_and_a_reason_that_nobody_owns_are_removed() -> None:
    async def test(clinic: Clinic) -> None:
        taint(clinic)
        clinic.say("DisruptionReason", "Drifted")
        await clinic.wait(1)

        assert (clinic.taints(), clinic.said("DisruptionReason")) == ([], "none")

    in_clinic(test)


def test_they_are_removed_after_a_restart_of_ours_too() -> None:
    async def test(clinic: Clinic) -> None:
        await clinic.world._end()
        taint(clinic)
        clinic.say("DisruptionReason", "Drifted")
        clinic.world._begin()
        await clinic.wait(1)

        assert (clinic.taints(), clinic.said("DisruptionReason")) == ([], "none")

    in_clinic(test)


def test_a_restart_of_a_machine_keeps_its_reason() -> None:
    async def test(clinic: Clinic) -> None:
        clinic.say("Rebooting", "RebootRequested")
        clinic.say("DisruptionReason", "Unhealthy")
        await clinic.wait(4)

        assert clinic.said("DisruptionReason") == "True Unhealthy"

    in_clinic(test)


def test_a_command_without_replacements_deletes_at_once() -> None:
    async def test(clinic: Clinic) -> None:
        (claim,) = clinic.claims()
        assert await commands(clinic).start(emptying(clinic, bound=Duration.parse("1m")))
        await clinic.wait(1)

        leaving = clinic.server.get(NodeClaim, claim.name)
        assert claimconditions.is_leaving(leaving)
        deadline = claimconditions.deadline(leaving)
        assert deadline is not None
        assert abs(deadline - clinic.now() - timedelta(seconds=59)) < timedelta(seconds=2)
        assert clinic.told("DisruptionTerminating")[0] == "disrupted for reason Drifted"
        decided = clinic.counted(clinic.joiner.metrics.voluntary_disruption_decisions_total)
        assert decided == {"delete drifted ": 1.0}

    in_clinic(test)


def test_nobody_is_a_candidate_twice() -> None:
    async def test(clinic: Clinic) -> None:
        queue, command = commands(clinic), emptying(clinic)

        assert await queue.start(command)
        assert not await queue.start(command)

    in_clinic(test)


@pytest.mark.parametrize("verb", ["patch", "status"])
def test_when_the_node_cannot_be_marked_nothing_is_left(verb: str) -> None:
    refusing = Refusing(verb, Node if verb == "patch" else NodeClaim)

    async def test(clinic: Clinic) -> None:
        refusing.on = True
        assert not await commands(clinic).start(emptying(clinic))
        refusing.on = False
        await clinic.wait(10)

        (claim,) = clinic.claims()
        assert (clinic.taints(), clinic.said("DisruptionReason")) == ([], "none")
        assert not claimconditions.is_leaving(claim)
        assert not clinic.joiner.cluster.is_marked(claim.name)
        assert not commands(clinic).owns(claim.name)

    in_clinic(test, interceptor=refusing)


def test_those_that_can_be_marked_go_without_the_others() -> None:
    async def test(clinic: Clinic) -> None:
        both = (*emptying(clinic, 0).candidates, *emptying(clinic, 1).candidates)
        gone = both[0].claim
        assert gone is not None
        clinic.server.delete("test", NodeClaim, gone.name)

        assert await commands(clinic).start(replace(emptying(clinic), candidates=both))
        await clinic.wait(1)
        assert both[1].claim is not None
        assert claimconditions.is_leaving(clinic.server.get(NodeClaim, both[1].claim.name))

    in_clinic(test, nodes=2)


def test_a_replacement_that_is_deleted_ends_the_command() -> None:
    async def test(clinic: Clinic) -> None:
        (old,) = clinic.claims()
        clinic.sicken()
        await clinic.wait(32)
        clinic.sicken(status="False")
        (new,) = [each for each in clinic.claims() if each.name != old.name]
        assert clinic.taints() == ["disrupted"]
        clinic.server.delete("test", NodeClaim, new.name)
        await clinic.wait(60)

        assert (clinic.taints(), len(clinic.claims())) == ([], 1)
        assert not clinic.joiner.cluster.is_marked(old.name)
        failed = clinic.counted(clinic.joiner.metrics.voluntary_disruption_queue_failures_total)
        assert failed == {"replace unhealthy ": 1.0}

    in_clinic(test)


@pytest.mark.parametrize("fate", ["never joins", "is another one of its name"])
def test_nodes_stay_whose_replacement_is_not_complete_in_time_or_is_another_claim(fate: str) -> None:
    async def test(clinic: Clinic) -> None:
        (old,) = clinic.claims()
        (pool,) = clinic.server.objects(NodePool)
        assert await commands(clinic).start(replace(emptying(clinic), decision="replace", replicas=pool))
        await clinic.wait(3)
        _, new = clinic.claims()
        if fate == "never joins":
            clinic.alter(1, never_joins=True)
            await clinic.wait(TIMEOUT_LEAST.total_seconds() - 10)
            assert (clinic.taints(), commands(clinic).owns(old.name)) == (["disrupted"], True)
            await clinic.wait(20)
            assert clinic.server.find(NodeClaim, new.name, "") is not None
        else:
            succeed(clinic.server, new)
            await clinic.wait(10)

        assert (clinic.taints(), clinic.said("DisruptionReason")) == ([], "none")
        assert not commands(clinic).owns(old.name)
        assert not claimconditions.is_leaving(clinic.server.get(NodeClaim, old.name))

    in_clinic(test)


def test_a_replacement_stands_for_some_seconds_before_the_node_goes_that_it_is_for() -> None:
    async def test(clinic: Clinic) -> None:
        (old,) = clinic.claims()
        clinic.sicken()

        def complete() -> bool:
            return any(
                each.name != old.name and claimconditions.holds(each, claimconditions.INITIALIZED)
                for each in clinic.claims()
            )

        while not complete():
            await clinic.wait(0.1)
        await clinic.wait(STANDS_S - 1)
        assert not claimconditions.is_leaving(clinic.server.get(NodeClaim, old.name))
        await clinic.wait(2)
        assert claimconditions.is_leaving(clinic.server.get(NodeClaim, old.name))

    in_clinic(test)


@pytest.mark.parametrize("kind", [Node, Pod])
def test_what_a_user_protects_while_the_replacement_is_awaited_stays(kind: type) -> None:
    async def test(clinic: Clinic) -> None:
        (old,) = clinic.claims()
        (pool,) = clinic.server.objects(NodePool)
        command = replace(emptying(clinic), decision="replace", replicas=pool)
        assert await commands(clinic).start(command)
        known = clinic.node() if kind is Node else next(iter(clinic.server.objects(Pod)))
        annotations = {**known.metadata.annotations, DO_NOT_DISRUPT: "true"}
        clinic.server.patch("test", known, replace(known, metadata=replace(known.metadata, annotations=annotations)))
        await clinic.wait(60)

        assert len(clinic.claims()) == 2
        assert not claimconditions.is_leaving(clinic.server.get(NodeClaim, old.name))
        assert (clinic.taints(), clinic.said("DisruptionReason")) == ([], "none")
        assert any(DO_NOT_DISRUPT in text for text in clinic.told("DisruptionBlocked"))

    in_clinic(test)


def test_a_candidate_that_somebody_else_deletes_needs_no_command() -> None:
    async def test(clinic: Clinic) -> None:
        (old,) = clinic.claims()
        clinic.sicken()
        await clinic.wait(32)
        assert commands(clinic).owns(old.name)
        clinic.server.delete("test", NodeClaim, old.name)
        await clinic.wait(1)

        assert not commands(clinic).owns(old.name)

    in_clinic(test)


@pytest.mark.parametrize(
    ("known", "bound", "kept"),
    [
        pytest.param(60, "2m", True, id="earlier stays"),
        pytest.param(60, "30s", False, id="later is made earlier"),
        pytest.param(None, "30s", False, id="none is set"),
        pytest.param(60, None, True, id="no bound"),
    ],
)
def test_a_deadline_is_only_ever_made_earlier(known: int | None, bound: str | None, kept: bool) -> None:
    async def test(clinic: Clinic) -> None:
        (claim,) = clinic.claims()
        if known is not None:
            moment = claimconditions.written_deadline(clinic.now() + timedelta(seconds=known))
            claim = clinic.annotate(claim, nodeclaim_termination_timestamp=moment)
        before, limit = claimconditions.deadline(claim), None if bound is None else Duration.parse(bound)

        after = await hurried(clinic.world.user, claim, limit, clinic.now())

        assert (claimconditions.deadline(after) == before) is kept

    in_clinic(test)


def test_a_lost_answer_to_the_deletion_is_asked_for_again() -> None:
    class Losing(NoInterceptor):
        left = 2

        def after(self, call: Call) -> float:
            if (call.verb, call.kind) == ("delete", NodeClaim) and self.left:
                self.left -= 1
                raise Unreachable("lost")
            return 0.0

    async def test(clinic: Clinic) -> None:
        (old,) = clinic.claims()
        assert await commands(clinic).start(emptying(clinic))
        await clinic.wait(60)

        assert clinic.server.find(NodeClaim, old.name) is None
        disrupted = clinic.counted(clinic.joiner.metrics.nodeclaims_disrupted_total)
        assert sum(disrupted.values()) == 1.0

    in_clinic(test, interceptor=Losing())
