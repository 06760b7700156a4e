"""Stories that are played with the AWS provider: the account in EC2 that their words stand for, and the class of their pools."""

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, Final

from joiner.cloud.aws.nodeclass.ec2nodeclass import EC2NodeClass
from joiner.cloud.sources import facts
from joiner.cloud.sources.facts import Facts
from joiner.model import codec
from joiner.model.meta import replace
from joiner.sim.cloud.cloud import PretendCloud
from joiner.sim.cloud.ec2.world import ACCOUNT, CLUSTER, Account, CapacityReservation, account
from joiner.sim.story.document.given import Given, ReservationWords

AWS: Final = "aws"
PREFIX: Final = "ec2/"
DEFAULT: Final = "ec2/us-east-1"
CLASS: Final = "default"
_UNSAID: Final = Given().catalog
_DISCOVERY: Final = [{"tags": {"karpenter.sh/discovery": CLUSTER}}]


def is_meant(given: Given) -> bool:
    """Whether a story is played with the AWS provider."""
    return given.provider == AWS


def problems(given: Given) -> Iterator[tuple[str, str]]:
    """What words say that cannot be, each with the word that it is about."""
    if not is_meant(given):
        if given.sells:
            yield "sells", "is for provider: aws; the catalogue says what others sell"
        for number, each in enumerate(given.reservations):
            if each.accepts != "targeted" or each.block or each.owner or each.tags or each.elsewhere:
                yield f"reservations[{number}]", "accepts, block, owner, tags and elsewhere are for provider: aws"
        return
    known = facts.load()
    if _region(given) not in known.regions:
        yield "catalog", f"{given.catalog!r} must be a region for provider: aws, like {DEFAULT}"
        return
    sold = known.regions[_region(given)].types
    for number, name in enumerate(given.sells):
        if name not in sold:
            yield f"sells[{number}]", f"{_region(given)} has no instance type {name!r}"


def places(given: Given) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of all types and zones."""
    place = _sold(_region(given), given.sells).regions[_region(given)]
    return tuple(place.types), tuple(place.zones)


def open_account(given: Given) -> Callable[[PretendCloud], Account]:
    """What makes the account at the beginning of the story."""

    def opened(cloud: PretendCloud) -> Account:
        made = account(_sold(_region(given), given.sells), _region(given), cloud)
        for each in given.reservations:
            made.reserve(_reservation(each, cloud))
        return made

    return opened


def node_class(given: Given) -> EC2NodeClass:
    """The class of all pools of a few words: it selects every reservation of the story."""
    spec: dict[str, Any] = {
        "role": "nodes",
        "amiSelectorTerms": [{"alias": "al2023@latest"}],
        "subnetSelectorTerms": _DISCOVERY,
        "securityGroupSelectorTerms": _DISCOVERY,
        "capacityReservationSelectorTerms": [{"id": each.id} for each in given.reservations],
    }
    return codec.decode({"metadata": {"name": CLASS}, "spec": spec}, EC2NodeClass)


def _region(given: Given) -> str:
    return (DEFAULT if given.catalog == _UNSAID else given.catalog).removeprefix(PREFIX)


def _reservation(words: ReservationWords, cloud: PretendCloud) -> CapacityReservation:
    return CapacityReservation(
        id=words.id,
        type=words.instance_type,
        zone=words.zone,
        count=words.count,
        end=cloud.clock.now() + words.until.timedelta if words.until is not None else None,
        criteria=words.accepts,
        kind="capacity-block" if words.block else "default",
        owner=words.owner or ACCOUNT,
        tags=dict(words.tags),
        elsewhere=words.elsewhere,
    )


@lru_cache(maxsize=8)
def _sold(region: str, names: tuple[str, ...]) -> Facts:
    """The bundled facts of a region, and of these types alone where some are named."""
    known = facts.load()
    place = known.regions[region]
    sold = {name: each for name, each in place.types.items() if not names or name in names}
    types = tuple(each for each in known.types if each.name in sold)
    return replace(known, types=types, regions={region: replace(place, types=sold)})
