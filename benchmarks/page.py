"""The measurements as a page of the documents, made from the numbers that are kept as data."""

import json
from pathlib import Path
from typing import Any

from benchmarks import dials, families, growth, simulation

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
cheapest possible plan may well cost more. *MB* is the peak memory of a process that reads the question and answers it."""


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


_ON_THE_FRONT = {
    "deployments-10000in200x800": "10,000 pods of 200 deployments, 800 EC2 types",
    "deployments-50000in200x800": "50,000 pods of 200 deployments, 800 EC2 types",
    "benchmark-10000x400": "10,000 pods of its own benchmark, 400 types",
}


def front_rows() -> dict[str, str]:
    """What the first table of the README says of some questions, by how their rows begin; both sides or nothing."""
    numbers = _kept("scheduling")["numbers"]
    rows = {}
    for name, title in _ON_THE_FRONT.items():
        if "theirs" not in numbers[name]:
            continue  # measured without another scheduler at hand: what the README says was true in a run with one
        own, other = numbers[name]["ours"], numbers[name]["theirs"]
        least, start = own["bound"], f"| {title} | "
        rows[start] = start + " | ".join(
            (
                f"{least:,.2f}",
                *(f"{each['price']:,.2f} ({each['price'] / least:.2f} ×)" for each in (own, other)),
                *(f"{each['nodes']:,}" for each in (own, other)),
                *(f"{each['seconds']:.1f} s" for each in (own, other)),
            )
        )
    return {start: f"{row} |" for start, row in rows.items()}


def front() -> str:
    """The README with the latest numbers."""
    rows = front_rows()
    lines = FRONT_PAGE.read_text(encoding="utf-8").splitlines()
    return "\n".join(next((rows[start] for start in rows if line.startswith(start)), line) for line in lines) + "\n"


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
    """Bring the page up to date, and what the README copies from it."""
    PAGE.write_text(text(), encoding="utf-8")
    growth.FIGURE.write_text(figure(), encoding="utf-8")
    FRONT_PAGE.write_text(front(), encoding="utf-8")
