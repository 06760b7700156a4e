"""What may be done with a pod."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from joiner.model import podrules
from joiner.model.codec import decode
from joiner.model.pod import Pod

NOW = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
TOLERATES = {"tolerations": [{"key": "karpenter.sh/disrupted", "operator": "Exists"}]}


def ago(**span: int) -> str:
    return (NOW - timedelta(**span)).isoformat()


def pod(
    owner: tuple[str, str] | None = None,
    deleted: str | None = None,
    protect: str | None = None,
    spec: dict[str, Any] | None = None,
    **status: Any,
) -> Pod:
    metadata: dict[str, Any] = {"name": "p", "deletionTimestamp": deleted}
    if owner:
        metadata["ownerReferences"] = [{"apiVersion": owner[0], "kind": owner[1], "name": "o"}]
    if protect:
        metadata["annotations"] = {"karpenter.sh/do-not-disrupt": protect}
    return decode({"metadata": metadata, "spec": spec or {}, "status": status}, Pod)


DAEMON = ("apps/v1", "DaemonSet")
STATEFUL = ("apps/v1", "StatefulSet")
MIRROR = ("v1", "Node")


@pytest.mark.parametrize(
    ("subject", "terminal", "terminating", "active"),
    [
        (pod(phase="Running"), False, False, True),
        (pod(phase="Failed"), True, False, False),
        (pod(phase="Succeeded"), True, False, False),
        (pod(deleted=ago(seconds=1)), False, True, False),
    ],
    ids=["running", "failed", "succeeded", "deleted"],
)
def test_a_pod_is_somewhere_in_its_life(subject: Pod, terminal: bool, terminating: bool, active: bool) -> None:
    assert podrules.is_terminal(subject) is terminal
    assert podrules.is_terminating(subject) is terminating
    assert podrules.is_active(subject) is active


@pytest.mark.parametrize(
    ("subject", "answer"),
    [
        (pod(conditions=[UNSCHEDULABLE]), True),
        (pod(), False),
        (pod(conditions=[{"type": "PodScheduled", "reason": "SchedulingGated"}]), False),
        (pod(conditions=[UNSCHEDULABLE], spec={"nodeName": "n"}), False),
        (pod(conditions=[UNSCHEDULABLE], nominatedNodeName="n"), False),
        (pod(DAEMON, conditions=[UNSCHEDULABLE]), False),
        (pod(MIRROR, conditions=[UNSCHEDULABLE]), False),
        (pod(("apps/v1beta1", "DaemonSet"), conditions=[UNSCHEDULABLE]), True),
    ],
    ids=["waits", "not seen", "gated", "bound", "nominated", "daemon", "mirror", "other version"],
)
def test_provisionable_pods_wait_for_a_node_we_could_bring(subject: Pod, answer: bool) -> None:
    assert podrules.is_provisionable(subject) is answer


@pytest.mark.parametrize(
    ("subject", "answer"),
    [
        (pod(phase="Running"), True),
        (pod(phase="Failed"), False),
        (pod(deleted=ago(seconds=1)), False),
        (pod(STATEFUL, deleted=ago(seconds=1)), True),
        (pod(STATEFUL, phase="Failed"), False),
        (pod(DAEMON), False),
        (pod(MIRROR), False),
    ],
    ids=["running", "failed", "leaving", "leaving stateful", "failed stateful", "daemon", "mirror"],
)
def test_reschedulable_pods_need_another_place(subject: Pod, answer: bool) -> None:
    assert podrules.is_reschedulable(subject) is answer


@pytest.mark.parametrize(
    ("subject", "evictable", "drainable", "waiting"),
    [
        (pod(phase="Running"), True, True, True),
        (pod(DAEMON), True, True, True),
        (pod(MIRROR), False, False, False),
        (pod(spec=TOLERATES), False, False, False),
        (pod(protect="true"), False, True, True),
        (pod(phase="Succeeded"), False, True, False),
        (pod(deleted=ago(seconds=59)), False, True, True),
        (pod(deleted=ago(seconds=60)), False, True, True),
        (pod(deleted=ago(seconds=61)), False, False, False),
    ],
    ids=["running", "daemon", "mirror", "tolerates", "protected", "done", "leaving", "a minute", "stuck"],
)
def test_a_drain_moves_some_and_waits_for_some(subject: Pod, evictable: bool, drainable: bool, waiting: bool) -> None:
    assert podrules.is_evictable(subject, NOW) is evictable
    assert podrules.is_drainable(subject, NOW) is drainable
    assert podrules.is_waiting_eviction(subject, NOW) is waiting


@pytest.mark.parametrize(
    ("subject", "protected"),
    [
        (pod(protect="true"), True),
        (pod(DAEMON, protect="true"), True),
        (pod(protect="false"), False),
        (pod(protect="1h", startTime=ago(minutes=59)), True),
        (pod(protect="1h", startTime=ago(minutes=60)), False),
        (pod(protect="1h"), True),
        (pod(protect="0s"), False),
        (pod(protect="-1h"), False),
        (pod(protect="Never"), False),
        (pod(), False),
    ],
    ids=["true", "daemon", "false", "young", "old", "not started", "zero", "negative", "never", "absent"],
)
def test_the_annotation_protects_for_its_time(subject: Pod, protected: bool) -> None:
    assert podrules.must_not_be_disrupted(subject, NOW) is protected
    assert podrules.is_disruptable(subject, NOW) is not protected


def test_a_pod_that_has_ended_blocks_nothing() -> None:
    assert podrules.is_disruptable(pod(protect="true", phase="Failed"), NOW)


@pytest.mark.parametrize("text", ["false", "yes", "0s", "-5m", "5"])
def test_an_annotation_without_effect_is_explained(text: str) -> None:
    problem = podrules.do_not_disrupt_problem(pod(protect=text))

    assert problem is not None
    assert f"{text!r} has no effect: it may be true, or how long" in problem


def test_a_good_annotation_has_no_problem() -> None:
    assert podrules.do_not_disrupt_problem(pod(protect="30m")) is None
    assert podrules.do_not_disrupt_problem(pod(protect="true")) is None
    assert podrules.do_not_disrupt_problem(pod()) is None


def test_critical_pods_are_known_by_their_class() -> None:
    assert podrules.is_critical(pod(spec={"priorityClassName": "system-node-critical"}))
    assert not podrules.is_critical(pod(spec={"priorityClassName": "high"}))
