"""What happened in a world, put down as it happens: for the summary at the end, and as sentences for those who listen."""

from collections import Counter
from collections.abc import Callable
from typing import Any

from joiner.model import labels
from joiner.model.claimconditions import LAUNCHED
from joiner.model.clusterobjects import Event
from joiner.model.conditions import AWAITING_RECONCILIATION, find
from joiner.model.node import Node
from joiner.model.nodeclaim import NodeClaim
from joiner.model.pod import Pod, is_ready
from joiner.model.podpolicy import PodDisruptionBudget
from joiner.model.workload import DaemonSet, Deployment, Job, StatefulSet
from joiner.sim.apiserver.server import Write
from joiner.sim.cloud.machines import GONE, PENDING, RUNNING, CloudMachine
from joiner.sim.story.phrases import counted
from joiner.sim.story.report.missingpods import MissingPods
from joiner.sim.story.workloadpods import WorkloadPods
from joiner.sim.workloads.podfactory import is_daemon
from joiner.sim.world import World

Teller = Callable[[float, str], None]
WORKLOADS = (Deployment, StatefulSet, DaemonSet, Job)
TOLD = frozenset(
    {
        "InsufficientCapacityError", "FailedScheduling", "FailedDraining", "TerminationGracePeriodExpiring",
        "FailedConsistencyCheck", "NodeRepairBlocked", "RebootObserved", "RebootFailed", "NodeOverlaysChanged",
        "NoCompatibleInstanceTypes", "AwaitingVolumeDetachment", "ConsolidationCandidate",
    }
)  # fmt: skip
"""Events that are worth a sentence."""


class Narrator:
    """Watches one world from outside."""

    def __init__(self, world: World, pods: WorkloadPods, tell: Teller | None = None) -> None:
        self._world, self._pods, self._tell = world, pods, tell
        self.told: list[tuple[float, str]] = []
        """Everything that was said, with the second at which it was."""
        self.waits: list[float] = []
        """How long each pod waited for its node, in seconds."""
        self.nodes_most = 0
        self.claims: Counter[str] = Counter()
        """How many claims were made, by pool."""
        self.refusals: dict[str, tuple[int, str]] = {}
        """Workload to how often a pod of it was refused, and the last reason."""
        self.missing = MissingPods()
        """How long pods that had run were missing."""
        self._born: dict[str, float] = {}
        """Pod that has no node, by uid, to when it came."""
        self._nodes = 0
        self._said: dict[str, str] = {}
        self._states: dict[str, str] = {}
        world.server.observers.append(self._written)
        world.cloud.machines.listen(self._machine)

    def say(self, text: str) -> None:
        """Put down a sentence, if there is one."""
        if text:
            moment = self._world.clock.monotonic()
            self.told.append((moment, text))
            if self._tell is not None:
                self._tell(moment, text)

    # -- the server -----------------------------------------------------------------------------------------------

    def _written(self, write: Write) -> None:
        thing: Any = write.after if write.after is not None else write.before
        if isinstance(thing, Deployment | StatefulSet):
            self._look_for_missing(thing.name)
        if write.actor == "user" and _is_deletion(write):
            self.say(f"a user deletes {thing.kind} {thing.name}")
        if isinstance(thing, Pod):
            self._pod(write.before, write.after)
        elif isinstance(thing, Node):
            self._node(write.before, write.after)
            self._ailment(write.before, write.after, write.actor == "user")
        elif isinstance(thing, NodeClaim):
            self._claim(write.before, write.after, write.actor == "user")
        elif isinstance(thing, Event) and write.before is None:
            self._event(thing)
        elif isinstance(thing, Job) and write.actor != "user":
            self._job(write.before, write.after)
        elif write.actor == "user":
            self._by_hand(write.before, write.after)

    def _pod(self, before: Pod | None, after: Pod | None) -> None:
        now = self._world.clock.monotonic()
        if after is None:
            self._born.pop(before.metadata.uid if before is not None else "", None)
        elif after.spec.node_name:
            born = self._born.pop(after.metadata.uid, None)
            if born is not None:
                self.waits.append(now - born)
        elif before is None and not is_daemon(after):
            self._born[after.metadata.uid] = now  # a creation timestamp has whole seconds only
        was, is_now = _runs(before), _runs(after)
        if was == is_now:
            return
        pod = after or before
        assert pod is not None
        name = self._pods.named(pod)
        self._look_for_missing(name)
        ready, wanted = self._pods.ready(name), self._pods.wanted(name)
        if is_now and wanted and ready == wanted:
            run = f"all {wanted} pods of {name} run" if wanted > 1 else f"the pod of {name} runs"
            self._once(f"all of {name}", run)
        elif not is_now:
            self._said.pop(f"all of {name}", None)

    def _look_for_missing(self, name: str) -> None:
        ready, wanted = self._pods.ready(name), self._pods.wanted(name)
        self.missing.look(name, ready=ready, wanted=wanted, now=self._world.clock.monotonic())

    def _node(self, before: Node | None, after: Node | None) -> None:
        self._nodes += (after is not None) - (before is not None)
        self.nodes_most = max(self.nodes_most, self._nodes)
        if after is None and before is not None:
            self.say(f"{before.name} has left")
        elif after is not None and before is not None:
            initialized = labels.INITIALIZED
            if after.metadata.labels.get(initialized) and not before.metadata.labels.get(initialized):
                self.say(f"{after.name} is ready for pods")
            if after.metadata.deletion_timestamp is not None and before.metadata.deletion_timestamp is None:
                self.say(f"{after.name} is being drained")

    def _ailment(self, before: Node | None, after: Node | None, by_story: bool) -> None:
        """Conditions of a node that had been ready for pods. Ready is always told, others where the story sets them."""
        if before is None or after is None or not before.metadata.labels.get(labels.INITIALIZED):
            return
        had = {each.type: each.status for each in before.status.conditions}
        for each in after.status.conditions:
            if each.status == had.get(each.type):
                continue
            if each.type == "Ready":
                self.say(f"{after.name} is {'ready again' if each.status == 'True' else 'no longer ready'}")
            elif by_story:
                self.say(f"{after.name} has the condition {each.type}={each.status}")

    def _claim(self, before: NodeClaim | None, after: NodeClaim | None, by_hand: bool) -> None:
        thing = after or before
        assert thing is not None
        pool = thing.metadata.labels.get(labels.NODEPOOL, "no pool")
        if before is None:
            self.claims[pool] += 1
            self.say(f"Joiner wants a node of pool {pool}: {thing.name}")
        elif by_hand or after is None:
            return
        elif after.metadata.deletion_timestamp and not before.metadata.deletion_timestamp:
            self.say(f"Joiner lets {after.name} go ({_why_it_goes(after)})")

    def _event(self, event: Event) -> None:
        about = event.involved_object
        if event.reason == "FailedScheduling":
            pod = self._world.server.find(Pod, about.name, about.namespace)
            name = self._pods.named(pod) if pod is not None else about.name
            count, _ = self.refusals.get(name, (0, ""))
            self.refusals[name] = (count + 1, event.message)
            self._once(f"refused {name}", f"no place for a pod of {name}: {event.message}")
        elif event.reason == "ConsolidationCandidate" and about.kind != "Node":
            return  # the node has said so
        elif event.reason in TOLD and about.kind != "Pod":  # what befell a claim is told once, not for each of its pods
            who = f"{about.kind} {about.name}: "
            self._once(f"{about.name} {event.reason}", f"{who}{event.message.removeprefix(who)}")

    def _once(self, about: str, text: str) -> None:
        """Say it unless it was the last thing that was said of it."""
        if self._said.get(about) != text:
            self._said[about] = text
            self.say(text)

    def _by_hand(self, before: Any, after: Any) -> None:
        """What a user made or changed."""
        if after is None or after.metadata.deletion_timestamp is not None:
            return
        if isinstance(after, WORKLOADS):
            self._workload(before, after)
        elif before is None:
            if not isinstance(after, PodDisruptionBudget) or not self._pods.wanted(
                after.name
            ):  # it comes with the workload
                self.say(f"a user creates {after.kind} {after.name}")
        elif getattr(before, "spec", None) != getattr(after, "spec", None):
            self.say(f"a user edits {after.kind} {after.name}")

    def _workload(self, before: Any, after: Any) -> None:
        number = getattr(after.spec, "replicas", getattr(after.spec, "completions", None))
        if before is None:
            pods = "" if number is None else f": {counted(number, 'pod')}"
            name = after.name if isinstance(after, Deployment) else f"{after.kind} {after.name}"
            self.say(f"a user deploys {name}{pods}")
            return
        had = getattr(before.spec, "replicas", None)
        if had != getattr(after.spec, "replicas", None):
            self.say(f"a user scales {after.name} from {had} to {counted(number or 0, 'pod')}")
        elif before.spec != after.spec:
            self.say(f"a user edits {after.kind} {after.name}")

    def _job(self, before: Job | None, after: Job | None) -> None:
        if before is not None and after is not None and _is_done(after) and not _is_done(before):
            self.say(f"Job {after.name} is done")

    def unplaced(self) -> dict[str, int]:
        """Workload to how many of its pods have no node now, of those that have any."""
        found = Counter(
            self._pods.named(pod)
            for pod in self._world.server.objects(Pod)
            if not pod.spec.node_name and pod.metadata.deletion_timestamp is None
        )
        return dict(sorted(found.items()))

    # -- the cloud ------------------------------------------------------------------------------------------------

    def _machine(self, machine: CloudMachine) -> None:
        known = self._states.get(machine.provider_id)
        is_noticed = machine.notice_at is not None and machine.state in (PENDING, RUNNING)
        state = "noticed" if is_noticed else machine.state
        if state == known:
            return
        self._states[machine.provider_id] = state
        if known is None:
            what = f"{machine.instance_type} {machine.capacity_type} in {machine.zone}"
            inside = f", out of reservation {machine.reservation}" if machine.reservation else ""
            self.say(f"the cloud starts {machine.node_name}: {what}{inside}")
        elif state == "noticed":
            self.say(f"the cloud wants {machine.node_name} back ({machine.capacity_type})")
        elif state == GONE and known != "shutting-down":
            self.say(f"the machine of {machine.node_name} is gone")


def _why_it_goes(claim: NodeClaim) -> str:
    """What a claim came to: its node, or why there is none."""
    if claim.status.node_name:
        return claim.status.node_name
    if claim.status.provider_id:
        return "a machine that has not joined"
    launched = find(claim.status.conditions, LAUNCHED)
    if launched is None or launched.reason == AWAITING_RECONCILIATION:
        return "no machine"
    return f"no machine: {launched.message}"


def _is_deletion(write: Write) -> bool:
    before, after = write.before, write.after
    if before is None or before.metadata.deletion_timestamp is not None:
        return False
    return after is None or after.metadata.deletion_timestamp is not None


def _runs(pod: Pod | None) -> bool:
    return pod is not None and pod.metadata.deletion_timestamp is None and is_ready(pod)


def _is_done(job: Job) -> bool:
    return job.status.succeeded >= (job.spec.completions or 1)
