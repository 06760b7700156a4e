"""What a plan in pieces is made of."""

from itertools import permutations

from tests.builders import instance_type, node_pool, offering, pods, problem

from joiner.model.labels import ZONE
from joiner.scheduling.bound.relaxation import relaxed


def test_the_kinds_come_in_one_order_whatever_order_they_are_sold_in() -> None:
    types = [instance_type(f"only-in-{zone}", [offering(zone=zone)]) for zone in "abc"]
    waiting = [each for zone in "abc" for each in pods(1, zone, nodeSelector={ZONE: zone})]
    either = [*waiting, *pods(1, "anywhere")]

    found = {relaxed(problem(either, node_pool(), types=sold)).kinds.rules.tobytes() for sold in permutations(types)}

    assert len(found) == 1
