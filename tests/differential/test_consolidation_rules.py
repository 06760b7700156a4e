"""Karpenter's rules of consolidation as the benchmarks have them, against recorded answers of Karpenter's own code.

What the benchmarks say of ours beside upstream's rests on these rules being upstream's; `benchmarks/consolidation/asked.py`
records.
"""

import gzip
import json
from functools import cache
from pathlib import Path

import pytest
from benchmarks.consolidation.asked import Json, restored, same, told
from benchmarks.consolidation.upstream import SINGLE, Upstream
from benchmarks.consolidation.world import World

RECORDED = Path(__file__).parent / "consolidation.jsonl.gz"


@cache
def recordings() -> dict[str, Json]:
    lines = gzip.decompress(RECORDED.read_bytes()).decode().splitlines()
    return {found["name"]: found for found in map(json.loads, lines)}


def rules(found: Json) -> tuple[World, Upstream]:
    world = restored(found["cluster"])
    return world, Upstream(world, balanced=found["cluster"]["policy"] == "Balanced", limits=False)


@pytest.mark.parametrize("name", recordings())
def test_the_next_command_is_the_one_that_karpenter_decides_on(name: str) -> None:
    found = recordings()[name]
    world, mind = rules(found)
    choices = mind.look()

    assert same(told(world, choices[0] if choices else None), found["answer"])


@pytest.mark.parametrize("name", [name for name, found in recordings().items() if found["each"]])
def test_of_single_nodes_the_answer_is_the_same(name: str) -> None:
    world, mind = rules(recordings()[name])
    for each in recordings()[name]["each"]:
        choice = mind.judged(SINGLE, (world.slot_of(each["node"]),))
        decision = told(world, choice)["decision"]

        assert decision == each["decision"], each
        assert choice is None or decision == "delete" or choice.price == pytest.approx(each["price"], rel=0.01), each
