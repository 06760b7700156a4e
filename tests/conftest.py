"""Settings of the whole suite."""

from hypothesis import HealthCheck, settings

# The machines are shared and noisy, so no test may fail for being slow; examples are derived from the code, not from luck.
settings.register_profile(
    "joiner", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("joiner")
