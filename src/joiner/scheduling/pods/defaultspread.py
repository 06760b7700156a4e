"""Spread constraints for pods that have none: what the cluster's scheduler gives them by default, planning must know, too.

They come from the configuration of kube-scheduler (`PodTopologySpread` with `defaultingType: List`). Whose pods are spread is
deduced for each pod, as kube-scheduler does it: from the Services that choose it and from the controller that made it.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Literal

from joiner.model import labels
from joiner.model.affinity import DO_NOT_SCHEDULE, SCHEDULE_ANYWAY, TopologySpreadConstraint
from joiner.model.clusterobjects import Service
from joiner.model.codec import DecodeError, decode
from joiner.model.meta import Value, controller_of, replace
from joiner.model.pod import Pod, PodSpec
from joiner.model.selector import LabelExpression, LabelSelector
from joiner.model.workload import Deployment, ReplicaSet, ReplicationController, StatefulSet

GROUP: Final = "kubescheduler.config.k8s.io"
KIND: Final = "KubeSchedulerConfiguration"
PLUGIN: Final = "PodTopologySpread"
KARPENTERS: Final = "podTopologySpread"
"""The field of Karpenter's own form of the configuration."""
EVERY: Final = "*"

Controller = Deployment | ReplicaSet | StatefulSet | ReplicationController
Defaults = Mapping[str, tuple[TopologySpreadConstraint, ...]]
"""Name of a scheduler to the constraints that its pods get; `EVERY` for those of all others."""
Head = tuple[str, str, str]
"""Kind, namespace and name of a controller."""


# -- the configuration ---------------------------------------------------------------------------------------------------


class ConfigProblem(ValueError):
    """A scheduler configuration that cannot be used: every field that is wrong, and how."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(self.problems))


class _PluginConfig(Value):
    name: str = ""
    args: Mapping[str, Any] = {}


class _Profile(Value):
    scheduler_name: str = "default-scheduler"
    plugin_config: tuple[_PluginConfig, ...] = ()


class _Configuration(Value):
    api_version: str = ""
    kind: str = ""
    profiles: tuple[_Profile, ...] = ()


class _SpreadArgs(Value):
    default_constraints: tuple[TopologySpreadConstraint, ...] = ()
    defaulting_type: Literal["System", "List"] = "System"


def configured(raw: Any) -> Defaults:
    """The default constraints of each profile of a `KubeSchedulerConfiguration`; raises `ConfigProblem`.

    Karpenter's own short form has one list, for the pods of every scheduler. The scheduler's built-in defaults (`System`) only
    rank nodes that are there, so they are none of ours.
    """
    if isinstance(raw, Mapping) and KARPENTERS in raw and "kind" not in raw:
        return _short_form(raw)
    try:
        config = decode(raw, _Configuration)
    except DecodeError as error:
        raise ConfigProblem([f"{error.path}: {error.problem}" if error.path else error.problem]) from None
    if config.kind != KIND or config.api_version.partition("/")[0] != GROUP:
        found = f"{config.kind or 'no kind'} of {config.api_version or 'no apiVersion'}"
        raise ConfigProblem(
            [f"this is {found}, not a {KIND} of {GROUP}/v1, nor Karpenter's form with the field {KARPENTERS}"]
        )
    problems: list[str] = []
    found_by: dict[str, tuple[TopologySpreadConstraint, ...]] = {}
    for number, profile in enumerate(config.profiles):
        for place, plugin in enumerate(profile.plugin_config):
            if plugin.name == PLUGIN:
                path = f"profiles[{number}].pluginConfig[{place}].args"
                found_by[profile.scheduler_name] = _constraints(plugin.args, path, problems)
    if problems:
        raise ConfigProblem(problems)
    return {name: constraints for name, constraints in found_by.items() if constraints}


def _short_form(raw: Mapping[str, Any]) -> Defaults:
    problems = [
        f"{name}: is no field of it; it has {KARPENTERS} alone" for name in sorted(map(str, raw)) if name != KARPENTERS
    ]
    args = raw[KARPENTERS] or {}
    if not isinstance(args, Mapping):
        raise ConfigProblem([*problems, f"{KARPENTERS}: expected a mapping with defaultConstraints"])
    problems += [
        f"{KARPENTERS}.{name}: is no field of it" for name in sorted(map(str, args)) if name != "defaultConstraints"
    ]
    constraints = _constraints({**args, "defaultingType": "List"}, KARPENTERS, problems)
    if problems:
        raise ConfigProblem(problems)
    return {EVERY: constraints} if constraints else {}


def _constraints(args: Mapping[str, Any], path: str, problems: list[str]) -> tuple[TopologySpreadConstraint, ...]:
    try:
        read = decode(args, _SpreadArgs)
    except DecodeError as error:
        problems.append(f"{path}.{error.path}: {error.problem}")
        return ()
    if read.default_constraints and read.defaulting_type != "List":
        problems.append(f"{path}.defaultingType: must be List when there are defaultConstraints")
    seen: dict[tuple[str, str], int] = {}
    for number, each in enumerate(read.default_constraints):
        where = f"{path}.defaultConstraints[{number}]"
        problems.extend(f"{where}.{problem}" for problem in _wrong(each))
        first = seen.setdefault((each.topology_key, each.when_unsatisfiable), number)
        if first != number:
            problems.append(
                f"{where}: has the topologyKey {each.topology_key} and whenUnsatisfiable {each.when_unsatisfiable} of"
                f" defaultConstraints[{first}]; only one of them can be"
            )
    return read.default_constraints


def _wrong(constraint: TopologySpreadConstraint) -> Iterable[str]:
    if constraint.max_skew <= 0:
        yield f"maxSkew: is {constraint.max_skew}; it must be 1 or more"
    if problem := labels.key_problem(constraint.topology_key):
        yield f"topologyKey: {constraint.topology_key!r} {problem}"
    if constraint.when_unsatisfiable not in (DO_NOT_SCHEDULE, SCHEDULE_ANYWAY):
        yield (
            f"whenUnsatisfiable: is {constraint.when_unsatisfiable!r}; allowed are {DO_NOT_SCHEDULE} and"
            f" {SCHEDULE_ANYWAY}"
        )
    if constraint.label_selector is not None:
        yield "labelSelector: must not be given; it is deduced for each pod from its Services and its controller"
    if constraint.match_label_keys:
        yield "matchLabelKeys: must not be given; they need a labelSelector, which is deduced for each pod"


# -- who is spread with whom ---------------------------------------------------------------------------------------------


class Selectors:
    """Deduces which pods a pod is to be spread with."""

    def __init__(
        self,
        services: Iterable[Service],
        controllers: Iterable[Controller],
        head: Callable[[Pod], Head] | None = None,
    ) -> None:
        self._services: dict[str, list[Mapping[str, str]]] = {}
        for service in sorted(services, key=lambda each: each.name):
            if service.spec.selector:
                self._services.setdefault(service.metadata.namespace, []).append(service.spec.selector)
        self._controllers = {(each.kind, each.metadata.namespace, each.name): each for each in controllers}
        self._head = head
        """Whose pod it is where its owner is not among the controllers."""

    def of(self, pod: Pod) -> LabelSelector | None:
        """All that the Services and the controller of the pod select; None if none of them selects anything."""
        chosen: dict[str, str] = {}
        for selector in self._services.get(pod.metadata.namespace, ()):
            if all(pod.metadata.labels.get(key) == value for key, value in selector.items()):
                chosen.update(selector)
        expressions: tuple[LabelExpression, ...] = ()
        controller = self._controller(pod)
        if isinstance(controller, ReplicationController):
            chosen.update(controller.spec.selector)
        elif controller is not None and controller.spec.selector is not None:
            own = controller.spec.selector
            # Both must hold, also where they ask for different values of one label.
            equal = (LabelExpression(key=k, operator="In", values=(v,)) for k, v in own.match_labels.items())
            expressions = (*equal, *own.match_expressions)
        if not chosen and not expressions:
            return None
        return LabelSelector(match_labels=chosen, match_expressions=expressions)

    def _controller(self, pod: Pod) -> Controller | None:
        owner = controller_of(pod)
        if owner is None:
            return None
        direct = self._controllers.get((owner.kind, pod.metadata.namespace, owner.name))
        if direct is None and self._head is not None:
            return self._controllers.get(self._head(pod))
        return direct


def with_defaults(pods: Iterable[Pod], defaults: Defaults, selectors: Selectors) -> tuple[Pod, ...]:
    """The pods, those without spread constraints of their own with the default ones. Pods that share a spec still do."""
    pods = tuple(pods)
    known: dict[tuple[object, ...], PodSpec] = {}
    found: list[Pod] = []
    for pod in pods:
        spec = pod.spec
        configured = defaults.get(spec.scheduler_name, defaults.get(EVERY, ()))
        constraints = () if spec.topology_spread_constraints else configured
        selector = selectors.of(pod) if constraints else None
        if selector is None:
            found.append(pod)
            continue
        key = (id(spec), tuple(sorted(selector.match_labels.items())), selector.match_expressions)
        if key not in known:
            own = tuple(replace(each, label_selector=selector) for each in constraints)
            known[key] = replace(spec, topology_spread_constraints=own)
        found.append(replace(pod, spec=known[key]))
    return tuple(found)
