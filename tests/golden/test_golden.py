"""Recordings give the answers they gave when the digests were recorded."""

import pytest
from tests.golden import digests

RECORDED = digests.recorded()


@pytest.mark.parametrize(
    "job",
    [pytest.param(job, id=" ".join(job), marks=pytest.mark.xdist_group(" ".join(job))) for job in digests.short_jobs()],
)
def test_an_answer_is_as_recorded(job: digests.Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(digests.ROOT)
    changed = [name for name, value in digests.answers(job).items() if RECORDED.get(name) != value]

    assert not changed, digests.MEANT


def test_every_command_of_the_documentation_has_a_digest() -> None:
    assert not [line for line in digests.command_lines() if f"command {line}" not in RECORDED]


def test_a_changed_a_new_and_a_lost_answer_are_told() -> None:
    assert digests.differences({"a": "1", "b": "2"}, {"a": "0", "c": "3"}) == ["changed: a", "new: b", "gone: c"]
