"""The conditions of a NodeClaim by name, and the times in its annotations."""

from datetime import UTC, datetime
from typing import Final

from joiner.model.conditions import find, is_true
from joiner.model.nodeclaim import NodeClaim

LAUNCHED: Final = "Launched"
REGISTERED: Final = "Registered"
INITIALIZED: Final = "Initialized"
DRAINED: Final = "Drained"
VOLUMES_DETACHED: Final = "VolumesDetached"
INSTANCE_TERMINATING: Final = "InstanceTerminating"
CONSISTENT_STATE_FOUND: Final = "ConsistentStateFound"
DISRUPTION_REASON: Final = "DisruptionReason"
REBOOTING: Final = "Rebooting"
DRIFTED: Final = "Drifted"
CONSOLIDATABLE: Final = "Consolidatable"
REBOOT_REQUESTED: Final = "RebootRequested"
REBOOT_ISSUED: Final = "RebootIssued"
REBOOT_SUCCEEDED: Final = "RebootSucceeded"
REBOOT_FAILED: Final = "RebootFailed"
"""Why `Rebooting` is what it is."""

TERMINATION_TIMESTAMP: Final = "karpenter.sh/nodeclaim-termination-timestamp"
"""The annotation with the time by which the node must be gone, whatever pods are left on it."""
PRE_BOOT_ID: Final = "karpenter.sh/reboot-pre-boot-id"
"""The annotation with the boot ID from before a reboot."""
REBOOT_GRACE: Final = "karpenter.sh/reboot-termination-grace-period"
"""The annotation with the longest time the drain before a reboot may take."""


def holds(claim: NodeClaim, kind: str) -> bool:
    """Whether the condition of the claim is True."""
    return is_true(claim.status.conditions, kind)


def is_leaving(claim: NodeClaim) -> bool:
    """Whether the claim has a deletion timestamp."""
    return claim.metadata.deletion_timestamp is not None


def quiet_since(claim: NodeClaim) -> datetime | None:
    """Since when no pod has come to the node or left it."""
    initialized = find(claim.status.conditions, INITIALIZED)
    began = initialized.last_transition_time if initialized is not None else None
    return claim.status.last_pod_event_time or began


def deadline(claim: NodeClaim) -> datetime | None:
    """When the node must be gone; None if the annotation is absent or cannot be read."""
    text = claim.metadata.annotations.get(TERMINATION_TIMESTAMP)
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def written_deadline(moment: datetime) -> str:
    """A moment as the annotation has it."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
