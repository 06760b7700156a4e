"""What most controllers need: the API server, its caches, the state built from them, the provider, time and telemetry.

`assembly` builds it once. A constructor takes it, and beside it only what belongs to that controller alone.
"""

from dataclasses import dataclass, field

from joiner.clock import Clock
from joiner.cloud.catalogcache import Catalogs
from joiner.cloud.provider import CloudProvider
from joiner.controllers.planning import Compute, Offload, Planner, here, inline
from joiner.kube.client import Client
from joiner.kube.informer import Informers
from joiner.model.labels import Vocabulary
from joiner.observe.events import Recorder
from joiner.observe.logs import Log
from joiner.observe.metrics import Metrics
from joiner.options import Options
from joiner.scheduling.pods.defaultspread import Defaults
from joiner.state.cluster import Cluster
from joiner.state.managed import Managed


@dataclass(frozen=True, kw_only=True)
class Shared:
    """What controllers share."""

    client: Client
    informers: Informers
    cluster: Cluster
    provider: CloudProvider
    catalogs: Catalogs
    vocabulary: Vocabulary
    managed: Managed
    clock: Clock
    recorder: Recorder
    metrics: Metrics
    options: Options
    log: Log
    default_spread: Defaults = field(default_factory=dict)
    """How pods are spread that say nothing about it themselves."""
    compute: Compute = inline
    apart: Offload = here
    """Where other long computations run: in the event loop, or in another process."""

    def planner(self, controller: str) -> Planner:
        """What makes the plans of a controller of that name."""
        return Planner(controller, compute=self.compute, metrics=self.metrics, clock=self.clock)
