"""The checkers are checked: for each rule, a controller that is broken on purpose, and a seed that catches it.

A rule that no broken controller trips would prove nothing by staying silent.
"""

from collections.abc import Callable
from typing import Any

import pytest

from joiner.catalog import launchoptions
from joiner.controllers.disruption import softtaint
from joiner.controllers.disruption.controller import Disruption
from joiner.controllers.node.eviction import EvictionQueue
from joiner.controllers.node.termination import Termination
from joiner.controllers.nodeclaim.garbagecollection import ClaimGarbageCollection
from joiner.controllers.nodeclaim.hydration import NodeHydration
from joiner.controllers.nodeclaim.lifecycle.deletion import Deletion
from joiner.controllers.nodeclaim.lifecycle.launch import Launch
from joiner.controllers.nodepool.counter import Counter
from joiner.controllers.nodepool.static import StaticProvisioning
from joiner.controllers.provisioning.buffers import VirtualPods
from joiner.controllers.provisioning.claimwriter import _Room
from joiner.disruption.consolidation import search
from joiner.disruption.consolidation.search import _Search
from joiner.disruption.decision import Payback
from joiner.disruption.methods.quota import Quota
from joiner.kube.client import Key
from joiner.kube.controller import Result
from joiner.model import labels
from joiner.model.labels import Vocabulary
from joiner.model.meta import replace
from joiner.model.node import Node
from joiner.model.nodeclaim import NodeClaim
from joiner.model.nodepool import NodePool
from joiner.model.pod import Pod
from joiner.model.quantity import Quantity
from joiner.scheduling.nodes.placementrules import PlacementRules
from joiner.scheduling.nodes.reservations import Reservations
from joiner.sim.hunt.hunt import hunt
from joiner.sim.hunt.randomworld import Made, make

Break = Callable[[pytest.MonkeyPatch], None]


def moves_nodes_to_another_zone(patch: pytest.MonkeyPatch) -> None:
    """Writes a label over what the machine said of itself, while pods run there."""

    async def reconcile(self: Any, key: Key) -> Result:
        node = self._informers.get(Node, key.name)
        if node is not None and node.metadata.labels.get(labels.INITIALIZED):
            moved = {**node.metadata.labels, labels.ZONE: "elsewhere"}
            await self._client.patch(node, replace(node, metadata=replace(node.metadata, labels=moved)))
        return Result(60.0)

    patch.setattr(NodeHydration, "reconcile", reconcile)


def deletes_pods_instead_of_evicting_them(patch: pytest.MonkeyPatch) -> None:
    async def evict(self: Any, pod: Pod, node: Node, order: Any) -> bool:
        await self._client.delete(Pod, pod.name, pod.metadata.namespace, uid=pod.metadata.uid)
        return True

    patch.setattr(EvictionQueue, "_evict", evict)


def lets_claims_go_before_their_machines(patch: pytest.MonkeyPatch) -> None:
    async def nothing(self: Any, *arguments: Any) -> tuple[str, ...]:
        return ()

    patch.setattr(Deletion, "_machines", nothing)


def lets_nodes_go_before_their_machines(patch: pytest.MonkeyPatch) -> None:
    async def gone(self: Any, *arguments: Any) -> None:
        return None

    patch.setattr(Termination, "_machine", gone)


def ends_machines_while_pods_are_leaving(patch: pytest.MonkeyPatch) -> None:
    nodes = Deletion._nodes

    async def at_once(self: Any, *given: Any) -> None:
        await nodes(self, *given)

    patch.setattr(Deletion, "_nodes", at_once)


def forgets_the_limits_of_pools(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(_Room, "take", lambda self, wish: "")
    patch.setattr("joiner.controllers.provisioning.pools.used_by", lambda *arguments: {})


def launches_what_is_launched(patch: pytest.MonkeyPatch) -> None:
    """Asks the cloud again whenever it looks at a claim."""
    step = Launch.step

    async def again(self: Any, draft: Any) -> Result:
        result = await step(self, draft)
        await self._buy(draft.claim, self._attempt(draft.claim))
        return result

    patch.setattr(Launch, "step", again)


def offers_only_the_cheapest_type(patch: pytest.MonkeyPatch) -> None:
    options = launchoptions.options
    patch.setattr(launchoptions, "options", lambda *arguments: options(*arguments)[:1])
    patch.setattr(launchoptions, "shortfall", lambda *arguments: {})


def launches_whatever_there_is(patch: pytest.MonkeyPatch) -> None:
    """Forgets the requirements of claims when they are launched."""
    options = launchoptions.options
    asked = launchoptions.requirements_of(NodeClaim(), Vocabulary())
    patch.setattr(launchoptions, "options", lambda catalog, _, requests: options(catalog, asked, requests))
    patch.setattr(launchoptions, "shortfall", lambda *arguments: {})


def lowers_min_values_without_being_allowed_to(patch: pytest.MonkeyPatch) -> None:
    made = PlacementRules.__init__
    patch.setattr(PlacementRules, "__init__", lambda *given, **how: made(*given, **{**how, "best_effort": True}))


def promises_a_reservation_to_everybody(patch: pytest.MonkeyPatch) -> None:
    made = Reservations.__init__
    patch.setattr(Reservations, "__init__", lambda self, counts: made(self, dict.fromkeys(counts, 10)))


async def idle(self: Any, key: Key) -> Result:
    return Result()


def never_collects_garbage_and_never_drains(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ClaimGarbageCollection, "reconcile", idle)
    patch.setattr(Termination, "reconcile", idle)


def never_brings_a_static_pool_up_to_its_number(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(StaticProvisioning, "reconcile", idle)


def keeps_no_room(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(VirtualPods, "pods", lambda self: ())


def stumbles(patch: pytest.MonkeyPatch) -> None:
    async def reconcile(self: Any, key: Key) -> Result:
        raise ValueError("a number is missing")

    patch.setattr(ClaimGarbageCollection, "reconcile", reconcile)


def falls(patch: pytest.MonkeyPatch) -> None:
    """Breaks where nobody tries again: who listens to a cache fails, and all controllers with it."""

    def node_of(self: Any, change: Any) -> Any:
        raise ValueError("a name is missing")

    patch.setattr(Termination, "_node_of_claim", node_of)


def writes_for_ever(patch: pytest.MonkeyPatch) -> None:
    async def reconcile(self: Any, key: Key) -> Result:
        pool = self._informers.get(NodePool, key.name)
        if pool is not None:
            counted = {**pool.status.resources, "beats": Quantity(int(self._clock.monotonic()) * 1000)}
            await self._client.patch_status(pool, replace(pool, status=replace(pool.status, resources=counted)))
        return Result(30.0)

    patch.setattr(Counter, "reconcile", reconcile)


# -- nodes that are removed of our own accord ---------------------------------------------------------------------------


def forgets_disruption_budgets(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Quota, "left", lambda self, pool: 100)
    patch.setattr(Quota, "allows", lambda self, candidates: True)


def moves_nodes_that_are_protected(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("joiner.disruption.eligibility.labels.DO_NOT_DISRUPT", "example.com/of-no-meaning")


def does_not_wait_for_replacements(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("joiner.controllers.disruption.queue.INITIALIZED", "Launched")


def buys_what_is_dearer(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("joiner.disruption.consolidation.replacements._cut", lambda choices, limit: None)
    patch.setattr("joiner.disruption.consolidation.replacements._without_what_goes", lambda choice, gone: None)
    patch.setattr(Payback, "pays", property(lambda self: True))
    patch.setattr(_Search, "_seems_to_pay", lambda self, *given: True)


def moves_on_while_pods_are_on_their_way(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(_Search, "_is_busy", lambda self, known: False)
    patch.setattr("joiner.state.cluster.Cluster.is_nominated", lambda *given: False)


def never_takes_its_taint_off(patch: pytest.MonkeyPatch) -> None:
    wrong = softtaint._is_wrong
    patch.setattr(softtaint, "_is_wrong", lambda node, wanted: wanted and wrong(node, wanted))


def forgets_what_became_of_its_moves(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(search, "settled", lambda known, **facts: replace(known, promises=()))


def stops_before_the_last_move(patch: pytest.MonkeyPatch) -> None:
    """Makes two moves, and none after that."""
    begin, begun = Disruption._consolidation, list[object]()

    async def twice(self: Any, situation: Any) -> bool:
        if len(begun) >= 2:
            return False
        done = await begin(self, situation)
        begun.extend([1] if done else [])
        return done

    patch.setattr(Disruption, "_consolidation", twice)


MOVING: tuple[tuple[str, Break], ...] = (
    ("disruption budget", forgets_disruption_budgets),
    ("do-not-disrupt node", moves_nodes_that_are_protected),
    ("replacement first", does_not_wait_for_replacements),
    ("price", buys_what_is_dearer),
    ("chain", moves_on_while_pods_are_on_their_way),
    ("leftover taint", never_takes_its_taint_off),
    ("rest: 1 ×", forgets_what_became_of_its_moves),
    ("rest: ", stops_before_the_last_move),
)
MUTANTS: tuple[tuple[str, Break], ...] = (
    ("placement", moves_nodes_to_another_zone),
    ("removal", deletes_pods_instead_of_evicting_them),
    ("finalizer: claim", lets_claims_go_before_their_machines),
    ("finalizer: node", lets_nodes_go_before_their_machines),
    ("drain", ends_machines_while_pods_are_leaving),
    ("limits", forgets_the_limits_of_pools),
    ("launch", launches_what_is_launched),
    ("launched: claim", launches_whatever_there_is),
    ("minValues", offers_only_the_cheapest_type),
    ("under the policy Strict", lowers_min_values_without_being_allowed_to),
    ("reservation", promises_a_reservation_to_everybody),
    ("liveness", never_collects_garbage_and_never_drains),
    ("liveness: pool static", never_brings_a_static_pool_up_to_its_number),
    ("liveness: buffer", keeps_no_room),
    ("error: nodeclaim.garbagecollection", stumbles),
    ("error: outside of any task: ValueError('a name is missing')", falls),
    ("quiet", writes_for_ever),
)
SEEDS = range(40)
NEEDED: dict[str, Callable[[Made], bool]] = {
    "liveness: pool static": lambda made: made.static,
    "liveness: buffer": lambda made: made.buffers,
    "under the policy Strict": lambda made: not made.best_effort,
}
"""What a world must have for a broken controller to matter in it."""


@pytest.mark.parametrize(("rule", "broken"), MUTANTS, ids=[rule for rule, _ in MUTANTS])
def test_a_broken_controller_is_caught(rule: str, broken: Break, monkeypatch: pytest.MonkeyPatch) -> None:
    broken(monkeypatch)

    seeds = (seed for seed in SEEDS if rule not in NEEDED or NEEDED[rule](make(seed)))
    played = (hunt(seed) for seed in seeds)
    found = next((text for outcome in played for text in outcome.violations if rule in text), "")

    assert found, f"no seed of {SEEDS} trips the rule {rule}"


@pytest.mark.soak  # such worlds take ten times as long as others
@pytest.mark.parametrize(("rule", "broken"), MOVING, ids=[rule for rule, _ in MOVING])
def test_a_controller_that_moves_nodes_wrongly_is_caught(
    rule: str, broken: Break, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(monkeypatch)

    played = (hunt(seed, kind="consolidation") for seed in SEEDS)
    found = next((text for outcome in played for text in outcome.violations if rule in text), "")

    assert found, f"no seed of {SEEDS} trips the rule {rule}"
