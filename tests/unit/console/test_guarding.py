"""The gate before every path, over real TLS: tokens, certificates, kube-scheduler's answers."""

import asyncio
import contextlib
import json
import ssl
from datetime import UTC, datetime

import aiohttp
import pytest
import uvloop
from cryptography.hazmat.primitives import serialization as s
from prometheus_client import CollectorRegistry

from k8s_scheduler.console.certificates import (
    CertificateError,
    CertificateFiles,
    SelfSigned,
    trust_clients,
)
from k8s_scheduler.console.gate import Denial, GateTimes, ReviewingGate
from k8s_scheduler.console.guarding import certified_user
from k8s_scheduler.console.open_paths import OpenPaths
from k8s_scheduler.console.server import Endpoints, serve
from k8s_scheduler.kube.reviews import User
from testbed.pki import issue_client, make_authority
from tests.fakes.certificates import Issued
from tests.unit.console.test_certificates import make_pair
from tests.unit.console.test_gate import Reviews


class Doorbook:
    """Writes down who came and lets in as told."""

    def __init__(self, answer=None):
        self.answer = answer
        self.knocks = []

    async def admit(self, knock):
        self.knocks.append(knock)
        return self.answer


@contextlib.asynccontextmanager
async def serving(gate=None, *, client_ca=None, client_cert=None, pair=None):
    """Serve, with a pair of files if there is one; yield a function that gets a path."""
    if pair is not None:
        certificate, pem = CertificateFiles(*pair, client_ca_file=client_ca), pair[0].read_bytes()
    else:
        certificate = SelfSigned()
        pem = certificate.certificate_pem
        if client_ca is not None:
            trust_clients(certificate.context, client_ca)
    server = await serve(
        Endpoints(registry=CollectorRegistry()),
        certificate,
        bind_address="127.0.0.1",
        port=None,
        gate=gate,
    )
    trusting = ssl.create_default_context(cadata=pem.decode())
    if client_cert is not None:
        trusting.load_cert_chain(*client_cert)
    try:
        async with aiohttp.ClientSession(
            f"https://127.0.0.1:{server.port}",
            connector=aiohttp.TCPConnector(ssl=trusting),
            timeout=aiohttp.ClientTimeout(total=20),
        ) as session:

            async def get(path, method="GET", **headers):
                async with session.request(method, path, headers=headers) as response:
                    return response.status, await response.text(), response.headers

            get.port = server.port
            get.tls = trusting
            yield get
    finally:
        await server.close()


async def test_every_path_is_asked_about_also_those_that_are_not_there():
    book = Doorbook()
    async with serving(book) as get:
        for path in ("/livez", "/metrics", "/configz", "/no/such/page?token=x"):
            await get(path, Authorization="Bearer t")
        await get("/metrics", "POST")
    assert [(k.method, k.path, k.token) for k in book.knocks] == [
        ("GET", "/livez", "t"),
        ("GET", "/metrics", "t"),
        ("GET", "/configz", "t"),
        ("GET", "/no/such/page", "t"),
        ("POST", "/metrics", ""),
    ]


async def test_without_a_gate_nothing_but_health_is_shown():
    async with serving() as get:
        assert (await get("/livez"))[0] == 200
        assert (await get("/metrics"))[0] == 403
        assert (await get("/nowhere"))[0] == 403


@pytest.mark.parametrize(
    ("refusal", "body"),
    [
        (
            Denial(401, "Unauthorized", "Unauthorized"),
            (
                '{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",'
                '"message":"Unauthorized","reason":"Unauthorized","code":401}\n'
            ),
        ),
        (
            Denial(403, "Forbidden", 'forbidden: User "a" cannot get path "/metrics"'),
            (
                '{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",'
                '"message":"forbidden: User \\"a\\" cannot get path \\"/metrics\\"",'
                '"reason":"Forbidden","details":{},"code":403}\n'
            ),
        ),
    ],
)
async def test_refusals_are_kube_schedulers_to_the_letter(refusal, body):
    async with serving(Doorbook(refusal)) as get:
        status, text, headers = await get("/metrics")
    assert (status, text) == (refusal.status, body)
    assert headers["Content-Type"] == "application/json"
    assert headers["Cache-Control"] == "no-cache, private"


async def test_other_refusals_have_their_form_too():
    async with serving(Doorbook(Denial(500, "InternalError", "no"))) as get:
        assert (await get("/metrics"))[:2] == (500, "no\n")
    async with serving(Doorbook(Denial(429, "TooManyRequests", "later"))) as get:
        status, text, headers = await get("/metrics")
    assert (status, headers["Retry-After"]) == (429, "1")
    assert json.loads(text)["message"] == "later"


@pytest.mark.parametrize(
    "target",
    [b"/livez\xff", b"/metrics\xff\xfe", b"/%ff%fe", b"//livez", b"/livez/%2e%2e/metrics"],
)
async def test_odd_paths_are_refused_and_harm_nobody(target):
    gate = ReviewingGate(Reviews(), paths=OpenPaths(), times=GateTimes())
    async with serving(gate) as get:
        reader, writer = await asyncio.open_connection("127.0.0.1", get.port, ssl=get.tls)
        writer.write(b"GET " + target + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        answer = await reader.read()
        writer.close()
        assert int(answer.split()[1]) in {400, 403}
        assert (await get("/livez"))[0] == 200


async def test_what_is_not_http_is_refused_and_not_written_down(caplog):
    book = Doorbook()
    async with serving(book) as get:
        for line in (b"Authorization: Bearer abc\x00", b"Authorization : x", b"A" * 9000 + b": x"):
            reader, writer = await asyncio.open_connection("127.0.0.1", get.port, ssl=get.tls)
            writer.write(b"GET /metrics HTTP/1.1\r\nHost: x\r\n" + line + b"\r\n\r\n")
            assert (await reader.readline()).split()[1] == b"400"
            writer.close()
    assert book.knocks == []
    assert caplog.records == []


class TestCertificates:
    """--client-ca-file: a certificate says who somebody is; nobody has to have one."""

    def pems(self, folder, name, **subject):
        ca = make_authority("ca", now=self.now)
        certificate, key = issue_client(ca, name, now=self.now, **subject)
        files = [folder / f"{name}.{end}" for end in ("ca", "crt", "key")]
        files[0].write_bytes(ca.certificate.public_bytes(s.Encoding.PEM))
        files[1].write_bytes(certificate.public_bytes(s.Encoding.PEM))
        files[2].write_bytes(
            key.private_bytes(s.Encoding.PEM, s.PrivateFormat.PKCS8, s.NoEncryption())
        )
        return files[0], files[1:]

    @pytest.fixture(autouse=True)
    def _now(self):
        self.now = datetime.now(tz=UTC)

    async def test_its_subject_is_the_user(self, tmp_path):
        ca, pair = self.pems(tmp_path, "scraper", organization="readers")
        book = Doorbook()
        async with serving(book, client_ca=ca, client_cert=pair) as get:
            assert (await get("/metrics"))[0] == 200
        (knock,) = book.knocks
        assert knock.certified == User("scraper", groups=("readers", "system:authenticated"))

    @pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
    def test_its_subject_is_the_user_also_where_the_servers_is_a_file(self, tmp_path, new_loop):
        ca, client_cert = self.pems(tmp_path, "scraper", organization="readers")
        pair = Issued(*make_pair()).write(tmp_path, "server")
        book = Doorbook()

        async def come():
            async with serving(book, client_ca=ca, client_cert=client_cert, pair=pair) as get:
                assert (await get("/metrics"))[0] == 200
            async with serving(book, client_ca=ca, pair=pair) as get:
                assert (await get("/livez"))[0] == 200

        with asyncio.Runner(loop_factory=new_loop) as runner:
            runner.run(come())
        scraper = User("scraper", groups=("readers", "system:authenticated"))
        assert [knock.certified for knock in book.knocks] == [scraper, None]

    async def test_nobody_needs_one(self, tmp_path):
        ca, _ = self.pems(tmp_path, "scraper")
        book = Doorbook()
        async with serving(book, client_ca=ca) as get:
            assert (await get("/livez"))[0] == 200
        assert book.knocks[0].certified is None

    async def test_one_of_somebody_else_is_not_taken(self, tmp_path):
        ca, _ = self.pems(tmp_path, "trusted")
        _, stranger = self.pems(tmp_path, "stranger")
        book = Doorbook()
        async with serving(book, client_ca=ca, client_cert=stranger) as get:
            with pytest.raises((aiohttp.ClientError, OSError)):
                await get("/metrics")
        assert book.knocks == []

    @pytest.mark.parametrize(
        ("content", "problem"),
        [(None, "No such file or directory"), ("no PEM", "holds no PEM certificates")],
    )
    def test_a_file_that_is_none_is_named(self, tmp_path, content, problem):
        file = tmp_path / "ca.crt"
        if content is not None:
            file.write_text(content)
        with pytest.raises(CertificateError, match=f"--client-ca-file {file}: {problem}"):
            trust_clients(SelfSigned().context, file)

    def test_authorities_and_certificates_of_older_profiles_are_trusted(self, tmp_path):
        """As newer versions of Python would not by themselves; kube/test_tls.py has the meaning."""
        ca, _ = self.pems(tmp_path, "scraper")
        context = SelfSigned().context
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        trust_clients(context, ca)
        assert not context.verify_flags & ssl.VERIFY_X509_STRICT
        assert context.verify_flags & ssl.VERIFY_X509_PARTIAL_CHAIN

    def test_of_several_names_the_last_counts_as_for_the_api_server(self):
        """Whoever had it signed was looked at by that name."""
        names = ((("commonName", "admin"),), (("organizationName", "x"),), (("commonName", "bob"),))
        found = certified_user({"subject": names})
        assert found == User("bob", groups=("x", "system:authenticated"))

    def test_a_certificate_without_a_name_is_nobody(self):
        assert certified_user(None) is None
        assert certified_user({"subject": ((("organizationName", "x"),),)}) is None
