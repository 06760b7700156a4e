"""How long pods of a workload were missing."""

from joiner.sim.story.report.missingpods import Missing, MissingPods


def counted(*looks: tuple[float, int, int], until: float) -> list[tuple[int, float, float, int, float]]:
    """Looks are (moment, ready, wanted)."""
    pods = MissingPods()
    for now, ready, wanted in looks:
        pods.look("web", ready=ready, wanted=wanted, now=now)
    return [(m.times, m.seconds, m.longest, m.most, m.pod_seconds) for m in pods.report(until)]


def test_a_workload_that_starts_or_grows_misses_nothing() -> None:
    assert counted((0, 0, 3), (50, 1, 3), (60, 3, 3), (100, 3, 9), (160, 9, 9), until=200) == []


def test_a_pod_that_had_run_is_missing_until_another_runs() -> None:
    assert counted((0, 0, 3), (10, 3, 3), (100, 2, 3), (147, 3, 3), until=200) == [(1, 47, 47, 1, 47)]


def test_several_at_once_count_each_and_together() -> None:
    looks = ((0, 3, 3), (100, 2, 3), (110, 1, 3), (130, 2, 3), (140, 3, 3), (200, 2, 3), (205, 3, 3))

    assert counted(*looks, until=300) == [(2, 45, 40, 2, 10 + 40 + 10 + 5)]


def test_a_workload_that_shrinks_misses_nothing() -> None:
    assert counted((0, 5, 5), (100, 5, 2), (101, 4, 2), (102, 2, 2), until=200) == []


def test_what_is_still_missing_at_the_end_counts_until_then() -> None:
    assert counted((0, 2, 2), (100, 0, 2), until=160) == [(1, 60, 60, 2, 120)]


def test_a_report_is_by_name() -> None:
    pods = MissingPods()
    for name in ("b", "a", "c"):
        pods.look(name, ready=1, wanted=1, now=0)
    for name in ("b", "a"):
        pods.look(name, ready=0, wanted=1, now=1)

    assert [each.workload for each in pods.report(5)] == ["a", "b"]
    assert pods.report(5)[0] == Missing(workload="a", times=1, seconds=4, longest=4, most=1, pod_seconds=4)
