"""The measurements as a page of the documents, made from the numbers that are kept as data."""

import json
from pathlib import Path
from typing import Any

from benchmarks import cluster, dials, families, flexible, growth, inarow, market, simulation, small
from benchmarks.consolidation import table as consolidation

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "reference" / "measurements.md"
FRONT_PAGE = ROOT / "README.md"

INTRODUCTION = """# Measurements

Made by `make bench` and kept as data in `benchmarks/results/`; this page is written from that data. The machines are shared and
noisy, so ratios within one run say more than seconds.
"""


PLANS = """*Theirs* is Karpenter's own scheduler (v1.15.0, one worker), asked the same question in the same run. `benchmark` is
the mix of its scheduling benchmark, `deployments` are services on EC2 types and prices, `preferences` are pods that would like
a node each. Both are started anew for each question, by turns; seconds are the whole call as each tells, the median of three
(where one takes more than 20 s, both are asked once). Prices are those of the claims, each at its cheapest offering. The
*bound* is a price below which no plan can be, proven for each question; it knows nothing of spread and affinity, so the
cheapest possible plan may well cost more. *MB* is the peak memory of a process that reads the question and answers it. Prices,
nodes and bounds of `deployments` were measured again at commit 052b237, on types without bare metal and accelerators; their
seconds are those of the run before, on a quieter machine."""


EC2 = """Milliseconds are those of the processor. EC2's answers are taken as the SDK hands them over: parsing of their XML, on
threads beside the event loop, is not in them, and neither is any network."""


def _kept(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text())
    return found


def _where(kept: dict[str, Any]) -> str:
    machine = kept["machine"]
    return f"Commit {kept['commit']}, Python {machine['python']}, {machine['processor']}, {machine['cores']} cores."


def _plans(kept: dict[str, Any]) -> list[str]:
    lines = [
        "| question | ours, s | theirs, s | times faster | bound, $/h | ours ÷ bound | theirs ÷ bound | nodes | theirs |"
        " MB | theirs |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name, row in kept["numbers"].items():
        own, other, ratio = row["ours"], row.get("theirs", {}), row.get("ratio", {})
        least = own["bound"]
        cells = [
            name, own["seconds"], other.get("seconds", ""), ratio.get("times faster", ""), least,
            f"{own['price'] / least:.2f}", f"{other['price'] / least:.2f}" if other else "", own["nodes"],
            other.get("nodes", ""), own.get("peak MB", ""), other.get("peak MB", ""),
        ]  # fmt: skip
        lines.append("| " + " | ".join(str(cell) for cell in cells) + " |")
    return lines


_FIRST, _LAST = "<!-- from benchmarks/results/market.json -->", "<!-- end -->"


def front_rows() -> list[str]:
    """The table of the README; nothing where there was no other scheduler at hand."""
    kept = _kept("market")
    return market.lines(kept) if all("theirs" in row for row in kept["numbers"].values()) else []


def front() -> str:
    """The README with the latest numbers of both sides."""
    if not front_rows():
        return FRONT_PAGE.read_text(encoding="utf-8")
    before, _, rest = FRONT_PAGE.read_text(encoding="utf-8").partition(_FIRST)
    after = rest.partition(_LAST)[2]
    table = "\n".join(front_rows())
    return f"{before}{_FIRST}\n\n{table}\n\n{_LAST}{after}"


def _parts_of_market() -> list[str]:
    """Where the difference in price comes from, once that was measured."""
    if not (RESULTS / "market.json").exists():
        return []
    kept = _kept("market")
    heading = ["## Where the difference comes from", "", _where(kept), ""]
    return [*heading, *market.lines(kept), "", market.REASONS, ""]


def _consolidation() -> list[str]:
    """The clusters that were consolidated, as far as they were measured."""
    if not consolidation.RESULTS.exists():
        return []
    kept = _kept("consolidation")
    return ["## Consolidation", "", _where(kept), "", *consolidation.lines(kept)]


def _parts_of_cluster() -> list[str]:
    """What a real control plane costs the controller, once that was measured."""
    if not (RESULTS / "cluster.json").exists():
        return []
    kept = _kept("cluster")
    return ["## A real control plane", "", _where(kept), "", *cluster.lines(kept), ""]


def _few_pods() -> list[str]:
    """Plans of the size that ordinary clusters ask for, with minValues, and one after the other, once they were measured."""
    found: list[str] = []
    if (RESULTS / "small.json").exists():
        kept = _kept("small")
        found += ["## Plans for 20 to 400 pods", "", _where(kept), "", *small.lines(kept), ""]
    if (RESULTS / "flexible.json").exists():
        kept = _kept("flexible")
        found += ["## minValues", "", kept["question"], "", _where(kept), "", *flexible.lines(kept), ""]
    if (RESULTS / "inarow.json").exists():
        kept = _kept("inarow")
        found += ["## Plans in a row", "", kept["question"], "", _where(kept), "", *inarow.lines(kept), ""]
    return found


def text() -> str:
    """The whole page."""
    catalog, ec2, plans, turned, grown = (
        _kept("catalog"),
        _kept("aws"),
        _kept("scheduling"),
        _kept("dials"),
        _kept("growth"),
    )
    simulated, kinds = _kept("simulation"), _kept("families")
    parts = [
        INTRODUCTION,
        "## Plans",
        "",
        PLANS,
        "",
        _where(plans),
        "",
        *_plans(plans),
        "",
        *_few_pods(),
        *_parts_of_market(),
        "## Many kinds of small questions",
        "",
        _where(kinds),
        "",
        *families.lines(kinds),
        "",
        "## Growth",
        "",
        grown["question"],
        "",
        _where(grown),
        "",
        *growth.lines(grown),
        "",
        "## Dials",
        "",
        _where(turned),
        "",
        *dials.lines(turned),
        "",
        "## The embedded cluster",
        "",
        _where(simulated),
        "",
        *simulation.lines(simulated),
        "",
        *_consolidation(),
        *_parts_of_cluster(),
        "## Catalogues",
        "",
        catalog["question"],
        "",
        _where(catalog),
        "",
        "| what | number |",
        "| --- | ---: |",
        *(f"| {name} | {value} |" for name, value in catalog["numbers"].items()),
        "",
        "## A region of EC2",
        "",
        ec2["question"],
        "",
        _where(ec2),
        "",
        EC2,
        "",
        "| what | number |",
        "| --- | ---: |",
        *(f"| {name} | {value} |" for name, value in ec2["numbers"].items()),
        "",
    ]
    return "\n".join(parts)


def figure() -> str:
    """How time grows, drawn."""
    return growth.svg(_kept("growth"))


def write() -> None:
    """Bring the page up to date, and what the README copies from it."""
    PAGE.write_text(text(), encoding="utf-8")
    growth.FIGURE.write_text(figure(), encoding="utf-8")
    FRONT_PAGE.write_text(front(), encoding="utf-8")
