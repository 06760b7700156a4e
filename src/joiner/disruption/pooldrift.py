"""Which nodes of a pool are not what it would buy today: what an edit of the pool will have replaced, before any of them is."""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime

from joiner.disruption.decision import DRIFTED
from joiner.disruption.drift import from_pool
from joiner.model import labels
from joiner.model.budget import remaining
from joiner.model.labels import Vocabulary
from joiner.model.meta import replace
from joiner.model.nodeclaim import NodeClaim
from joiner.model.nodepool import NodePool
from joiner.model.nodepoolhash import HASH_VERSION, nodepool_hash


def annotated(pool: NodePool) -> NodePool:
    """The pool with the hash of its template as it is now."""
    own = {labels.NODEPOOL_HASH: nodepool_hash(pool), labels.NODEPOOL_HASH_VERSION: HASH_VERSION}
    metadata = pool.metadata
    return replace(pool, metadata=replace(metadata, annotations={**metadata.annotations, **own}))


def pool_drift(pool: NodePool, claims: Iterable[NodeClaim], vocabulary: Vocabulary) -> dict[str, str]:
    """Claim to why it differs from its pool; those that do not differ are left out."""
    now = annotated(pool)
    found = {each.name: from_pool(each, now, vocabulary) for each in claims}
    return {name: found[name] for name in sorted(found) if found[name]}


def together(pool: NodePool, total: int, now: datetime) -> int:
    """How many of its nodes may be replaced at a time, if no other is away."""
    return min(total, remaining(pool.spec.disruption.budgets, DRIFTED, total, 0, now))


def told(drifted: Mapping[str, str], pool: NodePool, total: int, now: datetime) -> str:
    """How many nodes will be replaced, and how many at a time, in words."""
    reasons = ", ".join(f"{reason}: {count}" for reason, count in sorted(Counter(drifted.values()).items()))
    some = together(pool, total, now)
    pace = f"{some} at a time" if some else "none now"
    are = "differs" if len(drifted) == 1 else "differ"
    count = f"{len(drifted)} of {total} nodes {are} from what it would buy"
    return f"{count} ({reasons}) and will be replaced; its budgets allow {pace}"
