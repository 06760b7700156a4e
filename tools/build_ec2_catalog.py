"""Build the EC2 catalogue that Joiner brings along.

Instance types and the zones that offer them come out of an installed moto, prices out of the Go module
github.com/cristim/ec2-instances-info. Nothing is asked of AWS and no credentials are needed.

    pip install '.[catalog-build]'
    python tools/build_ec2_catalog.py --types-date 2026-10-27
"""

import argparse
import gzip
import json
import re
import statistics
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from importlib import metadata, resources
from pathlib import Path
from typing import Any

from joiner.cloud.sources.catalogue import CatalogueError
from joiner.cloud.sources.ec2describe import described, is_for_kubernetes
from joiner.cloud.sources.facts import FORMAT, Facts, Region, Sold, Source, decode, encode

MODULE = "github.com/cristim/ec2-instances-info"
MODULE_VERSION = "v0.0.0-20250528091325-32acf84f42eb"
REGIONS = ("us-east-1", "us-west-2")
TARGET = Path(__file__).resolve().parent.parent / "src/joiner/cloud/sources/data/ec2.json.gz"
Raw = Mapping[str, Any]
"""A piece of JSON as one of the sources has it."""


class BuildError(Exception):
    """The catalogue cannot be built; the message says what is missing and how to get it."""


# -- types and zones, from moto ------------------------------------------------------------------------------------------


def moto_json(path: str) -> Any:
    """A data file of moto's EC2."""
    try:
        file = resources.files("moto") / "ec2" / "resources" / path
        return json.loads(gzip.decompress(file.read_bytes()))
    except ModuleNotFoundError:
        raise BuildError("moto is not installed: pip install '.[catalog-build]'") from None
    except FileNotFoundError:
        raise BuildError(f"the installed moto has no {path}: try another version, or leave the region out") from None


def zone_ids(region: str) -> dict[str, str]:
    """Zone name to zone id, as moto's own account has them: in AWS each account has its own order."""
    from moto.ec2.models.availability_zones_and_regions import RegionsAndZonesBackend

    return {zone.name: zone.zone_id for zone in sorted(RegionsAndZonesBackend.zones[region], key=lambda z: z.name)}


def zones_by_type(region: str) -> dict[str, list[str]]:
    """Where each type is offered."""
    found: dict[str, list[str]] = {}
    for row in moto_json(f"instance_type_offerings/availability-zone/{region}.json.gz"):
        found.setdefault(row["InstanceType"], []).append(row["Location"])
    return found


# -- prices, from the Go module ------------------------------------------------------------------------------------------


def module_folder(version: str) -> Path:
    """Where Go keeps the module; it is downloaded if it is not there yet."""
    command = ["go", "mod", "download", "-json", f"{MODULE}@{version}"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=True)
    except FileNotFoundError:
        raise BuildError("go is not installed: install it, or give the module's folder with --prices") from None
    except subprocess.CalledProcessError as error:
        raise BuildError(f"{' '.join(command)} failed: {(error.stderr or error.stdout).strip()}") from None
    return Path(json.loads(answer.stdout)["Dir"])


def module_date(version: str) -> str:
    """The day in a Go pseudo-version."""
    match = re.search(r"[.-](\d{4})(\d{2})(\d{2})\d{6}-[0-9a-f]{12}$", version)
    if match is None:
        raise BuildError(f"{version} does not carry a date; give the day of the prices with --prices-date")
    return "-".join(match.groups())


def linux_prices(folder: Path) -> dict[str, Raw]:
    """Type to region to its Linux prices."""
    file = folder / "data" / "instances.json"
    try:
        rows = json.loads(file.read_bytes())
    except (OSError, ValueError) as error:
        raise BuildError(f"{file} cannot be read: {error}") from None
    return {
        row["instance_type"]: {region: by_os["linux"] for region, by_os in row["pricing"].items() if "linux" in by_os}
        for row in rows
    }


def on_demand_price(linux: Raw) -> float | None:
    """Dollars an hour, if the source has a price."""
    return positive(linux.get("ondemand"))


def spot_price(linux: Raw) -> float | None:
    """The mean of the zones' prices.

    The source lists one price per zone without saying which is which. Its own `spot_avg` is no mean of them: it is the
    on-demand price less a saving in whole percent, and often lies outside of what the zones ask.
    """
    prices = [price for text in linux.get("spot") or () if (price := positive(text)) is not None]
    return round(statistics.fmean(prices), 6) if prices else None


def positive(text: Any) -> float | None:
    """A price that is one; the source writes N/A, zero or nothing where it has none."""
    try:
        price = float(text)
    except (TypeError, ValueError):
        return None
    return price if price > 0 else None


# -- the file ------------------------------------------------------------------------------------------------------------


def sold_in(region: str, names: Iterable[str], prices: Mapping[str, Raw]) -> Region:
    """What a region sells of the named types."""
    offered = zones_by_type(region)
    types = {}
    for name in sorted(names):
        if name in offered:
            linux = prices.get(name, {}).get(region, {})
            types[name] = Sold(
                zones=tuple(sorted(offered[name])), on_demand=on_demand_price(linux), spot=spot_price(linux)
            )
    return Region(zones=zone_ids(region), types=types)


def gather(arguments: argparse.Namespace) -> Facts:
    """Everything that goes into the file."""
    regions = sorted(set(arguments.region or REGIONS))
    prices = linux_prices(arguments.prices or module_folder(arguments.prices_version))
    types = {
        raw["InstanceType"]: described(raw)
        for raw in moto_json("instance_types.json.gz").values()
        if is_for_kubernetes(raw)
    }
    sold = {region: sold_in(region, types, prices) for region in regions}
    wanted = {name for region in sold.values() for name in region.types}
    return Facts(
        format=FORMAT,
        sources=(
            Source(
                name="moto", version=metadata.version("moto"), licence="Apache-2.0", date=arguments.types_date,
                gives="types and zones",
            ),
            Source(
                name=MODULE, version=arguments.prices_version, licence="Unlicense, data MIT",
                date=arguments.prices_date or module_date(arguments.prices_version), gives="prices",
            ),
        ),
        types=tuple(types[name] for name in sorted(wanted)),
        regions=sold,
    )  # fmt: skip


def summary(facts: Facts, size: int) -> Iterator[str]:
    """What was built, for the person who built it."""
    yield f"{len(facts.types)} types, {size:,} bytes"
    for source in facts.sources:
        yield f"  {source.gives}: {source.name} {source.version}, {source.date}, {source.licence}"
    for name, region in facts.regions.items():
        count = Counter("on-demand" for sold in region.types.values() if sold.on_demand is not None)
        count.update("spot" for sold in region.types.values() if sold.spot is not None)
        yield (
            f"  {name}: {len(region.types)} types in {len(region.zones)} zones,"
            f" {count['on-demand']} with an on-demand price, {count['spot']} with a spot price"
        )


def day(text: str) -> str:
    """A day as the command line takes it."""
    if re.fullmatch(r"\d{4}-\d{2}-\d{2}", text) is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a day: write it like 2026-10-27")
    return text


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(description="Build the EC2 catalogue that Joiner brings along.")
    made.add_argument(
        "--region", action="append", help=f"a region to take in; repeat it for more (default: {', '.join(REGIONS)})"
    )
    made.add_argument(
        "--types-date",
        type=day,
        required=True,
        help="the day the installed moto was released; it does not say so itself",
    )
    made.add_argument("--prices", type=Path, metavar="FOLDER", help=f"the folder of {MODULE} (default: ask go for it)")
    made.add_argument(
        "--prices-version", default=MODULE_VERSION, help="the version of that module (default: %(default)s)"
    )
    made.add_argument("--prices-date", type=day, help="the day of the prices (default: the one in the version)")
    made.add_argument("--output", type=Path, default=TARGET, help="the file to write (default: the one in the package)")
    made.add_argument("--check", action="store_true", help="write nothing; fail if the file would change")
    return made


def main() -> int:
    """Build the file, or with --check tell whether it is current."""
    arguments = parser().parse_args()
    try:
        facts = gather(arguments)
        data = encode(facts)
        decode(data, "the new catalogue")
    except (BuildError, CatalogueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if arguments.check:
        current = arguments.output.exists() and decode(arguments.output.read_bytes(), str(arguments.output)) == facts
        print(f"{arguments.output.name} is {'current' if current else 'not current: build it anew'}")
        return 0 if current else 1
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_bytes(data)
    print("\n".join(summary(facts, len(data))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
