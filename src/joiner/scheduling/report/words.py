"""Constraints in words: taints, node preferences, spread, pod affinity and selectors."""

from joiner.model.affinity import SCHEDULE_ANYWAY, PodAffinityTerm, PreferredSchedulingTerm, TopologySpreadConstraint
from joiner.model.requirement import SelectorRequirement
from joiner.model.selector import LabelExpression, LabelSelector
from joiner.model.taints import Taint


def node_preference_text(term: PreferredSchedulingTerm) -> str:
    """A preference for labels of nodes in words."""
    return f"preferred node affinity {', '.join(map(expression_text, term.preference.match_expressions))}"


def expression_text(wanted: SelectorRequirement | LabelExpression) -> str:
    """A requirement on a label in words."""
    values = f" [{', '.join(wanted.values)}]" if wanted.values else ""
    return f"{wanted.key} {wanted.operator}{values}"


def spread_text(spread: TopologySpreadConstraint) -> str:
    """A spread constraint in words."""
    least = f", minDomains {spread.min_domains}" if spread.min_domains is not None else ""
    soft = "preferred " if spread.when_unsatisfiable == SCHEDULE_ANYWAY else ""
    return f"{soft}spread of {chosen_text(spread.label_selector)} over {spread.topology_key}, maxSkew {spread.max_skew}{least}"


def company_text(kind: str, term: PodAffinityTerm) -> str:
    """A term of pod affinity or anti-affinity in words."""
    word = "affinity to" if kind == "pod_affinity" else "anti-affinity to"
    return f"{word} {chosen_text(term.label_selector)} by {term.topology_key}"


def chosen_text(selector: LabelSelector | None) -> str:
    """The pods that a selector chooses, in words."""
    if selector is None:
        return "no pods"
    parts = [f"{key}={value}" for key, value in sorted(selector.match_labels.items())]
    parts += [expression_text(each) for each in selector.match_expressions]
    return f"pods with {', '.join(parts)}" if parts else "all pods"


def taint_text(taint: Taint) -> str:
    """A taint as people write it."""
    return f"{taint.key}{'=' + taint.value if taint.value else ''}:{taint.effect}"
