"""`NodePoolReport`: which nodes of a pool will be replaced because they differ from it, as it is or as an edit would make it."""

from dataclasses import dataclass
from datetime import datetime

from joiner.disruption import drift
from joiner.disruption.decision import DRIFTED
from joiner.disruption.pooldrift import pool_drift, together
from joiner.model.claimconditions import holds, is_leaving
from joiner.model.nodeclaim import NodeClaim
from joiner.model.nodepool import NodePool
from joiner.offline.manifests import Manifests
from joiner.offline.report.plan import PlanOptions, pose
from joiner.scheduling.problem import Policy


@dataclass(frozen=True)
class NodePoolReport:
    """What an edit of a pool comes to."""

    pool: NodePool
    nodes: int
    drifted: dict[str, str]
    """Node, or claim without one, to why it will be replaced."""
    marked: frozenset[str]
    """Those of them that are marked as drifted already."""
    together: int
    """How many may be replaced at a time, by the budgets that are in force now."""
    notes: tuple[str, ...]

    @property
    def rounds(self) -> int | None:
        """How many times nodes are replaced until all are; nothing where budgets allow none."""
        return -(-len(self.drifted) // self.together) if self.together else None


def nodepool_report(manifests: Manifests, now: datetime, name: str) -> NodePoolReport:
    """What there is to say about a pool. Raises Unsound if it is not there."""
    (pool,) = manifests.pools(name)
    posed = pose(manifests, now, PlanOptions(policy=Policy()))
    vocabulary = posed.question.problem.vocabulary
    seen = posed.question.snapshot
    states = [each for each in seen.nodes if each.nodepool == name and not each.deleting] if seen is not None else []
    claims = {each.claim.name: (each.name, each.claim) for each in states if each.claim is not None}
    claims = {key: each for key, each in claims.items() if not is_leaving(each[1])}
    found = pool_drift(pool, (claim for _, claim in claims.values()), vocabulary)
    catalog = posed.catalogs.get(name)
    if catalog is not None:
        for key, (_, claim) in claims.items():
            if key not in found and (why := drift.from_market(claim, catalog.market.raw, vocabulary)):
                found[key] = why
    guessed = [key for key in claims if manifests.get(NodeClaim, key) is None]
    notes = [*posed.missed]
    if guessed:
        notes.append(
            f"{len(guessed)} nodes have no NodeClaim in these files: of them only requirements and types can be compared"
        )
    return NodePoolReport(
        pool=pool,
        nodes=len(claims),
        drifted={claims[key][0]: found[key] for key in sorted(found, key=lambda each: claims[each][0])},
        marked=frozenset(claims[key][0] for key in found if holds(claims[key][1], DRIFTED)),
        together=together(pool, len(claims), now),
        notes=tuple(notes),
    )
