"""What is settled about single pods: whether one must move when its node goes, what a DaemonSet puts on a new node."""

from collections.abc import Iterable
from datetime import datetime

from joiner.model import labels, podrules
from joiner.model.duration import Duration
from joiner.model.meta import ObjectMeta, replace
from joiner.model.pod import Container, Pod, PodSpec, condition
from joiner.model.podpolicy import PodDisruptionBudget
from joiner.model.requirement import DOES_NOT_EXIST
from joiner.model.selector import chooses
from joiner.model.workload import DaemonSet


def must_move(pod: Pod, budgets: Iterable[PodDisruptionBudget], now: datetime) -> bool:
    """Whether the pod of a node that goes needs a place now. One that may not be evicted yet is not in a hurry."""
    if not podrules.is_reschedulable(pod) or podrules.must_not_be_disrupted(pod, now):
        return False
    protecting = [each for each in budgets if protects(each, pod)]
    return len(protecting) <= 1 and not any(each.never_allows for each in protecting)


def protects(budget: PodDisruptionBudget, pod: Pod) -> bool:
    """Whether the budget has a say in when the pod may go."""
    if budget.metadata.namespace != pod.metadata.namespace or not chooses(budget.spec.selector, pod.metadata.labels):
        return False
    ready = condition(pod, "Ready")
    return not (budget.lets_unready_go and (ready is None or ready.status != "True"))


def protected_until(pod: Pod, now: datetime) -> datetime | None:
    """When a protection that holds now ends by itself; nothing when there is none, or one without an end."""
    if not podrules.must_not_be_disrupted(pod, now) or pod.status.start_time is None:
        return None
    text = pod.metadata.annotations[labels.DO_NOT_DISRUPT]
    return None if text == "true" else pod.status.start_time + Duration.parse(text).timedelta


def declines_us(pod: Pod) -> bool:
    """Whether the pod asks for nodes that belong to no pool: it is not for us, and needs no event."""
    required = pod.spec.affinity.node_affinity.required
    terms = required.node_selector_terms if required is not None else ()
    asked = (each for term in terms for each in term.match_expressions)
    return any(each.key == labels.NODEPOOL and each.operator == DOES_NOT_EXIST for each in asked)


def daemon(made_by: DaemonSet, newest: Pod | None) -> Pod:
    """The pod of a DaemonSet as it would run on a new node: like its newest one, but bound to no node."""
    template = made_by.spec.template
    spec = newest.spec if newest is not None else limits_as_requests(template.spec)
    metadata = newest.metadata if newest is not None else template.metadata
    required = template.spec.affinity.node_affinity.required  # the live one names its node there
    affinity = replace(spec.affinity, node_affinity=replace(spec.affinity.node_affinity, required=required))
    return Pod(
        metadata=ObjectMeta(name=made_by.name, namespace=made_by.metadata.namespace, labels=metadata.labels),
        spec=replace(spec, node_name="", affinity=affinity),
    )


def daemon_owner(pod: Pod) -> str:
    """The name of the DaemonSet that made the pod; empty when none did."""
    return next((owner.name for owner in pod.metadata.owner_references if owner.kind == DaemonSet.kind), "")


def age_order(pod: Pod) -> tuple[bool, float, str]:
    """Grows with later creation; of pods that were made at one moment, with the name."""
    moment = pod.metadata.creation_timestamp
    return (moment is not None, moment.timestamp() if moment is not None else 0.0, pod.name)


def limits_as_requests(spec: PodSpec) -> PodSpec:
    """The spec with a request wherever there is only a limit, as the API server has it.

    A limit of the whole pod is its request where no container asks for any of that resource.
    """
    spec = replace(
        spec,
        containers=tuple(map(_container_with_requests, spec.containers)),
        init_containers=tuple(map(_container_with_requests, spec.init_containers)),
    )
    asked = {name for each in (*spec.containers, *spec.init_containers) for name in each.resources.requests}
    whole = spec.resources
    requests = {**{name: amount for name, amount in whole.limits.items() if name not in asked}, **whole.requests}
    return spec if requests == whole.requests else replace(spec, resources=replace(whole, requests=requests))


def _container_with_requests(container: Container) -> Container:
    given = container.resources
    if all(name in given.requests for name in given.limits):
        return container
    return replace(container, resources=replace(given, requests={**given.limits, **given.requests}))
