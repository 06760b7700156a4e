"""Providers by name. Ours register the same way a stranger's does: an entry point in the group `joiner.providers`."""

import difflib
from importlib.metadata import entry_points
from typing import cast

from joiner.cloud.provider import Connect

GROUP = "joiner.providers"


class UnknownProvider(LookupError):
    """No installed package offers a provider of that name."""


def names() -> tuple[str, ...]:
    """The providers that are installed."""
    return tuple(sorted({point.name for point in entry_points(group=GROUP)}))


def find(name: str) -> Connect:
    """The entry point of a provider."""
    for point in entry_points(group=GROUP, name=name):
        return cast(Connect, point.load())
    known = names()
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    raise UnknownProvider(f"there is no provider {name!r}{hint} Installed: {', '.join(known) or 'none'}.")
