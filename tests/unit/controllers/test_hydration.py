"""The label that names a NodeClass."""

import asyncio

from tests.unit.controllers.lifecycleworld import LifeWorld, claim, live

from joiner.model.meta import replace

LABEL = "karpenter.kwok.sh/kwoknodeclass"


def test_a_claim_without_the_label_of_its_class_gets_it() -> None:
    async def story(world: LifeWorld) -> None:
        await asyncio.sleep(5)

        assert world.claim().metadata.labels[LABEL] == "default"

    live(story, claim(pool=""))


def test_a_node_that_lost_the_label_gets_it_back() -> None:
    async def story(world: LifeWorld) -> None:
        node = await world.settled()
        kept = {key: value for key, value in node.metadata.labels.items() if key != LABEL}
        world.change(node, metadata=replace(node.metadata, labels=kept))
        await asyncio.sleep(5)

        assert world.node(node.name).metadata.labels[LABEL] == "default"

    live(story)
