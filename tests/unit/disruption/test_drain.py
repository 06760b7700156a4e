"""Whose turn it is to leave a node."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.builders import pod

from joiner.disruption import drain
from joiner.model import labels
from joiner.model.codec import decode
from joiner.model.meta import OwnerReference, replace
from joiner.model.pod import Pod
from joiner.model.storage import VolumeAttachment

NOW = datetime(2030, 1, 1, tzinfo=UTC)
DISRUPTED = {"key": "karpenter.sh/disrupted", "operator": "Exists"}


def minutes(number: float) -> timedelta:
    return timedelta(minutes=number)


def made(name: str, *, daemon: bool = False, mirror: bool = False, **more: Any) -> Pod:
    """A running pod; `deleted` is when it ends, `protected` its do-not-disrupt annotation, `critical` its class."""
    owners = [OwnerReference(api_version="apps/v1", kind="DaemonSet")] if daemon else []
    owners += [OwnerReference(api_version="v1", kind="Node")] if mirror else []
    annotations = {labels.DO_NOT_DISRUPT: more.pop("protected")} if "protected" in more else {}
    deleted, phase = more.pop("deleted", None), more.pop("phase", "Running")
    if more.pop("critical", False):
        more["priorityClassName"] = "system-node-critical"
    found = pod(name, **more)
    metadata = replace(
        found.metadata, owner_references=tuple(owners), annotations=annotations, deletion_timestamp=deleted
    )
    return replace(found, metadata=metadata, status=replace(found.status, phase=phase, start_time=NOW))


def named(pods: tuple[Pod, ...]) -> list[str]:
    return [each.name for each in pods]


TIERS = (
    made("plain"),
    made("daemon", daemon=True),
    made("critical", critical=True),
    made("critical-daemon", daemon=True, critical=True),
)


def test_of_a_tier_the_largest_pods_go_first_so_that_they_find_room() -> None:
    sizes = {"a": ("100m", "1Gi"), "b": ("2", "1Gi"), "c": ("100m", "4Gi"), "d": ("1", "1Gi"), "e": ("2", "1Gi")}
    pods = [made(name, cpu=cpu, memory=memory) for name, (cpu, memory) in sizes.items()]

    assert named(drain.plan(pods, None, NOW).evict) == ["b", "e", "d", "c", "a"]


@pytest.mark.parametrize("gone", range(5), ids=["all there", "one tier gone", "two", "three", "all gone"])
def test_a_tier_goes_when_the_one_before_is_gone(gone: int) -> None:
    left = TIERS[gone:]

    standing = drain.plan(reversed(left), None, NOW)

    assert named(standing.evict) == [each.name for each in left[:1]]
    assert sorted(named(standing.waiting)) == sorted(each.name for each in left)


def test_a_pod_that_is_on_its_way_holds_its_tier() -> None:
    standing = drain.plan([made("plain", deleted=NOW + minutes(1)), made("daemon", daemon=True)], None, NOW)

    assert named(standing.evict) == []
    assert named(standing.waiting) == ["daemon", "plain"]


@pytest.mark.parametrize(
    "left",
    [
        made("done", phase="Succeeded"),
        made("failed", phase="Failed"),
        made("static", mirror=True),
        made("tolerant", tolerations=[DISRUPTED]),
        made("stuck", deleted=NOW - minutes(1.1)),
    ],
    ids=lambda each: str(each.name),
)
def test_nobody_waits_for(left: Pod) -> None:
    assert drain.plan([left], None, NOW).waiting == ()


def test_a_daemon_that_does_not_tolerate_the_taint_is_drained() -> None:
    assert named(drain.plan([made("daemon", daemon=True)], None, NOW).evict) == ["daemon"]


def test_a_protected_pod_is_waited_for_but_not_asked() -> None:
    standing = drain.plan([made("shy", protected="true")], None, NOW)

    assert (named(standing.waiting), named(standing.evict)) == (["shy"], [])
    assert standing.again_at is None


def test_a_pod_that_is_protected_for_a_while_is_looked_at_when_it_is_over() -> None:
    assert drain.plan([made("shy", protected="30m")], None, NOW).again_at == NOW + minutes(30)


@pytest.mark.parametrize(
    ("grace", "at", "forced"),
    [
        (600, -10.1, False),
        (600, -9.9, True),
        (None, -0.51, False),
        (None, -0.49, True),
        (0, -0.1, False),
        (0, 0.1, True),
    ],
)
def test_a_pod_is_forced_when_its_own_grace_no_longer_fits(grace: int | None, at: float, forced: bool) -> None:
    last = made("critical", critical=True, terminationGracePeriodSeconds=grace)

    standing = drain.plan([made("shy", protected="true"), last], NOW, NOW + minutes(at))

    assert ("critical" in named(standing.force)) is forced


@pytest.mark.parametrize(
    ("ends", "now", "forced"),
    [(20, 0, True), (10, 0, False), (5, 0, False), (20, 30, False)],
    ids=["after the deadline", "at the deadline", "before it", "at its end anyway"],
)
def test_a_pod_on_its_way_is_hurried_only_if_it_would_be_late(ends: float, now: float, forced: bool) -> None:
    slow = made("slow", deleted=NOW + minutes(ends), terminationGracePeriodSeconds=3600)

    assert drain.must_be_forced(slow, NOW + minutes(10), NOW + minutes(now)) is forced


def test_a_drain_is_looked_at_when_the_first_pod_must_be_forced() -> None:
    standing = drain.plan([made("a"), made("b", terminationGracePeriodSeconds=300)], NOW + minutes(20), NOW)

    assert standing.again_at is not None
    assert NOW + minutes(15) < standing.again_at < NOW + minutes(15.01)


@pytest.mark.parametrize(("left", "grace"), [(100.7, 100), (1.0, 1), (0.2, 1), (-50.0, 1)])
def test_a_forced_pod_gets_what_is_left_and_never_nothing(left: float, grace: int) -> None:
    assert drain.forced_grace_s(NOW + timedelta(seconds=left), NOW) == grace


def attachment(name: str, volume: str | None) -> VolumeAttachment:
    source = {"persistentVolumeName": volume} if volume else {}
    return decode({"metadata": {"name": name}, "spec": {"nodeName": "n", "source": source}}, VolumeAttachment)


def test_volumes_of_pods_that_stay_are_not_waited_for() -> None:
    staying = made("tolerant", tolerations=[DISRUPTED], claims=["mine"])
    leaving = made("plain", claims=["yours"])
    attachments = [attachment("a", "pv-mine"), attachment("b", "pv-yours"), attachment("c", None)]
    volume_of = {("default", "mine"): "pv-mine", ("default", "yours"): "pv-yours"}

    assert drain.attached(attachments, [staying, leaving], volume_of, NOW) == ("pv-yours",)
