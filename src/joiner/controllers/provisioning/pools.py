"""The NodePools that plans may buy from, each with its catalogue; default spread constraints; the policy of planning."""

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from joiner.catalog.build import Catalog
from joiner.cloud.errors import CloudError
from joiner.controllers.shared import Shared
from joiner.model import labels
from joiner.model.clusterobjects import Service
from joiner.model.conditions import READY, find, is_true
from joiner.model.meta import replace
from joiner.model.nodepool import NodePool
from joiner.model.workload import ReplicaSet, ReplicationController, StatefulSet
from joiner.options import Options
from joiner.scheduling.plan import RefusalReason
from joiner.scheduling.pods.defaultspread import Selectors, with_defaults
from joiner.scheduling.problem import Policy, PoolOption, Problem
from joiner.scheduling.report.refusal import EVERY_POOL
from joiner.scheduling.tuning import NODE_PRICE, SPOT_WIDTH, SPOT_WIDTH_COST
from joiner.state.snapshot import Snapshot
from joiner.state.usage import used_by

CONTROLLERS: Final[tuple[type[ReplicaSet | StatefulSet | ReplicationController], ...]] = (
    ReplicaSet,
    StatefulSet,
    ReplicationController,
)
"""What makes pods, and says which of them belong together."""
NOTHING_TO_BUY: Final = "no instance type that can be bought now meets its requirements"
NO_POOL: Final = "there is no dynamic NodePool: new nodes for pods come only from a NodePool without replicas"
NOT_OURS: Final = "there is no NodePool of the provider that runs (--provider says which)"
ALL_TAKEN: Final = "no reservation that it can buy from has anything left, and it allows nothing else"


_NAMED: Final = 3


class Pools:
    """The pools that buy nodes for pods."""

    def __init__(self, shared: Shared) -> None:
        self._informers, self._managed, self._catalogs = shared.informers, shared.managed, shared.catalogs
        shared.informers.of(NodePool)

    def stale_since(self, options: Iterable[PoolOption]) -> datetime | None:
        """Of which moment the oldest types are, if some are old because newer ones could not be had."""
        moments = (self._catalogs.stale_since(each.pool.name) for each in options)
        return min(filter(None, moments), default=None)

    async def options(self, snapshot: Snapshot) -> tuple[tuple[PoolOption, ...], tuple[RefusalReason, ...]]:
        """The pools that may be asked, by name; and why others are left out, or that there are none.

        One that fails never stops the others.
        """
        options: list[PoolOption] = []
        skipped: list[RefusalReason] = []
        for pool in self._informers.all(NodePool):
            if not self._managed.pool(pool) or pool.spec.replicas is not None or pool.metadata.deletion_timestamp:
                continue
            if not is_true(pool.status.conditions, READY):
                skipped.append(_left_out(pool, f"it is not ready{_why_not(pool)}"))
                continue
            try:
                catalog = await self._catalogs.get(pool)
            except CloudError as error:
                skipped.append(_left_out(pool, str(error)))
                continue
            if not catalog.eligible:
                skipped.append(_left_out(pool, nothing_to_buy(catalog)))
            used = used_by(snapshot, pool.name, pool.spec.limits, catalog)
            options.append(PoolOption(pool=pool, catalog=catalog, used=used))
        if not options and not skipped:
            skipped.append(RefusalReason(rule="nodepool", object=EVERY_POOL, message=self._why_none()))
        return tuple(options), tuple(skipped)

    def _why_none(self) -> str:
        """A pool whose NodeClass belongs to another provider is passed over, and told where there is no other pool."""
        dynamic = [pool for pool in self._informers.all(NodePool) if pool.spec.replicas is None]
        references = [
            (pool.name, pool.spec.template.spec.node_class_ref) for pool in dynamic if not self._managed.pool(pool)
        ]
        named = (f"NodePool {name} names {each.kind} {each.name} of {each.group}" for name, each in references[:_NAMED])
        return f"{NOT_OURS}: {'; '.join(named)}" if references else NO_POOL


class SpreadDefaults:
    """Spread constraints for pods that have none, as the cluster's own scheduler gives them."""

    def __init__(self, shared: Shared) -> None:
        self._informers, self._defaults = shared.informers, shared.default_spread
        for kind in (Service, *CONTROLLERS) if self._defaults else ():
            shared.informers.of(kind)

    def applied(self, question: Problem) -> Problem:
        """The question with the constraints of its pods, own or given."""
        if not self._defaults:
            return question
        controllers = (each for kind in CONTROLLERS for each in self._informers.all(kind))
        selectors = Selectors(self._informers.all(Service), controllers)
        return replace(question, pods=with_defaults(question.pods, self._defaults, selectors))


def nothing_to_buy(catalog: Catalog) -> str:
    """Why a pool that could buy at other times cannot buy now."""
    ways = catalog.requirements.at(labels.CAPACITY_TYPE)
    return ALL_TAKEN if not ways.complement and ways.values == {labels.RESERVED} else NOTHING_TO_BUY


def _left_out(pool: NodePool, why: str) -> RefusalReason:
    return RefusalReason(rule="nodepool", object=f"NodePool {pool.name}", message=f"left out: {why}")


def _why_not(pool: NodePool) -> str:
    """What the conditions that make a pool ready say, those that are False first."""
    known = (find(pool.status.conditions, kind) for kind in pool.condition_set.dependents)
    told = [each for each in known if each is not None and each.status != "True" and each.message]
    decided = [each.message for each in told if each.status == "False"]
    why = "; ".join(decided or (f"{each.type} is {each.message}" for each in told))
    return f": {why}" if why else ""


def policy_of(options: Options) -> Policy:
    """How to plan, by the options."""
    return Policy(
        preferences=options.preference_policy,
        min_values=options.min_values_policy,
        planning=options.planning_policy,
        reserved_capacity=options.gates.reserved_capacity,
        node_price=NODE_PRICE,
        spot_width=SPOT_WIDTH,
        spot_width_cost=SPOT_WIDTH_COST,
    )
