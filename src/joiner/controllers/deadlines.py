"""The termination timestamp of a NodeClaim: when draining its node ends and its pods are deleted by force."""

from datetime import datetime

from joiner.kube.client import Client
from joiner.model import claimconditions
from joiner.model.claimconditions import TERMINATION_TIMESTAMP
from joiner.model.duration import Duration
from joiner.model.meta import replace
from joiner.model.nodeclaim import NodeClaim


async def hurried(client: Client, claim: NodeClaim, bound: Duration | None, now: datetime) -> NodeClaim:
    """The claim with the moment at which its drain ends. A moment that was set before is only ever made earlier."""
    if bound is None:
        return claim
    moment, known = now + bound.timedelta, claimconditions.deadline(claim)
    if known is not None and known <= moment:
        return claim
    annotations = {**claim.metadata.annotations, TERMINATION_TIMESTAMP: claimconditions.written_deadline(moment)}
    metadata = replace(claim.metadata, annotations=annotations)
    return await client.patch(claim, replace(claim, metadata=metadata), locked=True)
