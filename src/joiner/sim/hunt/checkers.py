"""Checkers: they watch from outside and say when something happens that never may, or does not happen that must.

Safety is looked at with every write and every purchase; liveness and quiet when faults have stopped and there was time to come
right. With the code that is watched they share nothing but the four functions of `model` that ARCHITECTURE.md names.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from joiner.cloud.kwok.nodeclass import KWOKNodeClass
from joiner.kube.client import key_of
from joiner.model import labels
from joiner.model.capacitybuffer import CapacityBuffer
from joiner.model.clusterobjects import Event, Lease
from joiner.model.meta import KubeObject, ObjectMeta, replace
from joiner.model.node import Node
from joiner.model.nodeclaim import NodeClaim
from joiner.model.nodepool import NodePool
from joiner.model.pod import Pod, condition
from joiner.model.podpolicy import PodDisruptionBudget
from joiner.model.requirement import SelectorRequirementWithMinValues
from joiner.model.selector import chooses
from joiner.model.taints import DISRUPTED
from joiner.model.workload import Deployment, PodTemplate
from joiner.sim.apiserver.server import Write
from joiner.sim.cloud.machines import GONE, PENDING, RUNNING, SHUTTING_DOWN, CloudMachine
from joiner.sim.hunt.movecheckers import RULES as MOVE_RULES
from joiner.sim.hunt.movecheckers import MoveChecks
from joiner.sim.scheduler.clusterindex import ClusterIndex
from joiner.sim.scheduler.predicates import PodPredicates, check_placement
from joiner.sim.workloads.podfactory import is_daemon
from joiner.sim.world import JOINER, World

IMPOSSIBLE: Final = "sim.joiner.dev/impossible"
"""On pods that no node can ever hold: they are not expected to run."""
DEADLINE: Final = "karpenter.sh/nodeclaim-termination-timestamp"
RESERVATION: Final = "capacity-reservation-id"
MIN_VALUES_RELAXED: Final = "karpenter.sh/nodeclaim-min-values-relaxed"
DO_NOT_DISRUPT: Final = "karpenter.sh/do-not-disrupt"
RULES: Final = (
    "placement", "removal", "forced removal", "node finalizer", "claim finalizer", "limits", "purchase", "minValues",
    "relaxed minValues", "reservation", "launched", "drain", "liveness", "static pool", "buffer", "quiet", "rest",
    *MOVE_RULES,
)  # fmt: skip
"""Every rule that is looked at, by the name it is counted under."""
ONLY_MOVING: Final = frozenset({"rest", *MOVE_RULES})
"""Rules that are looked at where nodes are consolidated."""
SLACK: Final = timedelta(seconds=60)
"""How much sooner than its deadline allows a pod may be deleted: clocks of two readers are never quite the same."""


class Checks:
    """All checkers over one world. What they find is raised by the player, with the trace of the last steps."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._places = ClusterIndex()
        self.counts: Counter[str] = Counter()
        """How often each rule was looked at."""
        self.violations: list[str] = []
        self._machines_of: dict[str, str] = {}
        self._deadlines: dict[tuple[str, str], float] = {}
        """UID of a claim and what it says of its end, to when that is if no one sets the clock."""
        self._moves = MoveChecks(world, self._fail, self.counts)
        world.server.observers.append(self._written)
        world.cloud.machines.listen(self._machine)
        world.cloud.asked.append(self._asked)

    def _fail(self, rule: str, text: str) -> None:
        self.violations.append(f"at {self._world.clock.monotonic():.3f}s {rule}: {text}")

    # -- safety, with every write ---------------------------------------------------------------------------------

    def _written(self, write: Write) -> None:
        self._places.apply(write.before, write.after)
        self._moves.written(write)
        thing: Any = write.after if write.after is not None else write.before
        if isinstance(thing, Pod):
            self._pod(write)
        elif isinstance(thing, Node):
            self._node(write)
        elif isinstance(thing, NodeClaim):
            self._claim(write)

    def _pod(self, write: Write) -> None:
        before, after = write.before, write.after
        if after is not None and after.spec.node_name and (before is None or not before.spec.node_name):
            self._placed(after)
        deleted = before is not None and before.metadata.deletion_timestamp is None
        if write.actor == JOINER and deleted and (after is None or after.metadata.deletion_timestamp is not None):
            self._removed(before, write.verb)

    def _placed(self, pod: Pod) -> None:
        """No pod on a node that violates it."""
        self.counts["placement"] += 1
        node = self._world.server.find(Node, pod.spec.node_name)
        reasons = check_placement(pod, node, self._places) if node is not None else ["there is no such node"]
        if reasons:
            self._fail("placement", f"pod {pod.name} on {pod.spec.node_name}: {'; '.join(reasons)}")

    def _removed(self, pod: Pod, verb: str) -> None:
        """Budgets and do-not-disrupt are kept, but for a node whose time is over."""
        self.counts["removal"] += 1
        protected = pod.metadata.annotations.get(DO_NOT_DISRUPT) == "true" or self._is_guarded(pod)
        if verb == "evict":
            if pod.metadata.annotations.get(DO_NOT_DISRUPT) == "true" and not _ended(pod):
                self._fail("removal", f"pod {pod.name} was evicted though it may not be disrupted")
            return
        if not protected:
            return
        self.counts["forced removal"] += 1
        left = self._time_left(pod.spec.node_name)
        grace = timedelta(seconds=pod.spec.termination_grace_period_seconds or 30)
        if left is None or left > (grace + SLACK).total_seconds():
            self._fail("removal", f"pod {pod.name} was deleted by force before the time of its node was over ({left})")

    def _is_guarded(self, pod: Pod) -> bool:
        return any(
            budget.metadata.namespace == pod.metadata.namespace
            and chooses(budget.spec.selector, pod.metadata.labels)
            and budget.status.disruptions_allowed <= 0
            for budget in self._world.server.objects(PodDisruptionBudget)
        )

    def _time_left(self, node_name: str) -> float | None:
        """In how many seconds the time of a node is over: its claim says so, which may have gone before it heard of the node.

        It is over by the clock, or when that much time has passed although the clock was set back.
        """
        node = self._world.server.find(Node, node_name)
        machine = node.spec.provider_id if node is not None else ""
        for claim in self._world.server.objects(NodeClaim):
            mine = claim.status.node_name == node_name or (machine and claim.status.provider_id == machine)
            said = claim.metadata.annotations.get(DEADLINE)
            if mine and said is not None:
                by_clock = (datetime.fromisoformat(said) - self._world.clock.now()).total_seconds()
                return min(by_clock, self._deadlines[claim.metadata.uid, said] - self._world.clock.monotonic())
        return None

    def _note_deadline(self, claim: NodeClaim) -> None:
        said = claim.metadata.annotations.get(DEADLINE)
        if said is not None and (claim.metadata.uid, said) not in self._deadlines:
            left = (datetime.fromisoformat(said) - self._world.clock.now()).total_seconds()
            self._deadlines[claim.metadata.uid, said] = self._world.clock.monotonic() + left

    def _node(self, write: Write) -> None:
        """The finalizer of a node goes only after its machine; and what we write on a node drives no pod from it."""
        before, after = write.before, write.after
        if write.actor == JOINER and before is not None and after is not None and not _serves_the_same(before, after):
            name = after.name
            for pod in [each for each in self._world.server.objects(Pod) if each.spec.node_name == name]:
                if not _ended(pod) and pod.metadata.deletion_timestamp is None:
                    self._placed(pod)
        if write.actor != JOINER or before is None or labels.TERMINATION_FINALIZER not in before.metadata.finalizers:
            return
        if after is None or labels.TERMINATION_FINALIZER not in after.metadata.finalizers:
            self.counts["node finalizer"] += 1
            machine = self._world.cloud.machines.get(before.spec.provider_id)
            if machine is not None and machine.state != GONE:
                self._fail("finalizer", f"node {before.name} was let go while its machine is {machine.state}")

    def _claim(self, write: Write) -> None:
        before, after = write.before, write.after
        if after is not None:
            self._note_deadline(after)
        if before is None:
            if write.actor == JOINER:
                self._limits(after)
                self._promises(after)
            return
        known = before.status.provider_id
        if after is not None and known and after.status.provider_id != known:
            self._fail("launch", f"claim {after.name} had machine {known} and has {after.status.provider_id} now")
        gone = after is None or labels.TERMINATION_FINALIZER not in after.metadata.finalizers
        if gone and labels.TERMINATION_FINALIZER in before.metadata.finalizers:
            self.counts["claim finalizer"] += 1
            machine = self._world.cloud.machines.of_claim(before.metadata.uid)
            if machine is not None and machine.state != GONE:
                self._fail("finalizer", f"claim {before.name} was let go while its machine is {machine.state}")

    def _limits(self, new: NodeClaim) -> None:
        """The nodes of a pool never have more than its limits: known amounts of its claims, and their number."""
        pool = self._world.server.find(NodePool, new.metadata.labels.get(labels.NODEPOOL, ""))
        if pool is None or not pool.spec.limits:
            return
        self.counts["limits"] += 1
        living = [
            claim
            for claim in self._world.server.objects(NodeClaim)
            if claim.metadata.labels.get(labels.NODEPOOL) == pool.name and not _is_going(claim)
        ]
        for resource, limit in sorted(pool.spec.limits.items()):
            used = len(living) * 1000 if resource == "nodes" else sum(self._amount(claim, resource) for claim in living)
            if used > limit:
                self._fail("limits", f"pool {pool.name} has {used} of {resource}, in thousandths, and may have {limit}")

    def _promises(self, new: NodeClaim) -> None:
        """No more claims are made for a reservation than it has machines left."""
        for wanted in new.spec.requirements:
            if wanted.key.endswith(RESERVATION) and wanted.operator == "In" and len(wanted.values) == 1:
                self._reserved(wanted.values[0], planned=True)

    def _amount(self, claim: NodeClaim, resource: str) -> int:
        machine = self._world.cloud.machines.of_claim(claim.metadata.uid)
        return machine.capacity.get(resource, 0) if machine is not None else 0

    # -- safety, with every purchase ------------------------------------------------------------------------------

    def _asked(self, claim: NodeClaim, machines: Sequence[Mapping[str, str]]) -> None:
        self.counts["purchase"] += 1
        live = self._world.server.find(NodeClaim, claim.name)
        if live is not None and live.metadata.uid == claim.metadata.uid and live.status.provider_id:
            self._fail(
                "launch", f"claim {claim.name} is launched as {live.status.provider_id} and was to be launched again"
            )
        strict = self._world.options.min_values_policy == "Strict"
        if claim.metadata.annotations.get(MIN_VALUES_RELAXED) == "true":
            self.counts["relaxed minValues"] += 1
            if strict:
                self._fail(
                    "minValues", f"claim {claim.name} has fewer types than its pool asks for, under the policy Strict"
                )
        reserved = any(each.get(labels.CAPACITY_TYPE) == labels.RESERVED for each in machines)
        for requirement in claim.spec.requirements:
            wanted = requirement.min_values
            if wanted is None or not strict or reserved:  # what is paid for already needs no choice
                continue
            self.counts["minValues"] += 1
            values = {each[requirement.key] for each in machines if requirement.key in each}
            if len(values) < wanted:
                self._fail("minValues", f"claim {claim.name} leaves {len(values)} of {requirement.key}, not {wanted}")

    def _machine(self, machine: CloudMachine) -> None:
        if machine.state == SHUTTING_DOWN:
            self._ended_machine(machine)
        if machine.provider_id not in self._machines_of:
            self._machines_of[machine.provider_id] = machine.claim_uid
            if self._is_second(machine):
                self._fail("launch", f"claim {machine.claim_name} has a second machine, {machine.provider_id}")
            if not machine.claim_uid or not machine.pool:
                self._fail("launch", f"machine {machine.provider_id} does not say whose it is")
            if machine.reservation:
                self._reserved(machine.reservation)
            self._launched(machine)

    def _is_second(self, machine: CloudMachine) -> bool:
        """Whether its claim has a machine already. One that ended before its claim was told of it is none."""
        mine = [each for each, uid in self._machines_of.items() if uid == machine.claim_uid]
        known = (self._world.cloud.machines.get(each) for each in mine)
        return sum(each is not None and each.state in (PENDING, RUNNING) for each in known) > 1

    def _launched(self, machine: CloudMachine) -> None:
        """What is launched is what was planned: every label that the claim asks for, its reservation, and its room."""
        claim = self._world.server.find(NodeClaim, machine.claim_name)
        if claim is None or claim.metadata.uid != machine.claim_uid:
            return
        self.counts["launched"] += 1
        known = {**claim.metadata.labels, **machine.labels}
        for each in claim.spec.requirements:
            if not _holds(each, known.get(each.key)):
                asked = f"{each.key} {each.operator} {', '.join(each.values)}".rstrip()
                self._fail("launched", f"claim {claim.name} asks for {asked} and got {known.get(each.key)}")
        for resource, amount in sorted(claim.spec.resources.requests.items()):
            if resource in machine.allocatable and amount > machine.allocatable[resource]:
                has = machine.allocatable[resource]
                self._fail(
                    "launched", f"claim {claim.name} asks for {amount} of {resource}, in thousandths, and got {has}"
                )

    def _ended_machine(self, machine: CloudMachine) -> None:
        """No machine is ended under pods that had to leave first, before the time of its node is over.

        What never registered holds nothing of ours, and machines without a claim are garbage; those may go at once.
        """
        node = self._world.server.find(Node, machine.node_name)
        if node is None or node.metadata.labels.get(labels.REGISTERED) != "true" or not self._is_claimed(machine):
            return
        self.counts["drain"] += 1
        now, left = self._world.clock.now(), self._time_left(node.name)
        if left is not None and left <= 0:
            return
        pods = [pod.name for pod in self._world.server.objects(Pod) if _must_leave(pod, node.name, now)]
        if pods:
            names = ", ".join(sorted(pods)[:5])
            self._fail(
                "drain", f"machine {machine.provider_id} was ended under {len(pods)} pods of {node.name}: {names}"
            )

    def _is_claimed(self, machine: CloudMachine) -> bool:
        claim = self._world.server.find(NodeClaim, machine.claim_name)
        return claim is not None and claim.metadata.uid == machine.claim_uid

    def _reserved(self, reservation: str, *, planned: bool = False) -> None:
        """A reservation is never oversold, neither by what runs nor by what is on its way."""
        self.counts["reservation"] += 1
        machines = self._world.cloud.machines
        held = machines.in_reservation(reservation)
        if planned:
            held += sum(
                any(
                    each.key.endswith(RESERVATION) and each.values == (reservation,) for each in claim.spec.requirements
                )
                for claim in self._world.server.objects(NodeClaim)
                if machines.of_claim(claim.metadata.uid) is None and claim.metadata.deletion_timestamp is None
            )
        classes = self._world.server.objects(KWOKNodeClass)
        counts = [
            each.count for found in classes for each in found.spec.capacity_reservations if each.id == reservation
        ]
        if self._world.account is not None:
            counts = [each.count for each in self._world.account.reservations.values() if each.id == reservation]
        if held > max(counts, default=0):
            self._fail("reservation", f"{reservation} has {held} takers for {max(counts, default=0)} machines")

    # -- liveness, after the faults -------------------------------------------------------------------------------

    def settled(self) -> list[str]:
        """What has not come right although there was time."""
        return [*self._pods_left(), *self._strays(), *self._static_pools(), *self._buffers()]

    def at_rest(self, proposed: Sequence[str]) -> list[str]:
        """What is wrong once nothing is written any more; `proposed` is what the controllers would do next."""
        self.counts["rest"] += 1
        return [*(f"rest: {each}" for each in proposed), *self._moves.left_over()]

    def _pods_left(self) -> Iterator[str]:
        for pod in self._world.server.objects(Pod):
            self.counts["liveness"] += 1
            if pod.metadata.labels.get(IMPOSSIBLE) or _ended(pod) or is_daemon(pod):
                continue  # a node may be full before its daemon comes
            ready = condition(pod, "Ready")
            if ready is None or ready.status != "True" or pod.metadata.deletion_timestamp is not None:
                where = f"on {pod.spec.node_name}" if pod.spec.node_name else "without a node"
                yield f"liveness: pod {pod.name} does not run ({where}, {pod.status.phase})"

    def _strays(self) -> Iterator[str]:
        server, machines = self._world.server, self._world.cloud.machines
        claims = {claim.metadata.uid: claim for claim in server.objects(NodeClaim)}
        for machine in machines.alive():
            if machine.claim_uid not in claims:
                yield f"liveness: machine {machine.provider_id} runs without a claim ({machine.claim_name} is gone)"
        for claim in claims.values():
            machine_of = machines.of_claim(claim.metadata.uid)
            if machine_of is None or not machine_of.alive:
                yield f"liveness: claim {claim.name} has no machine"
            if claim.metadata.deletion_timestamp is not None:
                yield f"liveness: claim {claim.name} does not go"
        for node in server.objects(Node):
            machine_on = machines.get(node.spec.provider_id)
            if machine_on is None or not machine_on.alive:
                yield f"liveness: node {node.name} has no machine"

    def _static_pools(self) -> Iterator[str]:
        """A pool with replicas has that many claims, or as many as its limit lets it have."""
        for pool in self._world.server.objects(NodePool):
            if pool.spec.replicas is None:
                continue
            self.counts["static pool"] += 1
            wanted = min(pool.spec.replicas, pool.spec.limits.get("nodes", pool.spec.replicas * 1000) // 1000)
            staying = [
                claim
                for claim in self._world.server.objects(NodeClaim)
                if claim.metadata.labels.get(labels.NODEPOOL) == pool.name and claim.metadata.deletion_timestamp is None
            ]
            if len(staying) != wanted:
                yield f"liveness: pool {pool.name} does not have the {wanted} claims that it should"

    def _buffers(self) -> Iterator[str]:
        """Every pod that a buffer keeps room for would find it: its pods are put on nodes one by one, and taken away again."""
        for buffer in self._world.server.objects(CapacityBuffer):
            self.counts["buffer"] += 1
            expected = self._expected(buffer)
            placed = [pod for pod in expected if self._put(pod)]
            for pod in placed:
                self._places.drop_pod(key_of(pod))
            if len(placed) < len(expected):
                yield f"liveness: buffer {buffer.name} has no room for some of its {len(expected)} pods"

    def _expected(self, buffer: CapacityBuffer) -> list[Pod]:
        spec, namespace, server = buffer.spec, buffer.metadata.namespace, self._world.server
        number, template = spec.replicas or 0, None
        if spec.scalable_ref is not None:
            workload = server.find(Deployment, spec.scalable_ref.name, namespace)
            if workload is not None:
                template = workload.spec.template
                number = max(number, math.ceil(workload.spec.replicas * (spec.percentage or 0) / 100))
        elif spec.pod_template_ref is not None:
            like = server.find(PodTemplate, spec.pod_template_ref.name, namespace)
            template = like.template if like is not None else None
        if template is None:
            return []
        known = template.metadata.labels
        return [
            Pod(
                metadata=ObjectMeta(name=f"{buffer.name}-{each}", namespace=namespace, labels=known), spec=template.spec
            )
            for each in range(number)
        ]

    def _put(self, pod: Pod) -> bool:
        question = PodPredicates(pod, self._places)
        for name in sorted(self._places.entries):
            entry = self._places.entries[name]
            if entry.node is not None and not any(question.refusals(entry)):
                self._places.put_pod(replace(pod, spec=replace(pod.spec, node_name=name)))
                return True
        return False


class Quiet:
    """Counts what is written once the cluster has settled: then there should be no more writes."""

    def __init__(self, world: World, counts: Counter[str]) -> None:
        counts["quiet"] += 1
        self._clock = world.clock
        self._when: list[tuple[float, str]] = []
        self._told: Callable[[Write], None] = self._count
        world.server.observers.append(self._told)

    def _count(self, write: Write) -> None:
        thing: KubeObject = write.after if write.after is not None else write.before
        if not isinstance(thing, Event | Lease):
            self._when.append((self._clock.monotonic(), f"{write.actor} {write.verb} {thing.kind} {thing.name}"))

    @property
    def total(self) -> int:
        """How much was written."""
        return len(self._when)

    def since(self, moment: float) -> Counter[str]:
        """What was written since then, and how often."""
        return Counter(what for at, what in self._when if at >= moment)


def _holds(asked: SelectorRequirementWithMinValues, value: str | None) -> bool:
    """Whether a label is as a requirement asks; what a machine does not say of itself is settled on its node."""
    if value is None:
        return True
    if asked.operator in ("In", "NotIn"):
        return (value in asked.values) == (asked.operator == "In")
    if asked.operator in ("Gt", "Lt", "Gte", "Lte"):
        number, bound = int(value), int(asked.values[0])
        return {"Gt": number > bound, "Lt": number < bound, "Gte": number >= bound, "Lte": number <= bound}[
            asked.operator
        ]
    return asked.operator == "Exists"


def _ended(pod: Pod) -> bool:
    return pod.status.phase in ("Succeeded", "Failed")


def _must_leave(pod: Pod, node_name: str, now: datetime) -> bool:
    """Whether a drain has to wait for the pod. One that should have ended by now is stuck: no drain waits for it for ever."""
    deleted = pod.metadata.deletion_timestamp
    if pod.spec.node_name != node_name or _ended(pod) or (deleted is not None and deleted <= now):
        return False
    stays = any(owner.kind in ("DaemonSet", "Node") for owner in pod.metadata.owner_references)
    return not stays and not any(each.tolerates(DISRUPTED) for each in pod.spec.tolerations)


def _serves_the_same(before: Node, after: Node) -> bool:
    return before.metadata.labels == after.metadata.labels and before.spec.taints == after.spec.taints


def _is_going(claim: NodeClaim) -> bool:
    """Whether the claim counts against limits no more: it is being deleted, or replaced by another one first."""
    replaced = any(each.type == "DisruptionReason" and each.status == "True" for each in claim.status.conditions)
    return replaced or claim.metadata.deletion_timestamp is not None
