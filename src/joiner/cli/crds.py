"""`joiner crds`: the CustomResourceDefinitions of every kind we know, on standard output or as files."""

from pathlib import Path

import click

from joiner.admission.crd import crd, crds
from joiner.cli import output
from joiner.offline.kinds import known
from joiner.yamldoc import dump

EPILOG = """\b
Examples:
  joiner crds | kubectl apply --server-side -f -
  joiner crds --dir crds/
  joiner crds -o json
"""


@click.command("crds", short_help="Print or write the CustomResourceDefinitions.", epilog=EPILOG)
@output.option(output.YAML, output.JSON)
@click.option(
    "--dir", "folder", type=click.Path(path_type=Path), metavar="DIR", help="Write one YAML file per kind to DIR."
)
def command(form: str, folder: Path | None) -> None:
    """Print the CustomResourceDefinitions that Joiner needs in a cluster, or write them to a folder.

    They hold every rule that `joiner validate` checks offline.
    """
    kinds, _ = known()
    if folder is not None:
        _write(folder, crds(kinds), form)
        return
    definitions = [crd(kind) for kind in sorted(kinds, key=lambda kind: (kind.group, kind.plural))]
    if form == output.YAML:
        click.echo(dump(*definitions), nl=False)
    else:
        output.data({"apiVersion": "v1", "kind": "List", "items": definitions}, form)


def _write(folder: Path, files: dict[str, str], form: str) -> None:
    if form != output.YAML:
        raise click.UsageError("--dir writes YAML files; leave -o out.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
            click.echo(folder / name)
    except OSError as error:
        raise click.ClickException(f"cannot write {error.filename or folder}: {error.strerror or error}") from None
