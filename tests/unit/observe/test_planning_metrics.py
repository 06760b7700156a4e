"""What is told while a plan is made, and after it; and for how long a summary remembers."""

import asyncio

from tests.apiworld import Served, served

from joiner.observe.metrics import Metrics
from joiner.observe.planningduration import Planning


def test_a_plan_in_work_is_told_while_it_is_in_work() -> None:
    async def test(world: Served) -> None:
        metrics = Metrics()
        planning = Planning(metrics, world.clock, "provisioner")

        def told(name: str, **more: str) -> float | None:
            return metrics.registry.get_sample_value(
                f"karpenter_scheduler_{name}", {"controller": "provisioner", **more}
            )

        for number in ("1", "2"):
            with planning.measured(7):
                await asyncio.sleep(3)
                assert told("queue_depth", scheduling_id=number) == 7
                assert told("unfinished_work_seconds", scheduling_id=number) == 3
            assert told("queue_depth", scheduling_id=number) == 0
            assert told("unfinished_work_seconds", scheduling_id=number) is None
        assert told("queue_depth", scheduling_id="1") is None
        assert told("scheduling_duration_seconds_sum") == 6

    served(test)


def test_a_summary_forgets_what_is_older_than_ten_minutes_but_for_its_sum() -> None:
    async def test(world: Served) -> None:
        metrics = Metrics(world.clock)
        name = "karpenter_pods_startup_duration_seconds"
        for value in (30.0, 10.0):
            metrics.pods_startup_duration_seconds.observe(value)
            assert metrics.registry.get_sample_value(name, {"quantile": "1"}) == 30
            await asyncio.sleep(400)
        assert metrics.registry.get_sample_value(name, {"quantile": "1"}) == 10
        assert metrics.registry.get_sample_value(f"{name}_sum") == 40
        await asyncio.sleep(400)
        assert metrics.registry.get_sample_value(name, {"quantile": "1"}) is None

    served(test)
