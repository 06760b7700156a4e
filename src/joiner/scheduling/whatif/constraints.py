"""Constraints one by one: what a pod, its neighbours and the pools ask for, and the same question without each of it.

A change to a pod is a change to all pods like it, as pods are edited through their workload. Nothing here says whether a
change would help; that is found out by asking again.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial, reduce
from typing import Final, NamedTuple, TypeVar

from joiner.model import podrequests, resources
from joiner.model.affinity import (
    SCHEDULE_ANYWAY,
    Affinity,
    NodeAffinity,
    NodeSelectorTerm,
    PodAffinityTerm,
)
from joiner.model.meta import Value, controller_of, replace
from joiner.model.pod import Container, Pod, PodSpec, ResourceRequirements, host_ports
from joiner.model.requirement import EXISTS, SelectorRequirement
from joiner.model.resources import NODES, PODS
from joiner.model.selector import chooses
from joiner.model.taints import Taint, Toleration, tolerates
from joiner.requirements import Requirement, Requirements
from joiner.scheduling.nodes.openclaim import (
    LIMITS,
    MIN_VALUES,
    PORTS,
    REQUIREMENTS,
    RESOURCES,
    TAINTS,
    TOPOLOGY,
    VOLUMES,
)
from joiner.scheduling.problem import PoolOption, Problem
from joiner.scheduling.report.words import company_text, expression_text, node_preference_text, spread_text, taint_text

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"

REMOVE: Final = "remove it"

SpecChange = Callable[[PodSpec], PodSpec]
T = TypeVar("T")


class Constraint(Value):
    """One thing that a pod asks for."""

    rule: str
    """The rule that heeds it: `requirements`, `taints`, `topology` …"""
    object: str
    """Who asks: `Pod default/web-0`, `NodePool default`."""
    field: str
    """Where it is written."""
    says: str
    """What it says, in words."""
    change: str = REMOVE
    """What lifting it comes to."""
    hard: bool = True
    """Whether it is a rule; a preference gives way by itself."""
    wanted: tuple[SelectorRequirement, ...] = ()
    """The labels it asks for, where it asks for some."""
    resource: str = ""
    """The resource it asks for, where it asks for one."""


class Lift(NamedTuple):
    """A constraint, and how to be rid of it: by a change to pods like one, or to the question as a whole."""

    constraint: Constraint
    pod: Pod | None = None
    spec: SpecChange | None = None
    whole: Callable[[Problem], Problem] | None = None


def without(problem: Problem, lifts: Sequence[Lift]) -> Problem:
    """The question without some constraints, given in the order in which they were told of."""
    for lift in lifts:
        if lift.whole is not None:
            problem = lift.whole(problem)
    changes = [(lift.pod, lift.spec) for lift in lifts if lift.pod is not None and lift.spec is not None]
    # From the back, as fields are told by their number.
    return _rewritten(problem, changes[0][0], [spec for _, spec in reversed(changes)]) if changes else problem


def constraints(problem: Problem, pod: Pod) -> Iterator[Lift]:
    """Everything that could keep a pod out: the pod's own demands first, then what others say."""
    yield from own_demands(pod)
    yield from _taints(problem, pod)
    yield from _neighbours(problem, pod)
    for option in problem.pools:
        yield from of_pool(option)
    for daemon in problem.daemons:
        told = Constraint(rule=RESOURCES, object=f"DaemonSet {daemon.name}", field="spec.template.spec", says="daemon")
        yield Lift(told, whole=partial(_without_daemon, daemon=daemon))


def own_demands(pod: Pod) -> Iterator[Lift]:
    """What the pod itself demands."""
    yield from _labels(pod)
    yield from wishes_for_company(pod, hard=True)
    yield from _volumes(pod)
    yield from _ports(pod)
    yield from _requests(pod)


def preferences(pod: Pod) -> Iterator[Lift]:
    """What the pod would like, and the company it demands: whatever may make a plan dearer without shutting the pod out."""
    field = f"spec.affinity.nodeAffinity.{_PREFERRED}"
    for number, term in enumerate(pod.spec.affinity.node_affinity.preferred):
        told = _told(pod, REQUIREMENTS, f"{field}[{number}]", node_preference_text(term), hard=False)
        yield _of_pods(pod, told, partial(_without_preferred_node, number=number))
    yield from wishes_for_company(pod, hard=False)
    yield from wishes_for_company(pod, hard=True)


# -- what a pod asks of labels -------------------------------------------------------------------------------------------


def _told(pod: Pod, rule: str, field: str, says: str, hard: bool = True) -> Constraint:
    return Constraint(rule=rule, object=f"Pod {pod.key}", field=field, says=says, hard=hard)


def _labels(pod: Pod) -> Iterator[Lift]:
    for key, value in sorted(pod.spec.node_selector.items()):
        told = _told(pod, REQUIREMENTS, f"spec.nodeSelector[{key}]", f"nodeSelector {key}: {value}")
        wanted = SelectorRequirement(key=key, operator="In", values=(value,))
        yield _of_pods(pod, replace(told, wanted=(wanted,)), partial(_without_label, key=key))
    yield from _node_affinity(pod)


def _node_affinity(pod: Pod) -> Iterator[Lift]:
    """The terms are alternatives: all of them can be removed, or a part of one that leaves other parts of it.

    Without its only part a term would be empty, which matches no node: the other terms would be all there is.
    """
    terms, field = _terms(pod.spec), f"spec.affinity.nodeAffinity.{_REQUIRED}"
    if len(terms) > 1:
        told = _told(pod, REQUIREMENTS, field, f"node affinity of {len(terms)} terms")
        wanted = tuple(each for term in terms for each in term.match_expressions)
        yield _of_pods(pod, replace(told, change="remove all of them", wanted=wanted), _without_terms)
    for number, term in enumerate(terms):
        single = len(term.match_expressions) + bool(term.match_fields) == 1
        if single and len(terms) > 1:
            continue
        for place, each in enumerate(term.match_expressions):
            where = field if single else f"{field}.nodeSelectorTerms[{number}].matchExpressions[{place}]"
            told = _told(pod, REQUIREMENTS, where, f"node affinity {expression_text(each)}")
            change = partial(_without_expression, number=number, place=place)
            yield _of_pods(pod, replace(told, wanted=(each,)), change)
        if term.match_fields:
            where = field if single else f"{field}.nodeSelectorTerms[{number}].matchFields"
            told = _told(pod, REQUIREMENTS, where, "node affinity with matchFields")
            yield _of_pods(pod, told, partial(_without_match_fields, number=number))


def _without_label(spec: PodSpec, key: str) -> PodSpec:
    return replace(spec, node_selector={name: value for name, value in spec.node_selector.items() if name != key})


def _without_terms(spec: PodSpec) -> PodSpec:
    return _with_node_affinity(spec, replace(spec.affinity.node_affinity, required=None))


def _without_expression(spec: PodSpec, number: int, place: int) -> PodSpec:
    terms = _terms(spec)
    if number >= len(terms):  # the term is gone, with all the others or because nothing was left of it
        return spec
    return _with_term(
        spec, number, replace(terms[number], match_expressions=_less(terms[number].match_expressions, place))
    )


def _without_match_fields(spec: PodSpec, number: int) -> PodSpec:
    terms = _terms(spec)
    return _with_term(spec, number, replace(terms[number], match_fields=())) if number < len(terms) else spec


def _terms(spec: PodSpec) -> tuple[NodeSelectorTerm, ...]:
    required = spec.affinity.node_affinity.required
    return required.node_selector_terms if required is not None else ()


def _with_term(spec: PodSpec, number: int, term: NodeSelectorTerm) -> PodSpec:
    """A term of which nothing is left goes; with the last of them goes the node affinity as a whole."""
    nodes, required = spec.affinity.node_affinity, spec.affinity.node_affinity.required
    assert required is not None
    kept = (term,) if term.match_expressions or term.match_fields else ()
    terms = (*required.node_selector_terms[:number], *kept, *required.node_selector_terms[number + 1 :])
    fewer = replace(required, node_selector_terms=terms) if terms else None
    return _with_node_affinity(spec, replace(nodes, required=fewer))


def _without_preferred_node(spec: PodSpec, number: int) -> PodSpec:
    nodes = spec.affinity.node_affinity
    return _with_node_affinity(spec, replace(nodes, preferred=_less(nodes.preferred, number)))


def _with_node_affinity(spec: PodSpec, nodes: NodeAffinity) -> PodSpec:
    return replace(spec, affinity=replace(spec.affinity, node_affinity=nodes))


# -- what a pod asks of other pods ---------------------------------------------------------------------------------------


def wishes_for_company(pod: Pod, hard: bool) -> Iterator[Lift]:
    """Spread, pod affinity and anti-affinity: what the pod demands, or what it only prefers."""
    for number, spread in enumerate(pod.spec.topology_spread_constraints):
        if (spread.when_unsatisfiable != SCHEDULE_ANYWAY) == hard:
            told = _told(pod, TOPOLOGY, f"spec.topologySpreadConstraints[{number}]", spread_text(spread), hard=hard)
            yield _of_pods(pod, _by(told, spread.topology_key), partial(_without_spread, number=number))
    for kind, word in (("pod_affinity", "podAffinity"), ("pod_anti_affinity", "podAntiAffinity")):
        side = getattr(pod.spec.affinity, kind)
        terms = side.required if hard else tuple(each.pod_affinity_term for each in side.preferred)
        for number, term in enumerate(terms):
            field = f"spec.affinity.{word}.{_REQUIRED if hard else _PREFERRED}[{number}]"
            says = company_text(kind, term) if hard else f"preferred {company_text(kind, term)}"
            change = partial(_without_company, kind=kind, hard=hard, number=number)
            yield _of_pods(pod, _by(_told(pod, TOPOLOGY, field, says, hard=hard), term.topology_key), change)


def _by(told: Constraint, key: str) -> Constraint:
    """A constraint that asks for nodes to have a label."""
    return replace(told, wanted=(SelectorRequirement(key=key, operator=EXISTS),))


def _without_spread(spec: PodSpec, number: int) -> PodSpec:
    return replace(spec, topology_spread_constraints=_less(spec.topology_spread_constraints, number))


def _without_company(spec: PodSpec, kind: str, hard: bool, number: int) -> PodSpec:
    field = "required" if hard else "preferred"
    side = getattr(spec.affinity, kind)
    fewer = replace(side, **{field: _less(getattr(side, field), number)})
    affinity: Affinity = replace(spec.affinity, **{kind: fewer})
    return replace(spec, affinity=affinity)


# -- what a pod asks of a node -------------------------------------------------------------------------------------------


def _volumes(pod: Pod) -> Iterator[Lift]:
    for number, volume in enumerate(pod.spec.volumes):
        claim = volume.claim_name(pod.name)
        if claim is not None:
            says = f"volume {volume.name} (PersistentVolumeClaim {claim})"
            told = _told(pod, VOLUMES, f"spec.volumes[{number}]", says)
            yield _of_pods(pod, told, partial(_without_volume, number=number))


def _without_volume(spec: PodSpec, number: int) -> PodSpec:
    return replace(spec, volumes=_less(spec.volumes, number))


def _ports(pod: Pod) -> Iterator[Lift]:
    for number in sorted({(port.host_port, port.protocol) for port in host_ports(pod.spec)}):
        told = _told(pod, PORTS, "spec.containers[*].ports[*].hostPort", f"host port {number[0]}/{number[1]}")
        yield _of_pods(pod, told, partial(_without_port, port=number))


def _without_port(spec: PodSpec, port: tuple[int, str]) -> PodSpec:
    def less(container: Container) -> Container:
        kept = tuple(each for each in container.ports if (each.host_port, each.protocol) != port)
        return replace(container, ports=kept)

    return replace(spec, containers=tuple(map(less, spec.containers)))


def _requests(pod: Pod) -> Iterator[Lift]:
    for name, amount in sorted(podrequests.of_pod(pod).items()):
        if amount and name != PODS:
            says = f"request of {name} {resources.plain(name, amount)}"
            told = _told(pod, RESOURCES, f"spec.containers[*].resources.requests[{name}]", says)
            less = replace(told, change="ask for less", resource=name)
            yield _of_pods(pod, less, partial(_without_request, name=name))


def _without_request(spec: PodSpec, name: str) -> PodSpec:
    def less(given: ResourceRequirements) -> ResourceRequirements:
        return replace(given, requests=_but(given.requests, name))

    def lighter(container: Container) -> Container:
        return replace(container, resources=less(container.resources))

    return replace(
        spec,
        containers=tuple(map(lighter, spec.containers)),
        init_containers=tuple(map(lighter, spec.init_containers)),
        resources=less(spec.resources),
        overhead=_but(spec.overhead, name),
    )


# -- what others say -----------------------------------------------------------------------------------------------------


def _taints(problem: Problem, pod: Pod) -> Iterator[Lift]:
    who: dict[Taint, list[str]] = {}
    for option in problem.pools:
        for taint in option.pool.spec.template.spec.taints:
            who.setdefault(taint, []).append(f"NodePool {option.pool.name}")
    for node in problem.nodes:
        for taint in node.taints:
            who.setdefault(taint, []).append(f"Node {node.name}")
    for taint, owners in who.items():
        if taint.effect == "PreferNoSchedule" or tolerates(pod.spec.tolerations, taint):
            continue
        told = Constraint(
            rule=TAINTS,
            object=owners[0] if len(owners) == 1 else f"{owners[0]} and {len(owners) - 1} more",
            field="spec.template.spec.taints" if owners[0].startswith("NodePool") else "spec.taints",
            says=f"taint {taint_text(taint)}",
            change="tolerate it",
        )
        more = Toleration(key=taint.key, operator="Equal", value=taint.value, effect=taint.effect)
        yield _of_pods(pod, told, partial(_with_toleration, more=more))


def _with_toleration(spec: PodSpec, more: Toleration) -> PodSpec:
    return replace(spec, tolerations=(*spec.tolerations, more))


def _neighbours(problem: Problem, pod: Pod) -> Iterator[Lift]:
    """Anti-affinity of others that keeps the pod away from them."""
    seen: set[str] = set()
    like = Alike(pod)
    for other in (*problem.bound, *problem.pods):
        for number, term in enumerate(other.spec.affinity.pod_anti_affinity.required):
            identity = repr((other.metadata.namespace, term))
            if identity in seen or not chooses(term.label_selector, pod.metadata.labels) or like(other):
                continue
            seen.add(identity)
            name = other.key
            told = Constraint(
                rule=TOPOLOGY,
                object=f"Pod {name}",
                field=f"spec.affinity.podAntiAffinity.{_REQUIRED}[{number}]",
                says=company_text("pod_anti_affinity", term),
            )
            yield Lift(told, whole=partial(_without_term_everywhere, term=term))


def _without_term_everywhere(problem: Problem, term: PodAffinityTerm) -> Problem:
    def less(pod: Pod) -> Pod:
        side = pod.spec.affinity.pod_anti_affinity
        if term not in side.required:
            return pod
        kept = replace(side, required=tuple(each for each in side.required if each != term))
        return replace(pod, spec=replace(pod.spec, affinity=replace(pod.spec.affinity, pod_anti_affinity=kept)))

    return replace(problem, pods=tuple(map(less, problem.pods)), bound=tuple(map(less, problem.bound)))


def of_pool(option: PoolOption) -> Iterator[Lift]:
    """What a NodePool demands: its limits, its requirements and their minValues."""
    pool = option.pool
    owner = f"NodePool {pool.name}"
    for name, amount in sorted(pool.spec.limits.items()):
        shown = resources.plain(name, int(amount)) if name != NODES else resources.text(name, int(amount))
        told = Constraint(
            rule=LIMITS, object=owner, field=f"spec.limits[{name}]", says=f"limit {name} {shown}", change="raise it"
        )
        yield Lift(told, whole=partial(_without_limit, pool=pool.name, name=name))
    demanded = option.catalog.requirements
    field = "spec.template.spec.requirements"
    for key in dict.fromkeys(each.key for each in pool.spec.template.spec.requirements):
        mine = demanded.get(option.catalog.market.vocabulary.normal_key(key))
        if mine is None:
            continue
        if mine.min_values is not None:
            says = f"minValues {mine.min_values} of {key}"
            told = Constraint(
                rule=MIN_VALUES, object=owner, field=f"{field}[{key}].minValues", says=says, change="lower it"
            )
            yield Lift(told, whole=partial(_with_requirement, pool=pool.name, key=mine.key, kept=mine.relaxed(None)))
        told = Constraint(rule=REQUIREMENTS, object=owner, field=f"{field}[{key}]", says=f"requirement {mine}")
        yield Lift(told, whole=partial(_with_requirement, pool=pool.name, key=mine.key, kept=None))


def _without_daemon(problem: Problem, daemon: Pod) -> Problem:
    return replace(problem, daemons=tuple(each for each in problem.daemons if each is not daemon))


def _without_limit(problem: Problem, pool: str, name: str) -> Problem:
    def less(option: PoolOption) -> PoolOption:
        limits = _but(option.pool.spec.limits, name)
        return replace(option, pool=replace(option.pool, spec=replace(option.pool.spec, limits=limits)))

    return _with_pool(problem, pool, less)


def _with_requirement(problem: Problem, pool: str, key: str, kept: Requirement | None) -> Problem:
    """A pool that demands something else of a label, or nothing."""

    def other(option: PoolOption) -> PoolOption:
        rest = option.catalog.requirements.without(key).values()
        requirements = Requirements((*rest, *(() if kept is None else (kept,))))
        eligible = option.catalog.index.select(requirements)
        return replace(option, catalog=replace(option.catalog, requirements=requirements, eligible=eligible))

    return _with_pool(problem, pool, other)


def _with_pool(problem: Problem, name: str, change: Callable[[PoolOption], PoolOption]) -> Problem:
    return replace(
        problem, pools=tuple(change(option) if option.pool.name == name else option for option in problem.pools)
    )


# -- pods like a pod -----------------------------------------------------------------------------------------------------


class Alike:
    """Tells the pods of one workload: those with the same controller that ask for the same.

    Volumes of their own do not tell them apart, nor do labels with their names and numbers, nor the nodes they have. Pods without
    a controller are alike if they differ in nothing but their names.
    """

    def __init__(self, pod: Pod) -> None:
        self._pod, self._family = pod, _family(pod)
        self._kind = kind_of(pod)
        self._known: dict[int, tuple[PodSpec, bool]] = {}

    def __call__(self, other: Pod) -> bool:
        """Whether the other pod is like ours."""
        if _family(other) != self._family:
            return False
        known = self._known.get(id(other.spec))
        if known is None:
            # The spec is kept with the answer, so that no other object gets its identity meanwhile.
            known = self._known[id(other.spec)] = (other.spec, kind_of(other) == self._kind)
        return known[1]


def _family(pod: Pod) -> tuple[object, ...]:
    """What is seen at a glance: pods of one workload have it in common."""
    meta = pod.metadata
    owner = controller_of(pod)
    if owner is not None:
        return (meta.namespace, owner.kind, owner.name)
    return (meta.namespace, frozenset(meta.labels.items()))


def kind_of(pod: Pod) -> tuple[object, ...]:
    """Equal for pods that are alike."""
    family, spec = _family(pod), pod.spec
    if controller_of(pod) is not None:
        volumes: object = tuple(volume.claim_name(pod.name) is not None for volume in spec.volumes)
    else:
        volumes = repr(spec.volumes)
    return (*family, volumes, repr(replace(spec, node_name="", volumes=())))


def _of_pods(pod: Pod, constraint: Constraint, change: SpecChange) -> Lift:
    return Lift(constraint, pod, change)


def _rewritten(problem: Problem, pod: Pod, changes: Iterable[SpecChange]) -> Problem:
    """The question with the specs of all pods like a pod changed."""
    like = Alike(pod)
    known: dict[int, PodSpec] = {}
    changing = tuple(changes)

    def other(pod: Pod) -> Pod:
        if not like(pod):
            return pod
        spec = known.get(id(pod.spec))
        if spec is None:
            spec = known[id(pod.spec)] = reduce(lambda spec, change: change(spec), changing, pod.spec)
        return replace(pod, spec=spec)

    return replace(problem, pods=tuple(map(other, problem.pods)), bound=tuple(map(other, problem.bound)))


def _less(parts: tuple[T, ...], number: int) -> tuple[T, ...]:
    return (*parts[:number], *parts[number + 1 :])


def _but(amounts: Mapping[str, T], name: str) -> dict[str, T]:
    return {each: amount for each, amount in amounts.items() if each != name}
