"""A scenario edited as a person would edit it who reads what to change. It shares nothing with the code that advises."""

import copy
import json
import re
from typing import Any

from tests.differential.terms import Json

from joiner.scheduling.whatif.constraints import Constraint

_STEP = re.compile(r"\[([^]]*)\]|([^.\[\]]+)")
_TAINT = re.compile(r"taint ([^=:]+)=?([^:]*):(\w+)")


def edited(scenario: Json, name: str, changes: tuple[Constraint, ...]) -> Json:
    """The scenario with every change made; what is advised to a pod is done to all that look like it."""
    scenario = json.loads(json.dumps(scenario))  # so that no two pods share a part
    waiting = [*scenario["pods"], *scenario["boundPods"]]
    (mine,) = (copy.deepcopy(pod) for pod in scenario["pods"] if f"default/{pod['metadata']['name']}" == name)
    family = [pod for pod in waiting if _same(pod, mine)]
    for change in reversed(changes):  # from the back, as fields are told by their number
        kind, _, owner = change.object.partition(" ")
        path = [inner or plain for inner, plain in _STEP.findall(change.field)]
        if change.change == "tolerate it":
            for pod in family:
                pod["spec"]["tolerations"] = [*pod["spec"].get("tolerations", ()), _toleration(change.says)]
        elif kind == "Pod" and owner == name:
            for pod in family:
                _remove(pod, path)
                _tidy(pod)
        elif kind == "Pod":
            _remove_everywhere(waiting, owner, path)
        elif kind == "NodePool":
            _remove(next(pool for pool in scenario["nodePools"] if pool["metadata"]["name"] == owner), path)
        else:
            kept = [each for each in scenario["daemonSets"] if not owner.startswith(each["metadata"]["name"])]
            scenario["daemonSets"] = kept
    return scenario


def _same(pod: Json, mine: Json) -> bool:
    specs = [{key: content for key, content in each["spec"].items() if key != "nodeName"} for each in (pod, mine)]
    return bool(specs[0] == specs[1] and pod["metadata"].get("labels") == mine["metadata"].get("labels"))


def _toleration(says: str) -> Json:
    found = _TAINT.match(says)
    assert found is not None
    return {"key": found[1], "operator": "Equal", "value": found[2], "effect": found[3]}


def _remove_everywhere(waiting: list[Json], owner: str, path: list[str]) -> None:
    """A term of pod anti-affinity, wherever it stands."""
    (other,) = (pod for pod in waiting if f"default/{pod['metadata']['name']}" == owner)
    *way, number = path
    term = copy.deepcopy(_at(other, way)[int(number)])
    for pod in waiting:
        if (terms := _at(pod, way)) and term in terms:
            terms.remove(term)


def _at(thing: Any, path: list[str]) -> Any:
    for step in path:
        thing = (thing or {}).get(step)
    return thing


def _remove(thing: Any, path: list[str]) -> None:
    step, *rest = path
    if step == "*":
        for each in thing:
            _remove(each, rest)
    elif isinstance(thing, list) and not step.isdigit():  # requirements of a pool are told by their key
        for each in [each for each in thing if each["key"] == step]:
            if rest:
                each.pop(*rest, None)
            else:
                thing.remove(each)
    elif rest:
        _remove(thing[int(step)] if isinstance(thing, list) else thing[step], rest)
    else:
        del thing[int(step) if isinstance(thing, list) else step]


def _tidy(pod: Json) -> None:
    """An empty term matches no node; whoever empties one takes it away, and with the last of them the list."""
    nodes = pod["spec"].get("affinity", {}).get("nodeAffinity", {})
    for field, required in list(nodes.items()):
        if field.startswith("required"):
            required["nodeSelectorTerms"] = [term for term in required["nodeSelectorTerms"] if any(term.values())]
            if not required["nodeSelectorTerms"]:
                del nodes[field]
