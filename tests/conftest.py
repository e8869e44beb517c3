from __future__ import annotations

from hypothesis import HealthCheck, settings

# Two cores are shared by many processes: an example that waits for its turn is not a slow example.
settings.register_profile(
    "wakeful", deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow], derandomize=False
)
settings.load_profile("wakeful")
