"""Applies manifests to a cluster, as `kubectl apply --server-side` does."""

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml
from tools.controlplane.cluster import Cluster, Refused

ROOT = Path(__file__).resolve().parents[2]
CRDS = ROOT / "charts" / "joiner-crds" / "templates"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
PATIENCE_S = 60


def documents(*paths: Path) -> list[Any]:
    """All objects of these files, and of the files in these folders."""
    files = [file for path in paths for file in (sorted(path.glob("*.yaml")) if path.is_dir() else [path])]
    return [each for file in files for each in yaml.safe_load_all(file.read_text(encoding="utf-8")) if each]


def install_crds(cluster: Cluster, definitions: Iterable[Any] | None = None) -> None:
    """Our kinds, served when this returns. Raises Refused."""
    wanted = list(definitions) if definitions is not None else documents(CRDS)
    for definition in wanted:
        cluster.apply(definition)
    end = time.monotonic() + PATIENCE_S
    for definition in wanted:
        while not is_served(cluster, definition):
            if time.monotonic() > end:
                raise Refused(f"{definition['metadata']['name']} is not served after {PATIENCE_S} s")
            time.sleep(0.05)


def is_served(cluster: Cluster, definition: Any) -> bool:
    """Whether objects of a CRD can be asked for."""
    spec = definition["spec"]
    status, _ = cluster.request(
        "GET", f"/apis/{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}?limit=1"
    )
    return status == 200
