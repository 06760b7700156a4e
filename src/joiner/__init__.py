"""Joiner: a just-in-time node provisioner for Kubernetes that plans, simulates and explains.

The names listed here are the ones to build on; everything else may move without notice. They are imported when they are
asked for, so that the command line starts at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from joiner.cloud.provider import CloudProvider as CloudProvider
    from joiner.requirements import Requirements as Requirements
    from joiner.scheduling.plan import Plan as Plan
    from joiner.scheduling.plan import Refusal as Refusal
    from joiner.scheduling.problem import Problem as Problem
    from joiner.scheduling.schedule import schedule as schedule

__version__ = "0.1.0"

_HOMES = {
    "CloudProvider": "joiner.cloud.provider",
    "Plan": "joiner.scheduling.plan",
    "Problem": "joiner.scheduling.problem",
    "Refusal": "joiner.scheduling.plan",
    "Requirements": "joiner.requirements",
    "schedule": "joiner.scheduling.schedule",
}
__all__ = ["CloudProvider", "Plan", "Problem", "Refusal", "Requirements", "__version__", "schedule"]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'joiner' has no attribute {name!r}; it has {', '.join(__all__)}")
    return getattr(import_module(home), name)
