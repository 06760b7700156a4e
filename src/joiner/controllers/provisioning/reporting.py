"""What a plan means, told: events at pods and pools, numbers for dashboards, promises in the state of the cluster."""

from collections import Counter
from collections.abc import Iterable
from datetime import timedelta
from typing import Final

from joiner.controllers.provisioning.claimwriter import WriteOutcome
from joiner.controllers.provisioning.pools import nothing_to_buy
from joiner.controllers.shared import Shared
from joiner.model.pod import Pod
from joiner.scheduling.plan import Plan, Refusal, RefusalReason
from joiner.scheduling.pods.effectivezone import effective_zone
from joiner.scheduling.pods.volumetopology import VolumeIndex
from joiner.scheduling.problem import Problem
from joiner.scheduling.report.refusal import EVERY_POOL
from joiner.state.pods import declines_us
from joiner.state.virtualpods import is_virtual

CONTROLLER: Final = "provisioner"


def real_pods(question: Problem) -> dict[str, Pod]:
    """The pods of a problem that are more than room to be kept, by their name in the plan."""
    return {pod.key: pod for pod in question.pods if not is_virtual(pod)}


class PlanReporter:
    """Tells what was found and what was decided. Virtual pods are never spoken of."""

    def __init__(self, shared: Shared) -> None:
        self._cluster, self._clock, self._recorder = shared.cluster, shared.clock, shared.recorder
        self._metrics = shared.metrics
        self._promised_for = timedelta(seconds=shared.options.nomination_s)
        self._zones: frozenset[str] = frozenset()

    def question(self, question: Problem) -> None:
        """Which pools can buy nothing, and how many pods wait for which zone."""
        for each in question.pools:
            if not each.catalog.eligible:
                self._recorder.publish(each.pool, "NoCompatibleInstanceTypes", nothing_to_buy(each.catalog))
        shelf = VolumeIndex(question.storage, question.vocabulary)
        pods = real_pods(question).values()
        zones = Counter(effective_zone(pod, shelf, question.vocabulary) for pod in pods)
        gauge = self._metrics.scheduler_pending_pods_by_effective_zone_count
        for zone in sorted(self._zones - zones.keys()):
            gauge.remove(CONTROLLER, zone)
        for zone in sorted(zones):
            gauge.labels(controller=CONTROLLER, zone=zone).set(zones[zone])
        self._zones = frozenset(zones)

    def nobody_waits(self) -> None:
        """There is nothing to plan for."""
        self.question(Problem(pods=()))
        self._counts(Plan())

    def nominate(self, plan: Plan, question: Problem) -> None:
        """Nodes that pods were sent to are left alone for a while."""
        until, known = self._clock.now() + self._promised_for, real_pods(question)
        for name, pods in plan.placements.items():
            if any(pod in known for pod in pods):
                self._cluster.nominate(name, until)

    def plan(self, plan: Plan, question: Problem, skipped: tuple[RefusalReason, ...]) -> None:
        """Who goes where, and who does not."""
        known = real_pods(question)
        self._times(plan, known)
        self.nominate(plan, question)
        unlaunched = {each.name for each in self._cluster.snapshot(self._clock.now()).unlaunched}
        for name, pods in plan.placements.items():
            for pod in (known[key] for key in pods if key in known):
                if name in unlaunched:
                    self._cluster.promise(pod, name, self._clock.now())
                self._placed(pod, name)
        for refusal in plan.refusals:
            if refusal.pod in known:
                self._refused(known[refusal.pod], _with_pools(refusal, skipped))
        self._counts(plan)

    def outcomes(self, outcomes: tuple[WriteOutcome, ...], plan: Plan, question: Problem) -> None:
        """What became of the claims of a plan."""
        known, until = real_pods(question), self._clock.now() + self._promised_for
        for outcome, planned in zip(outcomes, plan.claims, strict=True):
            pods = [known[key] for key in planned.pods if key in known]
            if outcome.claim is not None and pods:
                self._cluster.nominate(outcome.claim.name, until)
            for pod in pods:
                if outcome.claim is not None:
                    self._placed(pod, outcome.claim.name)
                elif outcome.problem:
                    self._recorder.publish(pod, "FailedScheduling", outcome.problem)

    def _times(self, plan: Plan, known: dict[str, Pod]) -> None:
        now = self._clock.now()
        placed = {key for pods in plan.placements.values() for key in pods}
        placed.update(key for claim in plan.claims for key in claim.pods)
        for key, pod in known.items():
            times = self._cluster.acknowledge(pod, now)
            if times.attempted is None:
                times.attempted = now
                waited = (now - times.seen).total_seconds()
                self._metrics.pods_scheduling_decision_duration_seconds.observe(waited)
            if key in placed and times.schedulable is None:
                times.schedulable = now

    def _placed(self, pod: Pod, name: str) -> None:
        self._recorder.publish(pod, "Nominated", f"Pod should schedule on {name}")

    def _refused(self, pod: Pod, reasons: Iterable[RefusalReason]) -> None:
        if declines_us(pod):
            return
        message = "; ".join(f"{each.object}: {each.message}" for each in reasons)
        self._recorder.publish(pod, "FailedScheduling", f"Failed to schedule pod, {message}")

    def _counts(self, plan: Plan) -> None:
        ignored = sum(each.ignored for each in plan.refusals)
        self._metrics.scheduler_ignored_pods_count.set(ignored)
        self._metrics.scheduler_unschedulable_pods_count.labels(controller=CONTROLLER).set(len(plan.refusals) - ignored)


def _with_pools(refusal: Refusal, skipped: tuple[RefusalReason, ...]) -> tuple[RefusalReason, ...]:
    """Why a pod is refused. Of pools that could not be asked, whoever left them out knows better than the plan."""
    if refusal.ignored or not skipped:
        return refusal.reasons
    known = {EVERY_POOL, *(each.object for each in skipped)}
    return (*(each for each in refusal.reasons if each.object not in known), *skipped)
