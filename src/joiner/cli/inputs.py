"""The click options with which every command names its input: `-f/--filename` and `--instance-types`."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def option(function: F) -> F:
    """The `-f/--filename` option of a command."""
    text = "A file, a folder (every *.yaml, *.yml and *.json in it, at any depth) or - for standard input; may be repeated."
    path = click.Path(allow_dash=True)
    return click.option("-f", "--filename", "filenames", multiple=True, type=path, metavar="PATH", help=text)(function)


def catalogue_option(function: F) -> F:
    """The `--instance-types` option of a command."""
    text = (
        "Let every NodePool buy these types, whatever its NodeClass says: kwok, ec2/us-east-1, ec2/us-west-2 or a file."
        " Of the NodeClass only the kubelet settings count."
    )
    return click.option("--instance-types", "catalogue", metavar="CATALOGUE", help=text)(function)
