"""Planning from a plan in pieces, where the answer can be seen."""

from typing import Any

from tests.builders import VOCABULARY, instance_type, node_pool, offering

from joiner.catalog.build import Adjustments, build
from joiner.model import resources
from joiner.model.codec import decode
from joiner.model.pod import Pod
from joiner.scheduling.effort import Unlimited
from joiner.scheduling.lpround import RoundedRun
from joiner.scheduling.problem import PoolOption, Problem


def pods(name: str, count: int, cpu: str, memory: str, **spec: Any) -> list[Pod]:
    container = {"name": "c", "resources": {"requests": {"cpu": cpu, "memory": memory}}}
    written = {"containers": [container], **spec}
    return [
        decode({"metadata": {"name": f"{name}-{n}", "namespace": "default"}, "spec": written}, Pod)
        for n in range(count)
    ]


def problem(waiting: list[Pod]) -> Problem:
    machine = instance_type(
        "only", [offering(price=1.0)], capacity=resources.of(cpu=8, memory="32Gi", pods=100), overhead=None
    )
    pool = node_pool()
    option = PoolOption(pool=pool, catalog=build((machine,), Adjustments(), pool, VOCABULARY))
    return Problem(pods=tuple(waiting), pools=(option,), vocabulary=VOCABULARY)


def test_pods_that_leave_what_others_need_share_a_node() -> None:
    heads, bodies = pods("cpu", 20, "3", "2Gi"), pods("memory", 20, "1", "14Gi")

    run = RoundedRun(problem([*heads, *bodies]), Unlimited())
    run.place()

    assert not run.left_over().total()
    assert len(run.claims) == 10


def test_what_does_not_fill_a_node_is_bought_as_well() -> None:
    run = RoundedRun(problem(pods("one", 1, "1", "1Gi")), Unlimited())
    run.place()

    assert len(run.claims) == 1


def test_nothing_to_do_is_done() -> None:
    run = RoundedRun(problem([]), Unlimited())
    run.place()

    assert not run.claims
