"""What people can set when they start the controllers: one frozen value, read once at the door.

Flags, environment variables, feature gates and their defaults are Karpenter's, so that a Deployment made for it works unchanged.
A flag wins over its environment variable, whose name is the flag's in upper case with underscores.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from typing import Any, Final, Literal

from joiner.model.duration import Duration, DurationError


class OptionsError(ValueError):
    """Something that was set cannot be understood. All problems are told at once."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


@dataclass(frozen=True, kw_only=True)
class Gates:
    """Features that can be switched on and off."""

    node_repair: bool = False
    reserved_capacity: bool = True
    spot_to_spot_consolidation: bool = False
    node_overlay: bool = True
    static_capacity: bool = False
    capacity_buffer: bool = False
    terminate_first_drift: bool = False
    terminate_first_repair: bool = False
    pod_deletion_cost_management: bool = False


_DEFAULT_GATES: Final = Gates()


def _option(default: Any, meaning: str) -> Any:
    return field(default=default, metadata={"meaning": meaning})


@dataclass(frozen=True, kw_only=True)
class Options:
    """Everything that can be set. Names are the flags' with underscores; durations are seconds."""

    karpenter_service: str = _option("", "Name of the Service in front of the controllers; has no effect.")
    metrics_port: int = _option(8080, "Port of the metrics endpoint.")
    health_probe_port: int = _option(8081, "Port of the health probes.")
    kube_client_qps: int = _option(200, "Requests per second to the API server.")
    kube_client_burst: int = _option(300, "Requests to the API server that may come at once.")
    enable_profiling: bool = _option(False, "Has no effect: there are no profiles of Go.")
    disable_controller_warmup: bool = _option(True, "Has no effect: caches are filled after the election.")
    disable_leader_election: bool = _option(False, "Run without a lease; only ever with one replica.")
    disable_cluster_state_observability: bool = _option(
        False, "Leave out the metrics of single pods, nodes, pools and conditions."
    )
    disable_detailed_metrics: bool = _option(False, "Leave out the metrics that name single pods or single offerings.")
    leader_election_name: str = _option("karpenter-leader-election", "Name of the lease.")
    leader_election_namespace: str = _option("", "Namespace of the lease; empty for the pod's own.")
    memory_limit: int = _option(-1, "Memory limit of the container in bytes; has no effect.")
    cpu_requests: int = _option(1000, "CPU request of the container in thousandths of a core; has no effect.")
    log_level: Literal["debug", "info", "error"] = _option("info", "How much is logged: debug, info or error.")
    log_output_paths: str = _option("stdout", "Where logs go, separated by commas.")
    log_error_output_paths: str = _option("stderr", "Has no effect: what cannot be logged is let go.")
    batch_max_duration: float = _option(10.0, "How long pods are gathered at most before they are planned for.")
    batch_idle_duration: float = _option(1.0, "How long no new pod may come before the gathering ends.")
    preference_policy: Literal["Respect", "Ignore"] = _option("Respect", "What to do about preferences of pods.")
    min_values_policy: Literal["Strict", "BestEffort"] = _option(
        "Strict", "Whether minValues must hold, or are lowered when they cannot."
    )
    planning_policy: Literal["Cheapest", "FirstFit"] = _option(
        "Cheapest", "Whether the cheapest plan is looked for, or nodes are filled pod by pod, as Karpenter does it."
    )
    ignore_dra_requests: bool = _option(True, "Has no effect: pods with dynamic resource claims are left alone.")
    scheduler_config: str = _option(
        "", "The kube-scheduler's configuration, as the YAML itself, for default spread constraints."
    )
    eviction_cost: float = _option(
        600.0,
        "What evicting a pod costs in consolidation, in time of the pod's own price, where its NodePool says nothing.",
    )
    longest_horizon: float = _option(
        3600.0,
        "Within which time a consolidation has to be paid back where no workload has changed for as long; an hour always counts.",
    )
    legacy_node_repair: bool = _option(False, "Repair nodes by deleting them at once, as older releases did.")
    feature_gates: Gates = _option(_DEFAULT_GATES, "Features to switch on and off: Name=true,Other=false.")  # noqa: RUF009

    @property
    def gates(self) -> Gates:
        """The feature gates."""
        return self.feature_gates

    @property
    def nomination_s(self) -> float:
        """How long a node that a pod was promised is left alone."""
        return max(2 * self.batch_max_duration, 10.0)


def flag_of(name: str) -> str:
    """The flag that sets an option."""
    return name.replace("_", "-")


def gate_name(name: str) -> str:
    """The name of a gate as people write it."""
    return "".join(part.capitalize() for part in name.split("_"))


_GATES: Final = {gate_name(each.name): each.name for each in fields(Gates)}
_CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    "log_level": ("debug", "info", "error"),
    "preference_policy": ("Respect", "Ignore"),
    "min_values_policy": ("Strict", "BestEffort"),
    "planning_policy": ("Cheapest", "FirstFit"),
}

_MAY_BE_ZERO: Final = frozenset({"eviction_cost"})
"""Durations that may be zero, which switches off what they are for."""


def _boolean(text: str) -> bool:
    lowered = text.lower()
    if lowered in ("true", "t", "1"):
        return True
    if lowered in ("false", "f", "0"):
        return False
    raise ValueError("expected true or false")


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError("expected a whole number") from None


def _seconds(text: str) -> float:
    try:
        found = Duration.parse(text)
    except DurationError as error:
        raise ValueError(f"expected a duration like 10s or 1m30s: {error}") from None
    if found <= 0:
        raise ValueError("expected a duration longer than zero")
    return found.seconds


def _seconds_or_none(text: str) -> float:
    return 0.0 if text in ("0", "0s") else _seconds(text)


def _gates(text: str) -> Gates:
    """Unknown names are passed over, as the flags of another release may be."""
    changes: dict[str, bool] = {}
    for part in filter(None, (each.strip() for each in text.split(","))):
        name, equals, value = part.partition("=")
        if not equals:
            raise ValueError(f"expected Name=true or Name=false, found {part!r}")
        if name in _GATES:
            changes[_GATES[name]] = _boolean(value)
    return replace(Gates(), **changes)


def _reader(name: str, default: Any) -> Callable[[str], Any]:
    if name in _CHOICES:
        return lambda text: _chosen(text, _CHOICES[name])
    if isinstance(default, Gates):
        return _gates
    if name in _MAY_BE_ZERO:
        return _seconds_or_none
    for kind, reader in ((bool, _boolean), (int, _whole), (float, _seconds)):
        if isinstance(default, kind):
            return reader
    return str


def _chosen(text: str, allowed: tuple[str, ...]) -> str:
    if text in allowed:
        return text
    raise ValueError(f"expected one of {', '.join(allowed)}")


def read(arguments: Sequence[str], environment: Mapping[str, str]) -> Options:
    """The options that flags and environment ask for. Raises OptionsError with everything that is wrong."""
    known = {flag_of(each.name): each for each in fields(Options)}
    given: dict[str, tuple[str, str]] = {}
    problems: list[str] = []
    for flag in known:
        variable = flag.upper().replace("-", "_")
        if environment.get(variable):
            given[flag] = (environment[variable], f"environment variable {variable}")
    waiting = list(arguments)
    while waiting:
        word = waiting.pop(0)
        name, equals, value = word.lstrip("-").partition("=")
        if not word.startswith("-") or name not in known:
            problems.append(_unknown(word, name, known))
            continue
        if not equals:
            is_switch = isinstance(known[name].default, bool)
            if not is_switch and not waiting:
                problems.append(f"flag --{name}: a value is missing")
                continue
            value = "true" if is_switch else waiting.pop(0)
        given[name] = (value, f"flag --{name}")
    changes: dict[str, Any] = {}
    for flag, (value, origin) in given.items():
        option = known[flag]
        try:
            changes[option.name] = _reader(option.name, option.default)(value)
        except ValueError as error:
            problems.append(f"{origin}: {value!r}: {error}")
    if problems:
        raise OptionsError(problems)
    return Options(**changes)


def _unknown(word: str, name: str, known: Iterable[str]) -> str:
    near = get_close_matches(name, list(known), n=1)
    hint = f"; did you mean --{near[0]}?" if near else ""
    return f"{word!r} is not a flag that is known here{hint}"
