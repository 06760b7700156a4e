"""The metrics that controllers count as they work. Names and labels are Karpenter's: dashboards keep working.

What can be read off the state of the cluster (allocatable, usage, pods' phases) is computed when it is scraped.
"""

from collections.abc import Iterable
from typing import Final

from prometheus_client import CollectorRegistry

from joiner.clock import Clock
from joiner.observe.declare import CALLS, Families, Family, doubling

REBOOT_SECONDS: Final = doubling(10.0, 8)
SCORES: Final = (0.1, 0.25, 0.33, 0.5, 1.0, 2.0, 5.0, 10.0)
LIFETIMES: Final = (
    *(60.0 * minutes for minutes in (15, 30, 45)),
    *(3600.0 * hours for hours in (1, 2, 4, 6, 8, 10, 12, 16, 20)),
    *(86_400.0 * days for days in (1, 2, 3, 5, 10, 15, 20, 25, 30)),
)
"""How old nodes become: a quarter of an hour to a month."""
NOT_YET: Final[dict[str, str]] = {}
"""Metrics that exist and that nothing counts yet, and what has to be built before something does."""
_MODE: Final = ("nodepool", "capacity_type", "consolidation_policy", "termination_mode")


class ClaimMetrics:
    """Claims and nodes: how many came and went, and how long it took."""

    def __init__(self, make: Families) -> None:
        self.nodeclaims_created_total = make.counter(
            "nodeclaims_created_total", "Claims that were written.", "reason", "nodepool", "min_values_relaxed"
        )
        self.nodeclaims_terminated_total = make.counter(
            "nodeclaims_terminated_total", "Claims that are gone.", "nodepool", "capacity_type", "zone"
        )
        self.nodeclaims_disrupted_total = make.counter(
            "nodeclaims_disrupted_total", "Claims that were decided to be removed.", "reason", *_MODE
        )
        self.nodeclaims_instance_termination_duration_seconds = make.histogram(
            "nodeclaims_instance_termination_duration_seconds",
            "How long machines took to end.",
            "nodepool",
            buckets=doubling(1.0, 11),
        )
        self.nodeclaims_termination_duration_seconds = make.histogram(
            "nodeclaims_termination_duration_seconds",
            "How long claims took from deletion to being gone.",
            "nodepool",
            buckets=doubling(1.0, 12),
        )
        self.nodeclaims_unhealthy_disrupted_total = make.counter(
            "nodeclaims_unhealthy_disrupted_total",
            "Claims that were removed because their node was broken.",
            "condition", "nodepool", "capacity_type", "image_id", "termination_mode",
        )  # fmt: skip
        self.nodes_created_total = make.counter("nodes_created_total", "Nodes that joined.", "nodepool", "zone")
        self.nodes_terminated_total = make.counter("nodes_terminated_total", "Nodes that left.", "nodepool", "zone")
        self.nodes_drained_total = make.counter("nodes_drained_total", "Nodes that were drained.", "nodepool")
        self.nodes_termination_duration_seconds = make.summary(
            "nodes_termination_duration_seconds", "How long nodes took from deletion to being gone.", "nodepool"
        )
        self.nodes_lifetime_duration_seconds = make.histogram(
            "nodes_lifetime_duration_seconds", "How old nodes became.", "nodepool", buckets=LIFETIMES
        )
        self.nodes_reboots_total = make.counter("nodes_reboots_total", "Nodes that were restarted.", "result")
        self.nodes_reboot_duration_seconds = make.histogram(
            "nodes_reboot_duration_seconds", "How long restarts took.", "result", buckets=REBOOT_SECONDS
        )
        self.nodes_reboot_recovery_duration_seconds = make.histogram(
            "nodes_reboot_recovery_duration_seconds", "How long nodes took to come back.", buckets=REBOOT_SECONDS
        )


class PodMetrics:
    """Pods: how long they waited, and how they left."""

    def __init__(self, make: Families) -> None:
        self.pods_startup_duration_seconds = make.summary(
            "pods_startup_duration_seconds", "From a pod's creation until it was ready."
        )
        self.pods_bound_duration_seconds = make.histogram(
            "pods_bound_duration_seconds", "From a pod's creation until it had a node.", "dynamic_resources"
        )
        self.pods_provisioning_bound_duration_seconds = make.histogram(
            "pods_provisioning_bound_duration_seconds",
            "From the first plan with a place for a pod until it had a node.",
            "dynamic_resources",
        )
        self.pods_provisioning_startup_duration_seconds = make.histogram(
            "pods_provisioning_startup_duration_seconds",
            "From the first plan with a place for a pod until it was ready.",
        )
        self.pods_scheduling_decision_duration_seconds = make.histogram(
            "pods_scheduling_decision_duration_seconds", "From first seeing a pod until it was first planned for."
        )
        self.pods_eviction_requests_total = make.counter(
            "pods_eviction_requests_total", "Evictions that were asked for.", "code"
        )
        self.pods_drained_total = make.counter("pods_drained_total", "Pods that were evicted.", "reason")
        self.pods_disruption_initiated_total = make.counter(
            "pods_disruption_initiated_total", "Pods whose node was decided to be removed.", "reason", *_MODE
        )
        self.pod_deletion_cost_nodes_with_pending_annotation_writes = make.gauge(
            "pod_deletion_cost_nodes_with_pending_annotation_writes",
            "Nodes whose pods' costs are not written.",
            "nodepool",
        )
        self.pod_deletion_cost_pod_annotation_writes_total = make.counter(
            "pod_deletion_cost_pod_annotation_writes_total", "Deletion costs that were written to pods.", "result"
        )


class SchedulerMetrics:
    """Planning."""

    def __init__(self, make: Families) -> None:
        self.scheduler_scheduling_duration_seconds = make.histogram(
            "scheduler_scheduling_duration_seconds", "How long plans took.", "controller"
        )
        self.scheduler_queue_depth = make.gauge(
            "scheduler_queue_depth", "Pods that wait for a plan.", "controller", "scheduling_id"
        )
        self.scheduler_unfinished_work_seconds = make.gauge(
            "scheduler_unfinished_work_seconds", "How long the plan in work has taken.", "controller", "scheduling_id"
        )
        self.scheduler_ignored_pods_count = make.gauge(
            "scheduler_ignored_pods_count", "Pods that are not for us or cannot be understood."
        )
        self.scheduler_unschedulable_pods_count = make.gauge(
            "scheduler_unschedulable_pods_count", "Pods that the last plan found no place for.", "controller"
        )
        self.scheduler_pending_pods_by_effective_zone_count = make.gauge(
            "scheduler_pending_pods_by_effective_zone_count",
            "Pending pods by the zone they can run in: one name, flexible, or none.",
            "controller",
            "zone",
        )


class DisruptionMetrics:
    """Removing nodes for a better world."""

    def __init__(self, make: Families) -> None:
        decision = ("decision", "reason", "consolidation_type")
        name = "voluntary_disruption_"
        self.voluntary_disruption_decision_evaluation_duration_seconds = make.histogram(
            f"{name}decision_evaluation_duration_seconds", "How long decisions took.", "reason", "consolidation_type"
        )
        self.voluntary_disruption_decisions_total = make.counter(f"{name}decisions_total", "Decisions.", *decision)
        self.voluntary_disruption_decisions_by_nodepool_total = make.counter(
            f"{name}decisions_by_nodepool_total", "Decisions, by pool.", "nodepool", *decision
        )
        self.voluntary_disruption_terminate_first_decisions_total = make.counter(
            f"{name}terminate_first_decisions_total",
            "Decisions to remove a node before its replacement is there.",
            "nodepool",
            "reason",
            "terminate_first_reason",
        )
        self.voluntary_disruption_eligible_nodes = make.gauge(
            f"{name}eligible_nodes", "Nodes that could be removed.", "reason"
        )
        self.voluntary_disruption_consolidation_timeouts_total = make.counter(
            f"{name}consolidation_timeouts_total",
            "Searches that ran out of questions to the planner and go on in the next pass.",
            "consolidation_type",
        )
        for searching in ("multi", "single"):  # there from the start, so that the first one shows as an increase
            self.voluntary_disruption_consolidation_timeouts_total.labels(consolidation_type=searching)
        self.voluntary_disruption_failed_validations_total = make.counter(
            f"{name}failed_validations_total", "Decisions that did not hold at the second look.", "consolidation_type"
        )
        self.voluntary_disruption_queue_failures_total = make.counter(
            f"{name}queue_failures_total", "Decisions that could not be carried out.", *decision
        )
        self.consolidation_score = make.histogram(
            "consolidation_score", "Scores of moves.", "decision", "nodepool", "policy", buckets=SCORES
        )
        self.consolidation_moves_total = make.counter(
            "consolidation_moves_total", "Moves that were judged.", "decision", "nodepool", "policy"
        )


class CloudMetrics:
    """The provider, and the mirror of the cluster."""

    def __init__(self, make: Families) -> None:
        self.cloudprovider_duration_seconds = make.histogram(
            "cloudprovider_duration_seconds",
            "How long the provider took.",
            "controller", "method", "provider",
            buckets=CALLS,
        )  # fmt: skip
        self.cloudprovider_errors_total = make.counter(
            "cloudprovider_errors_total",
            "How often the provider failed.",
            "controller", "method", "provider", "error", "nodepool",
        )  # fmt: skip
        self.interruption_received_messages_total = make.counter(
            "interruption_received_messages_total", "Interruption notices that were received.", "message_type"
        )
        self.interruption_deleted_messages_total = make.counter(
            "interruption_deleted_messages_total", "Interruption notices that were handled and acknowledged."
        )
        self.interruption_message_queue_duration_seconds = make.histogram(
            "interruption_message_queue_duration_seconds",
            "From the sending of an interruption notice until it was handled.",
        )
        self.build_info = make.gauge("build_info", "What is running.", "version", "goversion", "goarch", "commit")
        self.reconcile_errors_total = make.counter(
            "reconcile_errors_total", "Reconciles that failed and are tried again.", "controller", "error"
        )


class Metrics(ClaimMetrics, PodMetrics, SchedulerMetrics, DisruptionMetrics, CloudMetrics):
    """Everything that is counted, over one registry."""

    def __init__(self, clock: Clock | None = None) -> None:
        """Summaries forget what is old by that clock."""
        self.registry = CollectorRegistry()
        make = Families(self.registry, clock)
        for part in (ClaimMetrics, PodMetrics, SchedulerMetrics, DisruptionMetrics, CloudMetrics):
            part.__init__(self, make)
        self.families: Iterable[Family] = tuple(make.made)
