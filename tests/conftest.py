"""Settings of the whole suite."""

import os

from hypothesis import HealthCheck, settings
from tests.realcluster import real_cluster

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
