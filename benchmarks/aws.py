"""All of one region of EC2, from the answers of its API to a catalogue: time, memory, and how long others wait meanwhile."""

import asyncio
import copy
import gc
import tracemalloc
from collections.abc import Awaitable, Callable
from time import thread_time
from typing import Any

from joiner.catalog.build import NO_ADJUSTMENTS, Pipeline
from joiner.clock import SystemClock
from joiner.cloud.aws.api import Answer
from joiner.cloud.aws.inventory import LiveInventory
from joiner.cloud.aws.live import LiveAwsProvider
from joiner.cloud.aws.nodeclass.ec2nodeclass import EC2NodeClass
from joiner.cloud.aws.settings import AwsSettings
from joiner.cloud.provider import K
from joiner.cloud.sources import facts
from joiner.model.codec import decode
from joiner.model.meta import KubeObject
from joiner.model.nodepool import NodePool
from joiner.sim.cloud.ec2.descriptions import description

QUESTION = (
    "every type, zone and capacity type of us-east-1: from EC2's answers to a catalogue, and beside it a deep copy?"
)
REGION = "us-east-1"
PAGE = 100


class Answers:
    """EC2's answers about one region, as the SDK hands them over: parsed, page by page."""

    def __init__(self) -> None:
        known = facts.load()
        place = known.regions[REGION]
        sold = [each for each in known.types if each.name in place.types]
        self._types = [description(each) for each in sold]
        self._offered = [
            {"InstanceType": name, "LocationType": "availability-zone", "Location": zone}
            for name, each in place.types.items()
            for zone in each.zones
        ]
        self._spot = [
            {"InstanceType": name, "AvailabilityZone": zone, "SpotPrice": str(each.spot_by_zone.get(zone) or each.spot)}
            for name, each in place.types.items()
            for zone in each.zones
            if each.spot_by_zone.get(zone) or each.spot
        ]

    async def call(self, service: str, operation: str, /, **parameters: Any) -> Answer:
        await asyncio.sleep(0)
        found = {
            "describe_instance_types": ("InstanceTypes", self._types),
            "describe_instance_type_offerings": ("InstanceTypeOfferings", self._offered),
            "describe_spot_price_history": ("SpotPriceHistory", self._spot),
        }.get(operation)
        if found is None:
            return {"PriceList": []}
        key, rows = found
        size, start = parameters.get("MaxResults", PAGE), int(parameters.get("NextToken") or 0)
        more = {"NextToken": str(start + size)} if start + size < len(rows) else {}
        return {key: rows[start : start + size], **more}


class Classes:
    """One class with a subnet in every zone."""

    def __init__(self) -> None:
        zones = facts.load().regions[REGION].zones
        subnets = [{"id": f"subnet-{zone}", "zone": zone, "zoneID": zone_id} for zone, zone_id in zones.items()]
        spec = {"role": "nodes", "amiSelectorTerms": [{"alias": "al2023@latest"}]}
        self._class = decode(
            {"metadata": {"name": "default"}, "spec": spec, "status": {"subnets": subnets}}, EC2NodeClass
        )

    def get(self, kind: type[K], name: str) -> K | None:
        found: KubeObject = self._class
        return found if isinstance(found, kind) else None


async def watched(work: Callable[[], Awaitable[Any]]) -> tuple[float, float, Any]:
    """How long it took, the longest time in which nothing else could go on, and what came out. In seconds of the processor."""
    longest, running = 0.0, True

    async def tick() -> None:
        nonlocal longest
        before = thread_time()
        while running:
            await asyncio.sleep(0)
            now = thread_time()
            longest, before = max(longest, now - before), now

    ticking = asyncio.create_task(tick())
    await asyncio.sleep(0)
    started = thread_time()
    made = await work()
    took = thread_time() - started
    await asyncio.sleep(0)
    running = False
    await ticking
    return took, longest, made


async def measured() -> dict[str, Any]:
    api, clock = Answers(), SystemClock()
    inventory = LiveInventory(api, clock, REGION)
    settings = AwsSettings(cluster_name="prod", region=REGION, isolated_vpc=True)
    provider = LiveAwsProvider(Classes(), clock, settings, api, inventory)
    reference = {"group": EC2NodeClass.group, "kind": EC2NodeClass.kind, "name": "default"}
    spec = {"template": {"spec": {"nodeClassRef": reference}}}
    pool = decode({"metadata": {"name": "default"}, "spec": spec}, NodePool)
    refresh, refresh_stall, _ = await watched(provider.refresh)
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    types = await provider.instance_types(pool)
    gc.collect()
    kept = tracemalloc.get_traced_memory()[0] - before
    again = copy.deepcopy(list(types))
    gc.collect()
    copied = tracemalloc.get_traced_memory()[0] - before - kept
    tracemalloc.stop()
    del again
    derive, derive_stall, types = await watched(lambda: provider.instance_types(pool))
    started = thread_time()
    catalog = Pipeline(provider.vocabulary()).catalog(types, NO_ADJUSTMENTS, pool)
    build = thread_time() - started
    started = thread_time()
    copy.deepcopy(list(types))
    copying = thread_time() - started
    return {
        "types": len(catalog.types),
        "offerings": sum(len(each.offerings) for each in catalog.types),
        "reading EC2's answers, ms": round(refresh * 1000, 1),
        "longest stall of the event loop meanwhile, ms": round(refresh_stall * 1000, 1),
        "deriving the types of a class, ms": round(derive * 1000, 1),
        "longest stall meanwhile, ms": round(derive_stall * 1000, 1),
        "index of a pool, ms": round(build * 1000, 1),
        "deep copy of every type, ms": round(copying * 1000, 1),
        "memory of the types, MB": round(kept / 1e6, 2),
        "memory of a deep copy of them, MB": round(copied / 1e6, 2),
    }


def run() -> dict[str, Any]:
    return asyncio.run(measured())
