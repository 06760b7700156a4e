"""What only the controllers can judge, because it needs the provider's labels: the source of `ValidationSucceeded`.

All problems are collected. The rules of the CRDs are asked again, since an object may be older than its CRD.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from joiner.admission.amounts import odd_amounts
from joiner.admission.problem import FieldProblem, nearest
from joiner.model import codec, cron, labels
from joiner.model.customobject import CustomObject
from joiner.model.duration import MINUTE, Duration
from joiner.model.evictioncost import eviction_cost_problem
from joiner.model.kubelet import Kubelet
from joiner.model.labels import Vocabulary
from joiner.model.nodeoverlay import NodeOverlay
from joiner.model.nodepool import Budget, NodePool
from joiner.model.requirement import (
    DOES_NOT_EXIST,
    EXISTS,
    IN,
    NOT_IN,
    NOT_IN_NEEDS_VALUES,
    OPERATORS,
    SelectorRequirement,
    SelectorRequirementWithMinValues,
)
from joiner.model.taints import Taint
from joiner.model.typesettings import InstanceTypeSettings
from joiner.requirements import similar_key

_LEAST_LIFE: Final = 15 * MINUTE
"""So long may a machine take until it has joined."""
_NUMBER: Final = re.compile(r"[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]{1,3})?|\.[0-9]+", re.ASCII)


def runtime_problems(subject: CustomObject, vocabulary: Vocabulary) -> tuple[FieldProblem, ...]:
    """What is wrong with an object whose structure is sound."""
    match subject:
        case NodePool():
            return nodepool_problems(subject, vocabulary)
        case NodeOverlay():
            return overlay_problems(subject, vocabulary)
        case InstanceTypeSettings():
            return settings_problems(subject, vocabulary)
    return tuple(_reserved_amounts(subject))


def nodepool_problems(pool: NodePool, vocabulary: Vocabulary) -> tuple[FieldProblem, ...]:
    """What keeps a NodePool from being used, as far as the pool itself shows."""
    template = pool.spec.template
    path = "spec.template.spec"
    return (
        *_template_labels(template.metadata.labels.items(), vocabulary),
        *_taints(template.spec.taints, template.spec.startup_taints, path),
        *_pool_requirements(template.spec.requirements, vocabulary, f"{path}.requirements"),
        *_keys_of_no_node(template.spec.requirements, template.metadata.labels, vocabulary, f"{path}.requirements"),
        *_schedules(pool.spec.disruption.budgets),
        *_eviction_cost(pool),
        *_short_life(template.spec.expire_after, f"{path}.expireAfter"),
        *odd_amounts(pool.spec.limits, "spec.limits", together=True),
    )


def overlay_problems(overlay: NodeOverlay, vocabulary: Vocabulary) -> tuple[FieldProblem, ...]:
    """What is wrong or odd about an overlay. It only chooses by labels, so a reserved label is odd and not an error."""
    selector = overlay.spec.selector
    return (
        *_selected("spec.selector.matchLabels", selector.match_labels, vocabulary),
        *_expressions("spec.selector.matchExpressions", selector.match_expressions, vocabulary),
        *_expressions("spec.requirements", overlay.spec.requirements, vocabulary),
        *_price("spec.price", overlay.spec.price or "0"),
        *_price_change("spec.priceAdjustment", overlay.spec.price_adjustment or "0"),
        *odd_amounts(overlay.spec.capacity, "spec.capacity"),
        *odd_amounts(overlay.spec.overhead, "spec.overhead"),
    )


def settings_problems(settings: InstanceTypeSettings, vocabulary: Vocabulary) -> tuple[FieldProblem, ...]:
    """What is wrong with the offerings, whose entries the CRD leaves open so that bare numbers are accepted; odd amounts."""
    offered = (
        problem
        for index, entry in enumerate(settings.spec.offerings or ())
        for key, value in entry.items()
        for problem in _offering_value(f"spec.offerings[{index}][{key}]", key, value, vocabulary)
    )
    return (
        *offered,
        *odd_amounts(settings.spec.resources, "spec.resources"),
        *odd_amounts(settings.spec.overhead, "spec.overhead"),
    )


def _reserved_amounts(subject: CustomObject) -> Iterator[FieldProblem]:
    """Of a NodeClass what is odd about the amounts that its nodes keep back from pods."""
    kubelet = getattr(getattr(subject, "spec", None), "kubelet", None)
    if isinstance(kubelet, Mapping):
        try:
            kubelet = codec.decode(kubelet, Kubelet)
        except codec.DecodeError:
            return  # the rules of the kind have told of it
    if isinstance(kubelet, Kubelet):
        yield from odd_amounts(kubelet.kube_reserved, "spec.kubelet.kubeReserved")
        yield from odd_amounts(kubelet.system_reserved, "spec.kubelet.systemReserved")


def _template_labels(items: Iterable[tuple[str, str]], vocabulary: Vocabulary) -> Iterator[FieldProblem]:
    for key, value in items:
        path = f"spec.template.metadata.labels[{key}]"
        if why := labels.key_problem(key):
            yield FieldProblem(path=path, message=f"the label key {key!r} {why}")
        elif why := _reserved(key, vocabulary):
            yield FieldProblem(path=path, message=why, nearest=_similar(key, vocabulary))
        if why := labels.value_problem(value):
            yield FieldProblem(path=path, message=f"the label value {value!r} {why}")


def _similar(key: str, vocabulary: Vocabulary) -> str | None:
    return nearest(key, vocabulary.well_known - vocabulary.given - {key}, 0.8)


def _reserved(key: str, vocabulary: Vocabulary) -> str | None:
    if key in vocabulary.given:
        return f"{key} is set by Joiner on every node of the pool and cannot be chosen"
    if vocabulary.is_restricted(key):
        return f"{key} is reserved: Joiner or the provider sets the labels of its domain"
    return None


def _taints(taints: tuple[Taint, ...], startup_taints: tuple[Taint, ...], path: str) -> Iterator[FieldProblem]:
    seen: dict[tuple[str, str], str] = {}
    for name, listed in (("taints", taints), ("startupTaints", startup_taints)):
        for index, taint in enumerate(listed):
            place = f"{path}.{name}[{index}]"
            if why := labels.key_problem(taint.key):
                yield FieldProblem(path=f"{place}.key", message=f"the taint key {taint.key!r} {why}")
            if taint.value and (why := labels.key_problem(taint.value)):
                yield FieldProblem(path=f"{place}.value", message=f"the taint value {taint.value!r} {why}")
            first = seen.setdefault((taint.key, taint.effect), place)
            if first != place:
                yield FieldProblem(
                    path=place, message=f"{taint.key} with effect {taint.effect} is there already, in {first}"
                )


def _pool_requirements(
    requirements: tuple[SelectorRequirementWithMinValues, ...], vocabulary: Vocabulary, path: str
) -> Iterator[FieldProblem]:
    for index, requirement in enumerate(requirements):
        place = f"{path}[{index}]"
        key = vocabulary.normal_key(requirement.key)
        if why := _reserved(key, vocabulary):
            yield FieldProblem(path=f"{place}.key", message=why, nearest=_similar(key, vocabulary))
        yield from _entry(place, requirement)
        yield from _known_values(place, key, requirement, vocabulary)


def _keys_of_no_node(
    requirements: tuple[SelectorRequirementWithMinValues, ...],
    own: Mapping[str, str],
    vocabulary: Vocabulary,
    path: str,
) -> Iterator[FieldProblem]:
    """Keys that no instance type is known to have, though they look as if it should: they narrow nothing down.

    A label of the user's own is fine, and every node of the pool gets it. One in a domain of Kubernetes or of a provider, or one
    that is spelt much like a known label, was probably meant to choose instance types.
    """
    for index, requirement in enumerate(requirements):
        key = vocabulary.normal_key(requirement.key)
        if key in own or requirement.key in own or key in vocabulary.well_known or vocabulary.is_restricted(key):
            continue
        near = similar_key(key, (*sorted(vocabulary.well_known - vocabulary.given), *sorted(vocabulary.aliases)))
        if near or labels.domain_of(key) in _domains(vocabulary):
            yield _warned(
                f"{path}[{index}].key",
                f"no instance type is known to have a label {requirement.key}: it is taken as a label of your own that every"
                " node of the pool gets, and leaves no type out",
                nearest=near,
            )


def _domains(vocabulary: Vocabulary) -> frozenset[str]:
    """The domains whose labels Kubernetes and the providers set."""
    known = {labels.domain_of(key) for key in (*vocabulary.well_known, *vocabulary.aliases)}
    return frozenset({"kubernetes.io", *known})


def _entry(path: str, requirement: SelectorRequirement) -> Iterator[FieldProblem]:
    """Key, operator and values by themselves."""
    if requirement.operator not in OPERATORS:
        likely = nearest(requirement.operator, OPERATORS)
        message = f"there is no operator {requirement.operator!r}"
        yield FieldProblem(path=f"{path}.operator", message=message, allowed=OPERATORS, nearest=likely)
    if why := labels.key_problem(requirement.key):
        yield FieldProblem(path=f"{path}.key", message=f"the label key {requirement.key!r} {why}")
    for index, value in enumerate(requirement.values):
        if why := labels.value_problem(value):
            yield FieldProblem(path=f"{path}.values[{index}]", message=f"the label value {value!r} {why}")
    written = msgspec.to_builtins(requirement)
    for rule in requirement.rules:
        if not rule.holds(written):
            yield FieldProblem(path=path + rule.field, message=rule.message)
    if requirement.operator in (EXISTS, DOES_NOT_EXIST) and requirement.values:
        message = f"operator {requirement.operator} takes no values; they are ignored"
        yield FieldProblem(path=f"{path}.values", message=message, severity="warning")


def _known_values(
    path: str, key: str, requirement: SelectorRequirementWithMinValues, vocabulary: Vocabulary
) -> Iterator[FieldProblem]:
    """Of a label with a closed set of values some must be known, and as many as minValues asks for."""
    allowed = vocabulary.closed_values.get(key)
    if allowed is None or requirement.operator != IN or not requirement.values:
        return
    known = {value for value in requirement.values if vocabulary.normal_value(key, value) in allowed}
    if not known:
        message = f"{key} has none of the values {', '.join(requirement.values)}"
        likely = nearest(requirement.values[0], allowed)
        yield FieldProblem(path=f"{path}.values", message=message, allowed=allowed, nearest=likely)
    elif len(known) < (requirement.min_values or 0):
        message = (
            f"minValues asks for {requirement.min_values} values of {key}, but only {len(known)} of those listed exist"
        )
        yield FieldProblem(path=f"{path}.minValues", message=message, allowed=allowed)
    else:
        for index, value in enumerate(requirement.values):
            if value not in known:
                message = f"{key} has no value {value}; it is ignored"
                yield _warned(f"{path}.values[{index}]", message, allowed=allowed, nearest=nearest(value, allowed))


def _schedules(budgets: tuple[Budget, ...]) -> Iterator[FieldProblem]:
    for index, budget in enumerate(budgets):
        try:
            cron.parse(budget.schedule or "@daily")
        except cron.CronError as error:
            yield FieldProblem(path=f"spec.disruption.budgets[{index}].schedule", message=str(error))


def _eviction_cost(pool: NodePool) -> Iterator[FieldProblem]:
    if problem := eviction_cost_problem(pool):
        path = f"metadata.annotations[{labels.EVICTION_COST}]"
        yield _warned(path, f"{problem}; until that is mended, no node of the pool is consolidated")


def _short_life(most: Duration, path: str) -> Iterator[FieldProblem]:
    if most < _LEAST_LIFE:
        message = (
            f"nodes are replaced when they are {most} old, which may be before a machine has joined"
            f" ({Duration(_LEAST_LIFE)} at the most); write Never for nodes that need not be replaced"
        )
        yield _warned(path, message)


def _expressions(
    path: str, expressions: tuple[SelectorRequirement, ...], vocabulary: Vocabulary
) -> Iterator[FieldProblem]:
    for index, expression in enumerate(expressions):
        place = f"{path}[{index}]"
        yield from _entry(place, expression)
        if expression.operator == NOT_IN and not expression.values:
            yield FieldProblem(path=place + NOT_IN_NEEDS_VALUES.field, message=NOT_IN_NEEDS_VALUES.message)
        yield from _odd_key(f"{place}.key", expression.key, vocabulary)


def _selected(path: str, chosen: Any, vocabulary: Vocabulary) -> Iterator[FieldProblem]:
    for key, value in chosen.items():
        if why := labels.key_problem(key):
            yield FieldProblem(path=f"{path}[{key}]", message=f"the label key {key!r} {why}")
        if why := labels.value_problem(value):
            yield FieldProblem(path=f"{path}[{key}]", message=f"the label value {value!r} {why}")
        yield from _odd_key(f"{path}[{key}]", key, vocabulary)


def _odd_key(path: str, key: str, vocabulary: Vocabulary) -> Iterator[FieldProblem]:
    if key != labels.NODEPOOL_SEED_SPELLING and vocabulary.is_restricted(key):
        likely = nearest(key, vocabulary.well_known, 0.8)
        yield _warned(path, f"{key} is not a label that Joiner or the provider is known to set", nearest=likely)


def _price(path: str, text: str) -> Iterator[FieldProblem]:
    if _NUMBER.fullmatch(text) is None or not math.isfinite(float(text)):
        yield FieldProblem(
            path=path, message=f"{text!r} is not a price: write a number that is not negative, like 0.40"
        )


def _price_change(path: str, text: str) -> Iterator[FieldProblem]:
    if _NUMBER.fullmatch(text.lstrip("+-").removesuffix("%")) is None:
        message = f"{text!r} is not a change of a price: write a signed amount like +0.05, or a share like -10%"
        yield FieldProblem(path=path, message=message)


def _offering_value(path: str, key: str, value: str | float, vocabulary: Vocabulary) -> Iterator[FieldProblem]:
    text = str(value)
    if key == labels.PRICE:
        yield from _price(path, text)
        return
    if why := labels.key_problem(key):
        yield FieldProblem(path=path, message=f"the label key {key!r} {why}")
    elif why := _reserved(vocabulary.normal_key(key), vocabulary):
        known = (labels.PRICE, *sorted(vocabulary.well_known))
        yield FieldProblem(path=path, message=why, nearest=nearest(key, known, 0.8))
    if why := labels.value_problem(text):
        yield FieldProblem(path=path, message=f"the label value {text!r} {why}")
    allowed = vocabulary.closed_values.get(vocabulary.normal_key(key), (text,))
    if text not in allowed:
        message = f"{key} has no value {text}"
        yield FieldProblem(path=path, message=message, allowed=allowed, nearest=nearest(text, allowed))


def _warned(path: str, message: str, **more: Any) -> FieldProblem:
    return FieldProblem(path=path, message=message, severity="warning", **more)
