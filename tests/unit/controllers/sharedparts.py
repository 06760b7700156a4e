"""`Shared` for tests: what is not given is made, and does nothing that matters."""

from typing import Any

from joiner.catalog.build import NO_ADJUSTMENTS
from joiner.clock import Clock
from joiner.cloud.catalogcache import Catalogs
from joiner.cloud.kwok.nodeclass import KWOKNodeClass
from joiner.controllers.shared import Shared
from joiner.kube.client import Client
from joiner.kube.informer import Informers
from joiner.observe.events import Recorder
from joiner.observe.logs import Log
from joiner.observe.metrics import Metrics
from joiner.options import Options
from joiner.state.cluster import Cluster
from joiner.state.managed import Managed


def shared(client: Client, informers: Informers, clock: Clock, provider: Any, **given: Any) -> Shared:
    """What controllers share, over a provider that need not be a whole one."""
    vocabulary, managed = provider.vocabulary(), Managed((KWOKNodeClass,))
    made: dict[str, Any] = {
        "cluster": Cluster(vocabulary, managed),
        "catalogs": Catalogs(provider, lambda: NO_ADJUSTMENTS, clock),
        "vocabulary": vocabulary,
        "managed": managed,
        "recorder": Recorder(client, clock),
        "metrics": Metrics(),
        "options": Options(),
        "log": Log(clock),
    }
    return Shared(client=client, informers=informers, clock=clock, provider=provider, **{**made, **given})
