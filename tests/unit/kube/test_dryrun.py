"""The client that writes nothing."""

from typing import Any

import pytest
from tests.apiworld import Served, served
from tests.builders import node_pool

from joiner.kube.client import Key
from joiner.kube.dryrun import DryRunClient
from joiner.kube.errors import NotFound
from joiner.model.clusterobjects import Event
from joiner.model.meta import ObjectMeta, replace
from joiner.model.node import Node
from joiner.model.nodepool import NodePool


def test_everything_is_told_and_answered_and_nothing_is_written() -> None:
    async def test(world: Served) -> None:
        pool = await world.client.create(node_pool(name="p"))
        version = world.server.version
        told: list[tuple[str, str, Key, Any]] = []
        client = DryRunClient(world.client, lambda *each: told.append(each))

        made = await client.create(Node(metadata=ObjectMeta(generate_name="n-")))
        changed = await client.patch(pool, replace(pool, spec=replace(pool.spec, weight=7)))
        await client.patch(pool, pool)
        await client.patch_status(pool, replace(pool, status=replace(pool.status, nodes=3)))
        await client.delete(NodePool, "p")
        await client.evict("x", "y")
        await client.bind("x", "y", node="n")
        await client.create(Event(metadata=ObjectMeta(name="e")))

        assert made.name.startswith("n-")
        assert made.metadata.uid
        assert (await client.get(Node, made.name)) == made
        assert changed.spec.weight == 7
        assert (await client.get(NodePool, "p")) == pool
        assert [(verb, kind) for verb, kind, _, _ in told] == [
            ("create", "Node"), ("patch", "NodePool"), ("patch the status of", "NodePool"), ("delete", "NodePool"),
            ("evict", "Pod"), ("bind", "Pod"),
        ]  # fmt: skip
        assert told[1][3] == {"spec": {"weight": 7}}
        assert world.server.version == version
        with pytest.raises(NotFound):
            await world.client.get(Node, made.name)

    served(test)
