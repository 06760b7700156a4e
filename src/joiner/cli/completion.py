"""`joiner completion`: the script that teaches a shell our commands and options."""

import click
from click.shell_completion import get_completion_class

EPILOG = """\b
For this shell only:
  source <(joiner completion bash)
  source <(joiner completion zsh)
  joiner completion fish | source

\b
For every new shell:
  joiner completion bash > ~/.local/share/bash-completion/completions/joiner
  joiner completion zsh > "${fpath[1]}/_joiner"
  joiner completion fish > ~/.config/fish/completions/joiner.fish
"""


@click.command("completion", short_help="Print the shell completion script.", epilog=EPILOG)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the script that completes joiner's commands and options in SHELL."""
    complete = get_completion_class(shell)
    assert complete is not None
    click.echo(complete(ctx.find_root().command, {}, "joiner", "_JOINER_COMPLETE").source())
