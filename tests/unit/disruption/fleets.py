"""Small clusters with prices, for tests of what should go."""

from collections.abc import Sequence
from typing import Any

from tests.builders import VOCABULARY, instance_type, node_pool, offering, pod, pool_option
from tests.unit.disruption.brokennodes import LONG_AGO, NOW, claim, ill, node, running

from joiner.catalog.market import InstanceType
from joiner.disruption.situation import Rules, Situation
from joiner.model import labels, resources
from joiner.model.duration import Duration
from joiner.model.meta import KubeObject, replace
from joiner.model.nodepool import NodePool
from joiner.model.pod import Pod
from joiner.state.cluster import Cluster

PRICES = {"small": 0.1, "medium": 0.2, "large": 0.4}
CPUS = {"small": 2, "medium": 4, "large": 8}


def shop(
    capacity_types: Sequence[str] = (labels.ON_DEMAND,), names: Sequence[str] = tuple(PRICES)
) -> tuple[InstanceType, ...]:
    """Three sizes at three prices; spot at a third."""
    return tuple(
        instance_type(
            name,
            offerings=[
                offering(kind, price=PRICES[name] / (3 if kind == labels.SPOT else 1)) for kind in capacity_types
            ],
            capacity=resources.of(cpu=CPUS[name], memory="64Gi", pods=100),
        )
        for name in names
    )


def machine(
    name: str, size: str = "large", capacity_type: str = labels.ON_DEMAND, **conditions: str
) -> list[KubeObject]:
    """A node of that size that may be consolidated, and its claim."""
    own = {
        labels.INSTANCE_TYPE: size,
        labels.ZONE: "a",
        labels.CAPACITY_TYPE: capacity_type,
        labels.HOSTNAME: name,
        labels.ARCH: "amd64",
        labels.OS: "linux",
    }
    made = node(ill("Ready"), name=name, labels=own)
    amounts = resources.of(cpu=CPUS[size], memory="64Gi", pods=100)
    made = replace(made, status=replace(made.status, capacity=amounts, allocatable=amounts))
    told = {"Launched": "True", "Registered": "True", "Initialized": "True", "Consolidatable": "True", **conditions}
    return [made, claim(name, LONG_AGO, **told)]


def on(name: str, where: str, cpu: str = "1", **more: Any) -> Pod:
    return running(pod(name, cpu=cpu, memory="1Gi", **more), where)


def situation(
    *things: KubeObject | list[KubeObject],
    pool: NodePool | None = None,
    types: tuple[InstanceType, ...] | None = None,
    eviction: str = "10m",
    **more: Any,
) -> Situation:
    """The cluster of these, with one pool that has everything in the shop."""
    known = pool or node_pool("default")
    option = pool_option(known, types or shop())
    cluster = Cluster(VOCABULARY)
    for thing in (each for some in things for each in (some if isinstance(some, list) else [some])):
        cluster.apply(type(thing), None, thing)
    rules = Rules(vocabulary=VOCABULARY, eviction_cost=Duration.parse(eviction), **more.pop("rules", {}))
    return Situation(
        snapshot=cluster.snapshot(NOW),
        now=NOW,
        pools={known.name: known},
        options=(option,),
        catalogs={known.name: option.catalog},
        rules=rules,
        **more,
    )
