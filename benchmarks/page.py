"""The measurements as a page of the documents, made from the numbers that are kept as data."""

import json
from pathlib import Path
from typing import Any

from benchmarks import dials, families, growth, simulation

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "reference" / "measurements.md"

INTRODUCTION = """# Measurements

Made by `make bench` and kept as data in `benchmarks/results/`; this page is written from that data. The machines are shared and
noisy, so ratios within one run say more than seconds.
"""


PLANS = """*Theirs* is Karpenter's own scheduler (v1.15.0, one worker), asked the same question in the same run. `benchmark` is
the mix of its scheduling benchmark, `deployments` are services on EC2 types and prices, `preferences` are pods that would like
a node each. Seconds are the whole call; prices are those of the claims, each at its cheapest offering. The *bound* is a price
below which no plan can be, proven for each question; it knows nothing of spread and affinity, so the cheapest possible plan
may well cost more. *MB* is the peak memory of a process that reads the question and answers it."""


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


def text() -> str:
    """The whole page."""
    catalog, plans, turned, grown = _kept("catalog"), _kept("scheduling"), _kept("dials"), _kept("growth")
    simulated, small = _kept("simulation"), _kept("families")
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
        "## Many kinds of small questions",
        "",
        _where(small),
        "",
        *families.lines(small),
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
    ]
    return "\n".join(parts)


def figure() -> str:
    """How time grows, drawn."""
    return growth.svg(_kept("growth"))


def write() -> None:
    """Bring the page up to date."""
    PAGE.write_text(text(), encoding="utf-8")
    growth.FIGURE.write_text(figure(), encoding="utf-8")
