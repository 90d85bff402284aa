"""Settings that hold for every test."""

from hypothesis import HealthCheck, Phase, settings

# The machine is shared: a slow example says nothing. Seeds are fixed so that CI repeats itself;
# `pytest --hypothesis-profile=explore` looks further, and shrinks what it finds.
settings.register_profile(
    "ci",
    deadline=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("explore", deadline=None, max_examples=2000)
settings.load_profile("ci")
