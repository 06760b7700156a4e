"""The annotation `joiner.dev/eviction-cost` of a NodePool: what evicting one of its pods costs, in time of the pod's own price.

No schema knows of annotations. `joiner validate` warns of one that cannot be read, and nodes of such a pool are not consolidated.
"""

from joiner.model.duration import NEVER, Duration, DurationError
from joiner.model.labels import EVICTION_COST
from joiner.model.nodepool import NodePool


def eviction_cost_of(text: str) -> Duration:
    """The duration in the annotation. Raises DurationError with what is allowed."""
    try:
        found = Duration.parse(text)
    except DurationError:
        found = NEVER
    if found == NEVER or found < 0:
        raise DurationError(
            f"annotation {EVICTION_COST}={text!r}: allowed is a duration of 0s or more, like 10m;"
            " 0s moves pods for any saving"
        )
    return found


def eviction_cost_problem(pool: NodePool) -> str:
    """Why the annotation of a pool cannot be read; nothing if it can, or if there is none."""
    text = pool.metadata.annotations.get(EVICTION_COST)
    try:
        _ = text is not None and eviction_cost_of(text)
    except DurationError as error:
        return str(error)
    return ""
