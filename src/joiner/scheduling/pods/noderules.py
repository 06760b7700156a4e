"""The nodes that a pod's nodeSelector and required node affinity allow, as requirements."""

from joiner.model.labels import Vocabulary
from joiner.model.pod import Pod
from joiner.requirements import Requirements, unreadable


def node_rules(pod: Pod, vocabulary: Vocabulary) -> tuple[Requirements, ...]:
    """The nodes a pod may run on, as alternatives of which one must hold; a term that makes no sense matches no node."""
    selector = Requirements.of_labels(pod.spec.node_selector, vocabulary)
    required = pod.spec.affinity.node_affinity.required
    if required is None or not required.node_selector_terms:
        return (selector,)
    return tuple(
        selector & Requirements.read(term.match_expressions, vocabulary)
        for term in required.node_selector_terms
        if not any(unreadable(each) for each in term.match_expressions)
    )
