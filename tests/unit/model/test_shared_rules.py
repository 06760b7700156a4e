"""Four rules that the planner, the simulated scheduler and the checkers share, against tables from Kubernetes' documentation.

A mistake in one of them is invisible to every checker: both sides would make it. The rows are written by hand from the
pages on taints and tolerations, ports of containers, label selectors and ephemeral volumes.
"""

from typing import Any

import pytest

from joiner.model.pod import ClaimVolumeSource, ContainerPort, EphemeralVolumeSource, Volume
from joiner.model.selector import LabelExpression, LabelSelector
from joiner.model.taints import Taint, Toleration

TAINT = Taint(key="team", value="data", effect="NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        pytest.param({"key": "team", "operator": "Equal", "value": "data", "effect": "NoSchedule"}, True, id="equal"),
        pytest.param({"key": "team", "value": "data", "effect": "NoSchedule"}, True, id="operator-defaults-to-equal"),
        pytest.param({"key": "team", "operator": "", "value": "data"}, True, id="empty-operator-is-equal"),
        pytest.param({"key": "team", "operator": "Equal", "value": "web", "effect": "NoSchedule"}, False, id="value"),
        pytest.param({"key": "team", "operator": "Equal", "effect": "NoSchedule"}, False, id="equal-without-value"),
        pytest.param({"key": "crew", "operator": "Equal", "value": "data"}, False, id="equal-key"),
        pytest.param({"key": "team", "operator": "Equal", "value": "data", "effect": "NoExecute"}, False, id="effect"),
        pytest.param({"key": "team", "operator": "Equal", "value": "data"}, True, id="empty-effect-is-every-effect"),
        pytest.param({"key": "team", "operator": "Exists", "effect": "NoSchedule"}, True, id="exists"),
        pytest.param({"key": "crew", "operator": "Exists", "effect": "NoSchedule"}, False, id="exists-key"),
        pytest.param({"key": "team", "operator": "Exists", "effect": "NoExecute"}, False, id="exists-effect"),
        pytest.param({"operator": "Exists"}, True, id="exists-without-key-is-everything"),
        pytest.param({"operator": "Exists", "effect": "NoExecute"}, False, id="every-key-of-another-effect"),
        pytest.param({"key": "Team", "operator": "Exists"}, False, id="keys-differ-by-case"),
        pytest.param({"key": "team", "operator": "Near", "value": "data"}, False, id="unknown-operator"),
        pytest.param({"key": "team", "operator": "Exists", "toleration_seconds": 0}, True, id="seconds-do-not-matter"),
    ],
)
def test_a_toleration_matches_a_taint(toleration: dict[str, Any], tolerated: bool) -> None:
    assert Toleration(**toleration).tolerates(TAINT) is tolerated


@pytest.mark.parametrize(
    ("one", "other", "conflict"),
    [
        pytest.param((80, "", "TCP"), (80, "", "TCP"), True, id="same"),
        pytest.param((80, "", "TCP"), (81, "", "TCP"), False, id="another-port"),
        pytest.param((80, "", "TCP"), (80, "", "UDP"), False, id="another-protocol"),
        pytest.param((80, "", "SCTP"), (80, "", "SCTP"), True, id="sctp"),
        pytest.param((0, "", "TCP"), (0, "", "TCP"), False, id="no-host-port"),
        pytest.param((80, "", "TCP"), (0, "", "TCP"), False, id="only-one-host-port"),
        pytest.param((80, "10.0.0.1", "TCP"), (80, "10.0.0.1", "TCP"), True, id="same-address"),
        pytest.param((80, "10.0.0.1", "TCP"), (80, "10.0.0.2", "TCP"), False, id="two-addresses"),
        pytest.param((80, "10.0.0.1", "TCP"), (80, "", "TCP"), True, id="no-address-is-every-address"),
        pytest.param((80, "10.0.0.1", "TCP"), (80, "0.0.0.0", "TCP"), True, id="all-ipv4-addresses"),
        pytest.param((80, "10.0.0.1", "TCP"), (80, "::", "TCP"), True, id="all-ipv6-addresses"),
        pytest.param((80, "0.0.0.0", "TCP"), (80, "", "TCP"), True, id="two-ways-to-say-all"),
        pytest.param((80, "0.0.0.0", "TCP"), (80, "10.0.0.1", "UDP"), False, id="all-addresses-another-protocol"),
        pytest.param((80, "0.0.0.0", "TCP"), (81, "10.0.0.1", "TCP"), False, id="all-addresses-another-port"),
    ],
)
def test_two_host_ports_conflict(one: tuple[int, str, str], other: tuple[int, str, str], conflict: bool) -> None:
    left, right = (
        ContainerPort(container_port=8080 + place, host_port=port, host_ip=address, protocol=protocol)
        for place, (port, address, protocol) in enumerate((one, other))
    )

    assert left.conflicts(right) is conflict
    assert right.conflicts(left) is conflict


LABELS = {"app": "web", "tier": "front", "empty": ""}


@pytest.mark.parametrize(
    ("wanted", "expressions", "chosen"),
    [
        pytest.param({}, [], True, id="empty-selector-is-everything"),
        pytest.param({"app": "web"}, [], True, id="label"),
        pytest.param({"app": "db"}, [], False, id="another-value"),
        pytest.param({"zone": "a"}, [], False, id="absent-label"),
        pytest.param({"zone": ""}, [], False, id="absent-is-not-empty"),
        pytest.param({"empty": ""}, [], True, id="empty-value"),
        pytest.param({"app": "web", "tier": "front"}, [], True, id="both-labels"),
        pytest.param({"app": "web", "tier": "back"}, [], False, id="one-of-two-labels"),
        pytest.param({}, [("app", "In", "db", "web")], True, id="in"),
        pytest.param({}, [("app", "In", "db")], False, id="in-others"),
        pytest.param({}, [("zone", "In", "a")], False, id="in-absent"),
        pytest.param({}, [("app", "NotIn", "db")], True, id="not-in"),
        pytest.param({}, [("app", "NotIn", "db", "web")], False, id="not-in-but-is"),
        pytest.param({}, [("zone", "NotIn", "a")], True, id="not-in-absent"),
        pytest.param({}, [("empty", "Exists")], True, id="exists"),
        pytest.param({}, [("zone", "Exists")], False, id="exists-absent"),
        pytest.param({}, [("zone", "DoesNotExist")], True, id="does-not-exist"),
        pytest.param({}, [("empty", "DoesNotExist")], False, id="does-not-exist-but-does"),
        pytest.param({}, [("app", "Exists"), ("zone", "Exists")], False, id="one-of-two-expressions"),
        pytest.param({"app": "web"}, [("tier", "In", "back")], False, id="label-but-not-expression"),
        pytest.param({"app": "db"}, [("tier", "In", "front")], False, id="expression-but-not-label"),
    ],
)
def test_a_selector_chooses_labels(wanted: dict[str, str], expressions: list[tuple[str, ...]], chosen: bool) -> None:
    conditions = tuple(
        LabelExpression(key=key, operator=operator, values=tuple(values))  # type: ignore[arg-type]
        for key, operator, *values in expressions
    )

    assert LabelSelector(match_labels=wanted, match_expressions=conditions).matches(LABELS) is chosen


@pytest.mark.parametrize(
    ("pod", "volume", "claim", "ephemeral", "name"),
    [
        pytest.param("web", "data", "shared", False, "shared", id="claim"),
        pytest.param("web-0", "data", "data-web-0", False, "data-web-0", id="claim-of-a-stateful-set"),
        pytest.param("other", "data", "shared", False, "shared", id="claim-of-two-pods"),
        pytest.param("web", "other", "shared", False, "shared", id="volume-is-not-the-claim"),
        pytest.param("web", "web", "web", False, "web", id="all-names-alike"),
        pytest.param("web", "data", None, True, "web-data", id="ephemeral"),
        pytest.param("web-0", "data", None, True, "web-0-data", id="ephemeral-of-a-numbered-pod"),
        pytest.param("web", "data-0", None, True, "web-data-0", id="ephemeral-numbered-volume"),
        pytest.param("pod-a", "scratch", None, True, "pod-a-scratch", id="ephemeral-of-the-documentation"),
        pytest.param("pod", "a-scratch", None, True, "pod-a-scratch", id="ephemeral-of-the-same-name"),
        pytest.param("web", "data", None, False, None, id="neither"),
        pytest.param("web", "", None, False, None, id="neither-without-name"),
    ],
)
def test_a_volume_names_its_claim(pod: str, volume: str, claim: str | None, ephemeral: bool, name: str | None) -> None:
    source = None if claim is None else ClaimVolumeSource(claim_name=claim)
    found = Volume(
        name=volume, persistent_volume_claim=source, ephemeral=EphemeralVolumeSource() if ephemeral else None
    )

    assert found.claim_name(pod) == name
