"""The outcome of a played story as a frozen value: verdicts, costs, machines, waits. Reports are drawn from it alone."""

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import NamedTuple

from joiner.model import labels
from joiner.model.meta import Value
from joiner.sim.cloud.billing import PoolBill, ReservationUse
from joiner.sim.story.report.missingpods import Missing
from joiner.sim.story.report.narrator import Narrator
from joiner.sim.world import World


class Verdict(NamedTuple):
    """Whether one expectation or invariant of the story held."""

    text: str
    holds: bool
    detail: str = ""
    """What was the case instead."""
    first: float | None = None
    """The second at which an expectation was met for the first time, where that was looked for."""


class MachineUse(Value):
    """A machine that was bought. Moments are seconds since the story began."""

    node: str | None
    claim: str
    pool: str
    instance_type: str
    zone: str
    capacity_type: str
    reservation: str
    price: float
    bought: float
    ended: float | None
    hours: float


class Refusal(Value):
    """How often a pod of a workload was refused, and the last reason."""

    workload: str
    times: int
    reason: str


class Summary(Value):
    """What came of one story with one seed. Moments are seconds since the story began."""

    title: str
    seed: int
    seconds: float
    verdicts: tuple[Verdict, ...]
    told: tuple[tuple[float, str], ...]
    """Every sentence of the narrator, with its moment."""
    costs: tuple[PoolBill, ...]
    dollars: float
    """Without reserved machines: reservations are paid for whether machines run or not."""
    rate: float
    """Dollars an hour at the end."""
    machines: tuple[MachineUse, ...]
    waits: tuple[float, ...]
    """How long each pod that got a node waited for it, in seconds."""
    unplaced: Mapping[str, int]
    """Workload to how many of its pods have no node at the end."""
    missing: tuple[Missing, ...]
    """How long pods of workloads were missing that had been ready."""
    nodes_most: int
    """The most nodes at once."""
    claims: Mapping[str, int]
    """Pool to how many claims were made."""
    refused: tuple[Refusal, ...]
    reservations: tuple[ReservationUse, ...]
    notes: tuple[str, ...]
    """Objects of the story that were passed over or replaced."""
    trace: str
    """The digest of all steps."""

    @property
    def true(self) -> bool:
        """Whether all verdicts hold."""
        return all(verdict.holds for verdict in self.verdicts)


def summarize(
    title: str, world: World, narrator: Narrator, verdicts: tuple[Verdict, ...], notes: tuple[str, ...]
) -> Summary:
    """The summary of a story that has just ended."""
    now = world.clock.now()
    costs = world.cloud.bill(now)
    return Summary(
        title=title,
        seed=world.seed,
        seconds=world.clock.monotonic(),
        verdicts=verdicts,
        told=tuple(narrator.told),
        costs=costs,
        dollars=sum(bill.dollars for bill in costs if bill.capacity_type != labels.RESERVED),
        rate=world.cloud.ledger.rate(now),
        machines=tuple(_machines(world)),
        waits=tuple(narrator.waits),
        unplaced=narrator.unplaced(),
        missing=narrator.missing.report(world.clock.monotonic()),
        nodes_most=narrator.nodes_most,
        claims=dict(sorted(narrator.claims.items())),
        refused=tuple(
            Refusal(workload=name, times=count, reason=reason)
            for name, (count, reason) in sorted(narrator.refusals.items())
        ),
        reservations=world.cloud.reservation_use(now),
        notes=notes,
        trace=world.trace.digest(),
    )


def _machines(world: World) -> Iterator[MachineUse]:
    now, begins = world.clock.now(), world.clock.now() - timedelta(seconds=world.clock.monotonic())
    for purchase in world.cloud.ledger.purchases():
        machine = world.cloud.machines.get(purchase.provider_id)
        yield MachineUse(
            node=None if machine is None else machine.node_name,
            claim=purchase.claim_name,
            pool=purchase.pool,
            instance_type=purchase.instance_type,
            zone=purchase.zone,
            capacity_type=purchase.capacity_type,
            reservation=purchase.reservation,
            price=purchase.price,
            bought=(purchase.launched - begins).total_seconds(),
            ended=None if purchase.ended is None else (purchase.ended - begins).total_seconds(),
            hours=purchase.hours(None, now),
        )


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that is at least as large as that share of them; 0 when there are none."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else 0.0
