"""Worlds of hunts on EC2: the same pools, workloads and faults, with the AWS provider over a pretend account.

EC2 throttles and loses answers as the faults say, shows machines late, and another cluster takes places in the same reservations.
"""

from collections.abc import Mapping
from random import Random
from typing import Any, Final

from joiner.model.meta import Value, replace
from joiner.sim.cloud.ec2.world import Account
from joiner.sim.hunt.randomworld import TYPES, ZONES, Made
from joiner.sim.story import ec2

REGION: Final = ec2.DEFAULT.removeprefix(ec2.PREFIX)
_NAMES: Final[Mapping[str, str]] = {
    **{zone: f"{REGION}{zone}" for zone in ZONES},
    "karpenter.kwok.sh/instance-family": "karpenter.k8s.aws/instance-family",
}
"""What the same is called on EC2."""


def on_ec2(made: Made) -> Made:
    """The world with zones and labels of EC2."""
    moved: Made = _moved(made)
    return replace(moved, given=replace(moved.given, provider="aws", sells=TYPES))


def _moved(value: Any) -> Any:
    if isinstance(value, str):
        return _NAMES.get(value, value)
    if isinstance(value, tuple | list):
        return type(value)(map(_moved, value))
    if isinstance(value, Mapping):
        return {key: _moved(each) for key, each in value.items()}
    if isinstance(value, Value):
        return replace(value, **{name: _moved(getattr(value, name)) for name in value.__struct_fields__})
    return value


def other_cluster(account: Account, draw: Random) -> None:
    """Another cluster comes into a reservation, or leaves it: it has any part of what we do not use."""
    for identity in sorted(account.reservations):
        held = account.reservations[identity]
        free = max(0, held.count - account.cloud.machines.in_reservation(identity))
        held.elsewhere = draw.randint(0, free)
