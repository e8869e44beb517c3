from __future__ import annotations

from hypothesis import HealthCheck, settings

# The same examples in every run: a failure in a pipeline can be repeated, and an example that waits for its turn is not slow.
settings.register_profile(
    "wakeful", deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
settings.load_profile("wakeful")
