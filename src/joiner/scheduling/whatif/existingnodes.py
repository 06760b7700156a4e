"""Why nodes that are there do not take a pod, once a plan is carried out."""

from collections.abc import Iterator

from joiner.model import resources
from joiner.model.meta import replace
from joiner.model.taints import untolerated
from joiner.scheduling.effort import Unlimited
from joiner.scheduling.engine.firstfit import FirstFit
from joiner.scheduling.nodes.existingnode import OpenNode
from joiner.scheduling.nodes.openclaim import PORTS, REQUIREMENTS, RESOURCES, TAINTS, TOPOLOGY, VOLUMES
from joiner.scheduling.plan import Plan, RefusalReason
from joiner.scheduling.pods.podclass import PodClass, Step
from joiner.scheduling.problem import Problem
from joiner.scheduling.report.topologyrefusal import obstacle_at
from joiner.scheduling.report.words import taint_text
from joiner.scheduling.whatif.aftermath import NEW, settled


def objections(problem: Problem, plan: Plan, name: str) -> tuple[RefusalReason, ...]:
    """What each node that is there has against a pod (`namespace/name`), in order of the nodes' names.

    Nodes are asked as the plan leaves them, and about what the pod demands, not about what it prefers.
    """
    pod = next(each for each in problem.pods if each.key == name)
    rest = settled(problem, plan)
    bound = tuple(each for each in rest.bound if each.key != name)
    run = FirstFit(replace(rest, pods=(pod,), bound=bound), Unlimited())
    each = run.of_pod[0]
    if each.number in run.ignored:
        return ()
    step = each.most_modest
    there = sorted((node for node in run.nodes if not node.node.name.startswith(NEW)), key=lambda node: node.node.name)
    return () if step is None else tuple(_objections(run, there, each, step))


def _objections(run: FirstFit, nodes: list[OpenNode], pod_class: PodClass, step: Step) -> Iterator[RefusalReason]:
    for node in nodes:
        refused = node.refused(pod_class, step)
        if refused is not None:
            message, wanted, had = _why(run, node, pod_class, step, refused.rule)
            yield RefusalReason(
                rule=refused.rule, object=f"Node {node.node.name}", message=message, wanted=wanted, had=had
            )


def _why(run: FirstFit, node: OpenNode, pod_class: PodClass, step: Step, rule: str) -> tuple[str, str, str]:
    """What is said, what was wanted, and what there was."""
    if rule == TAINTS:
        named = ", ".join(map(taint_text, untolerated(node.node.taints, step.tolerations)))
        return f"the pod does not tolerate {named}", "no taint that it does not tolerate", named
    if rule == RESOURCES:
        short = [
            (name, resources.plain(name, wanted), resources.plain(name, max(0, left)))
            for name, wanted, left in zip(run.names, pod_class.amounts, node.left, strict=True)
            if wanted > left and wanted
        ]
        message = ", ".join(f"{name} {wanted} is asked for and {left} is free" for name, wanted, left in short)
        wants, has = (", ".join(f"{part[0]} {part[at]}" for part in short) for at in (1, 2))
        return message, wants, has
    if rule == REQUIREMENTS:
        here = node.requirements
        wanting = (*here.undefined(step.requirements), *here.conflicts(step.requirements))
        wants = ", ".join(str(step.requirements[key]) for key in wanting)
        has = ", ".join(str(here[key]) if key in here else f"no {key}" for key in wanting)
        return f"it needs {wants}, and the node has {has}", wants, has
    if rule == TOPOLOGY and (found := obstacle_at(pod_class, step, node.requirements)) is not None:
        return f"{found.says}: it needs {found.wanted}, and there are {found.had}", found.wanted, found.had
    said = {PORTS: "a host port is taken", VOLUMES: "its volumes cannot be reached or attached there"}
    return said.get(rule, "the node does not take it"), "", ""
