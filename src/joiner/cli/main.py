"""The `joiner` command: finds the command that was asked for, and turns every error into words.

Nothing heavy is imported here: `joiner --help` and shell completion must answer at once.
"""

import errno
import gc
import importlib
import io
import os
import sys
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final, NoReturn

import click
from click.shell_completion import CompletionItem

from joiner import __version__

COMMANDS: Final[Mapping[str, str]] = {
    "plan": "Show what would be bought for pods, where they would go, and why.",
    "run": "Run the controllers on a cluster.",
    "consolidate": "Show which nodes would go, in which order, and what that saves.",
    "explain": "Say why a node goes or stays, or what a NodePool edit replaces.",
    "simulate": "Play a story in the embedded cluster, on virtual time.",
    "catalog": "Show what NodePools can buy, at which price, and why.",
    "validate": "Check manifests and print every problem at once.",
    "dump": "Print the kubectl command that dumps all that plans read.",
    "crds": "Print or write the CustomResourceDefinitions.",
    "version": "Print the version.",
    "completion": "Print the shell completion script.",
}
"""Every command with its one line of help: what the list of commands shows without importing any of them."""

_CANNOT_WRITE: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)

_PACKAGES: Final = ("plan", "run", "consolidate", "explain", "simulate", "catalog")
"""Commands that are a package; the others are a file."""

_NEW_OBJECTS: Final = 100_000
"""After so many new objects the garbage collector looks for unreachable cycles."""

EXIT_BUG: Final = 70
EXIT_INTERRUPTED: Final = 130
EXIT_BROKEN_PIPE: Final = 141

EPILOG: Final = """\b
Examples:
  joiner validate -f manifests/
  joiner catalog -f manifests/ --nodepool default
  joiner plan -f manifests/
  eval "$(joiner dump)" | joiner plan -f -
  joiner simulate examples/19-an-hour-of-a-web-shop
  joiner crds --dir crds/
  source <(joiner completion bash)

\b
Environment:
  NO_COLOR=1       no colour, also on a terminal
  JOINER_DEBUG=1   the same as --debug

\b
Exit codes:
  0    fine
  1    something is wrong with the input; the message says what
  2    wrong usage of the command line
  70   a bug in joiner; the message says how to report it
  130  interrupted (Ctrl-C)
  141  the reader of the output has gone (joiner ... | head)
"""


class Bug(click.ClickException):
    """An error that is not the user's."""

    exit_code = EXIT_BUG


class CommandGroup(click.Group):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands in the order of their table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported now."""
        if cmd_name not in COMMANDS:
            return None
        # Read when numpy is loaded. Our matrices are small: threads for them only wait for each other, at full speed.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        # What is made lives as long as the answer is in the making: the collector finds little, however often it looks.
        gc.set_threshold(_NEW_OBJECTS)
        module = f"joiner.cli.{cmd_name}.command" if cmd_name in _PACKAGES else f"joiner.cli.{cmd_name}"
        command: click.Command = importlib.import_module(module).command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command and what is left for it; an unknown one is answered with the nearest spelling."""
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            import difflib

            near = difflib.get_close_matches(name, COMMANDS, n=1, cutoff=0.5)
            hint = f"did you mean '{near[0]}'?" if near else f"there are {', '.join(COMMANDS)}."
            ctx.fail(f"There is no command '{name}'; {hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Names of commands and options, without importing the commands."""
        names = [CompletionItem(name, help=text) for name, text in COMMANDS.items() if name.startswith(incomplete)]
        return names + click.Command.shell_complete(self, ctx, incomplete)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. Errors end in a message and an exit code, with a traceback only when it was asked for."""
        try:
            try:
                return super().invoke(ctx)
            finally:
                sys.stdout.flush()
                _tell_of_broken_providers()
        except click.UsageError as error:
            # People name files as kubectl never lets them, and lists with spaces.
            if error.message.startswith("Got unexpected extra argument") and error.ctx is not None:
                known = {each.name for each in error.ctx.command.params}
                hints = {"filenames": "files and folders are named with -f", "zones": "several zones with commas"}
                texts = (error.message, *(text for name, text in hints.items() if name in known))
                raise click.UsageError("; ".join(texts), error.ctx) from None
            raise
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except KeyboardInterrupt:
            ctx.exit(EXIT_INTERRUPTED)
        except BrokenPipeError:
            _silence_stdout()
            ctx.exit(EXIT_BROKEN_PIPE)
        except Exception as error:
            if isinstance(error, OSError) and error.errno in _CANNOT_WRITE:
                _silence_stdout()
                raise click.ClickException(f"the output cannot be written: {error.strerror}") from None
            _explain(error, debug=ctx.params["debug"])


def _tell_of_broken_providers() -> None:
    """One line for each, if the command asked providers at all."""
    kinds = sys.modules.get("joiner.offline.kinds")
    if kinds is not None and kinds._connected.cache_info().currsize:
        from joiner.cli import output

        for line in kinds.broken_providers():
            output.echo(output.Cell("note", "yellow"), f": {line}", err=True)


@click.group(
    cls=CommandGroup, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110}
)
@click.option("--debug", is_flag=True, envvar="JOINER_DEBUG", help="Show the traceback when something goes wrong.")
@click.version_option(__version__, "-V", "--version", prog_name="joiner", message="%(prog)s %(version)s")
def cli(debug: bool) -> None:
    """Joiner buys the nodes that your pods need, and explains why.

    `run` works on a cluster; the others work on files.
    """


def main() -> None:
    """The entry point."""
    if sys.stdout is None:
        raise SystemExit("Error: standard output is closed: there is nowhere to print to")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that cannot show a character gets an escape, not an error.
            stream.reconfigure(errors="backslashreplace")
    cli(prog_name="joiner")


def _explain(error: Exception, debug: bool) -> NoReturn:
    if debug:
        _show_traceback(error, error.__traceback__)
    if _is_ours(error):
        from joiner.cli import output

        raise click.ClickException("\n".join(map(output.safe, str(error).split("\n")))) from None
    more = "" if debug else "\nRun it again as 'joiner --debug ...' for the details, and please report them."
    raise Bug(f"this is a bug in joiner, not a mistake of yours: {type(error).__name__}: {error}{more}") from None


def _is_ours(error: Exception) -> bool:
    """Whether the error is one of this package: its class, or one it derives from, is defined here."""
    return any(kind.__module__.partition(".")[0] == "joiner" for kind in type(error).__mro__)


def _show_traceback(error: Exception, trace: TracebackType | None) -> None:
    import traceback

    click.echo("".join(traceback.format_exception(type(error), error, trace)), err=True, nl=False)


def _silence_stdout() -> None:
    """The reader of the pipe is gone: let the interpreter's last flush go nowhere instead of failing."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
