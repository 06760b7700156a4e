"""Logs what happens to NodeClaims, and what is told in events, with the messages and keys that Karpenter's log has."""

from typing import Any, Final

from joiner.kube.controller import Change
from joiner.kube.informer import Informers
from joiner.model import labels
from joiner.model.codec import encode
from joiner.model.conditions import Condition
from joiner.model.nodeclaim import NodeClaim
from joiner.observe.events import Told
from joiner.observe.logs import Log

LIFECYCLE: Final = "nodeclaim.lifecycle"
_OTHERWISE: Final = frozenset({"Nominated", "FailedScheduling", "Evicted"})
"""Events that are logged in another form, or too many to be: these are for those who debug."""
_SHOWN: Final = 5


def some(names: list[str]) -> str:
    """A few names, and how many more there are."""
    shown = ", ".join(names[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN} other(s)"


class DecisionLog:
    """Listens to the cache of NodeClaims and to the recorder of events."""

    def __init__(self, informers: Informers, log: Log) -> None:
        self._log = log
        informers.of(NodeClaim).listen(self._claim)

    def told(self, event: Told) -> None:
        """An event was published."""
        kind, _, name = event.thing.partition(" ")
        keys: dict[str, Any] = {kind: {"name": name}, "reason": event.reason}
        if event.reason in _OTHERWISE:
            self._log.debug(event.message, **keys)
        elif event.warning:
            self._log.warn(event.message, **keys)
        else:
            self._log.info(event.message, **keys)

    def _claim(self, change: Change) -> None:
        before: NodeClaim | None = change.before
        after: NodeClaim | None = change.after
        if before is None:
            return
        log = self._log.having(controller=LIFECYCLE, **_named(before))
        if after is None:
            log.info("deleted nodeclaim", **{"provider-id": before.status.provider_id})
            return
        if before.metadata.deletion_timestamp is None and after.metadata.deletion_timestamp is not None:
            log.info("deleting nodeclaim", **{"provider-id": after.status.provider_id})
        old = {each.type: each for each in before.status.conditions}
        for condition in after.status.conditions:
            known = old.get(condition.type)
            if known is None or known.status != condition.status:
                _turned(log, after, condition)


def _turned(log: Log, claim: NodeClaim, condition: Condition) -> None:
    if condition.status != "True":
        if condition.status == "False":
            log.info("condition turned", condition=condition.type, status="False", reason=condition.reason)
        return
    if condition.type == "Launched":
        found = claim.metadata.labels
        log.info(
            "launched nodeclaim",
            **{
                "provider-id": claim.status.provider_id,
                "instance-type": found.get(labels.INSTANCE_TYPE, ""),
                "zone": found.get(labels.ZONE, ""),
                "capacity-type": found.get(labels.CAPACITY_TYPE, ""),
                "allocatable": encode(claim.status).get("allocatable", {}),
            },
        )
    elif condition.type in ("Registered", "Initialized"):
        log.info(
            f"{condition.type.lower()} nodeclaim",
            **{"provider-id": claim.status.provider_id, "Node": {"name": claim.status.node_name}},
        )
    elif condition.type not in ("Ready", "Consolidatable"):
        log.info("condition turned", condition=condition.type, status="True", reason=condition.reason)


def _named(claim: NodeClaim) -> dict[str, Any]:
    pool = claim.metadata.labels.get(labels.NODEPOOL, "")
    return {"NodeClaim": {"name": claim.name}, **({"NodePool": {"name": pool}} if pool else {})}
