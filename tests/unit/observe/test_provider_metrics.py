"""What is counted of every call to a provider."""

import pytest
from tests.builders import node_pool
from tests.unit.controllers.lifecycleworld import REFERENCE, LifeWorld, live

from joiner.cloud.errors import InstanceNotFound, NodeClassNotReady
from joiner.observe.metrics import Metrics
from joiner.observe.provider import Metered


def test_every_call_is_timed_and_every_error_is_counted_by_its_kind() -> None:
    async def story(world: LifeWorld) -> None:
        metrics = Metrics()
        door = Metered(world.provider, world.clock, metrics)
        await door.list()
        with pytest.raises(InstanceNotFound):
            await door.get("sim://nowhere")
        with pytest.raises(NodeClassNotReady):
            await door.instance_types(node_pool(template={"spec": {"nodeClassRef": {**REFERENCE, "name": "nobody"}}}))

        def value(name: str, method: str, **more: str) -> float | None:
            told = {"controller": "", "method": method, "provider": "kwok", **more}
            return metrics.registry.get_sample_value(f"karpenter_cloudprovider_{name}", told)

        assert value("duration_seconds_count", "List") == 1
        assert value("duration_seconds_count", "Get") == 1
        assert value("errors_total", "Get", error="NodeClaimNotFoundError", nodepool="") == 1
        assert value("errors_total", "GetInstanceTypes", error="NodeClassNotReadyError", nodepool="default") == 1

    live(story)
