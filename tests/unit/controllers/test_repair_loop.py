"""Node repair: who is mended, who is not, and that nothing is done while nobody is ill."""

from random import Random

import pytest
from tests.unit.controllers.clinic import Clinic, Counted, in_clinic

from joiner.assembly import Joiner
from joiner.cloud.repair import RepairPolicy
from joiner.controllers.repair import Repair
from joiner.model.duration import Duration
from joiner.model.meta import replace
from joiner.model.nodeclaim import NodeClaim
from joiner.model.nodepool import NodePool
from joiner.model.workload import Deployment
from joiner.options import OptionsError, read
from joiner.sim.cloud import PretendCloud
from joiner.sim.door import PretendProvider
from joiner.sim.loop import VirtualLoop, run
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


def test_pods_that_find_no_other_place_keep_a_broken_node() -> None:
    async def test(clinic: Clinic) -> None:
        clinic.sicken()
        await clinic.wait(300)

        assert (len(clinic.claims()), clinic.taints()) == (2, [])
        assert "would find no place" in clinic.told("DisruptionBlocked")[0]

    in_clinic(test, nodes=2, limits={"nodes": 2})


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
        old = clinic.server.get(NodeClaim, clinic.machine().claim_name)
        clinic.sicken()
        await clinic.wait(600)
        (asked,) = [each.value for each in next(iter(took.collect())).samples if each.name.endswith("_count")]
        assert 1 <= asked <= 3
        pool = clinic.server.get(NodePool, "default")
        clinic.server.patch("test", pool, replace(pool, spec=replace(pool.spec, limits={})))
        await clinic.wait(90)

        assert clinic.server.find(NodeClaim, old.name) is None

    in_clinic(test, nodes=2, limits={"nodes": 2})
