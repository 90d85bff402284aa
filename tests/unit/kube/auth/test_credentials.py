"""Credentials stay valid while files and plugins change underneath."""

import asyncio
import os
import threading
from pathlib import Path

import pytest

from k8s_scheduler.kube.auth.credentials import RotatingCredentials
from k8s_scheduler.kube.auth.in_cluster import InClusterSource
from k8s_scheduler.kube.auth.kubeconfig import KubeconfigSource
from k8s_scheduler.kube.auth.login import Login
from k8s_scheduler.kube.errors import CredentialsError
from tests.fakes.certificates import Authority
from tests.fakes.clock import FakeClock, settle


class Source:
    """A source that counts how it is read."""

    def __init__(self) -> None:
        self.token = "one"
        self.expires_at: float | None = None
        self.broken = False
        self.reads: list[bool] = []
        self.may_go_on = threading.Event()
        self.may_go_on.set()

    def describe(self) -> str:
        return "a test"

    def files(self) -> tuple[Path, ...]:
        return ()

    def read(self, *, renew: bool) -> Login:
        self.reads.append(renew)
        self.may_go_on.wait()
        if self.broken:
            raise CredentialsError("the disk is gone")
        token = f"Bearer {self.token}"
        return Login("http://x", None, token, expires_at=self.expires_at)


async def opened(source: Source, clock: FakeClock) -> RotatingCredentials:
    credentials = await RotatingCredentials.open(source, clock=clock, wall_clock=clock)
    source.reads.clear()
    return credentials


@pytest.fixture
def service_account(tmp_path: Path) -> Path:
    (tmp_path / "token").write_text("one")
    (tmp_path / "ca.crt").write_bytes(Authority().pem)
    return tmp_path


def in_cluster(folder: Path) -> InClusterSource:
    environ = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    return InClusterSource(environ, folder)


def touch(file: Path, content: bytes | str) -> None:
    """Change a file so that its time differs even on coarse clocks."""
    before = file.stat().st_mtime_ns
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    os.utime(file, ns=(before + 10**9, before + 10**9))


class TestFiles:
    """Files are followed."""

    async def test_a_changed_token_file_is_read_at_the_next_check(
        self, service_account: Path
    ) -> None:
        credentials = await RotatingCredentials.open(in_cluster(service_account))
        before = credentials.headers()
        await credentials.refresh()
        assert credentials.headers() is before
        touch(service_account / "token", "two")
        await credentials.refresh()
        assert credentials.headers() == {"Authorization": "Bearer two"}
        assert credentials.generation == 0

    async def test_a_changed_ca_makes_a_new_context_and_a_new_generation(
        self, service_account: Path
    ) -> None:
        credentials = await RotatingCredentials.open(in_cluster(service_account))
        context, headers = credentials.ssl_context(), credentials.headers()
        touch(service_account / "ca.crt", Authority("another").pem)
        await credentials.refresh()
        assert credentials.generation == 1
        assert credentials.ssl_context() is not context
        assert credentials.headers() is headers

    async def test_a_ca_with_remarks_in_any_language_is_taken(self, service_account: Path) -> None:
        credentials = await RotatingCredentials.open(in_cluster(service_account))
        remark = "# NetLock Arany (Class Gold) Főtanúsítvány\n".encode()
        touch(service_account / "ca.crt", remark + Authority("another").pem)
        await credentials.refresh()
        assert credentials.generation == 1

    async def test_a_rotated_client_certificate_makes_a_new_generation(
        self, tmp_path: Path
    ) -> None:
        authority = Authority()
        authority.issue("me").write(tmp_path, "me")
        file = tmp_path / "config"
        file.write_text(
            "current-context: x\n"
            "contexts: [{name: x, context: {cluster: c, user: u}}]\n"
            "clusters: [{name: c, cluster: {server: 'https://127.0.0.1'}}]\n"
            "users: [{name: u, user: {client-certificate: me.crt, client-key: me.key}}]\n"
        )
        credentials = await RotatingCredentials.open(KubeconfigSource([file]))
        fresh = authority.issue("me")
        # Half a rotation cannot be used; the old pair stays.
        touch(tmp_path / "me.crt", fresh.certificate)
        await credentials.refresh()
        assert credentials.generation == 0
        touch(tmp_path / "me.key", fresh.key)
        await credentials.refresh(rejected=True)
        assert credentials.generation == 1

    async def test_another_context_in_a_changed_kubeconfig_is_not_followed(
        self, tmp_path: Path
    ) -> None:
        file = tmp_path / "config"
        text = (
            "current-context: x\n"
            "contexts: [{name: x, context: {cluster: c}}, {name: y, context: {cluster: d}}]\n"
            "clusters: [{name: c, cluster: {server: 'http://c'}},"
            " {name: d, cluster: {server: 'http://d'}}]\n"
        )
        file.write_text(text)
        credentials = await RotatingCredentials.open(KubeconfigSource([file]))
        touch(file, text.replace("current-context: x", "current-context: y"))
        await credentials.refresh(rejected=True)
        assert credentials.server == "http://c"


class TestTime:
    """Sixty seconds, and what expires."""

    async def test_it_is_read_again_after_a_minute_even_if_no_file_seems_changed(self) -> None:
        source, clock = Source(), FakeClock()
        credentials = await opened(source, clock)
        clock.advance(59)
        await credentials.refresh()
        assert source.reads == []
        clock.advance(1)
        source.token = "two"
        await credentials.refresh()
        assert source.reads == [False]
        assert credentials.headers() == {"Authorization": "Bearer two"}

    @pytest.mark.parametrize(
        ("lifetime_seconds", "renewed_before_seconds"), [(3600, 60), (100, 20)], ids=str
    )
    async def test_what_expires_is_renewed_before_its_end(
        self, lifetime_seconds: float, renewed_before_seconds: float
    ) -> None:
        source, clock = Source(), FakeClock()
        source.expires_at = clock() + lifetime_seconds
        credentials = await opened(source, clock)
        clock.advance(lifetime_seconds - renewed_before_seconds - 1)
        await credentials.refresh()
        assert True not in source.reads
        clock.advance(1)
        source.expires_at = clock() + lifetime_seconds
        await credentials.refresh()
        assert source.reads[-1] is True
        source.reads.clear()
        await credentials.refresh()
        assert source.reads == []


class TestRejected:
    """After a 401."""

    async def test_everything_is_read_again_at_once(self) -> None:
        source, clock = Source(), FakeClock()
        credentials = await opened(source, clock)
        source.token = "two"
        await credentials.refresh(rejected=True)
        assert source.reads == [True]
        assert credentials.headers() == {"Authorization": "Bearer two"}

    async def test_many_rejections_together_cause_one_read(self) -> None:
        source, clock = Source(), FakeClock()
        credentials = await opened(source, clock)
        await asyncio.gather(*(credentials.refresh(rejected=True) for _ in range(20)))
        assert source.reads == [True]
        clock.advance(1)
        await credentials.refresh(rejected=True)
        assert source.reads == [True, True]


class TestGivingUp:
    """Reading may take long, and who asked may have less time."""

    async def test_who_gives_up_ends_nothing_for_the_others(self) -> None:
        source, clock = Source(), FakeClock()
        credentials = await opened(source, clock)
        source.token = "two"
        source.may_go_on.clear()
        waiting = [asyncio.create_task(credentials.refresh(rejected=True)) for _ in range(3)]
        await settle()
        waiting[0].cancel()
        await settle()
        assert [task.done() for task in waiting] == [True, False, False]
        source.may_go_on.set()
        await asyncio.gather(*waiting[1:])
        assert credentials.headers() == {"Authorization": "Bearer two"}
        assert source.reads == [True]

    async def test_what_everybody_gave_up_is_there_for_the_next_one(self) -> None:
        source, clock = Source(), FakeClock()
        credentials = await opened(source, clock)
        source.token = "two"
        source.may_go_on.clear()
        waiting = asyncio.create_task(credentials.refresh(rejected=True))
        await settle()
        waiting.cancel()
        await settle()
        # However long it takes: nobody starts a second plugin beside one that hangs.
        clock.advance(60)
        later = asyncio.create_task(credentials.refresh(rejected=True))
        await settle()
        source.may_go_on.set()
        await later
        assert credentials.headers() == {"Authorization": "Bearer two"}
        assert source.reads == [True]


class TestFailure:
    """What cannot be read again leaves what is in use."""

    async def test_the_old_login_stays_and_the_failure_is_logged_now_and_then(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        source, clock = Source(), FakeClock()
        credentials = await opened(source, clock)
        source.broken = True
        for _ in range(12):
            clock.advance(10)
            await credentials.refresh()
        assert credentials.headers() == {"Authorization": "Bearer one"}
        assert 1 <= len(caplog.records) <= 3
        assert caplog.records[0].__dict__["fields"]["error"] == "the disk is gone"
        source.broken = False
        source.token = "two"
        clock.advance(60)
        await credentials.refresh()
        assert credentials.headers() == {"Authorization": "Bearer two"}

    async def test_nothing_that_goes_wrong_gets_out(self, caplog: pytest.LogCaptureFixture) -> None:
        """Whoever keeps credentials valid is a task of the daemon, and its end is the daemon's."""
        source, clock = Source(), FakeClock()
        credentials = await opened(source, clock)
        source.read = lambda renew: 1 / 0  # type: ignore[assignment,method-assign,misc]
        clock.advance(60)
        await credentials.refresh()
        assert credentials.headers() == {"Authorization": "Bearer one"}
        assert "ZeroDivisionError" in caplog.text

    async def test_the_first_reading_must_succeed(self) -> None:
        source = Source()
        source.broken = True
        with pytest.raises(CredentialsError, match="the disk is gone"):
            await RotatingCredentials.open(source)
