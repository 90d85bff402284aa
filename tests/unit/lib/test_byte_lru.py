"""A map that is bounded in bytes."""

from k8s_scheduler.lib.byte_lru import ByteLru


def filled(**sizes):
    lru = ByteLru(100)
    for key, size in sizes.items():
        lru.put(key, key.upper(), size)
    return lru


def test_what_was_used_longest_ago_goes_and_is_counted():
    lru = filled(a=40, b=40)
    assert lru.get("a") == "A"
    lru.put("c", "C", 40)
    assert (list(lru), lru.nbytes, lru.dropped) == (["a", "c"], 80, 1)


def test_a_look_does_not_count_as_use():
    lru = filled(a=40, b=40)
    assert lru.peek("a") == "A"
    lru.put("c", "C", 40)
    assert lru.peek("a") is None


def test_another_value_takes_the_place_of_the_first():
    lru = filled(a=40)
    lru.put("a", "other", 60)
    assert (lru.get("a"), lru.nbytes, len(lru), lru.dropped) == ("other", 60, 1, 0)


def test_one_that_is_too_large_is_not_kept():
    lru = filled(a=40, b=101)
    assert (len(lru), lru.nbytes, lru.dropped) == (0, 0, 2)


def test_as_many_as_allowed_are_kept_however_small():
    lru = ByteLru(100, most=2)
    for key in "abc":
        lru.put(key, key, 1)
    assert list(lru) == ["b", "c"]


def test_what_is_forgotten_frees_its_bytes():
    lru = filled(a=40, b=40)
    assert (lru.pop("a"), lru.pop("a"), lru.nbytes) == ("A", None, 40)
    lru.clear()
    assert (len(lru), lru.nbytes) == (0, 0)
