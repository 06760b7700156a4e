"""Node repair: who is mended, who is not, and that nothing is done while nobody is ill."""

from datetime import timedelta
from random import Random
from typing import Any

import pytest
from tests.unit.controllers.repairworld import Clinic, Counted, in_clinic

from joiner.assembly import Joiner
from joiner.cloud.kwok.nodeclass import KWOKNodeClass
from joiner.cloud.repair import RepairPolicy
from joiner.controllers.disruption.repair import Repair
from joiner.disruption.cost import DISRUPTION_COST
from joiner.kube.errors import Throttled
from joiner.model.duration import Duration
from joiner.model.labels import DO_NOT_REPAIR, INITIALIZED
from joiner.model.meta import replace
from joiner.model.node import Node
from joiner.model.nodeclaim import NodeClaim
from joiner.model.nodepool import NodePool
from joiner.model.pod import PodResourceClaim
from joiner.model.quantity import parse
from joiner.model.workload import Deployment
from joiner.options import OptionsError, read
from joiner.sim.apiserver.client import Call, NoInterceptor
from joiner.sim.cloud.cloud import PretendCloud
from joiner.sim.cloud.provider import PretendProvider
from joiner.sim.story.document.given import ReservationWords
from joiner.sim.virtualtime import VirtualLoop, run
from joiner.sim.world import World


def test_nothing_is_done_while_nobody_is_ill() -> None:
    async def test(clinic: Clinic) -> None:
        repair = next(each for each in clinic.joiner.controllers if isinstance(each, Repair))
        counted = Counted(repair)
        await clinic.wait(24 * 3600)
        assert counted.calls == 0

        clinic.sicken(kind="KWOKUnhealthy", status="False")
        await clinic.wait(60)
        assert counted.calls == 0

    in_clinic(test, nodes=2)


def test_an_illness_that_waits_is_looked_at_once_when_its_time_comes() -> None:
    async def test(clinic: Clinic) -> None:
        counted = Counted(next(each for each in clinic.joiner.controllers if isinstance(each, Repair)))
        clinic.sicken(kind="Ready", status="Unknown")
        await clinic.wait(599)

        assert counted.calls < 10
        assert "disrupted" not in clinic.taints()
        await clinic.wait(2)
        assert "disrupted" in clinic.taints()

    in_clinic(test, nodes=2)


def test_the_more_urgent_node_is_mended_first() -> None:
    async def test(clinic: Clinic) -> None:
        clinic.sicken(1)
        await clinic.wait(10)
        clinic.sicken(0)
        await clinic.wait(35)

        assert (clinic.taints(0), clinic.taints(1)) == ([], ["disrupted"])

    in_clinic(test, nodes=6, budgets=({"nodes": "1"},))


@pytest.mark.parametrize(("dear", "first"), [(0, 1), (1, 0), (None, 0)], ids=["the second", "the first", "by name"])
def test_of_equally_urgent_nodes_the_one_that_is_missed_least_is_mended_first(dear: int | None, first: int) -> None:
    async def test(clinic: Clinic) -> None:
        for number in (1, 0):
            if number == dear:
                (pod,) = [each for each in clinic.pods() if each.spec.node_name == clinic.node(number).name]
                clinic.mark(pod, DISRUPTION_COST, "1000000000")
            clinic.sicken(number)
        await clinic.wait(32)

        assert [clinic.taints(number) == ["disrupted"] for number in (0, 1)] == [first == 0, first == 1]

    in_clinic(test, nodes=6, budgets=({"nodes": "1"},))


def test_a_node_that_must_not_be_repaired_is_told_so_in_time_and_the_next_one_is_mended() -> None:
    async def test(clinic: Clinic) -> None:
        clinic.mark(clinic.node(0), DO_NOT_REPAIR, "true")
        clinic.sicken(0)
        clinic.sicken(1)
        await clinic.wait(28)
        assert not clinic.told("DisruptionBlocked")
        await clinic.wait(4)

        assert DO_NOT_REPAIR in clinic.told("DisruptionBlocked")[0]
        assert (clinic.taints(0), clinic.taints(1)) == ([], ["disrupted"])

    in_clinic(test, nodes=6)


def nominate(clinic: Clinic) -> None:
    """Promise room on the first node for ten minutes."""
    clinic.joiner.cluster.nominate(clinic.machine().claim_name, clinic.now() + timedelta(minutes=10), clinic.now())


def test_a_node_that_pods_are_on_their_way_to_waits_for_them() -> None:
    async def test(clinic: Clinic) -> None:
        nominate(clinic)
        clinic.sicken()
        await clinic.wait(590)
        assert clinic.taints() == []
        assert "on their way" in clinic.told("DisruptionBlocked")[0]
        await clinic.wait(25)

        assert clinic.taints() == ["disrupted"]

    in_clinic(test)


def test_a_node_that_never_became_complete_needs_no_budget_and_nobody_counts_on_it() -> None:
    async def test(clinic: Clinic) -> None:
        node = clinic.node()
        left = {key: value for key, value in node.metadata.labels.items() if key != INITIALIZED}
        clinic.server.patch("test", node, replace(node, metadata=replace(node.metadata, labels=left)))
        nominate(clinic)
        clinic.sicken()
        await clinic.wait(32)

        assert clinic.taints() == ["disrupted"]

    in_clinic(test, budgets=({"nodes": "0"},))


def test_a_reason_that_changes_does_not_make_an_illness_younger() -> None:
    async def test(clinic: Clinic) -> None:
        clinic.sicken(reason="One")
        (told,) = [each for each in clinic.node().status.conditions if each.type == "KWOKUnhealthy"]
        await clinic.wait(25)
        clinic.retell(told, reason="Another")
        await clinic.wait(6)

        assert clinic.taints() == ["disrupted"]

    in_clinic(test)


def test_a_node_that_gets_well_in_time_stays() -> None:
    async def test(clinic: Clinic) -> None:
        clinic.sicken()
        await clinic.wait(29)
        clinic.sicken(status="False")
        await clinic.wait(600)

        assert (len(clinic.claims()), clinic.taints()) == (1, [])

    in_clinic(test)


def limit(clinic: Clinic, **limits: int) -> None:
    """Let the pool have no more than this."""
    pool = clinic.server.get(NodePool, "default")
    amounts = {name: parse(amount) for name, amount in limits.items()}
    clinic.server.patch("test", pool, replace(pool, spec=replace(pool.spec, limits=amounts)))


def test_pods_that_find_no_other_place_keep_a_broken_node() -> None:
    async def test(clinic: Clinic) -> None:
        limit(clinic, nodes=1)
        clinic.sicken()
        await clinic.wait(300)

        assert (len(clinic.claims()), clinic.taints()) == (2, [])
        assert "would find no place" in clinic.told("DisruptionBlocked")[0]

    in_clinic(test, nodes=2)


def test_a_pool_at_its_limit_has_room_for_what_replaces_a_broken_node() -> None:
    async def test(clinic: Clinic) -> None:
        old = clinic.server.get(NodeClaim, clinic.machine().claim_name)
        clinic.sicken()
        await clinic.wait(35)
        assert (len(clinic.claims()), clinic.taints()) == (3, ["disrupted"])
        await clinic.wait(120)

        assert len(clinic.claims()) == 2
        assert clinic.server.find(NodeClaim, old.name) is None

    in_clinic(test, nodes=2, limits={"nodes": 2})


def test_pods_that_ask_for_devices_find_no_other_place() -> None:
    async def test(clinic: Clinic) -> None:
        (pod,) = clinic.pods()
        wanting = replace(pod, spec=replace(pod.spec, resource_claims=(PodResourceClaim(name="gpu"),)))
        clinic.server.load([wanting])
        clinic.sicken()
        await clinic.wait(60)

        assert clinic.taints() == []
        assert "asks for devices" in clinic.told("DisruptionBlocked")[0]

    in_clinic(test)


def test_a_node_of_a_pool_that_cannot_say_what_it_buys_stays() -> None:
    async def test(clinic: Clinic) -> None:
        clinic.server.delete("test", KWOKNodeClass, "default")
        clinic.sicken()
        await clinic.wait(60)

        assert (len(clinic.claims()), clinic.taints()) == (1, [])
        assert "what it can buy is not known" in clinic.told("DisruptionBlocked")[0]

    in_clinic(test)


def test_a_broken_node_without_pods_goes_without_a_replacement() -> None:
    async def test(clinic: Clinic) -> None:
        old = clinic.claims()[0]
        await clinic.world.user.delete(Deployment, "web", "default")
        await clinic.wait(60)
        clinic.sicken()
        await clinic.wait(120)

        assert clinic.server.find(NodeClaim, old.name) is None
        decided = clinic.counted(clinic.joiner.metrics.voluntary_disruption_decisions_total)
        assert decided == {"delete unhealthy ": 1.0}
        unhealthy = clinic.counted(clinic.joiner.metrics.nodeclaims_unhealthy_disrupted_total)
        assert list(unhealthy.values()) == [1.0]

    in_clinic(test)


# -- who goes first ----------------------------------------------------------------------------------------------------

FIRST = "NodeRepair=true,StaticCapacity=true,TerminateFirstRepair=true"
STATIC: dict[str, Any] = {"gates": FIRST, "replicas": 1}
ONE = ReservationWords(id="cr-1", instance_type="m5.large", zone="a", count=1)
TWO = ReservationWords(id="cr-2", instance_type="m5.large", zone="b", count=1)
PAID: dict[str, Any] = {"capacity_types": ("reserved",), "reservations": (ONE,)}


@pytest.mark.parametrize(
    ("world", "reason"),
    [
        pytest.param({**STATIC, "limits": {"nodes": 1}}, "static-at-limit", id="static pool at its limit"),
        pytest.param({**STATIC, **PAID}, "no-reserved-capacity", id="static pool with a full reservation"),
        pytest.param({**STATIC, **PAID, "limits": {"nodes": 1}}, "no-reserved-capacity", id="both"),
        pytest.param({"gates": FIRST, **PAID}, "no-reserved-capacity", id="pods in need of its place"),
    ],
)
def test_a_node_goes_first_where_nothing_can_be_bought_beside_it(world: dict[str, Any], reason: str) -> None:
    async def test(clinic: Clinic) -> None:
        old = clinic.server.get(NodeClaim, clinic.machine().claim_name)
        clinic.sicken()
        await clinic.wait(32)
        assert [each.name for each in clinic.claims()] == [old.name]
        await clinic.wait(120)

        assert [each.name == old.name for each in clinic.claims()] == [False]
        metrics = clinic.joiner.metrics
        first = clinic.counted(metrics.voluntary_disruption_terminate_first_decisions_total)
        assert first == {f"default unhealthy {reason}": 1.0}
        assert clinic.counted(metrics.voluntary_disruption_decisions_total) == {"terminate-first unhealthy ": 1.0}

    in_clinic(test, **world)


def test_where_the_limit_leaves_room_nobody_goes_first() -> None:
    async def test(clinic: Clinic) -> None:
        clinic.sicken()
        await clinic.wait(32)

        assert (len(clinic.claims()), clinic.taints()) == (2, ["disrupted"])
        decided = clinic.counted(clinic.joiner.metrics.voluntary_disruption_decisions_total)
        assert decided == {"replace unhealthy ": 1.0}

    in_clinic(test, **STATIC, limits={"nodes": 2})


class NoTaints(NoInterceptor):
    """Nodes cannot be changed, while that is wanted."""

    on = False

    def before(self, call: Call) -> float:
        if self.on and (call.verb, call.kind) == ("patch", Node):
            raise Throttled("not now", 1.0)
        return 0.0


def test_room_that_was_kept_for_a_replacement_is_given_back_when_it_cannot_be_begun() -> None:
    interceptor = NoTaints()

    async def test(clinic: Clinic) -> None:
        clinic.sicken()
        interceptor.on = True
        await clinic.wait(60)
        assert len(clinic.claims()) == 1
        interceptor.on = False
        await clinic.wait(15)

        assert (len(clinic.claims()), clinic.taints()) == (2, ["disrupted"])

    in_clinic(test, **STATIC, limits={"nodes": 2}, interceptor=interceptor)


def test_a_node_whose_place_is_of_no_use_does_not_go_first() -> None:
    async def test(clinic: Clinic) -> None:
        node_class = clinic.server.get(KWOKNodeClass, "default")
        kept = tuple(each for each in node_class.spec.capacity_reservations if each.id == clinic.machine(1).reservation)
        changed = replace(node_class, spec=replace(node_class.spec, capacity_reservations=kept))
        clinic.server.patch("test", node_class, changed)
        clinic.sicken()
        await clinic.wait(60)

        assert (len(clinic.claims()), clinic.taints()) == (2, [])
        told = {
            each.partition(": ")[0] for each in clinic.told("DisruptionBlocked") if "nothing is left of the" in each
        }
        assert told == {"it cannot be repaired", "it has drifted and cannot be replaced"}
        metrics = clinic.joiner.metrics
        assert clinic.counted(metrics.voluntary_disruption_decisions_total) == {}
        (eligible,) = metrics.voluntary_disruption_eligible_nodes.collect()
        assert {each.labels["reason"]: each.value for each in eligible.samples}["drifted"] == 1

    in_clinic(test, gates=FIRST, replicas=2, capacity_types=("reserved",), reservations=(ONE, TWO))


def test_a_pool_that_buys_nothing_else_lets_nobody_go_first_while_it_is_not_ready() -> None:
    async def test(clinic: Clinic) -> None:
        pool = clinic.server.get(NodePool, "default")
        clinic.sicken()
        await clinic.wait(28)
        leaving = replace(pool.metadata, finalizers=("example.com/kept",))
        clinic.server.patch("test", pool, replace(pool, metadata=leaving))
        clinic.server.delete("test", NodePool, "default")
        await clinic.wait(30)

        assert clinic.taints() == []
        assert clinic.told("DisruptionBlocked")

    in_clinic(test, **STATIC, **PAID)


# -- how it begins -----------------------------------------------------------------------------------------------------


class Careless(PretendProvider):
    """A provider whose policies are in the hands of the test."""

    policies: tuple[RepairPolicy, ...] = ()

    def repair_policies(self) -> tuple[RepairPolicy, ...]:
        return self.policies


@pytest.mark.parametrize("gates", ["NodeRepair=true", "NodeRepair=false"])
@pytest.mark.parametrize(
    ("policies", "problem"),
    [
        pytest.param((), "it has no repair policies", id="none"),
        pytest.param(
            (RepairPolicy(condition_type="", condition_status="Yes", toleration=Duration(0)),),
            "status 'Yes' is none of True, False, Unknown",
            id="mistakes",
        ),
    ],
)
def test_repair_refuses_to_start_with_policies_that_will_not_do(
    gates: str, policies: tuple[RepairPolicy, ...], problem: str
) -> None:
    async def main(loop: VirtualLoop) -> None:
        world = World(loop, seed=1)
        cloud: PretendCloud = world.cloud

        def connect(node_classes: object, client: object, tasks: object) -> PretendProvider:
            provider = Careless(cloud, node_classes=node_classes, clock=world.clock)  # type: ignore[arg-type]
            provider.policies = policies
            return provider

        def build() -> Joiner:
            options = read([f"--feature-gates={gates}"], {})
            client = world.server.client("joiner")
            return Joiner(options=options, client=client, connect=connect, clock=world.clock, random=Random(1))

        if gates.endswith("false"):
            build()
            return
        with pytest.raises(OptionsError, match="feature gate NodeRepair") as told:
            build()
        assert problem in str(told.value)

    run(main)


def test_a_question_without_an_answer_is_asked_again_only_when_something_changed() -> None:
    async def test(clinic: Clinic) -> None:
        took = clinic.joiner.metrics.voluntary_disruption_decision_evaluation_duration_seconds
        limit(clinic, nodes=1)
        old = clinic.server.get(NodeClaim, clinic.machine().claim_name)
        clinic.sicken()
        await clinic.wait(600)
        counts = [each for each in next(iter(took.collect())).samples if each.name.endswith("_count")]
        asked = {each.labels["reason"]: each.value for each in counts}
        assert asked.keys() == {"unhealthy", "empty", "drifted", "underutilized"}
        assert 1 <= asked.pop("unhealthy") <= 3
        assert max(asked.values()) <= 10  # a pass every ten seconds would make sixty
        limit(clinic)
        await clinic.wait(90)

        assert clinic.server.find(NodeClaim, old.name) is None

    in_clinic(test, nodes=2)


@pytest.mark.parametrize("bounded", [True, False], ids=["the drain has an end", "the drain has no end"])
def test_protected_pods_keep_a_broken_node_only_if_nobody_says_how_long_its_drain_may_take(bounded: bool) -> None:
    worn = RepairPolicy(condition_type="Worn", condition_status="True", toleration=Duration.parse("30s"))

    async def test(clinic: Clinic) -> None:
        clinic.sicken(kind="Worn")
        await clinic.wait(40)

        assert (clinic.taints() == ["disrupted"]) is bounded
        assert any("do-not-disrupt" in each for each in clinic.told("DisruptionBlocked")) is not bounded

    bound = Duration.parse("10m") if bounded else None
    in_clinic(test, policies=(worn,), pod={"do_not_disrupt": True}, termination_grace_period=bound)
