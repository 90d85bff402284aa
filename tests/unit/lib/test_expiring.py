from k8s_scheduler.lib.expiring import ExpiringCache
from tests.fakes.clock import FakeClock


def test_a_value_is_good_for_its_time_and_not_longer():
    clock = FakeClock()
    cache = ExpiringCache(size=3, clock=clock)
    cache.put("a", 1, seconds=10)
    cache.put("b", 2, seconds=5)
    clock.advance(5)
    assert (cache.get("a"), cache.get("b")) == (1, None)
    assert len(cache) == 1
    clock.advance(5)
    assert cache.get("a") is None


def test_no_time_keeps_nothing():
    cache = ExpiringCache(size=3, clock=FakeClock())
    cache.put("a", 1, seconds=0)
    assert (cache.get("a"), len(cache)) == (None, 0)


def test_it_never_grows_past_its_size_and_what_is_used_stays():
    cache = ExpiringCache(size=2, clock=FakeClock())
    cache.put("used", 1, seconds=10)
    for number in range(1000):
        cache.put(number, number, seconds=10)
        assert cache.get("used") == 1
        assert len(cache) <= 2
