"""Leader election by a Lease: of several replicas one works, and one that lost its lease stops before another can begin.

Another replica may take a lease that it has seen unchanged for `LEASE_S`. The leader counts from the moment it *asked* for the
last renewal that succeeded, allows no write to begin after `RENEW_WITHIN_S`, and none to last longer than the lease.
"""

import asyncio
from collections.abc import Callable
from random import Random
from typing import Final, NamedTuple

from joiner.clock import Clock
from joiner.kube.client import Client
from joiner.kube.errors import AlreadyExists, Conflict, KubeError, NotFound
from joiner.model.clusterobjects import Lease, LeaseSpec
from joiner.model.meta import ObjectMeta, replace
from joiner.model.microtime import MicroTime

LEASE_S: Final = 15.0
RENEW_WITHIN_S: Final = 10.0
RETRY_S: Final = 2.0
JITTER: Final = 1.2


class NotLeading(KubeError):
    """The lease is not ours, or not surely: nothing may be written."""


class LeadershipLost(Exception):
    """The lease could not be renewed in time. The process must end: another replica may lead by now."""


class _Seen(NamedTuple):
    """The lease as it was last observed, and when by our own clock: the clocks of other machines are not trusted."""

    spec: LeaseSpec
    at: float


class Election:
    """One replica's part in the election."""

    def __init__(
        self,
        client: Client,
        *,
        namespace: str,
        name: str,
        identity: str,
        clock: Clock,
        random: Random,
        told: Callable[[str], None] = lambda holder: None,
        troubled: Callable[[str], None] = lambda why: None,
    ) -> None:
        """`client` must not be one that asks this election for permission. `told` hears of every new leader.

        `troubled` hears why the lease can be neither read nor written, once for each reason.
        """
        self._client, self._clock, self._random = client, clock, random
        self._namespace, self._name, self.identity = namespace, name, identity
        self._told, self._troubled = told, troubled
        self._trouble = ""
        self._seen: _Seen | None = None
        self._lease: Lease | None = None
        self._renewed: float | None = None

    @property
    def leads(self) -> bool:
        """Whether we lead, as far as we know."""
        return self._renewed is not None and self._clock.monotonic() < self._renewed + RENEW_WITHIN_S

    def permit(self) -> float:
        """How many more seconds a write may last that begins now. Raises NotLeading."""
        if not self.leads:
            raise NotLeading("this replica does not lead, and writes nothing")
        assert self._renewed is not None
        return self._renewed + LEASE_S - self._clock.monotonic()

    async def acquire(self) -> None:
        """Wait until we lead."""
        while not await self._try():
            await asyncio.sleep(RETRY_S * (1.0 + self._random.random() * (JITTER - 1.0)))

    async def hold(self) -> None:
        """Renew the lease for as long as that works. Raises LeadershipLost."""
        while True:
            await asyncio.sleep(RETRY_S)
            mine = await self._try()
            if not self.leads or (not mine and self._taken()):
                self._renewed = None
                name = f"{self._namespace}/{self._name}"
                if self._seen is not None and self._taken():
                    raise LeadershipLost(f"the lease {name} was taken by {self._seen.spec.holder_identity or 'no one'}")
                raise LeadershipLost(f"the lease {name} could not be renewed in time: {self._trouble or 'too late'}")

    def _taken(self) -> bool:
        return self._seen is not None and self._seen.spec.holder_identity != self.identity

    async def _try(self) -> bool:
        """Take or renew the lease. What fails for another reason than its holder is tried again by the caller."""
        asked = self._clock.monotonic()
        try:
            lease = await self._current()
            if lease is None:
                stored = await self._client.create(self._fresh())
            elif self._may_take(lease):
                stored = await self._client.patch(lease, self._mine(lease), locked=True)
            else:
                return False
        except (Conflict, AlreadyExists, NotFound):
            self._lease = None  # another replica was faster: read it again
            return False
        except KubeError as error:
            self._lease = None
            if str(error) != self._trouble:
                self._troubled(str(error))
            self._trouble = str(error)
            return False
        self._renewed, self._trouble = asked, ""
        self._observe(stored)
        return True

    async def _current(self) -> Lease | None:
        """The lease. The leader need not read again what only it writes."""
        if self._lease is not None and self.leads:
            return self._lease
        try:
            lease = await self._client.get(Lease, self._name, self._namespace)
        except NotFound:
            return None
        self._observe(lease)
        return lease

    def _observe(self, lease: Lease) -> None:
        self._lease = lease
        known = self._seen
        if known is None or known.spec != lease.spec:
            self._seen = _Seen(lease.spec, self._clock.monotonic())
        if lease.spec.holder_identity and (known is None or known.spec.holder_identity != lease.spec.holder_identity):
            self._told(lease.spec.holder_identity)

    def _may_take(self, lease: Lease) -> bool:
        holder = lease.spec.holder_identity
        if not holder or holder == self.identity:
            return True
        assert self._seen is not None
        lasts = float(lease.spec.lease_duration_seconds or LEASE_S)
        return self._clock.monotonic() >= self._seen.at + lasts

    def _fresh(self) -> Lease:
        now = MicroTime.of(self._clock.now())
        spec = LeaseSpec(
            holder_identity=self.identity,
            lease_duration_seconds=int(LEASE_S),
            acquire_time=now,
            renew_time=now,
            lease_transitions=0,
        )
        return Lease(metadata=ObjectMeta(name=self._name, namespace=self._namespace), spec=spec)

    def _mine(self, lease: Lease) -> Lease:
        now = MicroTime.of(self._clock.now())
        spec = replace(lease.spec, renew_time=now, lease_duration_seconds=int(LEASE_S))
        if lease.spec.holder_identity != self.identity:
            turns = (lease.spec.lease_transitions or 0) + 1
            spec = replace(spec, holder_identity=self.identity, acquire_time=now, lease_transitions=turns)
        return replace(lease, spec=spec)

    async def release(self) -> None:
        """Give the lease back, so that another replica need not wait for its end. Nothing may be written any more."""
        lease, leads = self._lease, self.leads
        self._renewed = None
        if lease is None or not leads or lease.spec.holder_identity != self.identity:
            return
        now = MicroTime.of(self._clock.now())
        free = replace(lease.spec, holder_identity="", lease_duration_seconds=1, acquire_time=now, renew_time=now)
        try:
            await self._client.patch(lease, replace(lease, spec=free), locked=True)
        except KubeError:
            return  # it will run out
