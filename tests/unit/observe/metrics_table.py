"""What dashboards are built on: every metric with its type, its labels and, of a histogram, its buckets."""

from typing import Final, NamedTuple


class Row(NamedTuple):
    """One metric as it has to be."""

    type: str
    labels: frozenset[str] = frozenset()
    buckets: tuple[float, ...] = ()


def _row(kind: str, labels: str = "", buckets: tuple[float, ...] = ()) -> Row:
    return Row(kind, frozenset(labels.split()), buckets)


SECONDS: Final = (
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.25, 1.5, 1.75, 2, 2.5,
    3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60, 120, 150, 300, 450, 600,
)  # fmt: skip
STANDARD: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
MINUTE, HOUR, DAY = 60, 3600, 86400
LIFETIMES: Final = (
    15 * MINUTE, 30 * MINUTE, 45 * MINUTE, HOUR, 2 * HOUR, 4 * HOUR, 6 * HOUR, 8 * HOUR, 10 * HOUR, 12 * HOUR, 16 * HOUR,
    20 * HOUR, DAY, 2 * DAY, 3 * DAY, 5 * DAY, 10 * DAY, 15 * DAY, 20 * DAY, 25 * DAY, 30 * DAY,
)  # fmt: skip
REBOOTS: Final = (10, 20, 40, 80, 160, 320, 640, 1280)
CONDITIONS: Final = (0.5, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192)
SCORES: Final = (0.1, 0.25, 0.33, 0.5, 1, 2, 5, 10)
MODE: Final = "reason nodepool capacity_type consolidation_policy termination_mode"
NODE: Final = "nodepool zone region instance_type arch os capacity_type windows_build node_name phase managed"
DECISION: Final = "decision reason consolidation_type"

KARPENTER: Final = {
    "nodeclaims_created_total": _row("counter", "reason nodepool min_values_relaxed"),
    "nodeclaims_terminated_total": _row("counter", "nodepool capacity_type zone"),
    "nodeclaims_disrupted_total": _row("counter", MODE),
    "nodeclaims_instance_termination_duration_seconds": _row(
        "histogram", "nodepool", tuple(2**power for power in range(11))
    ),
    "nodeclaims_termination_duration_seconds": _row("histogram", "nodepool", tuple(2**power for power in range(12))),
    "nodeclaims_unhealthy_disrupted_total": _row(
        "counter", "condition nodepool capacity_type image_id termination_mode"
    ),
    "nodes_created_total": _row("counter", "nodepool zone"),
    "nodes_terminated_total": _row("counter", "nodepool zone"),
    "nodes_drained_total": _row("counter", "nodepool"),
    "nodes_termination_duration_seconds": _row("summary", "nodepool"),
    "nodes_lifetime_duration_seconds": _row("histogram", "nodepool", LIFETIMES),
    "nodes_reboots_total": _row("counter", "result"),
    "nodes_reboot_duration_seconds": _row("histogram", "result", REBOOTS),
    "nodes_reboot_recovery_duration_seconds": _row("histogram", "", REBOOTS),
    "nodes_allocatable": _row("gauge", f"{NODE} resource_type"),
    "nodes_total_pod_requests": _row("gauge", f"{NODE} resource_type"),
    "nodes_total_pod_limits": _row("gauge", f"{NODE} resource_type"),
    "nodes_total_daemon_requests": _row("gauge", f"{NODE} resource_type"),
    "nodes_total_daemon_limits": _row("gauge", f"{NODE} resource_type"),
    "nodes_system_overhead": _row("gauge", f"{NODE} resource_type"),
    "nodes_current_lifetime_seconds": _row("gauge", NODE),
    "cluster_utilization_percent": _row("gauge", "resource_type"),
    "nodepools_limit": _row("gauge", "resource_type nodepool"),
    "nodepools_usage": _row("gauge", "resource_type nodepool"),
    "nodepools_cost_total": _row("gauge", "nodepool"),
    "nodepools_cost_tracker_errors_total": _row("counter", "nodepool"),
    "nodepools_allowed_disruptions": _row("gauge", "nodepool reason"),
    "nodepools_nodes_consuming_budgets": _row("gauge", "nodepool reason"),
    "pods_state": _row(
        "gauge",
        "name namespace owner node scheduled nodepool zone arch capacity_type instance_type phase ready managed",
    ),
    "pods_startup_duration_seconds": _row("summary"),
    "pods_unstarted_time_seconds": _row("gauge", "name namespace"),
    "pods_bound_duration_seconds": _row("histogram", "dynamic_resources", SECONDS),
    "pods_unbound_time_seconds": _row("gauge", "name namespace dynamic_resources"),
    "pods_provisioning_bound_duration_seconds": _row("histogram", "dynamic_resources", SECONDS),
    "pods_provisioning_unbound_time_seconds": _row("gauge", "name namespace dynamic_resources"),
    "pods_provisioning_startup_duration_seconds": _row("histogram", "", SECONDS),
    "pods_provisioning_unstarted_time_seconds": _row("gauge", "name namespace"),
    "pods_provisioning_scheduling_undecided_time_seconds": _row("gauge", "name namespace"),
    "pods_scheduling_decision_duration_seconds": _row("histogram", "", SECONDS),
    "pods_eviction_requests_total": _row("counter", "code"),
    "pods_drained_total": _row("counter", "reason"),
    "pods_disruption_initiated_total": _row("counter", MODE),
    "pod_deletion_cost_nodes_with_pending_annotation_writes": _row("gauge", "nodepool"),
    "pod_deletion_cost_pod_annotation_writes_total": _row("counter", "result"),
    "scheduler_scheduling_duration_seconds": _row("histogram", "controller", SECONDS),
    "scheduler_queue_depth": _row("gauge", "controller scheduling_id"),
    "scheduler_unfinished_work_seconds": _row("gauge", "controller scheduling_id"),
    "scheduler_ignored_pods_count": _row("gauge"),
    "scheduler_unschedulable_pods_count": _row("gauge", "controller"),
    "scheduler_pending_pods_by_effective_zone_count": _row("gauge", "controller zone"),
    "voluntary_disruption_decision_evaluation_duration_seconds": _row(
        "histogram", "reason consolidation_type", SECONDS
    ),
    "voluntary_disruption_decisions_total": _row("counter", DECISION),
    "voluntary_disruption_decisions_by_nodepool_total": _row("counter", f"nodepool {DECISION}"),
    "voluntary_disruption_terminate_first_decisions_total": _row("counter", "nodepool reason terminate_first_reason"),
    "voluntary_disruption_eligible_nodes": _row("gauge", "reason"),
    "voluntary_disruption_consolidation_timeouts_total": _row("counter", "consolidation_type"),
    "voluntary_disruption_failed_validations_total": _row("counter", "consolidation_type"),
    "voluntary_disruption_queue_failures_total": _row("counter", DECISION),
    "consolidation_score": _row("histogram", "decision nodepool policy", SCORES),
    "consolidation_moves_total": _row("counter", "decision nodepool policy"),
    "cluster_state_node_count": _row("gauge"),
    "cluster_state_synced": _row("gauge"),
    "cluster_state_unsynced_time_seconds": _row("gauge"),
    "cloudprovider_duration_seconds": _row("histogram", "controller method provider", STANDARD),
    "cloudprovider_errors_total": _row("counter", "controller method provider error nodepool"),
    "interruption_received_messages_total": _row("counter", "message_type"),
    "interruption_deleted_messages_total": _row("counter"),
    "interruption_message_queue_duration_seconds": _row("histogram", "", SECONDS),
    "build_info": _row("gauge", "version goversion goarch commit"),
}
"""Without the prefix `karpenter_`. Of the labels of nodes, those that no provider adds."""


def _conditions(prefix: str, more: str, buckets: tuple[float, ...]) -> dict[str, Row]:
    standing = f"namespace name type status reason {more}"
    return {
        f"{prefix}_status_condition_count": _row("gauge", standing),
        f"{prefix}_status_condition_current_status_seconds": _row("gauge", standing),
        f"{prefix}_status_condition_transition_seconds": _row("histogram", f"type status to_status {more}", buckets),
        f"{prefix}_status_condition_transitions_total": _row("counter", f"type status reason {more}"),
        f"{prefix}_termination_current_time_seconds": _row("gauge", f"namespace name {more}"),
        f"{prefix}_termination_duration_seconds": _row("histogram", more, buckets),
    }


OWNED: Final = "karpenter_kwok_sh_kwoknodeclass karpenter_sh_nodepool"
OPERATOR: Final = {
    **_conditions("operator", "group kind", STANDARD),
    **_conditions("operator_nodeclaim", OWNED, CONDITIONS),
    **_conditions("operator_node", f"{OWNED} karpenter_sh_initialized", CONDITIONS),
    **{
        name: row
        for kind in ("nodepool", "capacitybuffer", "kwoknodeclass", "nodeoverlay", "instancetype")
        for name, row in _conditions(f"operator_{kind}", "", CONDITIONS).items()
    },
}
"""The metrics of conditions, by their whole names."""
TABLE: Final = {**{f"karpenter_{name}": row for name, row in KARPENTER.items()}, **OPERATOR}
"""All of them, by their whole names."""
SILENT: Final = frozenset(
    f"karpenter_{name}"
    for name in (
        "consolidation_score",
        "consolidation_moves_total",
        "voluntary_disruption_failed_validations_total",
        "pod_deletion_cost_nodes_with_pending_annotation_writes",
        "pod_deletion_cost_pod_annotation_writes_total",
    )
)
"""Those that nothing is counted in by what the tests here do."""
