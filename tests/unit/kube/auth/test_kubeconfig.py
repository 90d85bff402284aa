"""What a kubeconfig may say, and what is said about broken ones."""

import base64
import json
import ssl
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from k8s_scheduler.kube.auth.kubeconfig import KubeconfigSource
from k8s_scheduler.kube.auth.login import Login, bearer
from k8s_scheduler.kube.errors import CredentialsError
from tests.fakes.certificates import Authority, Issued

SERVER = "https://127.0.0.1:6443"


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture(scope="module")
def client(authority: Authority) -> Issued:
    return authority.issue("somebody")


def config(*, user: Any = None, cluster: Any = None, **top: Any) -> dict[str, Any]:
    return {
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": cluster or {"server": SERVER}}],
        "users": [{"name": "u", "user": {} if user is None else user}],
    } | top


def write(file: Path, content: object) -> Path:
    file.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return file


def login(tmp_path: Path, content: object) -> Login:
    return KubeconfigSource([write(tmp_path / "config", content)]).read(renew=False)


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


class TestUsers:
    """Every way to say who one is."""

    def test_a_token(self, tmp_path: Path) -> None:
        assert login(tmp_path, config(user={"token": "t"})).authorization == "Bearer t"

    def test_a_token_file_is_relative_to_the_kubeconfig_and_wins(self, tmp_path: Path) -> None:
        (tmp_path / "token").write_text("from-file\n")
        user = {"token": "t", "tokenFile": "token"}
        assert login(tmp_path, config(user=user)).authorization == "Bearer from-file"

    def test_a_name_and_a_password(self, tmp_path: Path) -> None:
        user = {"username": "me", "password": "pw"}
        expected = f"Basic {b64(b'me:pw')}"
        assert login(tmp_path, config(user=user)).authorization == expected

    def test_data_may_have_line_breaks(self, tmp_path: Path, authority: Authority) -> None:
        """As `base64` makes them, and kubectl takes them."""
        cluster = {
            "server": SERVER,
            "certificate-authority-data": base64.encodebytes(authority.pem).decode(),
        }
        found = login(tmp_path, config(cluster=cluster))
        assert found.tls is not None
        assert found.tls.ca == authority.pem

    def test_nobody(self, tmp_path: Path) -> None:
        content = config(contexts=[{"name": "here", "context": {"cluster": "c"}}])
        assert login(tmp_path, content).authorization is None

    @pytest.mark.parametrize("inline", [True, False], ids=["inline", "files"])
    def test_a_client_certificate(self, tmp_path: Path, client: Issued, *, inline: bool) -> None:
        client.write(tmp_path, "me")
        user: dict[str, str] = {"client-certificate": "me.crt", "client-key": "me.key"}
        if inline:
            user = {
                "client-certificate-data": b64(client.certificate),
                "client-key-data": b64(client.key),
            }
        found = login(tmp_path, config(user=user))
        assert found.tls is not None
        assert found.tls.certificate == client.certificate
        assert found.tls.context().get_ca_certs() is not None

    def test_secrets_do_not_show_in_representations(self, tmp_path: Path, client: Issued) -> None:
        user = {
            "token": "hush",
            "client-certificate-data": b64(client.certificate),
            "client-key-data": b64(client.key),
        }
        shown = repr(login(tmp_path, config(user=user)))
        assert "hush" not in shown
        assert "PRIVATE KEY" not in shown


class TestClusters:
    """Every way for a server to prove itself."""

    def test_a_ca_from_a_file_or_inline(self, tmp_path: Path, authority: Authority) -> None:
        (tmp_path / "ca.crt").write_bytes(authority.pem)
        by_file = config(cluster={"server": SERVER, "certificate-authority": "ca.crt"})
        inline = config(
            cluster={"server": SERVER, "certificate-authority-data": b64(authority.pem)}
        )
        for content in (by_file, inline):
            found = login(tmp_path, content)
            assert found.tls is not None
            assert found.tls.ca == authority.pem
            context = found.tls.context()
            assert context.verify_mode is ssl.CERT_REQUIRED
            assert len(context.get_ca_certs()) == 1

    def test_no_verification_only_when_asked_for(self, tmp_path: Path) -> None:
        cluster = {"server": SERVER, "insecure-skip-tls-verify": True}
        found = login(tmp_path, config(cluster=cluster))
        assert found.tls is not None
        assert found.tls.context().verify_mode is ssl.CERT_NONE
        secure = login(tmp_path, config())
        assert secure.tls is not None
        assert secure.tls.context().verify_mode is ssl.CERT_REQUIRED

    @pytest.mark.parametrize("named", ["certificate-authority", "certificate-authority-data"])
    def test_an_authority_that_would_not_be_asked_is_refused(
        self, tmp_path: Path, named: str
    ) -> None:
        """As client-go does: somebody believes that the server is verified."""
        cluster = {"server": SERVER, "insecure-skip-tls-verify": True, named: "QUJD"}
        with pytest.raises(CredentialsError, match="insecure-skip-tls-verify"):
            login(tmp_path, config(cluster=cluster))

    def test_server_name_proxy_and_a_path(self, tmp_path: Path) -> None:
        cluster = {
            "server": "https://proxy/k8s/clusters/c-1/",
            "tls-server-name": "kubernetes",
            "proxy-url": "http://127.0.0.1:3128",
        }
        found = login(tmp_path, config(cluster=cluster))
        assert found.server == "https://proxy/k8s/clusters/c-1"
        assert found.tls_server_name == "kubernetes"
        assert found.proxy_url == "http://127.0.0.1:3128"

    def test_plain_http_has_no_tls(self, tmp_path: Path) -> None:
        assert login(tmp_path, config(cluster={"server": "http://127.0.0.1:8001"})).tls is None


class TestMerging:
    """Of several files the first to name a thing wins."""

    def test_entries_keep_the_folder_of_their_file(self, tmp_path: Path) -> None:
        one, two = tmp_path / "one", tmp_path / "two"
        for folder in (one, two):
            folder.mkdir()
            (folder / "token").write_text(folder.name)
        first = write(one / "config", {"current-context": "here", "users": None})
        second = write(two / "config", config(user={"tokenFile": "token"}))
        third = write(one / "other", config(user={"tokenFile": "token"}))
        source = KubeconfigSource([first, second, third])
        assert source.read(renew=False).authorization == "Bearer two"
        assert source.files() == (two / "token",)


class TestBroken:
    """A CredentialsError that names the file and the problem, never a traceback."""

    @pytest.mark.parametrize(
        ("content", "problem"),
        [
            ("a: [", "is not valid YAML: .*line"),
            ("", "is empty"),
            ("just text", r"Expected `object`, got `str`"),
            ({"clusters": 5}, r"Expected `array | null`, got `int` - at `\$.clusters`"),
            (config(users=[{"name": "u", "user": {"token": 7}}]), r"\$.users\[0\].user.token"),
            (config(users=[{"user": {}}]), "missing required field `name`"),
            (config(cluster={"certificate-authority": "x"}), "missing required field `server`"),
            (config(**{"current-context": ""}), r"no current-context is set \(there are: here\)"),
            (
                config(**{"current-context": "there"}),
                r"current-context 'there' is not among the contexts \(there are: here\)",
            ),
            (config(clusters=[]), r"names an unknown cluster 'c' \(there are none\)"),
            (config(users=[]), r"names an unknown user 'u' \(there are none\)"),
            (config(cluster={"server": "6443"}), "'6443' is not an https:// or http:// address"),
            (
                config(cluster={"server": SERVER, "proxy-url": "socks5://x"}),
                "proxy-url 'socks5://x' is not supported",
            ),
            (config(user={"as": "admin"}), "asks to impersonate a user"),
            (config(user={"tokenFile": "none"}), "cannot read the token .*/none: No such file"),
            (config(user={"client-key-data": "%%%"}), "client-key-data is not base64"),
            (config(user={"client-key-data": b64(b"k")}), "belong together, only one"),
            (
                config(cluster={"server": SERVER, "certificate-authority": "no.crt"}),
                "cannot read certificate-authority .*/no.crt",
            ),
            ("current-context: 2024-13-45", "a date that does not exist"),
            ("a: " + "9" * 5000, "a number of thousands of digits"),
            ("[" * 3000, "is nested too deep"),
            (config(user={"tokenFile": "a\0b"}), r"cannot read the token '.*a\\x00b': no file has"),
            ('a: "\\', "is not valid YAML"),
        ],
    )
    def test_it_is_named(self, tmp_path: Path, content: object, problem: str) -> None:
        with pytest.raises(CredentialsError, match=problem) as caught:
            login(tmp_path, content)
        assert str(tmp_path) in str(caught.value)

    def test_half_of_a_character_is_named_without_the_password(self, tmp_path: Path) -> None:
        user = r'{"username": "\ud800", "password": "hunter22"}'
        content = json.dumps(config(user="USER")).replace('"USER"', user)
        with pytest.raises(CredentialsError, match="holds half of a character") as caught:
            login(tmp_path, content)
        assert "hunter22" not in repr(caught.value)
        assert caught.value.__suppress_context__

    def test_an_unreadable_file(self, tmp_path: Path) -> None:
        with pytest.raises(CredentialsError, match=f"cannot read kubeconfig {tmp_path}: Is a dir"):
            KubeconfigSource([tmp_path])

    def test_certificates_that_are_none(self, tmp_path: Path, client: Issued) -> None:
        junk = b64(b"junk")
        cluster = {"server": SERVER, "certificate-authority-data": junk}
        found = login(tmp_path, config(cluster=cluster))
        assert found.tls is not None
        with pytest.raises(CredentialsError, match="CA bundle holds no PEM certificates"):
            found.tls.context()
        user = {"client-certificate-data": b64(client.certificate), "client-key-data": junk}
        found = login(tmp_path, config(user=user))
        assert found.tls is not None
        with pytest.raises(CredentialsError, match="client certificate and its key cannot be used"):
            found.tls.context()


def plugin(tmp_path: Path, status: object, *, code: int = 0) -> dict[str, Any]:
    """Return an exec entry whose plugin counts its runs and prints `status`."""
    answer = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": status,
    }
    script = tmp_path / "plugin.py"
    script.write_text(
        "import json, os, pathlib, sys\n"
        f"log = pathlib.Path({str(tmp_path)!r}) / 'runs'\n"
        "info = json.loads(os.environ['KUBERNETES_EXEC_INFO'])\n"
        "log.open('a').write(json.dumps([info['spec'], os.environ.get('X')]) + '\\n')\n"
        f"print({json.dumps(answer)!r})\n"
        f"sys.stderr.write('the plugin is unwell')\nsys.exit({code})\n"
    )
    return {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": sys.executable,
        "args": [str(script)],
        "env": [{"name": "X", "value": "y"}],
        "provideClusterInfo": True,
        "interactiveMode": "Never",
    }


def runs(tmp_path: Path) -> list[Any]:
    return [json.loads(line) for line in (tmp_path / "runs").read_text().splitlines()]


class TestPlugins:
    """Exec plugins and identity providers, through the kubernetes package."""

    def test_a_plugin_gives_a_token_until_it_is_asked_to_renew(self, tmp_path: Path) -> None:
        status = {"token": "from-plugin", "expirationTimestamp": "2030-01-01T00:00:00Z"}
        file = write(tmp_path / "config", config(user={"exec": plugin(tmp_path, status)}))
        source = KubeconfigSource([file])
        first = source.read(renew=False)
        assert first.authorization == "Bearer from-plugin"
        assert first.expires_at == 1893456000.0
        source.read(renew=False)
        assert len(runs(tmp_path)) == 1
        source.read(renew=True)
        assert len(runs(tmp_path)) == 2

    def test_a_plugin_is_told_about_the_cluster_and_its_environment(self, tmp_path: Path) -> None:
        login(tmp_path, config(user={"exec": plugin(tmp_path, {"token": "t"})}))
        ((spec, variable),) = runs(tmp_path)
        assert spec["cluster"]["server"] == SERVER
        assert variable == "y"

    def test_a_plugin_gives_a_certificate(self, tmp_path: Path, client: Issued) -> None:
        status = {
            "clientCertificateData": client.certificate.decode(),
            "clientKeyData": client.key.decode(),
        }
        found = login(tmp_path, config(user={"exec": plugin(tmp_path, status)}))
        assert found.authorization is None
        assert found.tls is not None
        assert found.tls.certificate == client.certificate
        found.tls.context()

    def test_a_plugin_is_not_run_where_a_token_is_given(self, tmp_path: Path) -> None:
        user = {"token": "t", "exec": plugin(tmp_path, {"token": "other"})}
        assert login(tmp_path, config(user=user)).authorization == "Bearer t"
        assert not (tmp_path / "runs").exists()

    @pytest.mark.parametrize(
        ("status", "code", "problem"),
        [
            ({"token": "t"}, 3, "process returned 3. the plugin is unwell"),
            ({}, 0, "neither a token nor a client certificate"),
            ({"clientCertificateData": "x"}, 0, "neither a token nor a client certificate"),
            ({"token": "t", "expirationTimestamp": "soon"}, 0, "Invalid isoformat string"),
        ],
    )
    def test_a_failing_plugin_is_named(
        self, tmp_path: Path, status: object, code: int, problem: str
    ) -> None:
        with pytest.raises(CredentialsError, match=problem) as caught:
            login(tmp_path, config(user={"exec": plugin(tmp_path, status, code=code)}))
        assert f"{tmp_path}/config" in str(caught.value)
        assert sys.executable in str(caught.value)

    def test_a_missing_plugin_comes_with_its_hint(self, tmp_path: Path) -> None:
        entry = {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": "no-such-plugin",
            "installHint": "Get it from the vendor.\n",
        }
        with pytest.raises(CredentialsError, match=r"no-such-plugin.*\. Get it from the vendor\."):
            login(tmp_path, config(user={"exec": entry}))

    def test_an_identity_providers_valid_token_is_used(self, tmp_path: Path) -> None:
        claims = base64.urlsafe_b64encode(json.dumps({"exp": time.time() + 3600}).encode())
        token = f"e30.{claims.decode().rstrip('=')}.c2ln"
        provider = {"name": "oidc", "config": {"id-token": token, "idp-issuer-url": "x"}}
        found = login(tmp_path, config(user={"auth-provider": provider}))
        assert found.authorization == f"Bearer {token}"

    @pytest.mark.parametrize(
        ("provider", "problem"),
        [
            ({"name": "azure", "config": {}}, "'azure' gave no token"),
            ({"name": "oidc", "config": {"id-token": "not-a-token"}}, "'oidc' gave no token"),
            ({"name": "oidc", "config": {"client-id": "x"}}, "'oidc' failed: .*id-token"),
        ],
    )
    def test_a_failing_provider_is_named(
        self, tmp_path: Path, provider: dict[str, Any], problem: str
    ) -> None:
        with pytest.raises(CredentialsError, match=problem):
            login(tmp_path, config(user={"auth-provider": provider}))

    def test_the_kubernetes_package_is_not_imported_for_plain_kubeconfigs(
        self, tmp_path: Path
    ) -> None:
        file = write(tmp_path / "config", config(user={"token": "t"}))
        code = (
            "import sys, pathlib\n"
            "from k8s_scheduler.kube.auth.kubeconfig import KubeconfigSource\n"
            f"KubeconfigSource([pathlib.Path({str(file)!r})]).read(renew=False)\n"
            "sys.exit('kubernetes' in sys.modules)\n"
        )
        subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.parametrize(
    "server",
    ["https://", "https://[bad", "https://host:port", "https://host:99999", "ftp://x", "host:6443"],
)
def test_what_is_no_address_is_named(tmp_path: Path, server: str) -> None:
    path = tmp_path / "config"
    path.write_text(
        yaml.safe_dump(
            {
                "clusters": [{"name": "c", "cluster": {"server": server}}],
                "users": [{"name": "u", "user": {"token": "t"}}],
                "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
                "current-context": "x",
            }
        )
    )
    with pytest.raises(CredentialsError, match="is not an https:// or http:// address"):
        KubeconfigSource([path])


def test_a_token_with_a_line_break_inside_is_refused() -> None:
    assert bearer("abc\n") == "Bearer abc"
    with pytest.raises(CredentialsError, match="the token holds characters"):
        bearer("ab\nc")
