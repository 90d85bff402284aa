import base64
import stat

import yaml

from testbed.kubeconfig import (
    Access,
    read_token_kubeconfig,
    write_certificate_kubeconfig,
    write_token_kubeconfig,
)

ACCESS = Access(server="https://127.0.0.1:20000", ca_pem="PEM\n", token="secret")


def test_token_kubeconfig_is_read_back_as_it_was_written(tmp_path):
    path = write_token_kubeconfig(tmp_path / "kubeconfig", ACCESS)
    assert read_token_kubeconfig(path) == ACCESS


def test_kubeconfig_is_for_the_owner_only_also_when_written_again(tmp_path):
    for _ in range(2):
        path = write_token_kubeconfig(tmp_path / "kubeconfig", ACCESS)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_current_context_leads_to_the_cluster_and_the_user(tmp_path):
    path = write_token_kubeconfig(tmp_path / "kubeconfig", ACCESS)
    document = yaml.safe_load(path.read_text())
    (context,) = (
        entry["context"]
        for entry in document["contexts"]
        if entry["name"] == document["current-context"]
    )
    assert context["cluster"] == document["clusters"][0]["name"]
    assert context["user"] == document["users"][0]["name"]


def test_certificate_kubeconfig_holds_everything_inline(tmp_path):
    path = write_certificate_kubeconfig(
        tmp_path / "kubeconfig",
        server=ACCESS.server,
        ca_pem="CA",
        certificate_pem="CERT",
        key_pem="KEY",
    )
    document = yaml.safe_load(path.read_text())
    user = document["users"][0]["user"]
    assert base64.b64decode(user["client-certificate-data"]) == b"CERT"
    assert base64.b64decode(user["client-key-data"]) == b"KEY"
    ca = document["clusters"][0]["cluster"]["certificate-authority-data"]
    assert base64.b64decode(ca) == b"CA"
