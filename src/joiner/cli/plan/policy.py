"""How to plan, from what the options of `joiner plan` say: the two dials, and what the cluster's own scheduler is told."""

from pathlib import Path

from joiner.offline import files
from joiner.scheduling import tuning
from joiner.scheduling.pods.defaultspread import ConfigProblem, Defaults, configured
from joiner.scheduling.problem import Policy
from joiner.yamldoc import documents


def policy_from(
    node_price: float | None = None,
    spot_width: int | None = None,
    spot_width_cost: float | None = None,
    preferences: str | None = None,
    min_values: str | None = None,
) -> Policy:
    """How to plan, with everything as it usually is unless somebody said otherwise."""
    return Policy(
        preferences="Ignore" if preferences == "Ignore" else "Respect",
        min_values="BestEffort" if min_values == "BestEffort" else "Strict",
        node_price=tuning.NODE_PRICE if node_price is None else node_price,
        spot_width=tuning.SPOT_WIDTH if spot_width is None else spot_width,
        spot_width_cost=tuning.SPOT_WIDTH_COST if spot_width_cost is None else spot_width_cost,
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
