"""What is wrong with an object, as a value."""

from collections.abc import Iterable
from typing import Literal

from joiner.model.meta import Value


class FieldProblem(Value):
    """One thing that is wrong, where, and what would be right."""

    path: str
    """Like `spec.template.spec.requirements[0].operator`; empty for the object as a whole."""
    message: str
    severity: Literal["error", "warning"] = "error"
    allowed: tuple[str, ...] = ()
    nearest: str | None = None
    """The allowed spelling that looks most like what was written."""

    @property
    def is_error(self) -> bool:
        """Whether the object cannot be used."""
        return self.severity == "error"

    def __str__(self) -> str:
        text = f"{self.path}: {self.message}" if self.path else self.message
        if self.nearest:
            return f"{text}; did you mean {self.nearest}?"
        return f"{text}; allowed: {', '.join(self.allowed)}" if self.allowed else text


def nearest(word: str, known: Iterable[str], likeness: float = 0.6) -> str | None:
    """The known word that looks most like this one, if any looks alike."""
    from difflib import get_close_matches  # only needed after a typing mistake

    by_lower = {name.lower(): name for name in sorted(known)}
    found = get_close_matches(word.lower(), by_lower, n=1, cutoff=likeness)
    return by_lower[found[0]] if found else None
