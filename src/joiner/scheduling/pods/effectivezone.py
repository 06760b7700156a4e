"""In which zone a pod that waits can run at all, in one word, to be counted by."""

from typing import Final

from joiner.model.labels import ZONE, Vocabulary
from joiner.model.pod import Pod
from joiner.scheduling.pods.noderules import node_rules
from joiner.scheduling.pods.volumetopology import VolumeIndex

FLEXIBLE: Final = "flexible"
NONE: Final = "none"


def effective_zone(pod: Pod, volume_index: VolumeIndex, vocabulary: Vocabulary) -> str:
    """The zone that its own demands and its volumes leave; `flexible` when there are several, `none` when they contradict."""
    zones: set[str] = set()
    for rule in node_rules(pod, vocabulary):
        for place in volume_index.volumes_of(pod).places:
            both = rule.at(ZONE) & place.at(ZONE)
            if both.complement:
                return FLEXIBLE
            zones |= both.values
    if len(zones) > 1:
        return FLEXIBLE
    return min(zones, default=NONE)
