"""Providers by name. Ours register the same way a stranger's does: an entry point in the group `joiner.providers`."""

import difflib
from importlib.metadata import EntryPoint, entry_points
from typing import cast

from joiner.cloud.provider import Connect

GROUP = "joiner.providers"


class UnknownProvider(LookupError):
    """No installed package offers a provider of that name."""


class BrokenProvider(UnknownProvider):
    """A package offers the provider, and it cannot be used: which, and its error."""

    def __init__(self, name: str, error: Exception) -> None:
        package = next((_package(point) for point in entry_points(group=GROUP, name=name)), "")
        told = f"{type(error).__name__}: {error}".removesuffix(": ")
        super().__init__(f"provider {name!r}{package} cannot be used: {told}")


def _package(point: EntryPoint) -> str:
    return f" of the package {point.dist.name} {point.dist.version}" if point.dist is not None else ""


def _is_ours(point: EntryPoint) -> bool:
    return point.value.startswith("joiner.")


def is_ours(name: str) -> bool:
    """Whether the provider is part of Joiner: what it raises beside the errors of providers is a bug of Joiner."""
    return all(map(_is_ours, entry_points(group=GROUP, name=name)))


def names() -> tuple[str, ...]:
    """The providers that are installed."""
    return tuple(sorted({point.name for point in entry_points(group=GROUP)}))


def find(name: str) -> Connect:
    """The entry point of a provider. Raises UnknownProvider, BrokenProvider, or ImportError for an extra of ours."""
    for point in entry_points(group=GROUP, name=name):
        try:
            found = point.load()
        except Exception as error:  # whatever goes wrong in a stranger's package
            if isinstance(error, ImportError) and _is_ours(point):
                raise  # an extra that is not installed
            raise BrokenProvider(name, error) from error
        if not callable(found):
            raise BrokenProvider(name, TypeError(f"{point.value} is no function that connects"))
        return cast(Connect, found)
    known = names()
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    raise UnknownProvider(f"there is no provider {name!r}; {hint}installed are: {', '.join(known) or 'none'}")
