"""`joiner run --dry-run`: the controllers look at the live cluster for a while, and everything they would do is told instead."""

from collections.abc import Sequence
from typing import Any, Final, cast

from joiner.catalog.market import Option
from joiner.cloud.errors import Transient
from joiner.cloud.provider import CloudProvider, Instance
from joiner.kube.client import Key
from joiner.kube.dryrun import DryRunClient
from joiner.model.codec import encode
from joiner.model.meta import KubeObject
from joiner.model.nodeclaim import NodeClaim
from joiner.observe.logs import Log

SETTLE_S: Final = 10.0
"""How long the controllers are watched after the longest time that pods are gathered for."""
_DECISIONS: Final = {
    ("create", "NodeClaim"),
    ("delete", "NodeClaim"),
    ("delete", "Node"),
    ("delete", "Pod"),
    ("evict", "Pod"),
}
"""What is told to everyone; the rest is bookkeeping, told at debug level."""


class DryRunProvider:
    """A provider that is asked everything and does nothing."""

    def __init__(self, provider: CloudProvider, log: Log) -> None:
        self._provider, self._log = provider, log

    def __getattr__(self, name: str) -> Any:
        return getattr(self._provider, name)

    async def create(self, claim: NodeClaim, options: Sequence[Option]) -> Instance:
        """Nothing is launched."""
        self._log.info("would launch a machine", NodeClaim={"name": claim.name}, options=len(options))
        raise Transient("nothing is launched in a dry run")

    async def delete(self, provider_id: str) -> None:
        """Nothing is ended."""
        self._log.info("would delete a machine", **{"provider-id": provider_id})

    async def reboot(self, claim: NodeClaim, operation_id: str) -> None:
        """Nothing is restarted."""
        self._log.info("would reboot a machine", NodeClaim={"name": claim.name})


def guarded(provider: CloudProvider, log: Log) -> CloudProvider:
    """The provider without its effects."""
    return cast(CloudProvider, DryRunProvider(provider, log))


def teller(log: Log) -> Any:
    """Writes into the log what would have been written into the cluster."""

    def told(verb: str, kind: str, key: Key, what: Any) -> None:
        said = {kind: {"name": key.name, **({"namespace": key.namespace} if key.namespace else {})}}
        if what is not None:
            said["what"] = encode(what) if isinstance(what, KubeObject) else what
        (log.info if (verb, kind) in _DECISIONS else log.debug)(f"would {verb} {kind}", **said)

    return told


def summary(client: DryRunClient, log: Log) -> None:
    """How much there would have been of everything."""
    counts = {f"{verb} {kind}": count for (verb, kind), count in sorted(client.writes.items())}
    log.info("dry run is over; nothing was written", would=counts)
