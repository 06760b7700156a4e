"""What pods had to give up for their places, in words."""

from typing import TYPE_CHECKING

from joiner.model.affinity import PreferredSchedulingTerm
from joiner.scheduling.plan import DroppedPreferences
from joiner.scheduling.pods.preferences import PodPreferences, steps, wishes
from joiner.scheduling.report.words import company_text, node_preference_text, spread_text

if TYPE_CHECKING:
    from joiner.scheduling.engine.firstfit import FirstFit
    from joiner.scheduling.pods.podclass import PodClass


def given_up(run: "FirstFit", disliked: bool) -> tuple[DroppedPreferences, ...]:
    """Who was placed without which of their wishes; pods of one kind that lack the same are told of together.

    `disliked`: whether some pool has a taint that only asks to be avoided.
    """
    alike: dict[tuple[int, int], list[int]] = {}
    for position, step in run.modest.items():
        alike.setdefault((run.of_pod[position].number, step), []).append(position)
    found = []
    for (number, step), positions in sorted(alike.items()):
        lost = _lost(run, run.classes[number], step, disliked)
        if lost:
            found.append(DroppedPreferences(pods=run.names_of(positions), wishes=lost))
    return tuple(found)


def _lost(run: "FirstFit", each: "PodClass", number: int, disliked: bool) -> tuple[str, ...]:
    """The wishes that a class no longer has at one of its steps; that it took another of its alternatives is none."""
    respected = run.policy.preferences == "Respect"
    asked = list(steps(wishes(each.pod.spec, respected), disliked))
    kept = _texts(run, asked[number])
    return tuple(text for text in _texts(run, asked[0]) if text not in kept)


def _texts(run: "FirstFit", asked: PodPreferences) -> list[str]:
    return [
        *(_on_nodes(run, term) for term in asked.liked_nodes),
        *(f"preferred {company_text('pod_affinity', term)}" for term in asked.liked_near),
        *(f"preferred {company_text('pod_anti_affinity', term)}" for term in asked.liked_away),
        *map(spread_text, asked.liked_spread),
        *(() if asked.endures_disliked_taints else ("no taint that only asks to be avoided",)),
    ]


def _on_nodes(run: "FirstFit", term: PreferredSchedulingTerm) -> str:
    """A preference for labels, with what was probably meant where nobody has them."""
    hints = filter(None, map(run.spelling.hint, term.preference.match_expressions))
    return "; ".join([node_preference_text(term), *hints])
