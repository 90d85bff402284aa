"""Who may see the daemon's pages: its own TokenReviews and reviews of rights at a real API server.

The answers are compared with those of a real kube-scheduler: same status, same text.
"""

import http.client
import json
import ssl
from pathlib import Path

import pytest

from testbed.bed import Bed
from testbed.installation import create_objects, load_manifest
from testbed.kubeconfig import read_token_kubeconfig
from testbed.options import SCHEDULER, BedOptions
from testbed.ports import choose_ports
from testbed.waiting import eventually
from tests.integration.daemons import refusals, running

READER = "k8s-scheduler-metrics-reader"
PAGES = ("/metrics", "/metrics/slis", "/metrics/resources")


@pytest.fixture(scope="module")
def bed():
    """A bed with kube-scheduler, two service accounts, and the right to read for one of them."""
    with Bed(BedOptions(components=(SCHEDULER,))) as bed:
        for name in ("scraper", "stranger"):
            bed.client.create(
                "/api/v1/namespaces/default/serviceaccounts",
                {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}},
            )
        subject = {"kind": "ServiceAccount", "name": "scraper", "namespace": "default"}
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": READER}
        binding = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "scrapers"},
            "roleRef": role,
            "subjects": [subject],
        }
        create_objects(bed, [*load_manifest("metrics-reader.yaml"), binding])
        yield bed


@pytest.fixture(scope="module")
def daemon(bed):
    flags = (
        "--leader-elect=false",
        f"--client-ca-file={bed.state_dir}/pki/ca.crt",
        "--authorization-webhook-cache-authorized-ttl=1s",
    )
    with running(bed, guarded=True, flags=flags) as daemon:
        yield daemon
        assert refusals(daemon) == []


def token_of(bed: Bed, name: str) -> str:
    if name == "admin":
        return read_token_kubeconfig(bed.kubeconfig).token
    return bed.token_for_service_account("default", name)


def ask(port, path, *, method="GET", authorization="", pair: Path | None = None):
    """Return status, text and content type."""
    context = ssl._create_unverified_context()
    if pair is not None:
        context.load_cert_chain(f"{pair}.crt", f"{pair}.key")
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=20, context=context)
    try:
        headers = {"Authorization": authorization} if authorization else {}
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode(), answer.getheader("Content-Type")
    finally:
        connection.close()


def test_refusals_are_those_of_kube_scheduler(bed, daemon):
    theirs = int(bed.url(SCHEDULER).rpartition(":")[2])
    stranger = f"Bearer {token_of(bed, 'stranger')}"
    for path, method, authorization in (
        ("/metrics", "GET", ""),
        ("/metrics", "GET", "Bearer nonsense"),
        ("/metrics", "GET", "bearer nonsense"),
        ("/metrics", "GET", "Bearer"),
        ("/metrics", "GET", "Basic YTpi"),
        ("/metrics", "GET", stranger),
        ("/metrics", "POST", stranger),
        ("/metrics/slis", "GET", stranger),
        ("/metrics/resources?x=y", "GET", stranger),
        ("/configz", "GET", stranger),
        ("/no/such/page", "GET", ""),
        ("/metrics/../livez", "GET", ""),
    ):
        asked = (path, method, authorization[:10])
        expected = ask(theirs, path, method=method, authorization=authorization)
        assert expected[0] in {401, 403}, asked
        answer = ask(daemon.port, path, method=method, authorization=authorization)
        assert answer == expected, asked


def test_health_is_for_everybody(daemon):
    for path in ("/livez", "/readyz", "/healthz"):
        assert ask(daemon.port, path)[0] == 200
        assert ask(daemon.port, path, authorization="Bearer nonsense")[0] == 200


def test_who_has_the_right_sees_the_page_until_it_is_taken_away(bed, daemon):
    token = token_of(bed, "scraper")
    for path in PAGES:
        assert daemon.get(path, token=token)[0] == 200, path
    assert "scheduler_pending_pods" in daemon.get("/metrics", token=token)[1]
    assert daemon.get("/nowhere", token=token)[0] == 403
    assert daemon.get("/nowhere", token=token_of(bed, "admin"))[0] == 404
    bed.client.delete("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/scrapers")
    eventually(lambda: daemon.get("/metrics", token=token)[0] == 403, 15, "the door is shut")


def test_a_client_certificate_says_who_somebody_is(bed, daemon):
    pki = bed.state_dir / "pki"
    assert ask(daemon.port, "/metrics", pair=pki / "admin")[0] == 200
    with pytest.raises((ssl.SSLError, OSError)):
        ask(daemon.port, "/metrics", pair=pki / "front-proxy")


def test_reviews_that_fail_keep_the_door_shut_and_are_told(bed, tmp_path):
    (nobody,) = choose_ports(1, taken=set())
    dead = tmp_path / "kubeconfig"
    bed.kubeconfig_for_token(dead, "whatever")
    text = dead.read_text().replace(bed.url("kube-apiserver"), f"https://127.0.0.1:{nobody}")
    assert str(nobody) in text
    dead.write_text(text)
    flags = (
        "--leader-elect=false",
        f"--authentication-kubeconfig={dead}",
        f"--authorization-kubeconfig={dead}",
    )
    with running(bed, guarded=True, flags=flags) as daemon:
        admin = token_of(bed, "admin")
        status, text = daemon.get("/metrics", token=admin)
        assert (status, json.loads(text)["message"]) == (401, "Unauthorized")
        status, text = daemon.get("/metrics")
        assert status == 500
        assert text.startswith('Internal Server Error: "/metrics"')
        assert daemon.get("/readyz")[0] == 200
        log = daemon.log.read_text()
        for resource in (
            "tokenreviews.authentication.k8s.io",
            "subjectaccessreviews.authorization.k8s.io",
        ):
            assert f"cannot find out who may see a page: create {resource}" in log
        assert admin not in log
