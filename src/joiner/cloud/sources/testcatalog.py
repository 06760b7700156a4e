"""Twelve machines in three zones: enough to tell a story with, and few enough to know them all."""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final

from joiner.catalog.market import InstanceType, Offering
from joiner.cloud.sources.catalogue import NO_DATE, Catalogue, DataDate, Origin
from joiner.cloud.sources.generated import USUAL_OVERHEAD, kwok_labels
from joiner.cloud.sources.kubeletoverhead import DEFAULT_KUBELET, under
from joiner.cloud.sources.reservation import DEFAULT_LABELS, Reservation, ReservationLabels, reserve
from joiner.model import labels, resources
from joiner.model.kubelet import Kubelet
from joiner.requirements import Requirements

NAME: Final = "small"
FAMILIES: Final = {"c5": (2, 0.085), "m5": (4, 0.096), "r5": (8, 0.126)}
"""Family to GiB for each cpu, and dollars an hour for its `large`, which has two cpus."""
SIZES: Final = {"large": 1, "xlarge": 2, "2xlarge": 4, "4xlarge": 8}
ZONES: Final = {"a": 0.36, "b": 0.40, "c": 0.45}
"""Zone to the share of the price that a spot machine costs there."""


def origin() -> Origin:
    """The catalogue without its types."""
    return Origin(name=NAME, region="", dates=(DataDate(source="Joiner", gives="types and prices", date=NO_DATE),))


def catalogue(
    *,
    kubelet: Kubelet = DEFAULT_KUBELET,
    reservations: Iterable[Reservation] = (),
    keys: ReservationLabels = DEFAULT_LABELS,
) -> Catalogue:
    """The types on nodes with this kubelet, with the offerings of the given reservations."""
    types = reserve(under(kubelet, _plain()), reservations, keys)
    known = origin()
    return Catalogue(name=known.name, region=known.region, dates=known.dates, types=types, unpriced=0)


@lru_cache(maxsize=1)
def _plain() -> tuple[InstanceType, ...]:
    return tuple(_type(family, size) for family in FAMILIES for size in SIZES)


def _type(family: str, size: str) -> InstanceType:
    name, times = f"{family}.{size}", SIZES[size]
    gib_per_cpu, price = FAMILIES[family]
    cpu = 2 * times
    capacity = resources.of(cpu=cpu, memory=f"{cpu * gib_per_cpu}Gi", pods=29 * times, ephemeral_storage="20Gi")
    offerings = tuple(_offerings(round(price * times, 4)))
    return InstanceType(
        name=name,
        requirements=Requirements(kwok_labels(name, "amd64", ("linux",), capacity, offerings)),
        offerings=offerings,
        capacity=capacity,
        overhead=USUAL_OVERHEAD,
    )


def _offerings(price: float) -> Iterator[Offering]:
    for zone, share in ZONES.items():
        for capacity_type, cost in ((labels.SPOT, round(price * share, 4)), (labels.ON_DEMAND, price)):
            known = Requirements.of_labels({labels.CAPACITY_TYPE: capacity_type, labels.ZONE: zone})
            yield Offering(requirements=known, price=cost)
