"""Where the difference in price to Karpenter's scheduler comes from: the same services mixed, on spot, and on demand.

`ORACLE=path python -m benchmarks market` puts every question to both. Both sides play on one market: EC2 types without bare metal
and accelerators, which Karpenter's AWS provider leaves out at the launch where other types will do.
"""

import os
from typing import Any

from benchmarks import mixes
from benchmarks.scheduling import answered, ours, theirs

QUESTION = "The same services mixed, all on spot and all on demand: where does the difference in price come from?"
SIZES = (400, 2_000, 10_000)
TITLES = {
    "mixed": "mixed: a few services must be on demand",
    "spot": "only pods that tolerate spot",
    "on-demand": "on demand only",
}
REASONS = """Both sides play on one market: EC2 types without bare metal and accelerators, which Karpenter's AWS provider leaves
out where other types will do.

- *Mixed*: most of the difference is here. First fit puts a few pods that must be on demand on nodes with pods that need not, and
  all of these nodes are bought on demand; a plan by price keeps the two apart.
- *Only pods that tolerate spot*: what remains is which types are bought. First fit fills a node as long as any type holds it, and
  ends with the largest ones, whose price for each core is higher on the spot market; a plan by price takes the kind of node that
  gives most for its money.
- *On demand only*: prices are nearly proportional to size, so what is left is the shape: pods that need much memory and pods that
  need much CPU are combined so that neither is left unused, on the families that are cheapest for it."""


def run() -> dict[str, Any]:
    program = os.environ.get("ORACLE", "")
    rows: dict[str, Any] = {}
    for kind in TITLES:
        for pods in SIZES:
            document = mixes.deployments(pods, kind=kind)
            row = rows[f"{kind}-{pods}"] = {"ours": ours(document)}
            if program:
                asked = {**document, "options": {"timeoutSeconds": 600}}
                said, _ = answered([program, "-summary", "-workers", "1"], asked)
                row["theirs"] = theirs(said["summary"])
            print(f"   {kind}-{pods}: {row}", flush=True)
    return rows


def lines(kept: dict[str, Any], sizes: tuple[int, ...] = SIZES) -> list[str]:
    """The numbers as a table."""
    found = [
        "| services on EC2 | pods | bound, $/h | ours, $/h | Karpenter's, $/h | ours ÷ Karpenter's | our nodes | its nodes |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for kind, title in TITLES.items():
        for pods in sizes:
            row = kept["numbers"][f"{kind}-{pods}"]
            own, other = row["ours"], row.get("theirs")
            least = own["bound"]
            cells = [title, f"{pods:,}", f"{least:,.2f}", f"{own['price']:,.2f} ({own['price'] / least:.2f} ×)"]
            if other is None:
                cells += ["", "", f"{own['nodes']:,}", ""]
            else:
                cells += [
                    f"{other['price']:,.2f} ({other['price'] / least:.2f} ×)", f"{own['price'] / other['price']:.2f}",
                    f"{own['nodes']:,}", f"{other['nodes']:,}",
                ]  # fmt: skip
            found.append("| " + " | ".join(cells) + " |")
    return found
