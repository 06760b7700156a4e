from collections import Counter
from random import Random
from typing import Any

import pytest
from tests.builders import away_from, near_to, pod, pods, spread_over
from tests.clusterworld import Town, in_town, node

from joiner.kube.errors import Conflict, KubeError, Unreachable
from joiner.model.affinity import SCHEDULE_ANYWAY
from joiner.model.meta import replace
from joiner.model.node import Node
from joiner.model.pod import Pod, condition
from joiner.sim.apiserver.client import Call, NoInterceptor
from joiner.sim.scheduler.clusterindex import ClusterIndex
from joiner.sim.scheduler.predicates import PodPredicates, check_placement
from joiner.sim.scheduler.scoring import PodWeights, Views, choose, class_signature

ZONE = "topology.kubernetes.io/zone"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def refusal(town: Town, name: str) -> str:
    found = condition(town.server.get(Pod, name, "default"), "PodScheduled")
    assert found is not None
    assert (found.status, found.reason) == ("False", "Unschedulable")
    return found.message


def test_pods_go_where_least_is_in_use() -> None:
    async def test(town: Town) -> None:
        town.create(node("a"), node("b", cpu="8"), *pods(3))
        await town.run(5)

        assert Counter(town.where().values()) == {"b": 2, "a": 1}
        assert not town.failures

    in_town(test)


def test_a_pod_that_fits_nowhere_is_told_why_and_gets_the_next_node() -> None:
    async def test(town: Town) -> None:
        town.create(node("a"), node("b", taints=[{"key": "gpu", "effect": "NoSchedule"}]), pod("big", cpu="6"))
        await town.run(5)
        assert refusal(town, "big") == (
            "0/2 nodes are available: 2 insufficient cpu, 1 taint gpu:NoSchedule not tolerated."
        )

        town.create(node("c", cpu="8"))
        await town.run(5)
        assert town.where() == {"big": "c"}

    in_town(test)


CHANGES: dict[str, dict[str, Any]] = {
    "a taint that goes": {"taints": [{"key": "gpu", "effect": "NoExecute"}]},
    "a node that is uncordoned": {"unschedulable": True},
    "a node that says what it has": {"has": {"cpu": "0"}},
    "a label that comes": {"labels": {ZONE: "z"}},
}


@pytest.mark.parametrize("before", CHANGES.values(), ids=CHANGES)
def test_a_node_that_becomes_another_one_is_looked_at_again(before: dict[str, Any]) -> None:
    async def test(town: Town) -> None:
        town.create(node("a", **before), pod(nodeSelector={ZONE: "a"}))
        await town.run(5)
        assert town.where() == {"web": ""}

        found, good = town.server.get(Node, "a"), node("a")
        changed = replace(found, metadata=replace(found.metadata, labels=good.metadata.labels), spec=good.spec)
        await town.client.patch(found, changed)
        await town.client.patch_status(found, replace(found, status=good.status))
        await town.run(5)
        assert town.where() == {"web": "a"}

    in_town(test)


def test_the_place_of_a_pod_that_goes_is_given_away() -> None:
    async def test(town: Town) -> None:
        town.create(node("a"), *pods(2, cpu="3"))
        await town.run(5)
        first = next(name for name, where in town.where().items() if where)

        await town.client.delete(Pod, first, "default")
        await town.run(5)
        assert list(town.where().values()) == ["a"]

    in_town(test)


def test_gates_and_other_schedulers_are_respected() -> None:
    async def test(town: Town) -> None:
        town.create(node("a"), pod("gated", schedulingGates=[{"name": "wait"}]), pod("other", schedulerName="mine"))
        await town.run(5)
        assert set(town.where().values()) == {""}

        gated = town.server.get(Pod, "gated", "default")
        await town.client.patch(gated, replace(gated, spec=replace(gated.spec, scheduling_gates=())))
        await town.run(5)
        assert town.where() == {"gated": "a", "other": ""}

    in_town(test)


def test_the_more_important_pod_comes_first() -> None:
    async def test(town: Town) -> None:
        town.create(pod("low", cpu="3", priority=1), pod("high", cpu="3", priority=2, preemptionPolicy="Never"))
        await town.run(5)
        town.create(node("a"))
        await town.run(5)

        assert town.where() == {"high": "a", "low": ""}

    in_town(test)


def test_a_pod_waits_for_the_company_it_needs() -> None:
    async def test(town: Town) -> None:
        town.create(node("a", "a"), node("b", "b"), pod("a-friend", affinity=near_to("db")))
        await town.run(5)
        assert refusal(town, "a-friend").startswith("0/2 nodes are available: 2 no pod of the required affinity")

        town.create(pod("db", labels={"app": "db"}, nodeSelector={ZONE: "b"}))
        await town.run(5)
        assert town.where() == {"a-friend": "b", "db": "b"}

    in_town(test)


def test_pods_that_stay_away_from_each_other_do_so_within_one_pass() -> None:
    async def test(town: Town) -> None:
        town.create(*pods(4, affinity=away_from("web")))
        town.create(node("a"), node("b"), node("c"))
        await town.run(5)

        assert sorted(town.where().values()) == ["", "a", "b", "c"]

    in_town(test)


def test_pods_are_spread_evenly_one_after_the_other() -> None:
    async def test(town: Town) -> None:
        town.create(*(node(f"{zone}-{number}", zone) for zone in "abc" for number in range(2 if zone == "a" else 1)))
        town.create(*pods(9, cpu="100m", topologySpreadConstraints=[spread_over("web")]))
        await town.run(5)

        assert Counter(where[0] for where in town.where().values()) == {"a": 3, "b": 3, "c": 3}

    in_town(test)


def liked(key: str, value: str) -> dict[str, Any]:
    term = {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}
    return {"nodeAffinity": {PREFERRED: [{"weight": 1, "preference": term}]}}


SOFT = spread_over("web", whenUnsatisfiable=SCHEDULE_ANYWAY)
WISHES: dict[str, tuple[dict[str, Any], str]] = {
    "least in use, then by name": ({}, "b"),
    "a preferred label": ({"affinity": liked(ZONE, "a")}, "a"),
    "near to pods it likes": (
        {"affinity": {"podAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": near_to("web")["podAffinity"][
            "requiredDuringSchedulingIgnoredDuringExecution"][0]}]}}},
        "a",
    ),
    "away from a crowd": ({"topologySpreadConstraints": [SOFT], "affinity": liked("size", "none")}, "b"),
    "rather crowded than tainted softly": (
        {"nodeSelector": {"kind": "two"}}, "d"
    ),
}  # fmt: skip


@pytest.mark.parametrize(("spec", "chosen"), WISHES.values(), ids=WISHES)
def test_of_the_nodes_that_do_the_best_is_chosen(spec: dict[str, Any], chosen: str) -> None:
    async def test(town: Town) -> None:
        two: dict[str, Any] = {"labels": {"kind": "two"}}
        town.create(node("a", "a"), node("b", "b"), node("z", "b"))
        town.create(node("c", "c", taints=[{"key": "x", "effect": "PreferNoSchedule"}], **two), node("d", "d", **two))
        town.create(pod("there", labels={"app": "web"}, nodeSelector={ZONE: "a"}))
        town.create(pod("big", cpu="3", nodeSelector={ZONE: "d"}))
        await town.run(5)
        town.create(pod("asked", labels={"app": "web"}, **spec))
        await town.run(5)
        assert town.where()["asked"] == chosen

    in_town(test)


# -- being pushed off ------------------------------------------------------------------------------------------------------


def test_a_more_important_pod_pushes_as_few_as_it_must_off_one_node() -> None:
    async def test(town: Town) -> None:
        town.create(node("a"), node("b"), pod("mid", cpu="4", priority=5))
        await town.run(5)
        town.create(pod("one", cpu="2", priority=1), pod("two", cpu="2", priority=2))
        await town.run(5)
        town.create(pod("king", cpu="2", priority=9))
        await town.run(0.5)
        assert town.server.get(Pod, "king", "default").status.nominated_node_name == town.where()["two"]

        await town.run(5)
        assert town.where().keys() == {"king", "mid", "two"}
        assert town.where()["king"] == town.where()["two"]

    in_town(test)


def test_nobody_less_important_takes_the_place_that_is_being_cleared() -> None:
    async def test(town: Town) -> None:
        town.create(node("a"), pod("one", cpu="2", priority=1), pod("two", cpu="2", priority=1))
        await town.run(5)
        town.create(pod("king", cpu="4", priority=9), pod("thief", cpu="2", priority=1))
        await town.run(10)

        assert town.where() == {"king": "a", "thief": ""}
        assert "nominated" not in refusal(town, "thief")

    in_town(test)


# -- trouble at the door ---------------------------------------------------------------------------------------------------


class Trouble(NoInterceptor):
    """The first three bindings fail, each before or after it took effect."""

    def __init__(self, error: KubeError, *, late: bool) -> None:
        self.error, self.late, self.left = error, late, 3

    def _strike(self, call: Call) -> float:
        if call.verb == "bind" and self.left:
            self.left -= 1
            raise self.error
        return 0.0

    def before(self, call: Call) -> float:
        return 0.0 if self.late else self._strike(call)

    def after(self, call: Call) -> float:
        return self._strike(call) if self.late else 0.0


@pytest.mark.parametrize("late", [False, True], ids=["not done", "done all the same"])
@pytest.mark.parametrize("error", [Unreachable("lost"), Conflict("odd")], ids=["lost", "conflict"])
def test_a_binding_that_fails_is_tried_again_and_its_place_is_kept(error: KubeError, late: bool) -> None:
    async def test(town: Town) -> None:
        town.create(node("a"), *pods(6))
        await town.run(20)

        assert Counter(town.where().values()) == {"a": 4, "": 2}

    in_town(test, binder=Trouble(error, late=late))


# -- many ------------------------------------------------------------------------------------------------------------------


def test_nothing_is_written_when_nothing_happens() -> None:
    async def test(town: Town) -> None:
        town.create(node("a"), *pods(6))
        await town.run(5)
        written = len(town.server.trace)
        await town.run(10_000)

        assert len(town.server.trace) == written

    in_town(test)


def random_pod(number: int, dice: Random) -> Pod:
    spec: dict[str, Any] = {}
    app = dice.choice(("web", "db"))
    if dice.random() < 0.3:
        spec["affinity"] = dice.choice((away_from("db"), away_from("web", ZONE), near_to("web"), liked(ZONE, "b")))
    if dice.random() < 0.3:
        spec["topologySpreadConstraints"] = [spread_over(app, dice.choice((ZONE, "kubernetes.io/hostname")))]
    if dice.random() < 0.2:
        spec["nodeSelector"] = {ZONE: dice.choice("abc")}
    if dice.random() < 0.2:
        spec["ports"] = [dice.choice((80, 81))]
    return pod(f"pod-{number}", cpu=dice.choice(("500m", "1", "2")), labels={"app": app}, **spec)


@pytest.mark.parametrize("seed", range(20))
def test_the_quick_way_finds_a_node_exactly_when_asking_every_node_does(seed: int) -> None:
    dice, known = Random(seed), ClusterIndex()
    views = Views(known)
    for number in range(8):
        known.apply(None, node(f"node-{number}", dice.choice("abc")))
    for number in range(60):
        asked = random_pod(number, dice)
        question = PodPredicates(asked, known)
        good = {entry.name for entry in known.nodes() if not any(question.refusals(entry))}
        chosen, _ = choose(question, views.of(asked, class_signature(asked)), PodWeights(asked, known))

        assert chosen in good if good else chosen is None
        if chosen is not None:
            bound = replace(asked, spec=replace(asked.spec, node_name=chosen))
            known.put_pod(bound)
            entry = known.entries[chosen]
            assert entry.node is not None
            assert check_placement(bound, entry.node, known) == []
        elif known.pods and dice.random() < 0.5:
            known.drop_pod(dice.choice(sorted(known.pods)))
        if dice.random() < 0.1:
            known.apply(None, node(f"node-{dice.randrange(8)}", dice.choice("abc"), cpu=dice.choice(("4", "8"))))


def test_pods_made_for_one_node_look_at_no_other() -> None:
    async def test(town: Town) -> None:
        field = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["b"]}]}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [field]}}
        town.create(node("a"), pod(affinity={"nodeAffinity": required}))
        await town.run(5)
        assert refusal(town, "web") == "0/1 nodes are available."
        town.create(node("b"))
        await town.run(5)
        assert town.where() == {"web": "b"}

    in_town(test)
