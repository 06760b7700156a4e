"""Which topology constraint leaves a pod no domain, and how the pods that count are spread over the domains."""

from collections import Counter
from typing import Final, NamedTuple

from joiner.model.labels import HOSTNAME
from joiner.requirements import Requirement, Requirements
from joiner.scheduling.pods.podclass import PodClass, Step
from joiner.scheduling.report.words import chosen_text
from joiner.scheduling.topology.group import AFFINITY, SPREAD, Group

_NEW_HOST: Final = Requirement(HOSTNAME, ("a new node",))
_ANY_HOST: Final = Requirement(HOSTNAME, complement=True)
_SHOWN_DOMAINS: Final = 8


class Obstacle(NamedTuple):
    """A constraint that no domain satisfies."""

    says: str
    """The constraint in words."""
    wanted: str
    """What a domain would have to be."""
    had: str
    """How many pods count in each domain."""
    group: Group


def narrowed(pod_class: PodClass, step: Step, requirements: Requirements) -> Requirements | Obstacle:
    """What topology leaves of a new node, or the constraint that leaves nothing."""
    for group, chosen in (*step.groups, *((group, False) for group in pod_class.kept_out)):
        mine = _ANY_HOST if group.key == HOSTNAME else step.strict.at(group.key)
        node = _NEW_HOST if group.key == HOSTNAME else requirements.at(group.key)
        answer = group.narrowed(mine, node, chosen)
        if answer is None:
            inverse = (group, chosen) not in step.groups
            return Obstacle(
                said(group, inverse), _wanted(group, mine, chosen, inverse), counts(group, mine, node), group
            )
        if group.key != HOSTNAME:
            requirements = requirements & Requirements([answer])
    return requirements


def obstacle_at(pod_class: PodClass, step: Step, here: Requirements) -> Obstacle | None:
    """The constraint that keeps a pod off a node with these labels."""
    for group, chosen in (*step.groups, *((group, False) for group in pod_class.kept_out)):
        inverse = (group, chosen) not in step.groups
        node = here.get(group.key)
        mine = step.strict.at(group.key)
        if node is None:
            return Obstacle(
                said(group, inverse), f"a node with the label {group.key}", "the node does not have it", group
            )
        if group.narrowed(mine, node, chosen) is None:
            return Obstacle(
                said(group, inverse), _wanted(group, mine, chosen, inverse), counts(group, mine, node), group
            )
    return None


def said(group: Group, inverse: bool) -> str:
    """A topology constraint in words."""
    who = chosen_text(group.selector)
    if group.kind == SPREAD:
        least = f", minDomains {group.min_domains}" if group.min_domains is not None else ""
        return f"spread of {who} over {group.key}, maxSkew {group.max_skew}{least}"
    if inverse:
        return f"anti-affinity of other pods to {who} by {group.key}"
    return f"{'affinity' if group.kind == AFFINITY else 'anti-affinity'} to {who} by {group.key}"


def _wanted(group: Group, mine: Requirement, chosen: bool, inverse: bool) -> str:
    if group.kind == SPREAD:
        most = group.least(mine) + group.max_skew - (1 if chosen else 0)
        return f"a domain with at most {most} of them" if most >= 0 else "what no domain can offer"
    if group.kind == AFFINITY:
        return "a domain with one of them"
    return "a domain without a pod that keeps it away" if inverse else "a domain with none of them"


def counts(group: Group, mine: Requirement, node: Requirement) -> str:
    """How many pods count in each domain; those that the pod or the node cannot be in are told apart."""
    if group.key == HOSTNAME and len(group.domains) > _SHOWN_DOMAINS:
        sizes = sorted(Counter(group.domains.values()).items())
        return ", ".join(f"{hosts} nodes with {count}" for count, hosts in sizes[:_SHOWN_DOMAINS])
    if group.key == HOSTNAME:
        return _listed([f"{count} on {domain}" for domain, count in sorted(group.domains.items())]) or "none yet"
    reached: list[str] = []
    beyond: list[str] = []
    for domain, count in sorted(group.domains.items()):
        (reached if mine.has(domain) and node.has(domain) else beyond).append(f"{domain} {count}")
    told = _listed(reached) or "no domains that it can be in"
    return f"{told} (not for it: {_listed(beyond)})" if beyond else told


def _listed(parts: list[str]) -> str:
    more = f" and {len(parts) - _SHOWN_DOMAINS} more" if len(parts) > _SHOWN_DOMAINS else ""
    return ", ".join(parts[:_SHOWN_DOMAINS]) + more
