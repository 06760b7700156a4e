"""Which pods are for us at all, and which cannot be understood: they are told so and never tried."""

from collections.abc import Iterator

from joiner.model import labels
from joiner.model.labels import Vocabulary
from joiner.model.pod import Pod
from joiner.model.requirement import DOES_NOT_EXIST, SelectorRequirement
from joiner.requirements import similar_key, unreadable
from joiner.scheduling.plan import ITSELF, Refusal, RefusalReason


def refusal(key: str, pod: Pod, volume_problem: str, vocabulary: Vocabulary) -> Refusal | None:
    """Why the pod is left alone; nothing when it should be placed."""
    problems = [*_node_problems(pod, vocabulary), *([(volume_problem, "")] if volume_problem else [])]
    if pod.spec.resource_claims:
        problems.append(("the pod asks for devices by resource claims, which cannot be planned for yet", ""))
    if not problems:
        return None
    return Refusal(
        pod=key,
        ignored=True,
        reasons=tuple(
            RefusalReason(rule="preflight", object=ITSELF, message=problem, hint=hint) for problem, hint in problems
        ),
    )


def _node_problems(pod: Pod, vocabulary: Vocabulary) -> Iterator[tuple[str, str]]:
    """What cannot be understood, each with what was probably meant."""
    for key, value in pod.spec.node_selector.items():
        yield from _problems(SelectorRequirement(key=key, operator="In", values=(value,)), vocabulary)
    required = pod.spec.affinity.node_affinity.required
    for term in required.node_selector_terms if required is not None else ():
        if term.match_fields:
            yield "a node-affinity term with matchFields cannot be planned for", "use matchExpressions"
        for expression in term.match_expressions:
            yield from _problems(expression, vocabulary)


def _problems(wanted: SelectorRequirement, vocabulary: Vocabulary) -> Iterator[tuple[str, str]]:
    key = vocabulary.normal_key(wanted.key)
    if key == labels.NODEPOOL and wanted.operator == DOES_NOT_EXIST:
        yield f"the pod asks for nodes without {labels.NODEPOOL}: it is not for us", ""
    if vocabulary.is_restricted(key):
        near = similar_key(key, sorted(vocabulary.well_known)) if key != labels.HOSTNAME else None
        yield (
            f"label {key} is restricted; use a well-known label or one of your own",
            f"did you mean {near}?" if near else "",
        )
    elif problem := labels.key_problem(key):
        yield f"label {key!r} {problem}", ""
    if unreadable(wanted):
        yield f"operator {wanted.operator} on {key} needs exactly one integer, not {list(wanted.values)}", ""
    for value in wanted.values:
        if problem := labels.value_problem(value):
            yield f"value {value!r} of label {key} {problem}", ""
