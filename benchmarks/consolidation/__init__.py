"""Consolidation beside Karpenter's rules, on small simulated clusters."""

from typing import Any

QUESTION = (
    "Consolidation beside Karpenter's rules: what does a cluster cost at rest, and how many pods moved until then?"
)


def run() -> dict[str, Any]:
    """Everything, one run after the other; it takes hours."""
    from benchmarks.consolidation import table

    return table.run()
