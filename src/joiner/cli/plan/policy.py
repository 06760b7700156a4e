"""`PlanOptions` out of the options of the command line, and the default spread of a KubeSchedulerConfiguration."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from joiner.offline import files, narrowing
from joiner.offline.report.plan import PlanOptions
from joiner.scheduling import tuning
from joiner.scheduling.pods.defaultspread import ConfigProblem, Defaults, configured
from joiner.scheduling.problem import Policy
from joiner.yamldoc import documents


def plan_options(given: Mapping[str, Any], *, purchases: bool = False) -> PlanOptions:
    """The options of a plan out of those of the command line; what was not given is as usual."""

    def or_usual(name: str, usual: float) -> Any:
        return usual if given.get(name) is None else given[name]

    policy = Policy(
        preferences="Ignore" if given.get("preferences") == "Ignore" else "Respect",
        min_values="BestEffort" if given.get("min_values") == "BestEffort" else "Strict",
        planning="FirstFit" if given.get("planning") == "FirstFit" else "Cheapest",
        node_price=or_usual("node_price", tuning.NODE_PRICE),
        spot_width=or_usual("spot_width", tuning.SPOT_WIDTH),
        spot_width_cost=or_usual("spot_width_cost", tuning.SPOT_WIDTH_COST),
    )
    return PlanOptions(
        policy=policy,
        spread=spread_defaults(given.get("scheduler_config")),
        load=given.get("load") or "stated",
        narrowing=narrowing.parse(given.get("capacity_types") or (), given.get("zones") or ()),
        effort=given.get("effort"),
        pod=given.get("explained"),
        costs=bool(given.get("priced")),
        bound=bool(given.get("bounded")),
        purchases=purchases,
    )


def spread_defaults(name: str | None) -> Defaults:
    """The default spread constraints in a scheduler configuration; none without a file."""
    if name is None:
        return {}
    try:
        text = Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise files.BadInput([files.InputProblem(name, f"cannot be read: {reason}", "check the path")]) from None
    loaded = documents(text, name)
    if loaded.problems:
        raise files.BadInput(loaded.problems)
    if len(loaded.documents) != 1:
        found = f"holds {len(loaded.documents)} documents"
        raise files.BadInput([files.InputProblem(name, found, "a scheduler configuration is one")])
    try:
        return configured(loaded.documents[0].data)
    except ConfigProblem as problem:
        raise files.BadInput([files.InputProblem(name, each) for each in problem.problems]) from None
