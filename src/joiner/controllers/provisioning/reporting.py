"""Reports a plan: events on pods and pools, and metrics. It writes no state."""

from collections import Counter
from collections.abc import Iterable
from datetime import timedelta
from typing import Any, Final

from joiner.controllers.decisionlog import some
from joiner.controllers.provisioning.claimwriter import WriteOutcome
from joiner.controllers.provisioning.pools import nothing_to_buy
from joiner.controllers.shared import Shared
from joiner.model.codec import encode
from joiner.model.nodeclaim import NodeClaim
from joiner.model.pod import Pod
from joiner.scheduling.plan import Plan, PlannedClaim, Refusal, RefusalReason
from joiner.scheduling.pods.effectivezone import effective_zone
from joiner.scheduling.pods.volumetopology import VolumeIndex
from joiner.scheduling.problem import Problem
from joiner.scheduling.report.refusal import EVERY_POOL
from joiner.state.pods import declines_us
from joiner.state.virtualpods import is_virtual

CONTROLLER: Final = "provisioner"
CAUSES_LOGGED: Final = 20
"""How many different reasons why pods have no place are logged for one plan."""


def real_pods(question: Problem) -> dict[str, Pod]:
    """The pods of a problem that are more than room to be kept, by their name in the plan."""
    return {pod.key: pod for pod in question.pods if not is_virtual(pod)}


class PlanReporter:
    """Publishes what was found and what was decided; nothing about virtual pods."""

    def __init__(self, shared: Shared) -> None:
        self._recorder, self._metrics = shared.recorder, shared.metrics
        self._log = shared.log.having(controller=CONTROLLER)
        self._zones: frozenset[str] = frozenset()

    def question(self, question: Problem) -> None:
        """Which pools can buy nothing, and how many pods wait for which zone."""
        for each in question.pools:
            if not each.catalog.eligible:
                self._recorder.publish(each.pool, "NoCompatibleInstanceTypes", nothing_to_buy(each.catalog))
        volumes = VolumeIndex(question.storage, question.vocabulary)
        known = real_pods(question)
        if known:
            self._log.info("found provisionable pod(s)", Pods=some(list(known)), pods=len(known))
        pods = known.values()
        zones = Counter(effective_zone(pod, volumes, question.vocabulary) for pod in pods)
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

    def plan(
        self, plan: Plan, question: Problem, skipped: tuple[RefusalReason, ...], waited: Iterable[timedelta]
    ) -> None:
        """Which pods go where and which do not; and how long those had waited that no plan had tried before."""
        known = real_pods(question)
        if plan.claims:
            served = sum(len(each.pods) for each in plan.claims)
            self._log.info("computed new nodeclaim(s) to fit pod(s)", nodeclaims=len(plan.claims), pods=served)
        for wait in waited:
            self._metrics.pods_scheduling_decision_duration_seconds.observe(wait.total_seconds())
        for name, pods in plan.placements.items():
            for pod in (known[key] for key in pods if key in known):
                self._placed(pod, name)
        causes: dict[str, list[str]] = {}
        for refusal in plan.refusals:
            if refusal.pod in known:
                message = self._refused(known[refusal.pod], _with_pools(refusal, skipped))
                causes.setdefault(message, []).append(refusal.pod)
        for message in list(causes)[:CAUSES_LOGGED]:
            if message:
                self._log.error("could not schedule pod(s)", Pods=some(causes[message]), error=message)
        self._counts(plan)

    def outcomes(self, outcomes: tuple[WriteOutcome, ...], plan: Plan, question: Problem) -> None:
        """What became of the claims of a plan."""
        known = real_pods(question)
        for outcome, planned in zip(outcomes, plan.claims, strict=True):
            if outcome.claim is not None:
                self._log.info("created nodeclaim", **_created(outcome.claim, planned))
            for pod in (known[key] for key in planned.pods if key in known):
                if outcome.claim is not None:
                    self._placed(pod, outcome.claim.name)
                elif outcome.problem:
                    self._recorder.publish(pod, "FailedScheduling", outcome.problem)

    def _placed(self, pod: Pod, name: str) -> None:
        self._recorder.publish(pod, "Nominated", f"Pod should schedule on {name}")

    def _refused(self, pod: Pod, reasons: Iterable[RefusalReason]) -> str:
        """Why, in one sentence; nothing for a pod that does not want our nodes."""
        if declines_us(pod):
            return ""
        message = "; ".join(f"{each.object}: {each.message}" for each in reasons)
        self._recorder.publish(pod, "FailedScheduling", f"Failed to schedule pod, {message}")
        return message

    def _counts(self, plan: Plan) -> None:
        ignored = sum(each.ignored for each in plan.refusals)
        self._metrics.scheduler_ignored_pods_count.set(ignored)
        self._metrics.scheduler_unschedulable_pods_count.labels(controller=CONTROLLER).set(len(plan.refusals) - ignored)


def _created(claim: NodeClaim, planned: PlannedClaim) -> dict[str, Any]:
    types = list(dict.fromkeys(option.name for option in planned.options))
    return {
        "NodePool": {"name": planned.nodepool},
        "NodeClaim": {"name": claim.name},
        "requests": encode(claim.spec.resources).get("requests", {}),
        "instance-types": some(types),
        "pods": len(planned.pods),
    }


def _with_pools(refusal: Refusal, skipped: tuple[RefusalReason, ...]) -> tuple[RefusalReason, ...]:
    """Why a pod is refused. Of pools that could not be asked, the reasons for leaving them out say more than the plan."""
    if refusal.ignored or not skipped:
        return refusal.reasons
    known = {EVERY_POOL, *(each.object for each in skipped)}
    return (*(each for each in refusal.reasons if each.object not in known), *skipped)
