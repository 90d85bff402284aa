"""What the comparison reads off the metrics page."""

from testbed.bench import longest_slice


def test_the_longest_slice_is_the_first_bucket_that_holds_all():
    def bucket(owner, bound):
        return f'k8s_scheduler_loop_slice_seconds_bucket{{le="{bound}",owner="{owner}"}}'

    metrics = {
        bucket("core", "0.01"): 5.0,
        bucket("core", "0.02"): 7.0,
        bucket("core", "+Inf"): 7.0,
        bucket("timers", "0.01"): 3.0,
        bucket("timers", "+Inf"): 3.0,
        "something_else": 1.0,
    }
    assert longest_slice(metrics) == ("core", 0.02)
