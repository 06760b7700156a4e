"""A move must pay: what it saves within the horizon is more than what it disturbs.

An evicted pod costs a time of its own price, by its pool's word; a new node costs its price until it is ready.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from joiner.disruption.decision import EMPTY, Move, Payback
from joiner.disruption.eligibility import Candidate
from joiner.disruption.nodeprice import NodePrice, saved, total
from joiner.model import claimconditions, labels
from joiner.model.conditions import find
from joiner.scheduling.plan import PlannedClaim

START_H: Final = 0.1
"""How long a new node is paid for before it is ready, in hours."""


def payback(
    gone: Sequence[Candidate],
    claims: Iterable[PlannedClaim],
    new: NodePrice,
    *,
    worth: float,
    eviction: float,
    eviction_s: float,
    horizon_s: float,
) -> Payback:
    """The arithmetic of a move. Where evictions cost nothing any saving will do, and starting counts for nothing either."""
    before = total(each.price for each in gone)
    return Payback(
        nodes=tuple(each.state.labels.get(labels.INSTANCE_TYPE, "a node") for each in gone),
        before=before.bill,
        new=tuple(claim.options[0].name for claim in claims),
        after=new.bill,
        saved=saved(before, new),
        pods=sum(len(each.pods) for each in gone),
        worth=worth,
        eviction=eviction,
        start=START_H * new.bill if eviction_s > 0 else 0.0,
        eviction_s=eviction_s,
        horizon_s=horizon_s,
    )


def told(found: Payback) -> str:
    """The arithmetic in words."""
    target = f" → {_types(found.new)} ({found.after:.3f} $/h)" if found.new else ""
    text = f"{_types(found.nodes)} ({found.before:.3f} $/h){target} saves {found.saved:.3f} $/h"
    if found.pods and found.eviction_s > 0:
        plural = "pods" if found.pods != 1 else "pod"
        text += (
            f"; {found.pods} {plural} worth {found.worth:.3f} $/h at {_time(found.eviction_s)}: {found.eviction:.3f} $"
        )
    if found.start > 0:
        text += f"; starting nodes: {found.start:.3f} $"
    if found.saved <= 0 or found.cost <= 0:
        return text
    if found.pays:
        return f"{text}; paid back after {_time(found.paid_back_s)} (limit {_time(found.horizon_s)})"
    text = f"{text}; paid back only after {_time(found.paid_back_s)} (limit {_time(found.horizon_s)})"
    below = found.pays_below_s
    setting = (
        f"it would pay with {labels.EVICTION_COST} below {_time(below)}" if below >= 1 else "no setting makes it pay"
    )
    return f"{text}; {setting}"


def why(move: Move) -> str:
    """Why its nodes go, and what that saves."""
    if move.payback is not None:
        return told(move.payback)
    known = total(each.price for each in move.candidates)
    if move.reason == EMPTY:
        count = len(move.candidates)
        said = f"{count} empty nodes go together" if count > 1 else "it is empty"
        return f"{said}: saves {known.bill:.3f} $/h" if known.known else said
    conditions = [find(each.claim.status.conditions, claimconditions.DRIFTED) for each in move.candidates]
    return ", ".join(sorted({each.reason for each in conditions if each is not None}))


def _types(names: Sequence[str]) -> str:
    counts = Counter(names)
    return " + ".join(f"{count} × {name}" if count > 1 else name for name, count in sorted(counts.items()))


def _time(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.0f}s"
    if seconds < 3600:
        return f"{seconds / 60:.0f}m"
    hours, rest = divmod(seconds, 3600)
    minutes = round(rest / 60)
    return f"{hours:.0f}h{minutes}m" if minutes else f"{hours:.0f}h"
