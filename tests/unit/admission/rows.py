"""What a row of the table of bad objects says, and how a document is written."""

from typing import Any, NamedTuple

Document = dict[str, Any]


class Bad(NamedTuple):
    """An object that must be refused: where it is wrong, who sees it, and what is suggested."""

    case: str
    document: Any
    path: str
    by: str = "schema"
    """`schema` and `rule` are seen by an API server too; `judge` is what only we see."""
    nearest: str | None = None
    words: str = ""
    old: Any = None
    problems: int = 1
    """How many problems there are, where one mistake breaks several rules."""


def document(api_version: str, kind: str, spec: Any = None, **more: Any) -> Document:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "some"}, "spec": spec or {}, **more}
