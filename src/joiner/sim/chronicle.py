"""What happened in a world, put down as it happens: for the summary at the end, and as sentences for those who listen."""

from collections import Counter
from collections.abc import Callable
from typing import Any

from joiner.model import labels
from joiner.model.cluster import Event
from joiner.model.meta import KubeObject
from joiner.model.node import Node
from joiner.model.nodeclaim import NodeClaim
from joiner.model.nodepool import NodePool
from joiner.model.pod import Pod, condition
from joiner.model.workload import DaemonSet, Deployment, Job, StatefulSet
from joiner.sim.apiserver import Write
from joiner.sim.casting import APP, NAMESPACE
from joiner.sim.machines import GONE, Machine
from joiner.sim.world import World

Teller = Callable[[float, str], None]
WORKLOADS = (Deployment, StatefulSet, DaemonSet, Job)
TOLD = frozenset(
    {
        "InsufficientCapacityError", "FailedScheduling", "FailedDraining", "TerminationGracePeriodExpiring",
        "FailedConsistencyCheck", "NodeRepairBlocked", "RebootObserved", "RebootFailed", "NodeOverlaysChanged",
        "NoCompatibleInstanceTypes", "AwaitingVolumeDetachment",
    }
)  # fmt: skip
"""Events that are worth a sentence."""


class Chronicle:
    """Watches one world from outside."""

    def __init__(self, world: World, tell: Teller | None = None) -> None:
        self._world, self._tell = world, tell
        self.waits: list[float] = []
        """How long each pod waited for its node, in seconds."""
        self.nodes_most = 0
        self.claims: Counter[str] = Counter()
        """How many claims were made, by pool."""
        self.refusals: dict[str, tuple[int, str]] = {}
        """Workload to how often a pod of it was refused, and the last reason."""
        self._nodes = 0
        self._ready: Counter[str] = Counter()
        self._said: dict[str, str] = {}
        self._states: dict[str, str] = {}
        world.server.observers.append(self._written)
        world.cloud.machines.listen(self._machine)

    def _say(self, text: str) -> None:
        if self._tell is not None:
            self._tell(self._world.clock.monotonic(), text)

    # -- the server -----------------------------------------------------------------------------------------------

    def _written(self, write: Write) -> None:
        thing: Any = write.after if write.after is not None else write.before
        if isinstance(thing, Pod):
            self._pod(write.before, write.after)
        elif isinstance(thing, Node):
            self._node(write.before, write.after)
        elif isinstance(thing, NodeClaim):
            self._claim(write.before, write.after)
        elif isinstance(thing, Event) and write.before is None:
            self._event(thing)
        elif isinstance(thing, WORKLOADS) and write.actor == "user":
            self._workload(write.before, write.after)
        elif isinstance(thing, NodePool) and write.actor == "user" and write.before is not None:
            self._say(f"somebody {'edits' if write.after is not None else 'deletes'} NodePool {thing.name}")

    def _pod(self, before: Pod | None, after: Pod | None) -> None:
        if before is not None and after is not None and after.spec.node_name and not before.spec.node_name:
            born = after.metadata.creation_timestamp
            if born is not None and not _is_daemon(after):
                self.waits.append((self._world.clock.now() - born).total_seconds())
        was, is_now = _runs(before), _runs(after)
        if was == is_now:
            return
        name = (after or before).metadata.labels.get(APP, "")  # type: ignore[union-attr]
        self._ready[name] += 1 if is_now else -1
        wanted = self._wanted(name)
        if is_now and wanted and self._ready[name] == wanted:
            self._once(f"all of {name}", f"all {wanted} pods of {name} run")
        elif not is_now:
            self._said.pop(f"all of {name}", None)

    def _wanted(self, name: str) -> int:
        server = self._world.server
        found = server.find(Deployment, name, NAMESPACE) or server.find(StatefulSet, name, NAMESPACE)
        return found.spec.replicas if found is not None else 0

    def _node(self, before: Node | None, after: Node | None) -> None:
        self._nodes += (after is not None) - (before is not None)
        self.nodes_most = max(self.nodes_most, self._nodes)
        if after is None and before is not None:
            self._say(f"{before.name} has left")
        elif after is not None and before is not None:
            initialized = labels.INITIALIZED
            if after.metadata.labels.get(initialized) and not before.metadata.labels.get(initialized):
                self._say(f"{after.name} is ready for pods")
            if after.metadata.deletion_timestamp is not None and before.metadata.deletion_timestamp is None:
                self._say(f"{after.name} is being drained")

    def _claim(self, before: NodeClaim | None, after: NodeClaim | None) -> None:
        thing = after or before
        assert thing is not None
        pool = thing.metadata.labels.get(labels.NODEPOOL, "no pool")
        if before is None:
            self.claims[pool] += 1
            self._say(f"Joiner wants a node of pool {pool}: {thing.name}")
        elif after is not None and after.metadata.deletion_timestamp and not before.metadata.deletion_timestamp:
            launched = after.status.node_name or (
                "a machine that has not joined" if after.status.provider_id else "no machine"
            )
            self._say(f"Joiner lets {after.name} go ({launched})")

    def _event(self, event: Event) -> None:
        about = event.involved_object
        if event.reason == "FailedScheduling":
            pod = self._world.server.find(Pod, about.name, about.namespace)
            name = pod.metadata.labels.get(APP, about.name) if pod is not None else about.name
            count, _ = self.refusals.get(name, (0, ""))
            self.refusals[name] = (count + 1, event.message)
            self._once(f"refused {name}", f"no place for a pod of {name}: {event.message}")
        elif event.reason in TOLD:
            self._once(f"{about.name} {event.reason}", f"{about.kind} {about.name}: {event.message}")

    def _once(self, about: str, text: str) -> None:
        """Say it unless it was the last thing that was said of it."""
        if self._said.get(about) != text:
            self._said[about] = text
            self._say(text)

    def _workload(self, before: Any, after: Any) -> None:
        thing: KubeObject = after if after is not None else before
        if after is None:
            self._say(f"somebody deletes {thing.kind} {thing.name}")
        elif before is None:
            number = getattr(after.spec, "replicas", None)
            self._say(f"somebody deploys {thing.name}" + (f": {number} pods" if number is not None else ""))
        elif getattr(before.spec, "replicas", None) != getattr(after.spec, "replicas", None):
            self._say(f"somebody scales {thing.name} from {before.spec.replicas} to {after.spec.replicas} pods")

    # -- the cloud ------------------------------------------------------------------------------------------------

    def _machine(self, machine: Machine) -> None:
        known = self._states.get(machine.provider_id)
        state = "noticed" if machine.notice_at is not None and machine.state != GONE else machine.state
        if state == known:
            return
        self._states[machine.provider_id] = state
        if known is None:
            what = f"{machine.instance_type} {machine.capacity_type} in {machine.zone}"
            inside = f", out of reservation {machine.reservation}" if machine.reservation else ""
            self._say(f"the cloud starts {machine.node_name}: {what}{inside}")
        elif state == "noticed":
            self._say(f"the cloud wants {machine.node_name} back ({machine.capacity_type})")
        elif state == GONE and known != "shutting-down":
            self._say(f"the machine of {machine.node_name} is gone")


def _runs(pod: Pod | None) -> bool:
    if pod is None or pod.metadata.deletion_timestamp is not None:
        return False
    found = condition(pod, "Ready")
    return found is not None and found.status == "True"


def _is_daemon(pod: Pod) -> bool:
    return any(owner.kind == "DaemonSet" for owner in pod.metadata.owner_references)


def quantile(values: list[float], share: float) -> float:
    """The value below which that share of them lies; 0 when there are none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0
