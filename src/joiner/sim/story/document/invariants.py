"""What a story says must always be true, as sentences of a few forms."""

import re
from typing import Final, NamedTuple


class LawError(ValueError):
    """A sentence that is not understood."""


class Law(NamedTuple):
    """A sentence that was understood: what is measured, of whom, and its bounds."""

    text: str
    measure: str
    """`reservation`, `nodes`, `running`, `claims`, `made`, `cost`, `refused`."""
    subject: str
    least: float | None
    most: float | None


_NAME: Final = r"(?P<subject>[A-Za-z0-9][A-Za-z0-9._/-]*)"
_NUMBER: Final = r"(?P<number>\d+(\.\d+)?)"
_FORMS: Final = (
    ("reservation", rf"reservation {_NAME} holds at most {_NUMBER}", "reservation cr-1 holds at most 2"),
    ("nodes", rf"pool {_NAME} has at (?P<side>least|most) {_NUMBER} nodes?", "pool default has at most 5 nodes"),
    ("nodes", rf"there are at (?P<side>least|most) {_NUMBER} nodes?", "there are at most 9 nodes"),
    ("claims", rf"there are at (?P<side>least|most) {_NUMBER} claims?", "there are at most 9 claims"),
    ("made", rf"at most {_NUMBER} claims? (is|are) ever made", "at most 9 claims are ever made"),
    ("running", rf"{_NAME} keeps at least {_NUMBER} running", "web keeps at least 2 running"),
    ("cost", rf"an hour costs at most {_NUMBER}", "an hour costs at most 1.5"),
    ("refused", r"no pod is refused", "no pod is refused"),
)
EXAMPLES: Final = tuple(example for _, _, example in _FORMS)


def read(text: str) -> Law:
    """The law that a sentence states. Raises LawError with the forms that are known."""
    sentence = " ".join(text.split())
    for measure, form, _ in _FORMS:
        match = re.fullmatch(form, sentence)
        if match is not None:
            found = match.groupdict()
            number = float(found["number"]) if found.get("number") else 0.0
            at_least = measure == "running" or found.get("side") == "least"
            return Law(
                text=sentence,
                measure=measure,
                subject=found.get("subject") or "",
                least=number if at_least else None,
                most=None if at_least else number,
            )
    raise LawError(f"{sentence!r} is not understood; sentences like these are: {'; '.join(EXAMPLES)}")
