"""Where credentials are looked for, and what is said when there are none."""

import os
from pathlib import Path

import pytest
import yaml

from k8s_scheduler.kube.auth.in_cluster import SERVICE_ACCOUNT
from k8s_scheduler.kube.auth.loading import Credentials, load_credentials
from k8s_scheduler.kube.errors import CredentialsError
from tests.fakes.certificates import Authority

IN_CLUSTER = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture
def service_account(tmp_path: Path, authority: Authority) -> Path:
    folder = tmp_path / "serviceaccount"
    folder.mkdir()
    (folder / "token").write_text("secret\n")
    (folder / "ca.crt").write_bytes(authority.pem)
    return folder


def write_kubeconfig(file: Path, **changes: object) -> Path:
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://from-kubeconfig:6443"}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(yaml.safe_dump(content | changes))
    return file


class TestOrder:
    """An explicit file, the pod's own account, $KUBECONFIG, ~/.kube/config."""

    async def test_an_explicit_file_wins(self, tmp_path: Path, service_account: Path) -> None:
        file = write_kubeconfig(tmp_path / "mine")
        found = await load_credentials(
            str(file), environ=IN_CLUSTER, service_account=service_account
        )
        assert found.server == "https://from-kubeconfig:6443"
        assert found.headers() == {"Authorization": "Bearer t"}

    async def test_in_a_cluster_its_own_account_comes_first(
        self, tmp_path: Path, service_account: Path
    ) -> None:
        file = write_kubeconfig(tmp_path / "mine")
        environ = IN_CLUSTER | {"KUBECONFIG": str(file)}
        found = await load_credentials(None, environ=environ, service_account=service_account)
        assert found.server == "https://10.0.0.1:443"
        assert found.headers() == {"Authorization": "Bearer secret"}
        assert found.ssl_context() is not None

    async def test_an_ipv6_address_is_put_in_brackets(self, service_account: Path) -> None:
        environ = IN_CLUSTER | {"KUBERNETES_SERVICE_HOST": "fd00::1"}
        found = await load_credentials("", environ=environ, service_account=service_account)
        assert found.server == "https://[fd00::1]:443"

    async def test_the_environment_names_files_then_comes_the_home_folder(
        self, tmp_path: Path
    ) -> None:
        home = write_kubeconfig(tmp_path / ".kube" / "config")
        other = write_kubeconfig(
            tmp_path / "other",
            clusters=[{"name": "c", "cluster": {"server": "https://other"}}],
        )
        environ = {"HOME": str(tmp_path)}
        found = await looked_for(environ, tmp_path / "no")
        assert found.server == "https://from-kubeconfig:6443"
        # Files that do not exist are passed over, as kubectl does; the first that exists wins.
        environ["KUBECONFIG"] = os.pathsep.join(map(str, (tmp_path / "no", other, home)))
        found = await looked_for(environ, tmp_path / "no")
        assert found.server == "https://other"


class TestNamedOnly:
    """A daemon that writes takes no kubeconfig that it was not given."""

    @pytest.mark.parametrize("named", ["KUBECONFIG", "HOME"])
    async def test_a_kubeconfig_that_lies_about_is_not_taken(
        self, tmp_path: Path, named: str
    ) -> None:
        file = write_kubeconfig(tmp_path / ".kube" / "config")
        environ = {named: str(file if named == "KUBECONFIG" else tmp_path)}
        with pytest.raises(CredentialsError) as caught:
            await load_credentials(None, environ=environ, service_account=tmp_path / "no")
        message = str(caught.value)
        assert "give --kubeconfig FILE or clientConnection.kubeconfig" in message
        assert f"({file} is not used unless it is named)" in message

    async def test_without_one_there_is_no_word_of_it(self, tmp_path: Path) -> None:
        with pytest.raises(CredentialsError) as caught:
            await load_credentials(None, environ={"HOME": str(tmp_path)})
        assert "not used" not in str(caught.value)


async def looked_for(environ: dict[str, str], account: Path = SERVICE_ACCOUNT) -> Credentials:
    """Find what a command finds that writes nothing."""
    return await load_credentials(None, ambient=True, environ=environ, service_account=account)


class TestNothingFound:
    """The message says everything that was tried and what to do."""

    async def test_outside_a_cluster_without_a_kubeconfig(self, tmp_path: Path) -> None:
        with pytest.raises(CredentialsError) as caught:
            await looked_for({"HOME": str(tmp_path)})
        message = str(caught.value)
        assert "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT not set" in message
        assert f"KUBECONFIG is not set and {tmp_path}/.kube/config does not exist" in message
        assert "give --kubeconfig FILE, set KUBECONFIG, or run in a cluster" in message

    async def test_in_a_cluster_without_a_token(self, tmp_path: Path) -> None:
        environ = IN_CLUSTER | {"KUBECONFIG": "/no/such/file"}
        with pytest.raises(CredentialsError) as caught:
            await looked_for(environ, tmp_path)
        message = str(caught.value)
        assert f"token {tmp_path}/token: No such file or directory" in message
        assert "KUBECONFIG is set, but /no/such/file does not exist" in message

    async def test_in_a_cluster_without_a_ca(self, service_account: Path) -> None:
        (service_account / "ca.crt").unlink()
        environ = IN_CLUSTER | {"HOME": str(service_account)}
        with pytest.raises(CredentialsError, match=r"ca\.crt: No such file"):
            await load_credentials(None, environ=environ, service_account=service_account)

    async def test_with_an_empty_token(self, service_account: Path) -> None:
        (service_account / "token").write_text("\n")
        environ = IN_CLUSTER | {"HOME": str(service_account)}
        with pytest.raises(CredentialsError, match=r"token .* is empty"):
            await load_credentials(None, environ=environ, service_account=service_account)

    @pytest.mark.parametrize("name", ["~nobody-at-all/config", "a\0b"], ids=["a home", "a NUL"])
    async def test_a_name_that_no_file_can_have_is_named(self, name: str) -> None:
        with pytest.raises(CredentialsError, match=r"cannot read kubeconfig .*no.* file"):
            await load_credentials(name)

    async def test_whoever_has_no_home_is_told_where_was_looked(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As in a container whose user is in no list."""
        monkeypatch.delenv("HOME", raising=False)
        monkeypatch.setattr("pwd.getpwuid", lambda _: {}[0])
        with pytest.raises(CredentialsError, match=r"~/\.kube/config does not exist"):
            await looked_for({})

    async def test_an_explicit_file_that_is_not_there_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(CredentialsError, match=f"{tmp_path}/none: No such file"):
            await load_credentials(str(tmp_path / "none"))


async def test_a_kubeconfig_without_an_end_is_not_read_to_it():
    with pytest.raises(CredentialsError, match="cannot read kubeconfig /dev/zero: it is longer"):
        await load_credentials("/dev/zero")
