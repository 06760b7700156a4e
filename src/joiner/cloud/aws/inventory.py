"""Types, zones and prices as EC2 tells them, refreshed every twelve hours; a refresh that finds nothing new moves nothing.

Before the first refresh of prices the table that comes with Joiner is used, and spot machines are taken to cost as much as on
demand.
"""

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any, Final

from joiner.clock import Clock
from joiner.cloud.aws.api import UNREADABLE, AwsApi, AwsError, pages
from joiner.cloud.aws.nodeclass.ec2nodeclass import EC2NodeClass
from joiner.cloud.errors import Transient
from joiner.cloud.sources import facts as bundled
from joiner.cloud.sources.catalogue import DataDate, Origin
from joiner.cloud.sources.ec2 import DEFAULT_REGION
from joiner.cloud.sources.ec2describe import described, is_for_kubernetes
from joiner.cloud.sources.facts import FORMAT, Facts, Region, Sold, TypeFacts

REFRESH_S: Final = 12 * 3600.0
_TYPE_FILTERS: Final = (
    {"Name": "supported-virtualization-type", "Values": ["hvm"]},
    {"Name": "processor-info.supported-architecture", "Values": ["x86_64", "arm64"]},
)
_PRODUCTS: Final = ("Linux/UNIX", "Linux/UNIX (Amazon VPC)")
_NO_PRICING: Final = "us-gov"


class LiveInventory:
    """What EC2 sells in one region."""

    def __init__(self, api: AwsApi, clock: Clock, region: str) -> None:
        self._api = api
        self._clock = clock
        self.region = region
        self._types: tuple[TypeFacts, ...] = ()
        self._zones: dict[str, tuple[str, ...]] = {}
        table = bundled.load().regions
        start = table.get(region) or table[DEFAULT_REGION]
        self._on_demand = {name: sold.on_demand for name, sold in start.types.items() if sold.on_demand is not None}
        self._spot: dict[str, dict[str, float]] | None = None
        self._version = 0
        self._made: Facts | None = None
        self._dates = {"types and zones": "", "prices": "", "spot prices": ""}
        self.unreadable: dict[str, str] = {}
        """Types whose description made no sense, with the reason."""

    def version(self) -> int:
        """Moves whenever types, zones or prices change."""
        return self._version

    async def refresh_types(self) -> None:
        """Ask for all types and where they are offered. What makes no sense changes nothing. Raises `AwsError`."""
        raw = await pages(
            self._api, "ec2", "describe_instance_types", "InstanceTypes", Filters=list(_TYPE_FILTERS), MaxResults=100
        )
        offered = await pages(
            self._api,
            "ec2",
            "describe_instance_type_offerings",
            "InstanceTypeOfferings",
            LocationType="availability-zone",
            MaxResults=1000,
        )
        zones: dict[str, list[str]] = {}
        for each in offered:
            if each.get("InstanceType") and each.get("Location"):
                zones.setdefault(each["InstanceType"], []).append(each["Location"])
        types = tuple(sorted(self._read(raw), key=lambda each: each.name))
        settled = {name: tuple(sorted(found)) for name, found in sorted(zones.items())}
        if not types or not settled:
            raise AwsError(UNREADABLE, f"EC2 tells of {len(types)} instance types, and of zones for {len(settled)}")
        self._dates["types and zones"] = self._today()
        if (types, settled) != (self._types, self._zones):
            self._types, self._zones = types, settled
            self._moved()

    def _read(self, raw: Iterable[Mapping[str, Any]]) -> Iterable[TypeFacts]:
        self.unreadable = {}
        known = {each.name: each for each in self._types}
        for each in raw:
            name = str(each.get("InstanceType", "?"))
            try:
                if is_for_kubernetes(each):
                    yield described(each)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                self.unreadable[name] = repr(error)
                if name in known:
                    yield known[name]

    async def refresh_on_demand(self) -> None:
        """Ask for prices on demand; new ones go over old ones. Raises `AwsError`."""
        if self.region.startswith(_NO_PRICING):
            return
        found: dict[str, float] = {}
        for tenancy in ("Dedicated", "Shared"):
            for text in await pages(
                self._api, "pricing", "get_products", "PriceList", **_question(self.region, tenancy)
            ):
                found.update(_price(text, self.region))
        merged = {**self._on_demand, **found}
        if found:
            self._dates["prices"] = self._today()
        if merged != self._on_demand:
            self._on_demand = merged
            self._moved()

    async def refresh_spot(self) -> None:
        """Ask for spot prices; a zone that is not told of then has no spot machines of that type. Raises `AwsError`."""
        rows = await pages(
            self._api,
            "ec2",
            "describe_spot_price_history",
            "SpotPriceHistory",
            ProductDescriptions=list(_PRODUCTS),
            StartTime=self._clock.now(),
            MaxResults=1000,
        )
        found: dict[str, dict[str, float]] = {}
        for each in rows:
            name, zone, price = each.get("InstanceType"), each.get("AvailabilityZone"), _amount(each.get("SpotPrice"))
            if name and zone and price is not None:
                found.setdefault(name, {})[zone] = price
        if found:
            self._dates["spot prices"] = self._today()
        if found and found != self._spot:
            self._spot = found
            self._moved()

    def facts(self, node_class: EC2NodeClass) -> tuple[Facts, str]:
        """Everything that is known. Raises `Transient` before types were told."""
        if not self._types:
            raise Transient("EC2 has not told its instance types yet")
        if self._made is None:
            self._made = self._joined()
        return self._made, self.region

    def _joined(self) -> Facts:
        zones = sorted({zone for found in self._zones.values() for zone in found})
        types = {each.name: self._sold(each.name) for each in self._types if self._zones.get(each.name)}
        place = Region(zones=dict.fromkeys(zones, ""), types=types)
        return Facts(format=FORMAT, sources=(), types=self._types, regions={self.region: place})

    def _sold(self, name: str) -> Sold:
        price = self._on_demand.get(name)
        if self._spot is None:
            return Sold(zones=self._zones[name], on_demand=price, spot=price)
        return Sold(zones=self._zones[name], on_demand=price, spot_by_zone=self._spot.get(name, {}))

    def origin(self, node_class: EC2NodeClass) -> Origin:
        """When EC2 told what."""
        table = next(s.date for s in bundled.load().sources if "price" in s.gives)
        dates = (
            DataDate(source="EC2" if day else "the table that comes with Joiner", gives=what, date=day or table)
            for what, day in sorted(self._dates.items())
        )
        return Origin(name="EC2", region=self.region, dates=tuple(dates))

    def _moved(self) -> None:
        self._version += 1
        self._made = None

    def _today(self) -> str:
        return self._clock.now().date().isoformat()


def _question(region: str, tenancy: str) -> dict[str, Any]:
    wanted = {
        "regionCode": region,
        "operatingSystem": "Linux",
        "preInstalledSw": "NA",
        "capacitystatus": "Used",
        "marketoption": "OnDemand",
        "tenancy": tenancy,
        "productFamily": "Compute Instance" if tenancy == "Shared" else "Compute Instance (bare metal)",
    }
    filters = [{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in wanted.items()]
    return {"ServiceCode": "AmazonEC2", "Filters": filters}


def _price(text: str, region: str) -> dict[str, float]:
    """Instance type to price out of one product; nothing where it has none."""
    currency = "CNY" if region.startswith("cn-") else "USD"
    try:
        product = json.loads(text)
        name = product["product"]["attributes"]["instanceType"]
        dimensions = [
            each for term in product["terms"]["OnDemand"].values() for each in term["priceDimensions"].values()
        ]
        amounts = [_amount(each.get("pricePerUnit", {}).get(currency)) for each in dimensions]
    except (KeyError, TypeError, ValueError, AttributeError):
        return {}
    return next(({name: amount} for amount in amounts if name and amount is not None), {})


def _amount(text: Any) -> float | None:
    """A price that is one: a number above zero."""
    try:
        amount = float(text)
    except (TypeError, ValueError):
        return None
    return amount if 0 < amount < math.inf else None
