"""How the removal of a claim is counted."""

import pytest
from tests.builders import node_pool

from joiner.model import labels
from joiner.model.duration import Duration
from joiner.model.meta import ObjectMeta
from joiner.model.nodeclaim import NodeClaim, NodeClaimSpec
from joiner.model.nodepool import NodePool
from joiner.observe.claims import count_disrupted, snake, termination_mode
from joiner.observe.metrics import Metrics


@pytest.mark.parametrize(
    ("period", "mode"), [(None, "graceful"), ("0s", "forceful"), ("10m", "eventual")], ids=["none", "zero", "some"]
)
def test_the_mode_follows_from_the_grace_period(period: str | None, mode: str) -> None:
    spec = NodeClaimSpec(termination_grace_period=None if period is None else Duration.parse(period))

    assert termination_mode(NodeClaim(spec=spec)) == mode


@pytest.mark.parametrize(
    ("reason", "consolidating", "policy"),
    [("expired", None, ""), ("underutilized", node_pool(), "when_empty_or_underutilized")],
    ids=["old", "consolidated"],
)
def test_a_claim_that_was_removed_is_counted_with_what_it_was(
    reason: str, consolidating: NodePool | None, policy: str
) -> None:
    metrics = Metrics()
    named = {labels.NODEPOOL: "default", labels.CAPACITY_TYPE: labels.SPOT}
    count_disrupted(metrics, NodeClaim(metadata=ObjectMeta(labels=named)), reason, consolidating=consolidating)

    sample = next(
        s for s in next(iter(metrics.nodeclaims_disrupted_total.collect())).samples if s.name.endswith("_total")
    )
    assert (sample.value, sample.labels) == (
        1.0,
        {
            "reason": reason,
            "nodepool": "default",
            "capacity_type": "spot",
            "consolidation_policy": policy,
            "termination_mode": "graceful",
        },
    )


@pytest.mark.parametrize(
    ("name", "written"),
    [("Ready", "ready"), ("KWOKUnhealthy", "kwok_unhealthy"), ("KWOKRebootRequired", "kwok_reboot_required")],
)
def test_names_are_written_in_small_letters(name: str, written: str) -> None:
    assert snake(name) == written
