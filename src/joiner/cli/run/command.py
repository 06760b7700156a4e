"""`joiner run`: takes flags as Karpenter's controller does, and hands over to the process."""

import os
from collections.abc import Callable
from dataclasses import fields
from typing import Any, TypeVar

import click

from joiner.options import Options, OptionsError, flag_of

F = TypeVar("F", bound=Callable[..., Any])

EPILOG = """\b
Examples:
  joiner run
  joiner run --kubeconfig ~/.kube/config --context kind-test --provider kwok
  joiner run --dry-run
  FEATURE_GATES=NodeRepair=true joiner run --log-level debug

\b
Exit codes:
  0  ended by SIGTERM or SIGINT; the lease was released
  1  could not start, or something is wrong with the settings; the message says what
  2  wrong usage of the command line
  3  the lease was lost: another replica leads
"""


def _karpenter_flags(function: F) -> F:
    """Every option of the controllers as a flag; switches may be given without a value, as Go's are."""
    for option in reversed(fields(Options)):
        flag, meaning = flag_of(option.name), str(option.metadata["meaning"])
        switch: dict[str, Any] = {"is_flag": False, "flag_value": "true"} if isinstance(option.default, bool) else {}
        text = f"{meaning}  [env: {flag.upper().replace('-', '_')}]"
        function = click.option(f"--{flag}", option.name, default=None, metavar="VALUE", help=text, **switch)(function)
    return function


class _WithGoFlags(click.Command):
    """Takes `-metrics-port=0` as well: one dash and two are the same to Go."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the command line."""
        known = {flag_of(each.name) for each in fields(Options)}
        return super().parse_args(ctx, [f"-{each}" if _named(each) in known else each for each in args])


def _named(word: str) -> str:
    """The flag that is named with one dash, or nothing."""
    return "" if word.startswith("--") else word.removeprefix("-").partition("=")[0] if word.startswith("-") else ""


@click.command("run", cls=_WithGoFlags, short_help="Run the controllers on a cluster.", epilog=EPILOG)
@click.option(
    "--kubeconfig", type=click.Path(), help="The kubeconfig; else KUBECONFIG, the pod's service account, ~/.kube."
)
@click.option("--context", help="The context of the kubeconfig; else the current one.")
@click.option(
    "--provider",
    metavar="NAME",
    help="The provider of nodes; else the cloud's where CLUSTER_NAME is set, and kwok otherwise.",
)
@click.option("--dry-run", is_flag=True, help="Tell what would be done to the cluster, and write nothing.")
@_karpenter_flags
@click.pass_context
def command(
    ctx: click.Context,
    /,
    kubeconfig: str | None,
    context: str | None,
    provider: str | None,
    dry_run: bool,
    **given: str | None,
) -> None:
    """Run the controllers: buy nodes for pods that wait, and take nodes away that are not needed or broken.

    Flags, environment variables and feature gates are Karpenter's, so that a Deployment made for it works unchanged.
    """
    from joiner.cli.run import process, settings
    from joiner.observe.logs import outputs

    arguments = [f"--{flag_of(name)}={value}" for name, value in given.items() if value is not None]
    try:
        asked = settings.read(
            arguments, os.environ, provider=provider, kubeconfig=kubeconfig, context=context, dry_run=dry_run
        )
        paths = outputs(asked.options.log_output_paths)
    except OptionsError as error:
        raise click.ClickException(str(error)) from None
    except OSError as error:
        raise click.ClickException(f"log-output-paths: {error.filename}: {error.strerror}; check the path") from None
    ctx.exit(process.run(asked, paths))
