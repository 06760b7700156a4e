"""Run the benchmarks that are named, or all, print what they found and keep it under `benchmarks/results`."""

import importlib
import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks import page

HERE = Path(__file__).resolve().parent
NAMES = (
    "catalog",
    "aws",
    "scheduling",
    "market",
    "families",
    "growth",
    "flexible",
    "inarow",
    "small",
    "dials",
    "simulation",
    "cluster",
    "consolidation",
)


def machine() -> dict[str, Any]:
    cpuinfo = Path("/proc/cpuinfo")
    models = [
        line.partition(":")[2].strip() for line in cpuinfo.read_text().splitlines() if line.startswith("model name")
    ]
    return {
        "python": platform.python_version(),
        "system": platform.system(),
        "processor": models[0] if models else platform.processor(),
        "cores": os.cpu_count(),
    }


def commit() -> str:
    asked = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=HERE, capture_output=True, text=True)
    return asked.stdout.strip() or "unknown"


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        print(f"There is no benchmark {', '.join(unknown)}; there are {', '.join(NAMES)}.")
        return 2
    for name in names or NAMES:
        module = importlib.import_module(f"benchmarks.{name}")
        print(f"== {name}: {module.QUESTION}", flush=True)
        numbers = module.run()
        for key, value in numbers.items():
            print(f"   {key:<44} {value}", flush=True)
        kept = {"question": module.QUESTION, "commit": commit(), "machine": machine(), "numbers": numbers}
        path = HERE / "results" / f"{name}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(kept, indent=2) + "\n")
    page.write()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
