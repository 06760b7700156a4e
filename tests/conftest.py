"""Settings of the whole suite."""

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from tests import awsmodels, writes
from tests.realcluster import real_cluster

from joiner.sim.cloud.ec2.face import Ec2Face

__all__ = ["real_cluster"]

# Machines may be slow, so no test may fail for being slow. Examples are derived from the code, so that a test
# run is repeatable; `make explore` draws new ones from a seed.
for name, derandomize in (("joiner", True), ("explore", False)):
    settings.register_profile(
        name,
        deadline=None,
        derandomize=derandomize,
        database=None,
        suppress_health_check=[HealthCheck.too_slow],
        print_blob=True,
    )
settings.load_profile("explore" if os.environ.get("JOINER_EXPLORE") else "joiner")

pytest.MonkeyPatch().setattr(Ec2Face, "judge", staticmethod(awsmodels.judge))
writes.watch(pytest.MonkeyPatch())


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Cases that share a control plane run one after the other: they would meet each other's nodes otherwise."""
    if config.getoption("loadgroup", False):
        apart = [each for each in items if each.get_closest_marker("xdist_group") and "@" not in each.nodeid]
        assert not apart, f"pytest-xdist does not keep {apart[0].nodeid} and its group together with this pytest"


@pytest.fixture(autouse=True)
def requests_are_such_as_aws_defines() -> Iterator[None]:
    """A request that AWS would not understand fails the test, even if a controller takes the refusal and goes on."""
    awsmodels.FOUND.clear()
    yield
    assert not awsmodels.FOUND, awsmodels.FOUND


@pytest.fixture(autouse=True)
def writes_of_joiner_undo_nothing_and_hit_no_other_object() -> Iterator[None]:
    """Whatever a test is about: its controllers lock what they write whole, and name what they delete by UID."""
    writes.FOUND.clear()
    yield
    assert not writes.FOUND, writes.FOUND
