"""`joiner version`: what a bug report begins with."""

import platform

import click

from joiner import __version__
from joiner.cli import output

EPILOG = """\b
Examples:
  joiner version
  joiner version -o json
"""


@click.command("version", short_help="Print the version.", epilog=EPILOG)
@output.option()
def command(form: str) -> None:
    """Print the version of joiner, of Python and of the platform."""
    facts = {
        "version": __version__,
        "python": f"{platform.python_version()} ({platform.python_implementation()})",
        "platform": platform.platform(),
    }
    if form != output.TABLE:
        output.data(facts, form, "VersionReport")
        return
    for name, fact in facts.items():
        click.echo(f"{name:<10}{fact}")
