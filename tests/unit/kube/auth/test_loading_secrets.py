"""Credentials that cannot be used are complained about without being shown."""

import json
import sys
import traceback

import pytest
import yaml

from k8s_scheduler.kube.auth.loading import load_credentials
from k8s_scheduler.kube.errors import CredentialsError
from k8s_scheduler.obs import redaction

SECRET = "hunter2-planted-secret"


@pytest.fixture(autouse=True)
def _clean():
    yield
    redaction._known.clear()


def kubeconfig(user=None, cluster=None):
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"} | (cluster or {})}],
        "users": [{"name": "u", "user": user or {}}],
    }


def exec_plugin(tmp_path, code):
    script = tmp_path / "plugin.py"
    script.write_text(code)
    entry = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": sys.executable,
        "args": [str(script)],
        "interactiveMode": "Never",
    }
    return kubeconfig({"exec": entry})


BROKEN = {
    "a colon in a token": f"users:\n- user:\n    token: {SECRET}: x\n",
    "a tab": f"users:\n- user:\n\ttoken: {SECRET}\n",
    "an alias": f"users:\n- user:\n    token: *{SECRET}\n",
    "no end": f"users: [{{token: '{SECRET}",
    "a list for a token": yaml.safe_dump(kubeconfig({"token": [SECRET]})),
    "a number for a user": yaml.safe_dump(kubeconfig({"username": 1, "password": SECRET})),
    "a token with a line break": yaml.safe_dump(kubeconfig({"token": f"{SECRET}\nmore"})),
    "a key that is none": yaml.safe_dump(
        kubeconfig({"client-key-data": SECRET, "client-certificate-data": SECRET})
    ),
    "a password in the address": yaml.safe_dump(
        kubeconfig(cluster={"server": f"https://me:{SECRET}@127.0.0.1:1"})
    ),
    "a password in a bad address": yaml.safe_dump(
        kubeconfig(cluster={"server": f"ftp://me:{SECRET}@127.0.0.1:1"})
    ),
    "a password in a bad proxy": yaml.safe_dump(
        kubeconfig(cluster={"proxy-url": f"socks5://me:{SECRET}@127.0.0.1:1"})
    ),
}


async def complaint(file):
    with pytest.raises(CredentialsError) as caught:
        await load_credentials(str(file))
    return str(caught.value)


@pytest.mark.parametrize("case", BROKEN)
async def test_a_broken_kubeconfig_is_named_and_not_quoted(tmp_path, case):
    file = tmp_path / "kubeconfig"
    file.write_text(BROKEN[case])
    text = await complaint(file)
    assert str(file) in text or "token" in text or "client certificate" in text
    assert SECRET not in text


@pytest.mark.parametrize(
    "code",
    [
        f"print('{SECRET}')",
        f'print(\'{{"token": "{SECRET}"\')',
        f"import json; print(json.dumps({{'status': {{'token': '{SECRET}'}}}}))",
        f"print('{SECRET}'); raise SystemExit(3)",
    ],
    ids=["no JSON", "half JSON", "half a credential", "failure"],
)
async def test_what_an_exec_plugin_printed_is_not_quoted(tmp_path, code):
    file = tmp_path / "kubeconfig"
    file.write_text(json.dumps(exec_plugin(tmp_path, code)))
    text = await complaint(file)
    assert "exec plugin" in text
    assert SECRET not in text


async def test_a_token_in_use_is_concealed_also_in_tracebacks(tmp_path):
    file = tmp_path / "kubeconfig"
    file.write_text(json.dumps(kubeconfig({"token": SECRET})))
    credentials = await load_credentials(str(file))
    assert SECRET not in repr(credentials)
    trace = "".join(traceback.format_exception(ValueError(credentials.headers())))
    assert SECRET in trace
    assert SECRET not in redaction.redact(trace)
