"""Pods that stay apart and a reservation with one free place: nothing is launched that EC2 cannot give."""

import asyncio
import os
from collections import Counter

from joiner.model import codec, labels
from joiner.model.clusterobjects import Event
from joiner.model.nodeclaim import NodeClaim
from joiner.model.pod import Pod
from joiner.sim.story import ec2, objects
from joiner.sim.story.document.given import Given, PoolWords, ReservationWords
from joiner.sim.virtualtime import VirtualLoop, run
from joiner.sim.world import World

PODS = int(os.environ.get("JOINER_APART", "500"))
"""Ten thousand take a quarter of an hour."""
GIVEN = Given(
    provider="aws",
    sells=("m5.large",),
    nodepools=(PoolWords(name="default", capacity_types=("reserved", "on-demand")),),
    reservations=(ReservationWords(id="cr-0001", instance_type="m5.large", zone="us-east-1a", count=3, elsewhere=2),),
)
APART = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}


def pod(number: int) -> Pod:
    spec = {
        "containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}],
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [APART]}},
    }
    metadata = {"name": f"web-{number}", "namespace": "default", "labels": {"app": "web"}}
    return codec.decode({"metadata": metadata, "spec": spec}, Pod)


def test_the_one_free_place_is_given_once_and_no_launch_finds_it_taken() -> None:
    async def play(loop: VirtualLoop) -> World:
        world = World(loop, seed=1, open_account=ec2.open_account(GIVEN), history=50_000)
        world.load([ec2.node_class(GIVEN), *objects.pools(GIVEN)])
        await world.start()
        await asyncio.sleep(60.0)
        for number in range(PODS):
            await world.user.create(pod(number))
        await asyncio.sleep(120.0 + PODS / 4)  # EC2 is asked for five machines a second
        await world.stop()
        return world

    world = run(play)

    assert world.account is not None
    claims = Counter(each.metadata.labels[labels.CAPACITY_TYPE] for each in world.server.objects(NodeClaim))
    assert claims == {"reserved": 1, "on-demand": PODS - 1}
    assert len(world.account.answers) == len(world.account.machines) == PODS
    assert not [each for _, answer in world.account.answers.values() for each in answer["Errors"]]
    assert not [each for each in world.server.objects(Event) if each.reason == "InsufficientCapacityError"]
