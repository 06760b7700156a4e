"""Which clusters are measured, how often, and the tables that are made of it.

`python -m benchmarks.consolidation.table NAME…` measures the cells again whose names begin so, and keeps the others.
"""

import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any, Final, NamedTuple

from benchmarks.consolidation import QUESTION
from benchmarks.processes import apart

RESULTS: Final = Path(__file__).resolve().parent.parent / "results" / "consolidation.json"
WHO: Final = ("ours", "upstream", "balanced")
GROWING: Final = "ours, horizon up to 24 h"
SETTINGS: Final[dict[str, tuple[str, ...]]] = {
    "ours": ("ours",),
    GROWING: ("ours", "longest_horizon=24h"),
    "upstream": ("upstream",),
    "balanced": ("balanced",),
}
SMALL: Final = ("plain", "topology", "reservations", "mixed", "all", "hand-bought", "hand-bought full")


class Cell(NamedTuple):
    family: str
    nodes: int
    pools: int
    seeds: tuple[int, ...]
    who: tuple[str, ...] = WHO

    @property
    def name(self) -> str:
        return f"{self.family}, {self.nodes} nodes, {self.pools} pool{'s' if self.pools > 1 else ''}"


CELLS: Final = (
    *(Cell(family, 30, 1, (1, 2, 3)) for family in SMALL),
    *(Cell(family, 30, 1, (1, 2, 3), (GROWING,)) for family in ("hand-bought", "mixed", "plain")),
    *(Cell(family, 300, 20, (1,)) for family in SMALL),
    *(Cell(family, 30, 20, (1,)) for family in SMALL),
    *(Cell(family, 300, 1, (1,)) for family in SMALL),
    Cell("plain", 2000, 20, (1,), ("ours",)),
    Cell("day", 30, 1, (1,), (*WHO, GROWING)),
)


def kept() -> dict[str, Any]:
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {}


def _keep(cell: str, who: str, seed: int, row: dict[str, Any]) -> None:
    """Write one row down; others may be measured at the same time."""
    numbers = kept().get("numbers", {})
    numbers.setdefault(cell, {}).setdefault(who, {})[str(seed)] = row
    RESULTS.write_text(json.dumps({**kept(), "question": QUESTION, **where(), "numbers": numbers}, indent=1) + "\n")


def measured(cell: Cell, who: str, seed: int) -> dict[str, Any]:
    """One run in a process of its own."""
    words = [cell.family, str(cell.nodes), str(cell.pools), str(seed), *SETTINGS[who]]
    said, peak = apart([sys.executable, "-m", "benchmarks.consolidation.measure", *words])
    found: dict[str, Any] = json.loads(said)
    return {**found, "peak MB": peak}


def run(*beginnings: str) -> dict[str, Any]:
    """Every cell, or those whose names begin so; what was measured before is kept where it is not measured again."""
    for cell in CELLS:
        if beginnings and not any(cell.name.startswith(each) for each in beginnings):
            continue
        for seed in cell.seeds:
            for who in cell.who:
                row = measured(cell, who, seed)
                sys.stdout.write(f"{cell.name} #{seed} {who}: {row}\n")
                sys.stdout.flush()
                _keep(cell.name, who, seed, row)
    found: dict[str, Any] = kept()["numbers"]
    return found


def where() -> dict[str, Any]:
    """The commit and the machine."""
    here = RESULTS.parent
    asked = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=here, capture_output=True, text=True)
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    machine = {"python": platform.python_version(), "processor": model, "cores": os.cpu_count()}
    return {"commit": asked.stdout.strip() or "unknown", "machine": machine}


# -- the page ---------------------------------------------------------------------------------------------------------

INTRODUCTION: Final = """*Upstream* and *balanced* are Karpenter's rules (v1.15) with their time limits, checked against recorded answers of Karpenter's own
code (`tests/differential/test_consolidation_rules.py`). Clusters are small models: EC2's c, m and r types of up to eight cores, a
node is ready after 2 minutes, a drain takes one, the second look comes after 15 s, budgets are 10 % of each pool,
`SpotToSpotConsolidation` is on, and evicted pods go where a scheduler that prefers empty nodes puts them. Ours has the soft taint
and evicts large pods first; upstream has no such taint and evicts in random order. *Ratio* is the price at rest over a proven
bound, *again* are evictions of pods that were evicted before, *surprises* are nodes bought because a pod found no place although
there should have been one, *rises* are commands after which the cluster was dearer. Medians where there are several seeds."""  # noqa: E501
COLUMNS: Final = ("evictions", "again", "launched", "surprises", "rises", "hours")


def _of(rows: dict[str, Any], name: str) -> float:
    return float(median(row[name] for row in rows.values()))


def lines(found: dict[str, Any]) -> list[str]:
    """The tables."""
    numbers = {name: found["numbers"][name] for name in _names() if name in found["numbers"]}
    table = [
        INTRODUCTION,
        "",
        f"| cluster | seeds | start | who | ratio | {' | '.join(COLUMNS)} | CPU, s (median, most) |",
    ]
    table.append("| --- | ---: | ---: | --- |" + " ---: |" * (len(COLUMNS) + 2))
    for name, by_who in numbers.items():
        for number, (who, rows) in enumerate(_ordered(by_who)):
            if name.startswith("day"):
                continue
            first = [name, str(len(rows)), f"{_of(rows, 'start'):.2f}"] if number == 0 else ["", "", ""]
            cells = [f"{_of(rows, each):.2f}" if each == "hours" else f"{_of(rows, each):g}" for each in COLUMNS]
            cpu = ""
            if all("cpu median" in row for row in rows.values()):
                cpu = f"{_of(rows, 'cpu median'):.3f}, {max(row['cpu most'] for row in rows.values()):.2f}"
            table.append("| " + " | ".join([*first, who, f"{_of(rows, 'ratio'):.3f}", *cells, cpu]) + " |")
    table += ["", *_compared(numbers), ""]
    return [*table, *_day(numbers)]


def _names() -> list[str]:
    return list(dict.fromkeys(cell.name for cell in CELLS))


def _ordered(by_who: dict[str, Any]) -> list[tuple[str, Any]]:
    return [(who, by_who[who]) for who in SETTINGS if who in by_who]


def _compared(numbers: dict[str, Any]) -> list[str]:
    """Each family by itself, ours over upstream's."""
    table = [
        "Ours over upstream's, the sums of all seeds:",
        "",
        "| cluster | ratio | evictions | again |",
        "| --- | ---: | ---: | ---: |",
    ]
    for name, by_who in numbers.items():
        if name.startswith("day") or "ours" not in by_who or "upstream" not in by_who:
            continue
        seeds = sorted(by_who["ours"].keys() & by_who["upstream"].keys())
        ours, theirs = ([by_who[who][seed] for seed in seeds] for who in ("ours", "upstream"))
        cells = []
        for column in ("ratio", "evictions", "again"):
            whole = sum(row[column] for row in theirs)
            cells.append(f"{sum(row[column] for row in ours) / whole:.3f}" if whole else "")
        table.append("| " + " | ".join([name, *cells]) + " |")
    return table


def _day(numbers: dict[str, Any]) -> list[str]:
    """The day of traffic."""
    days = {name: by_who for name, by_who in numbers.items() if name.startswith("day")}
    if not days:
        return []
    columns = ("evictions", "again", "launched", "surprises", "rises")
    table = [
        "A *day* of traffic: of ten deployments six follow the hour and one jumps every quarter of an hour. What was paid,",
        "double running included, over the bound of every quarter:",
        "",
        f"| cluster | who | bill over bound | {' | '.join(columns)} |",
        "| --- | --- |" + " ---: |" * (len(columns) + 1),
    ]
    for name, by_who in days.items():
        for who, rows in _ordered(by_who):
            cells = [f"{_of(rows, 'bill over bound'):.3f}", *(f"{_of(rows, each):g}" for each in columns)]
            table.append("| " + " | ".join([name.partition(",")[2].strip(), who, *cells]) + " |")
    return [*table, ""]


if __name__ == "__main__":
    run(*sys.argv[1:])
