"""Manifests to a scheduling `Problem`: the pending pods, and everything that decides where they can go."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import reduce
from itertools import chain
from typing import Final

from joiner.admission.amounts import odd_amount
from joiner.model.clusterobjects import Namespace, Service
from joiner.model.labels import Vocabulary
from joiner.model.node import Node
from joiner.model.nodeclaim import NodeClaim
from joiner.model.pod import Pod
from joiner.model.podpolicy import PodDisruptionBudget
from joiner.model.podrequests import of_spec
from joiner.model.resources import CPU, MEMORY
from joiner.model.storage import CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass
from joiner.model.workload import Deployment, ReplicaSet, ReplicationController, StatefulSet
from joiner.offline import ignored
from joiner.offline.catalogs import PoolView
from joiner.offline.cluster import Holdings, picture
from joiner.offline.ignored import Ignored
from joiner.offline.manifests import DEFAULT_NAMESPACE, Manifests
from joiner.offline.staticpools import NONE as NO_STATIC_NODES
from joiner.offline.staticpools import StaticNodes
from joiner.offline.workloads import boundpods, daemonsets
from joiner.offline.workloads.autoscalers import Load
from joiner.offline.workloads.pending import pods_of
from joiner.offline.workloads.storage import completed
from joiner.scheduling.pods.defaultspread import Controller, Defaults, Selectors, with_defaults
from joiner.scheduling.problem import Policy, PoolOption, Problem, Storage
from joiner.state.snapshot import Snapshot

METADATA_NAME = "kubernetes.io/metadata.name"
"""The label that every namespace carries."""

NO_PODS: Final = "no pod is waiting for a node, so there is nothing to plan for"
"""The note about files without a pod that waits."""


@dataclass(frozen=True)
class PlanQuestion:
    """A problem, and what people want to know about where it came from."""

    problem: Problem
    workloads: Mapping[str, tuple[str, str, str]]
    """Pod (`namespace/name`) to kind, namespace and name of the workload it belongs to."""
    notes: tuple[str, ...] = ()
    """What had to be assumed, and what was left out."""
    others: Mapping[str, str] = field(default_factory=dict)
    """Pods that do not wait (`namespace/name`), and what they do instead."""
    ignored: tuple[Ignored, ...] = ()
    """What was given and is not used, though it could change the answer; the notes tell the same in words."""
    snapshot: Snapshot | None = None
    """The nodes that are there with their claims and pods; nothing if there are none."""

    def workload(self, pod: str) -> str:
        """The workload of a pod, as people call it."""
        kind, namespace, name = self.workloads.get(pod, ("Pod", *pod.split("/", 1)))
        return f"{kind} {short(f'{namespace}/{name}')}"


def short(pod: str) -> str:
    """The name without the default namespace."""
    return pod.removeprefix(f"{DEFAULT_NAMESPACE}/")


def ask(
    manifests: Manifests,
    views: Sequence[PoolView],
    now: datetime,
    policy: Policy,
    spread: Defaults | None = None,
    load: Load = "stated",
    static: StaticNodes = NO_STATIC_NODES,
) -> PlanQuestion:
    """The problem that the manifests pose at that moment. Pods may be given spread constraints where they have none."""
    found = pods_of(manifests, load)
    families = found.families
    storage, assumed = completed(_storage(manifests, found.claims), found.waiting)
    vocabulary = _vocabulary(views)
    inferred = daemonsets.inferred(found.bound, found.daemon_sets)
    holdings = Holdings(
        nodes=manifests.all(Node),
        claims=(*manifests.all(NodeClaim), *(node.claim for node in static.nodes)),
        pods=found.bound,
        daemon_sets=(*found.daemon_sets, *inferred),
        csi_nodes=manifests.all(CSINode),
        storage=storage,
        budgets=manifests.all(PodDisruptionBudget),
    )
    seen = picture(holdings, now, vocabulary)
    selectors = Selectors(manifests.all(Service), _controllers(manifests), families.head)
    queue = with_defaults((*found.waiting, *seen.evicted), spread or {}, selectors)
    problem = Problem(
        pods=queue,
        pools=tuple(_pool(each, seen.used) for each in views),
        nodes=seen.nodes,
        bound=seen.bound,
        bound_nodes=seen.bound_nodes,
        daemons=seen.daemons,
        namespaces=_namespaces(manifests, (*queue, *seen.bound)),
        storage=storage,
        promised=static.reserved,
        policy=policy,
        vocabulary=vocabulary,
    )
    heads = {pod.key: families.head(pod) for pod in queue}
    unused = manifests.ignored()
    said = (
        *(() if queue else (NO_PODS,)),
        *static.notes,
        *found.notes,
        *daemonsets.note(inferred),
        *assumed,
        *_doubled(manifests),
        *_modest(queue, heads),
        *_odd_requests(queue, heads),
        *ignored.lines(unused),
    )
    return PlanQuestion(problem, heads, said, boundpods.reasons(manifests), unused, seen.snapshot)


def _controllers(manifests: Manifests) -> tuple[Controller, ...]:
    stateful, old = manifests.all(StatefulSet), manifests.all(ReplicationController)
    return (*manifests.all(Deployment), *manifests.all(ReplicaSet), *stateful, *old)


# -- what is said ----------------------------------------------------------------------------------------------------------


def _doubled(manifests: Manifests) -> Iterator[str]:
    for kind, names in sorted(manifests.doubled.items()):
        alike = [name for name, place in names.items() if not place]
        if alike:
            yield f"{kind} {ignored.listed(alike)}: given more than once; each counts once"
        differing = [f"{name} ({place})" for name, place in names.items() if place]
        if differing:
            said = "given more than once, and not alike; only what stands at the place in brackets counts"
            yield f"{kind} {ignored.listed(differing)}: {said}"


def _modest(pods: Sequence[Pod], heads: Mapping[str, tuple[str, str, str]]) -> Iterator[str]:
    """Pods that ask for nothing take no room in a plan, whatever they will use."""
    missing: dict[int, tuple[str, ...]] = {}
    found: dict[tuple[str, ...], list[Pod]] = {}
    for pod in pods:
        if id(pod.spec) not in missing:
            asked = of_spec(pod.spec)
            missing[id(pod.spec)] = tuple(name for name in (CPU, MEMORY) if not asked.get(name))
        found.setdefault(missing[id(pod.spec)], []).append(pod)
    for names, modest in sorted(found.items()):
        if names:
            workloads = {"{} {}".format(*_short(heads[pod.key])) for pod in modest}
            yield (
                f"{len(modest)} of {len(pods)} pods request no {' and no '.join(names)} ({ignored.listed(workloads)}):"
                " they take none in this plan, so it may look cheaper than it will be; give them resources.requests"
            )


def _odd_requests(pods: Sequence[Pod], heads: Mapping[str, tuple[str, str, str]]) -> Iterator[str]:
    """Requests that cannot be meant, such as 512m of memory."""
    found: dict[str, dict[str, None]] = {}
    seen: set[int] = set()
    for pod in pods:
        if id(pod.spec) not in seen:
            seen.add(id(pod.spec))
            asked = (each.resources.requests.items() for each in (*pod.spec.containers, *pod.spec.init_containers))
            for name, amount in chain.from_iterable(asked):
                if odd := odd_amount(name, amount):
                    found.setdefault(odd, {})["{} {}".format(*_short(heads[pod.key]))] = None
    for odd, workloads in sorted(found.items()):
        yield f"{ignored.listed(workloads)}: requests {odd}"


def _short(head: tuple[str, str, str]) -> tuple[str, str]:
    kind, namespace, name = head
    return kind, name if namespace == DEFAULT_NAMESPACE else f"{namespace}/{name}"


# -- everything else -----------------------------------------------------------------------------------------------------


def _storage(manifests: Manifests, made: Iterable[PersistentVolumeClaim]) -> Storage:
    claims = {(each.metadata.namespace, each.name): each for each in (*made, *manifests.all(PersistentVolumeClaim))}
    return Storage(
        claims=tuple(claims.values()), volumes=manifests.all(PersistentVolume), classes=manifests.all(StorageClass)
    )


def _pool(view: PoolView, used: Mapping[str, Mapping[str, int]]) -> PoolOption:
    return PoolOption(pool=view.pool, catalog=view.catalog, used=used.get(view.pool.name, {}))


def _vocabulary(views: Sequence[PoolView]) -> Vocabulary:
    """The words of all providers."""
    known = [view.catalog.market.vocabulary for view in views]
    return reduce(Vocabulary.joined, known) if known else Vocabulary()


def _namespaces(manifests: Manifests, pods: Iterable[Pod]) -> dict[str, Mapping[str, str]]:
    names = {DEFAULT_NAMESPACE, *(pod.metadata.namespace for pod in pods)}
    found: dict[str, Mapping[str, str]] = {name: {METADATA_NAME: name} for name in sorted(names)}
    for each in manifests.all(Namespace):
        found[each.name] = {**each.metadata.labels, METADATA_NAME: each.name}
    return found
