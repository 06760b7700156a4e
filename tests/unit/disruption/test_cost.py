"""What it costs to disturb pods."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.builders import pod

from joiner.disruption.cost import DELETION_COST, DISRUPTION_COST, disturbance, eviction_cost, lifetime_left
from joiner.model.codec import decode
from joiner.model.meta import replace
from joiner.model.nodeclaim import NodeClaim
from joiner.model.pod import Pod

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def annotated(**more: Any) -> Pod:
    made = pod(priority=more.pop("priority", None))
    names = {"ours": DISRUPTION_COST, "deletion": DELETION_COST}
    return replace(made, metadata=replace(made.metadata, annotations={names[key]: text for key, text in more.items()}))


@pytest.mark.parametrize(
    ("given", "cost"),
    [
        pytest.param({}, 1.0, id="an ordinary pod"),
        pytest.param({"deletion": str(2**27)}, 2.0, id="deletion cost"),
        pytest.param({"ours": str(2**27)}, 2.0, id="disruption cost"),
        pytest.param({"ours": "0", "deletion": str(2**27)}, 1.0, id="ours comes first"),
        pytest.param({"ours": "much", "deletion": str(2**27)}, 1.0, id="a bad value does not fall through"),
        pytest.param({"deletion": "1.5"}, 1.0, id="a decimal"),
        pytest.param({"deletion": str(2**31)}, 1.0, id="beyond 32 bits"),
        pytest.param({"priority": 2**25}, 2.0, id="priority"),
        pytest.param({"priority": 2_000_000_000}, 10.0, id="never more than ten"),
        pytest.param({"priority": -(2**31)}, -10.0, id="never less than minus ten"),
    ],
)
def test_a_pod_costs_by_its_own_word_and_its_priority(given: dict[str, Any], cost: float) -> None:
    assert eviction_cost(annotated(**given)) == cost


def test_a_deletion_cost_that_we_write_ourselves_says_nothing() -> None:
    assert eviction_cost(annotated(deletion=str(2**27)), deletion_cost_is_ours=True) == 1.0


def claim(expire: str) -> NodeClaim:
    made = decode({"metadata": {"name": "c"}, "spec": {"expireAfter": expire}}, NodeClaim)
    return replace(made, metadata=replace(made.metadata, creation_timestamp=NOW))


@pytest.mark.parametrize(
    ("expire", "hours", "left"), [("Never", 9, 1.0), ("4h", 1, 0.75), ("4h", 5, 0.0), ("4h", -1, 1.0)]
)
def test_a_node_that_expires_soon_is_cheap_to_remove(expire: str, hours: int, left: float) -> None:
    assert lifetime_left(claim(expire), NOW + timedelta(hours=hours)) == left
    assert disturbance((pod(), pod()), claim(expire), NOW + timedelta(hours=hours)) == 2 * left
