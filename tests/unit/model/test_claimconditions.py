"""The deadline on a claim."""

from datetime import UTC, datetime

import pytest

from joiner.model.claimconditions import TERMINATION_TIMESTAMP, deadline, written_deadline
from joiner.model.meta import ObjectMeta
from joiner.model.nodeclaim import NodeClaim

NOON = datetime(2030, 1, 7, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2030-01-07T12:00:00Z", NOON),
        ("2030-01-07T13:00:00+01:00", NOON),
        ("2030-01-07T12:00:00", NOON),
        ("soon", None),
        ("", None),
    ],
    ids=["as we write it", "another zone", "no zone", "words", "nothing"],
)
def test_the_deadline_of_a_claim_is_what_its_annotation_says(text: str, moment: datetime | None) -> None:
    claim = NodeClaim(metadata=ObjectMeta(name="c", annotations={TERMINATION_TIMESTAMP: text}))

    assert deadline(claim) == moment


def test_a_claim_without_the_annotation_has_no_deadline() -> None:
    assert deadline(NodeClaim()) is None


def test_what_is_written_is_read_back() -> None:
    claim = NodeClaim(metadata=ObjectMeta(annotations={TERMINATION_TIMESTAMP: written_deadline(NOON)}))

    assert deadline(claim) == NOON
