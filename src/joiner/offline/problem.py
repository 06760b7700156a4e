"""Manifests to a scheduling `Problem`: the pending pods, and everything that decides where they can go."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import reduce
from typing import Any, Final, TypeVar

from joiner.model import podrules
from joiner.model.capacitybuffer import CapacityBuffer
from joiner.model.clusterobjects import Namespace, Service
from joiner.model.labels import Vocabulary
from joiner.model.meta import replace
from joiner.model.node import Node
from joiner.model.nodeclaim import NodeClaim
from joiner.model.pod import Pod
from joiner.model.podpolicy import LimitRange, PodDisruptionBudget, PriorityClass, RuntimeClass
from joiner.model.podrequests import of_spec
from joiner.model.resources import CPU, MEMORY
from joiner.model.storage import CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass
from joiner.model.workload import (
    DaemonSet,
    Deployment,
    HorizontalPodAutoscaler,
    PodTemplate,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
)
from joiner.offline import boundpods, daemonsets, ignored
from joiner.offline.autoscalers import Autoscalers, Load
from joiner.offline.buffers import Sources
from joiner.offline.catalogs import PoolView
from joiner.offline.cluster import Holdings, picture
from joiner.offline.manifests import DEFAULT_NAMESPACE, KUBERNETES, Manifests, Unsound
from joiner.offline.storage import completed
from joiner.offline.workloads import (
    WORKLOADS,
    Rules,
    Workload,
    WorkloadFamilies,
    admitted,
    claims_of,
    controller,
    expand,
    wanted,
)
from joiner.scheduling.engine.prepared import natural
from joiner.scheduling.pods.defaultspread import Controller, Defaults, Selectors, with_defaults
from joiner.scheduling.problem import Policy, PoolOption, Problem, Storage
from joiner.state.virtualpods import WAITING, virtual_pods

METADATA_NAME = "kubernetes.io/metadata.name"
"""The label that every namespace carries."""

PODS_MAX: Final = 1_000_000
"""More pods than this are taken for a slip of the finger."""

_NO_PODS: Final = "no pod in these files is waiting for a node, so there is nothing to plan for"

W = TypeVar("W", bound="Workload | DaemonSet")


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
) -> PlanQuestion:
    """The problem that the manifests pose at that moment. Pods may be given spread constraints where they have none."""
    rules = Rules(
        limit_ranges=manifests.all(LimitRange),
        priority_classes=manifests.all(PriorityClass),
        runtime_classes=manifests.all(RuntimeClass),
    )
    families = WorkloadFamilies(manifests.all(ReplicaSet), manifests.all(Deployment))
    bound, waiting, notes = _sorted_out(manifests, rules)
    autoscalers = Autoscalers(manifests.all(HorizontalPodAutoscaler), load)
    made, claims = _made(manifests, (*bound, *waiting), rules, families, autoscalers)
    kept, missed = _kept_ready(manifests, rules)
    waiting = (*waiting, *made, *kept)
    storage, assumed = completed(_storage(manifests, claims), waiting)
    vocabulary = _vocabulary(views)
    inferred = daemonsets.inferred(bound, manifests.all(DaemonSet))
    holdings = Holdings(
        nodes=manifests.all(Node),
        claims=manifests.all(NodeClaim),
        pods=bound,
        daemon_sets=(*(_admitted(each, rules) for each in manifests.all(DaemonSet)), *inferred),
        csi_nodes=manifests.all(CSINode),
        storage=storage,
        budgets=manifests.all(PodDisruptionBudget),
    )
    seen = picture(holdings, now, vocabulary)
    selectors = Selectors(manifests.all(Service), _controllers(manifests), families.head)
    queue = with_defaults((*waiting, *seen.evicted), spread or {}, selectors)
    problem = Problem(
        pods=queue,
        pools=tuple(_pool(each, seen.used) for each in views),
        nodes=seen.nodes,
        bound=seen.bound,
        bound_nodes=seen.bound_nodes,
        daemons=seen.daemons,
        namespaces=_namespaces(manifests, (*queue, *seen.bound)),
        storage=storage,
        policy=policy,
        vocabulary=vocabulary,
    )
    heads = {pod.key: families.head(pod) for pod in queue}
    said = (
        *(() if queue else (_NO_PODS,)),
        *autoscalers.notes,
        *daemonsets.note(inferred),
        *notes,
        *missed,
        *assumed,
        *_doubled(manifests),
        *_modest(queue, heads),
        *ignored.notes(manifests.others, KUBERNETES),
    )
    return PlanQuestion(problem, heads, said, boundpods.reasons(manifests))


# -- pods ----------------------------------------------------------------------------------------------------------------


def _sorted_out(manifests: Manifests, rules: Rules) -> tuple[tuple[Pod, ...], tuple[Pod, ...], tuple[str, ...]]:
    """The pods of the files: those that have a node, those that wait for one, and what is said about the others."""
    bound: list[Pod] = []
    waiting: list[Pod] = []
    gated = 0
    nodes = {node.name for node in manifests.all(Node)}
    homeless = 0
    for pod in manifests.all(Pod):
        if podrules.is_terminal(pod):
            continue
        if pod.spec.node_name:
            bound.append(pod)
            homeless += pod.spec.node_name not in nodes
        elif pod.spec.scheduling_gates:
            gated += 1
        elif podrules.is_active(pod) and not podrules.is_daemon(pod) and not podrules.is_mirror(pod):
            waiting.append(_waiting(pod, rules))
    said = (
        (gated, "{} held back by scheduling gates and not planned for"),
        (homeless, "{} bound to nodes that are not in these files; they are passed over"),
    )
    return tuple(bound), tuple(waiting), tuple(text.format(_counted(count)) for count, text in said if count)


def _counted(count: int) -> str:
    return "1 pod is" if count == 1 else f"{count} pods are"


def _waiting(pod: Pod, rules: Rules) -> Pod:
    if pod.metadata.uid:  # it comes from an API server, which has seen to everything
        return replace(pod, status=replace(pod.status, phase="Pending", conditions=WAITING.conditions))
    metadata = replace(pod.metadata, uid=f"Pod/{natural(pod.key)}")
    return replace(pod, metadata=metadata, spec=admitted(pod.spec, pod.metadata.namespace, rules), status=WAITING)


def _made(
    manifests: Manifests,
    known: Iterable[Pod],
    rules: Rules,
    families: WorkloadFamilies,
    autoscalers: Autoscalers,
) -> tuple[tuple[Pod, ...], tuple[PersistentVolumeClaim, ...]]:
    """The pods that workloads would still make, and the volume claims that come with them."""
    living: dict[tuple[str, str, str], list[Pod]] = {}
    for pod in known:
        if podrules.is_active(pod):
            living.setdefault(families.head(pod), []).append(pod)
    pods: list[Pod] = []
    claims: list[PersistentVolumeClaim] = []
    for kind in WORKLOADS:
        for workload in manifests.all(kind):
            if controller(workload) is not None and _is_known(manifests, workload):
                continue  # its owner is among the files and is expanded instead
            head = (kind.kind, workload.metadata.namespace, workload.name)
            scaled = autoscalers.scaled(workload)
            _check_number(kind.kind, workload.name, wanted(scaled))
            missing = expand(_admitted(scaled, rules), living.get(head, ()))
            pods.extend(missing)
            claims.extend(claims_of(workload, missing))
    return tuple(pods), tuple(claims)


def _check_number(kind: str, name: str, count: int) -> None:
    if count > PODS_MAX:
        raise Unsound(
            f"{kind} {name} wants {count:,} pods; plans are made for at most {PODS_MAX:,}: check its replicas"
        )


def _kept_ready(manifests: Manifests, rules: Rules) -> tuple[tuple[Pod, ...], tuple[str, ...]]:
    """The virtual pods of buffers, and which buffers imitate something that is not there."""
    workloads = (each for kind in WORKLOADS for each in manifests.all(kind))
    sources = Sources(manifests.all(PodTemplate), (_admitted(each, rules) for each in workloads))
    pods: list[Pod] = []
    missed: list[str] = []
    for buffer in manifests.all(CapacityBuffer):
        _check_number(buffer.kind, buffer.name, buffer.spec.replicas or 0)
        made = virtual_pods(buffer, sources)
        if made is None:
            missed.append(f"CapacityBuffer {buffer.name} keeps room for pods like an object that is not in these files")
        pods.extend(made or ())
    return tuple(pods), tuple(missed)


def _is_known(manifests: Manifests, workload: Workload) -> bool:
    owner = controller(workload)
    return owner is not None and any(
        kind.kind == owner.kind and manifests.get(kind, f"{workload.metadata.namespace}/{owner.name}") is not None
        for kind in WORKLOADS
    )


def _admitted(workload: W, rules: Rules) -> W:
    template: Any = workload.spec.template
    spec = admitted(template.spec, workload.metadata.namespace, rules)
    changed: Any = replace(workload.spec, template=replace(template, spec=spec))
    return replace(workload, spec=changed)


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
