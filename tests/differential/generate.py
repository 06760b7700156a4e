"""Small scheduling scenarios of many families, drawn from a seed: the same name gives the same scenario.

A scenario is plain data in the scenario format. Each family turns on one thing and a little noise around it;
`mixed` turns on many.
"""

import random

from tests.differential import families_market, families_nodes, families_pods
from tests.differential.pieces import FAMILIES, pool, types
from tests.differential.terms import Json

__all__ = ["FAMILIES", "families_market", "families_nodes", "families_pods", "generate"]


def generate(name: str, seed: int) -> Json:
    """The scenario of a family and a seed."""
    rng = random.Random(f"{name}/{seed}")
    parts: Json = {"nodePools": [pool()], "instanceTypes": None, "pods": []}
    parts |= FAMILIES[name](rng)
    if parts["instanceTypes"] is None:
        parts["instanceTypes"] = types(rng)
    return {"name": f"{name}/{seed}", **parts, "options": {**parts.get("options", {}), "timeoutSeconds": 60}}
