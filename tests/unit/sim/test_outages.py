import pytest

from joiner.cloud.errors import Transient
from joiner.sim.story.outages import CALLS, Outages


@pytest.mark.parametrize("what", sorted(CALLS))
def test_what_is_down_fails_until_it_is_up_again(what: str) -> None:
    outages = Outages()
    outages.begin(what)
    outages.begin(what)
    outages.end(what)
    for call in sorted(CALLS[what]):
        with pytest.raises(Transient):
            outages.before(call, "claim")
    outages.end(what)

    assert all(outages.before(call, "claim") == 0.0 for call in CALLS[what])


def test_other_calls_are_answered() -> None:
    outages = Outages()
    outages.begin("launch")

    assert outages.before("delete", "machine") == 0.0
