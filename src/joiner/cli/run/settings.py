"""What `joiner run` was asked for, read once: options, the cluster, the provider, the scheduler's configuration."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from joiner import options
from joiner.assembly import Spread, spread_of
from joiner.cloud import plugins
from joiner.cloud.provider import Connect
from joiner.options import Options, OptionsError
from joiner.yamldoc import documents

CLOUD: Final = "aws"
"""The provider of the cloud that `CLUSTER_NAME` is a setting of."""
NO_CLOUD: Final = "kwok"


class StartProblem(Exception):
    """The controllers cannot start: why, and what to do. Shown to the user as it is."""


@dataclass(frozen=True, kw_only=True)
class ProviderChoice:
    """The provider, and why it is that one."""

    name: str
    reason: str
    connect: Connect


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Everything that was asked for."""

    options: Options
    provider: ProviderChoice
    spread: Spread
    kubeconfig: str | None = None
    context: str | None = None
    dry_run: bool = False


def read(
    arguments: list[str],
    environment: Mapping[str, str],
    *,
    provider: str | None = None,
    kubeconfig: str | None = None,
    context: str | None = None,
    dry_run: bool = False,
) -> Settings:
    """Read everything. Raises OptionsError and StartProblem."""
    read_options = options.read(arguments, environment)
    return Settings(
        options=read_options,
        provider=choose(provider, environment),
        spread=scheduler_spread(read_options.scheduler_config),
        kubeconfig=kubeconfig,
        context=context,
        dry_run=dry_run,
    )


def choose(named: str | None, environment: Mapping[str, str]) -> ProviderChoice:
    """The provider that was named, else the cloud's where there is one, else kwok."""
    name, reason = NO_CLOUD, "CLUSTER_NAME is not set, so there is no cloud"
    if named:
        name, reason = named, "it was named with --provider"
    elif environment.get("CLUSTER_NAME"):
        name, reason = CLOUD, "CLUSTER_NAME is set"
    try:
        return ProviderChoice(name=name, reason=reason, connect=plugins.find(name))
    except plugins.UnknownProvider as error:
        raise StartProblem(f"{error} ({reason}; name another one with --provider)") from None
    except ImportError as error:
        raise StartProblem(
            f"the provider {name} ({reason}) needs a package that is not installed: {error.name}; install joiner[{name}], or"
            " name another one with --provider"
        ) from None


def scheduler_spread(text: str) -> Spread:
    """The default spread constraints in the kube-scheduler's configuration, which is the value of the option itself."""
    if not text.strip():
        return {}
    loaded = documents(text, "scheduler-config")
    if loaded.problems:
        raise OptionsError(map(str, loaded.problems))
    if len(loaded.documents) != 1:
        raise OptionsError([f"scheduler-config: it holds {len(loaded.documents)} documents, and must hold one"])
    try:
        return spread_of(loaded.documents[0].data)
    except OptionsError as error:
        raise OptionsError(f"scheduler-config: {each}" for each in error.problems) from None
