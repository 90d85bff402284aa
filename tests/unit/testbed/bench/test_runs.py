"""When a run is over, and when it stands still."""

import pytest

from testbed.bench import runs
from testbed.bench.account import Account


class Reader:
    """An account that does not change any more."""

    def __init__(self, account):
        self.account = account

    def catch_up(self):
        return self.account


@pytest.fixture
def reader(monkeypatch):
    monkeypatch.setattr(runs, "_STILL_SECONDS", -1.0)
    account = Account()
    account.bound = {"p": 1.0, "q": 2.0}
    account.told = {"p": 1.5}
    # Others come and go, and much is written about them.
    account.requests["create events"] = 1000
    return Reader(account)


def wait(reader, **options):
    def moves(account):
        return len(account.bound) + len(account.told)

    runs._wait(reader, lambda a: len(a.told) == 2, 0.0, lambda _: None, moves=moves, **options)


def test_nothing_that_moves_is_a_failure(reader):
    with pytest.raises(runs.StoodStillError, match=r"2 pods bound, 1 events"):
        wait(reader)


def test_events_that_are_lost_are_not_waited_for(reader):
    wait(reader, will_do=lambda account: len(account.bound) == 2)


def test_who_has_ended_is_not_waited_for(reader):
    def check():
        raise runs.ContestantError("somebody has ended")

    with pytest.raises(runs.ContestantError, match="has ended"):
        wait(reader, check=check)


def test_every_move_is_noted_and_the_last_before_it_is_done():
    account, noted = Account(), []

    class Growing:
        def catch_up(self):
            account.told[f"p{len(account.told) // 2}"] = 1.0
            return account

    def moves(found):
        return len(found.told)

    account.told = {"q": 1.0}
    runs._wait(
        Growing(),
        lambda a: len(a.told) == 2,
        0.0,
        lambda _: None,
        moves=moves,
        on_move=lambda: noted.append(len(account.told)),
    )
    assert noted == [2]


def test_a_wait_for_the_first_binding_ends_though_the_benchmark_goes_on_writing(monkeypatch):
    monkeypatch.setattr(runs, "_STILL_SECONDS", -1.0)

    class Churning(Reader):
        def catch_up(self):
            requests = self.account.requests
            requests["create pods"] = requests.get("create pods", 0) + 1
            return self.account

    with pytest.raises(runs.StoodStillError, match="0 pods bound"):
        runs.follow(Churning(Account()), ["p"], dict, started=0.0)
