"""What a catalogue costs: to build, to ask for again, and to keep; beside the way that copies every type on every call."""

import asyncio
import copy
import gc
import tracemalloc
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any

from joiner.catalog import overlay as overlaying
from joiner.catalog.build import Adjustments, Catalog, Pipeline
from joiner.catalog.index import Index
from joiner.catalog.market import InstanceType
from joiner.catalog.overlay import Overlays
from joiner.catalog.settings import settle
from joiner.catalog.units import Stock
from joiner.clock import SystemClock
from joiner.cloud.catalogcache import Catalogs
from joiner.cloud.kwok.nodeclass import KWOKNodeClass
from joiner.cloud.kwok.provider import KwokProvider
from joiner.cloud.provider import K
from joiner.cloud.sources import ec2
from joiner.model.codec import decode
from joiner.model.meta import KubeObject
from joiner.model.nodeoverlay import NodeOverlay
from joiner.model.nodepool import NodePool
from joiner.model.typesettings import InstanceTypeSettings

QUESTION = "800 types, 10 pools, 50 overlays and 40 settings: how long to build, to ask again, and how much memory?"
TYPES, POOLS, OVERLAYS, SETTINGS = 800, 10, 50, 40
FAMILY = "karpenter.k8s.aws/instance-family"


def types() -> tuple[InstanceType, ...]:
    return ec2.catalogue("us-west-2").types[:TYPES]


def pools() -> list[NodePool]:
    reference = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
    return [
        decode(
            {
                "metadata": {"name": f"pool-{number}"},
                "spec": {
                    "template": {"metadata": {"labels": {"team": f"t{number}"}}, "spec": {"nodeClassRef": reference}}
                },
            },
            NodePool,
        )
        for number in range(POOLS)
    ]


def overlays(families: list[str]) -> Iterator[NodeOverlay]:
    """Discounts by family, capacity type and pool, extra resources and overhead; every fifth names a pool."""
    for number in range(OVERLAYS):
        chosen = families[number % len(families) :][:6]
        requirements: list[dict[str, Any]] = [{"key": FAMILY, "operator": "In", "values": chosen}]
        if number % 2:
            requirements.append({"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]})
        if number % 5 == 0:
            requirements.append(
                {"key": "karpenter.sh/nodepool", "operator": "In", "values": [f"pool-{number % POOLS}"]}
            )
        spec: dict[str, Any] = {"requirements": requirements, "weight": 1 + number % 7}
        effect = ({"priceAdjustment": "-10%"}, {"capacity": {"example.com/fuse": 1}}, {"overhead": {"memory": "50Mi"}})
        yield decode(
            {"metadata": {"name": f"overlay-{number:02}"}, "spec": {**spec, **effect[number % 3]}}, NodeOverlay
        )


def settings(names: list[str]) -> Iterator[InstanceTypeSettings]:
    for number, name in enumerate(names[::20][:SETTINGS]):
        entries = [{"karpenter.sh/capacity-type": "on-demand", "karpenter.sh/price": f"0.{number + 10}"}]
        spec: dict[str, Any] = {"overhead": {"memory": "200Mi"}, **({"offerings": entries} if number % 2 else {})}
        yield decode({"metadata": {"name": name}, "spec": spec}, InstanceTypeSettings)


def timed(work: Callable[[], Any], times: int = 3) -> tuple[float, Any]:
    """The best of a few runs, and what came out."""
    best, result = float("inf"), None
    for _ in range(times):
        started = perf_counter()
        result = work()
        best = min(best, perf_counter() - started)
    return best, result


def full_build(raw: tuple[InstanceType, ...], adjustments: Adjustments, of: list[NodePool]) -> list[Catalog]:
    pipeline = Pipeline(KwokProvider(World(), SystemClock()).vocabulary())
    return [pipeline.catalog(raw, adjustments, pool) for pool in of]


def stages(raw: tuple[InstanceType, ...], adjustments: Adjustments, of: list[NodePool]) -> dict[str, float]:
    """Seconds of each stage for all pools, without anything being shared."""
    vocabulary = KwokProvider(World(), SystemClock()).vocabulary()
    spent = dict.fromkeys(("settings", "matching overlays", "applying overlays", "index", "stock"), 0.0)
    for pool in of:
        started = perf_counter()
        settled = settle(raw, adjustments.settings, vocabulary)
        spent["settings"] += (lap := perf_counter()) - started
        matcher = Overlays(adjustments.overlays, overlaying.pool_labels(pool, vocabulary), vocabulary)
        effects = [matcher.effects(each) for each in settled.types]
        overlaying.conflicts(settled.types, effects)
        spent["matching overlays"] += (after := perf_counter()) - lap
        result = tuple(map(overlaying.overlaid, settled.types, effects))
        spent["applying overlays"] += (done := perf_counter()) - after
        index = Index(result, vocabulary.well_known)
        spent["index"] += (indexed := perf_counter()) - done
        Stock(result, index.labels, vocabulary)
        spent["stock"] += perf_counter() - indexed
    return spent


class World:
    """One NodeClass in memory."""

    def __init__(self) -> None:
        raw = {"metadata": {"name": "default"}, "spec": {"instanceTypes": "ec2/us-west-2"}}
        self._class = decode(raw, KWOKNodeClass)

    def get(self, kind: type[K], name: str) -> K | None:
        found: KubeObject = self._class
        return found if isinstance(found, kind) else None


def cached_call_seconds(adjustments: Adjustments, pool: NodePool) -> tuple[float, bool]:
    """What one call costs when nothing moved, and whether it gives the identical object."""
    clock = SystemClock()
    catalogs = Catalogs(KwokProvider(World(), clock), lambda: adjustments, clock)
    times = 50_000

    async def ask() -> tuple[float, bool]:
        first = await catalogs.get(pool)
        best = float("inf")
        for _ in range(3):
            started = perf_counter()
            for _ in range(times):
                await catalogs.get(pool)
            best = min(best, perf_counter() - started)
        return best / times, await catalogs.get(pool) is first

    return asyncio.run(ask())


def kept_bytes(raw: tuple[InstanceType, ...], adjustments: Adjustments, of: list[NodePool]) -> int:
    """What the catalogues hold on to, beside the raw types they are made of."""
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    held = full_build(raw, adjustments, of)
    gc.collect()
    kept = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert len(held) == len(of)
    return kept


def deep_copy(instance_types: tuple[InstanceType, ...]) -> list[InstanceType]:
    """What a provider that trusts nobody hands out: a copy of every type with every offering and resource list."""
    return copy.deepcopy(list(instance_types))


def run() -> dict[str, Any]:
    raw, all_pools = types(), pools()
    families = sorted({each.requirements[FAMILY].any() or "" for each in raw})
    adjustments = Adjustments(settings=tuple(settings([each.name for each in raw])), overlays=tuple(overlays(families)))
    common = Adjustments(
        settings=adjustments.settings, overlays=tuple(o for o in adjustments.overlays if not _by_pool(o))
    )
    build, catalogs = timed(lambda: full_build(raw, adjustments, all_pools))
    shared, _ = timed(lambda: full_build(raw, common, all_pools))
    spent = stages(raw, adjustments, all_pools)
    whole = sum(spent.values())
    call, identical = cached_call_seconds(adjustments, all_pools[0])
    copying, _ = timed(lambda: deep_copy(catalogs[0].types))
    one, ten = kept_bytes(raw, common, all_pools[:1]), kept_bytes(raw, common, all_pools)
    return {
        "types": len(raw),
        "offerings": sum(len(each.offerings) for each in raw),
        "full build of 10 pools, ms": round(build * 1000, 1),
        "full build when overlays name no pool, ms": round(shared * 1000, 1),
        **{f"share of {name}, %": round(100 * seconds / whole, 1) for name, seconds in spent.items()},
        "cached call, µs": round(call * 1e6, 3),
        "cached call returns the identical object": identical,
        "deep copy of every type, ms": round(copying * 1000, 1),
        "deep copy over cached call": round(copying / call),
        "memory of 1 pool, MB": round(one / 1e6, 2),
        "memory of 10 equal pools, MB": round(ten / 1e6, 2),
        "memory of 10 over 1": round(ten / one, 3),
    }


def _by_pool(overlay: NodeOverlay) -> bool:
    return any(part.key == "karpenter.sh/nodepool" for part in overlay.spec.requirements)
