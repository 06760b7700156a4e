"""The page about stories has every word that a story can have, and what it shows can be told."""

import re
from pathlib import Path

import pytest

from joiner.sim.story.document import format, given
from joiner.sim.story.document.format import PARTS, STEPS
from joiner.sim.story.document.given import Words
from joiner.sim.story.document.invariants import EXAMPLES
from joiner.sim.story.validation import rehearse

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "guide" / "stories.md").read_text(encoding="utf-8")
SECTIONS = {
    given.Given: "## given",
    given.PoolWords: "### A pool",
    given.ReservationWords: "### A reservation",
    given.CloudWords: "### The cloud",
    given.MarketWords: "### The cloud",
    given.DeviceWords: "### The cloud",
    given.HookWords: "### The cloud",
    format.Expectation: "## then",
    format.ClaimWords: "## then",
}
FIELDS = [(kind, field) for kind in (*PARTS, *STEPS) for field in kind.__struct_encode_fields__]


def section(title: str) -> str:
    """A part of the page; the part about what happens, where a word has no part of its own."""
    level = title.split(" ")[0]
    return PAGE.split(f"\n{title}\n")[1].split(f"\n{level} ")[0]


@pytest.mark.parametrize(("kind", "field"), FIELDS, ids=[f"{kind.__name__}-{field}" for kind, field in FIELDS])
def test_every_word_is_explained_where_it_belongs(kind: type[Words], field: str) -> None:
    assert f"`{field}`" in section(SECTIONS.get(kind, "## when"))


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_sentence_is_explained(example: str) -> None:
    assert f"`{example}`" in section("## always")


def test_what_is_shown_can_be_told(tmp_path: Path) -> None:
    shown = re.findall(r"(?ms)^```yaml\n(story:.*?)^```", PAGE)
    assert shown
    for text in shown:
        rehearse(format.read(text, "stories.md", tmp_path))
