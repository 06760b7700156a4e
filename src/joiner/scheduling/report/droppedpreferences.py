"""What pods had to give up for their places, in words."""

from typing import TYPE_CHECKING

from joiner.model.affinity import PreferredSchedulingTerm
from joiner.scheduling.plan import DroppedPreferences
from joiner.scheduling.pods.preferences import PodPreferences, steps, wishes
from joiner.scheduling.report.suggestions import Spelling
from joiner.scheduling.report.words import company_text, node_preference_text, spread_text

if TYPE_CHECKING:
    from joiner.scheduling.engine.firstfit import FirstFit
    from joiner.scheduling.pods.podclass import PodClass


def given_up(run: "FirstFit", spelling: Spelling) -> tuple[DroppedPreferences, ...]:
    """Which pods were placed without which of their preferences; pods of one class that lack the same are named together."""
    alike: dict[tuple[int, int], list[int]] = {}
    for position, step in run.modest.items():
        alike.setdefault((run.of_pod[position].number, step), []).append(position)
    found = []
    for (number, step), positions in sorted(alike.items()):
        lost = _lost(run, run.classes[number], step, spelling)
        if lost:
            found.append(DroppedPreferences(pods=run.names_of(positions), wishes=lost))
    return tuple(found)


def _lost(run: "FirstFit", pod_class: "PodClass", number: int, spelling: Spelling) -> tuple[str, ...]:
    """The wishes that a class no longer has at one of its steps; that it took another of its alternatives is none."""
    respected = run.policy.preferences == "Respect"
    asked = list(steps(wishes(pod_class.pod.spec, respected), run.disliked))
    kept = _texts(spelling, asked[number])
    return tuple(text for text in _texts(spelling, asked[0]) if text not in kept)


def _texts(spelling: Spelling, asked: PodPreferences) -> list[str]:
    return [
        *(_on_nodes(spelling, term) for term in asked.liked_nodes),
        *(f"preferred {company_text('pod_affinity', term)}" for term in asked.liked_near),
        *(f"preferred {company_text('pod_anti_affinity', term)}" for term in asked.liked_away),
        *map(spread_text, asked.liked_spread),
        *(() if asked.endures_disliked_taints else ("no taint that only asks to be avoided",)),
    ]


def _on_nodes(spelling: Spelling, term: PreferredSchedulingTerm) -> str:
    """A preference for labels, with what was probably meant where no node has them."""
    hints = filter(None, map(spelling.hint, term.preference.match_expressions))
    return "; ".join([node_preference_text(term), *hints])
