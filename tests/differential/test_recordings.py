"""Our plans against the recorded answers of the reference scheduler, scenario by scenario."""

import json

import pytest
from tests.differential import generate
from tests.differential.judge import QUIRKS, judge
from tests.differential.recordings import FAMILIES, differences, ours, recordings, rerun

NODES = "left out", "a limit on nodes counts within the run"
CONTRADICTION = "left out", "the pod wants a label both to be there and not to be there"
FORGETFUL = "dearer", "who gives up a wish is still spread beside those who came before"
KNOWN: dict[str, tuple[str, str]] = {
    "found/28": (
        "dearer",
        "soft anti-affinity counts pods that may be anywhere but in one zone, and not as if they were there",
    ),
    "found/29": FORGETFUL,
    "found/30": (
        "left out",
        "nobody waits for a reservation; the reference serves a smaller pod and lets a larger one wait",
    ),
    "found/32": FORGETFUL,
    "found/34": ("dearer", "reserved capacity comes before every other, whatever price an overlay gives it"),
    "found/39": ("dearer", "minValues are kept as far as can be, and not lowered because that is cheaper"),
    "found/40": ("dearer", "a soft spread that was given up for one node-affinity term is kept for the next"),
    "limits-nodes/0": NODES,
    "limits-nodes/4": NODES,
    "limits-nodes/7": NODES,
    "limits-nodes/14": NODES,
    "limits-nodes/1026": NODES,
    "operators/15": CONTRADICTION,
    "operators/1042": CONTRADICTION,
    "overlay-conflicts/1025": ("dearer", "an overlay's capacity counts only for the offerings that it matches"),
}
"""Where we differ from the reference, in what, and why that is meant. One that no longer differs must go from this list."""

UNSEEN = range(500, 506)
FOUND = "found"
"""Scenarios that a comparison showed to be answered badly, made by nobody's generator any more."""
PRICES = "topology-prices"
"""Services with topology rules on EC2's types and prices, and StatefulSets whose volumes are bound to zones."""

every_family = pytest.mark.parametrize(
    "family", [pytest.param(family, marks=pytest.mark.xdist_group(f"recorded {family}")) for family in FAMILIES]
)
"""One process asks all about a family: its plans are made once, for the digests of `tests/golden` as well."""


@every_family
def test_the_answers_of_the_reference_are_valid_but_for_its_known_habits(family: str) -> None:
    found = [
        f"{recording.name}: {violation}"
        for recording in recordings(family)
        for answer in recording.answers
        for violation in judge(recording.scenario, answer, reference=True)
        if violation.quirk not in QUIRKS
    ]

    assert not found, "\n".join(found)


@every_family
def test_our_plan_is_valid_leaves_nobody_out_and_is_not_dearer(family: str) -> None:
    found: dict[str, list[str]] = {}
    for recording in recordings(family):
        different = differences(recording, ours(recording.scenario))
        if different:
            found[recording.name] = different

    wrong = [
        f"{name}: {words}\n    {rerun(name)}"
        for name, all_ in found.items()
        for words in all_
        if not words.startswith(KNOWN.get(name, ("nothing", ""))[0])
    ]
    stale = [name for name in KNOWN if name.partition("/")[0] == family and name not in found]
    assert not wrong, "\n".join(wrong)
    assert not stale, f"no longer different, take them off the list: {stale}"


@pytest.mark.parametrize("family", generate.FAMILIES)
def test_scenarios_that_were_never_recorded_get_valid_plans_too(family: str) -> None:
    found = [
        f"{family}/{seed}: {violation}"
        for seed in UNSEEN
        for scenario in [generate.generate(family, seed)]
        for violation in judge(scenario, ours(scenario))
    ]

    assert not found, "\n".join(found)


def test_there_is_a_recording_of_every_family() -> None:
    assert set(FAMILIES) == {*generate.FAMILIES, FOUND, PRICES}
    assert sum(len(recordings(family)) for family in FAMILIES) >= 400


def test_the_same_seed_gives_the_same_scenario() -> None:
    first, again = (json.dumps(generate.generate("mixed", 7)) for _ in range(2))

    assert first == again


def test_every_known_difference_names_a_recording() -> None:
    names = {recording.name for family in FAMILIES for recording in recordings(family)}

    assert set(KNOWN) <= names
