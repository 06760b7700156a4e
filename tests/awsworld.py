"""A pretend AWS account for tests: the EC2 face on virtual time, provider and classes, without an API server."""

import asyncio
from collections.abc import Coroutine
from datetime import UTC, datetime, timedelta
from functools import cache
from random import Random
from typing import Any, TypeVar

from joiner.cloud.aws.api import AwsApi
from joiner.cloud.aws.inventory import LiveInventory
from joiner.cloud.aws.live import LiveAwsProvider
from joiner.cloud.aws.nodeclass.ec2nodeclass import EC2NodeClass
from joiner.cloud.aws.settings import AwsSettings
from joiner.cloud.provider import K
from joiner.cloud.sources import facts
from joiner.model.codec import decode
from joiner.model.meta import KubeObject, replace
from joiner.sim.cloud.cloud import PretendCloud
from joiner.sim.cloud.ec2.face import Ec2Face
from joiner.sim.cloud.ec2.world import Account, CapacityReservation, account
from joiner.sim.cloud.machines import CloudTiming
from joiner.sim.trace import Trace
from joiner.sim.virtualtime import VirtualClock, VirtualLoop

T = TypeVar("T")
REGION = "us-east-1"
START = datetime(2030, 1, 1, tzinfo=UTC)
NAMES = ("c5.large", "c5.xlarge", "g4dn.xlarge", "m5.2xlarge", "m5.large", "m5.xlarge", "m6g.large", "r5.large")
SMALL = replace(facts.load(), types=tuple(each for each in facts.load().types if each.name in NAMES))
SPEC: dict[str, Any] = {
    "role": "nodes",
    "amiSelectorTerms": [{"alias": "al2023@latest"}],
    "subnetSelectorTerms": [{"tags": {"karpenter.sh/discovery": "prod"}}],
    "securityGroupSelectorTerms": [{"tags": {"karpenter.sh/discovery": "prod"}}],
}


class AwsWorld:
    """An account, a provider over it, and EC2NodeClasses in memory."""

    def __init__(self, **changes: Any) -> None:
        self.loop = VirtualLoop()
        self.clock = VirtualClock(self.loop, START)
        pace = CloudTiming(call_s=(0.1, 0.1), starts_s=(5.0, 5.0), stops_s=(10.0, 10.0), reboots_s=(30.0, 30.0))
        self.cloud = PretendCloud(clock=self.clock, random=Random(0), trace=Trace(), pace=pace)
        self.account: Account = account(_sold(), REGION, self.cloud)
        self.face = Ec2Face(self.account)
        self.api: AwsApi = self.face
        self.classes: dict[str, EC2NodeClass] = {}
        self.settings = AwsSettings(cluster_name="prod", region=REGION, **{"disable_dry_run": True, **changes})
        self.provider = self.connect()
        self.run(self.provider.refresh())

    def connect(self) -> LiveAwsProvider:
        """A provider as a process that was just started has it."""
        return LiveAwsProvider(self, self.clock, self.settings, self.api, LiveInventory(self.api, self.clock, REGION))

    def get(self, kind: type[K], name: str) -> K | None:
        found: KubeObject | None = self.classes.get(name)
        return found if isinstance(found, kind) else None

    def put(self, name: str = "default", **spec: Any) -> EC2NodeClass:
        """Write a class, and let the controller look at it."""
        before = self.classes.get(name)
        generation = before.metadata.generation + 1 if before is not None else 1
        metadata = {"name": name, "uid": f"uid-{name}", "generation": generation}
        whole = {key: value for key, value in {**SPEC, **spec}.items() if value is not None}
        made = decode({"metadata": metadata, "spec": whole}, EC2NodeClass)
        self.classes[name] = made if before is None else replace(made, status=before.status)
        return self.look(name)

    def look(self, name: str = "default") -> EC2NodeClass:
        """The controller looks at a class again."""
        self.classes[name] = self.run(self.provider.classes.resolved(self.classes[name]))
        return self.classes[name]

    def reserve(self, identity: str = "cr-1", **more: Any) -> CapacityReservation:
        """Capacity that is paid for."""
        known = {"id": identity, "type": "m5.large", "zone": "us-east-1b", "count": 2, **more}
        return self.account.reserve(CapacityReservation(**known))

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)

    def forward(self, time: timedelta) -> None:
        self.run(asyncio.sleep(time.total_seconds()))

    def asked(self, operation: str) -> list[Any]:
        """The parameters of all calls of an operation."""
        return [parameters for _, name, parameters in self.face.calls if name == operation]

    def close(self) -> None:
        self.loop.close()


@cache
def _sold() -> facts.Facts:
    place = SMALL.regions[REGION]
    return replace(
        SMALL, regions={REGION: replace(place, types={n: place.types[n] for n in NAMES if n in place.types})}
    )
