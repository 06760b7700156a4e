"""The pods of the files: those that have a node, and those that wait for one or that a workload would still make."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from joiner.model import podrules
from joiner.model.capacitybuffer import CapacityBuffer
from joiner.model.meta import controller_of, replace
from joiner.model.node import Node
from joiner.model.pod import Pod
from joiner.model.podpolicy import LimitRange, PriorityClass, RuntimeClass
from joiner.model.storage import PersistentVolumeClaim
from joiner.model.workload import DaemonSet, Deployment, HorizontalPodAutoscaler, Job, PodTemplate, ReplicaSet
from joiner.offline.ignored import listed
from joiner.offline.manifests import Manifests, Unsound
from joiner.offline.workloads.autoscalers import Autoscalers, Load
from joiner.offline.workloads.buffers import Sources
from joiner.offline.workloads.expand import WORKLOADS, Workload, claims_of, expand, wanted
from joiner.offline.workloads.owners import WorkloadFamilies
from joiner.offline.workloads.podadmission import Rules, admitted, elsewhere
from joiner.scheduling.engine.prepared import natural
from joiner.state.virtualpods import WAITING, virtual_pods

PODS_MAX: Final = 1_000_000
"""More pods than this are taken for a slip of the finger."""

W = TypeVar("W", bound="Workload | DaemonSet")


@dataclass(frozen=True)
class PodsOfFiles:
    """The pods of the files, and of the workloads in them."""

    bound: tuple[Pod, ...]
    """Those that have a node."""
    waiting: tuple[Pod, ...]
    """Those to plan for, virtual pods of CapacityBuffers among them."""
    claims: tuple[PersistentVolumeClaim, ...]
    """The volume claims that come with pods of StatefulSets."""
    daemon_sets: tuple[DaemonSet, ...]
    """As the API server would have stored them."""
    families: WorkloadFamilies
    notes: tuple[str, ...]


def pods_of(manifests: Manifests, load: Load) -> PodsOfFiles:
    """Every pod that is there, or would be once the files are applied."""
    rules = Rules(
        limit_ranges=manifests.all(LimitRange),
        priority_classes=manifests.all(PriorityClass),
        runtime_classes=manifests.all(RuntimeClass),
    )
    families = WorkloadFamilies(manifests.all(ReplicaSet), manifests.all(Deployment))
    autoscalers = Autoscalers(manifests.all(HorizontalPodAutoscaler), load)
    bound, waiting, notes = _sorted_out(manifests, rules)
    made, claims, idle = _made(manifests, (*bound, *waiting), rules, families, autoscalers)
    kept, missed = _kept_ready(manifests, rules)
    return PodsOfFiles(
        bound=bound,
        waiting=(*waiting, *made, *kept),
        claims=claims,
        daemon_sets=tuple(_admitted(each, rules) for each in manifests.all(DaemonSet)),
        families=families,
        notes=(*autoscalers.notes, *idle, *notes, *missed, *elsewhere((*waiting, *made, *kept), rules)),
    )


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
) -> tuple[tuple[Pod, ...], tuple[PersistentVolumeClaim, ...], tuple[str, ...]]:
    """The pods that workloads would still make, the volume claims that come with them, and which workloads want none."""
    living: dict[tuple[str, str, str], list[Pod]] = {}
    for pod in known:
        if podrules.is_active(pod):
            living.setdefault(families.head(pod), []).append(pod)
    pods: list[Pod] = []
    claims: list[PersistentVolumeClaim] = []
    idle: list[Workload] = []
    for kind in WORKLOADS:
        for workload in manifests.all(kind):
            if controller_of(workload) is not None and _is_known(manifests, workload):
                continue  # its owner is among the files and is expanded instead
            head = (kind.kind, workload.metadata.namespace, workload.name)
            scaled = autoscalers.scaled(workload)
            count = wanted(scaled)
            _check_number(kind.kind, workload.name, count)
            if not count and controller_of(workload) is None:
                idle.append(scaled)
            missing = expand(_admitted(scaled, rules), living.get(head, ()))
            pods.extend(missing)
            claims.extend(claims_of(workload, missing))
    return tuple(pods), tuple(claims), tuple(_want_none(idle))


def _want_none(workloads: Iterable[Workload]) -> Iterator[str]:
    """Workloads that are scaled to nothing now and may not be tomorrow; a Job that is over is no news."""
    zero = [f"{each.kind} {each.name}" for each in workloads if not isinstance(each, Job) or each.spec.parallelism == 0]
    held = [each.name for each in workloads if isinstance(each, Job) and each.spec.suspend]
    if zero:
        yield f"{listed(zero)}: scaled to 0, so no pod of {'it' if len(zero) == 1 else 'them'} is planned for"
    if held:
        yield f"Job {listed(held)}: suspended, so no pod of {'it' if len(held) == 1 else 'them'} is planned for"


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
    owner = controller_of(workload)
    return owner is not None and any(
        kind.kind == owner.kind and manifests.get(kind, f"{workload.metadata.namespace}/{owner.name}") is not None
        for kind in WORKLOADS
    )


def _admitted(workload: W, rules: Rules) -> W:
    template: Any = workload.spec.template
    spec = admitted(template.spec, workload.metadata.namespace, rules)
    changed: Any = replace(workload.spec, template=replace(template, spec=spec))
    return replace(workload, spec=changed)
