"""What the flags about access come to: whom the gate asks, and for how long it remembers."""

import json
from contextlib import AsyncExitStack

import pytest

from k8s_scheduler.app.options import AccessOptions
from k8s_scheduler.app.serving import _gate
from k8s_scheduler.console.gate import Knock
from k8s_scheduler.kube.errors import CredentialsError
from k8s_scheduler.kube.http.protocol import Response
from k8s_scheduler.obs.metrics import Metrics
from tests.fakes.transport import FakeTransport

ALLOWED = Response(201, b'{"status": {"allowed": true}}')
KNOWN = Response(201, b'{"status": {"authenticated": true, "user": {"username": "a"}}}')


async def admitted(access: AccessOptions, api: FakeTransport, *knocks: Knock) -> list[int]:
    """Return the status that each gets; 200 for whoever is let in."""
    async with AsyncExitStack() as stack:
        gate = await _gate(access, api, Metrics(), stack)
        refusals = [await gate.admit(knock) for knock in knocks]
    return [200 if refusal is None else refusal.status for refusal in refusals]


async def test_the_daemons_own_connections_ask():
    api = FakeTransport()
    api.script("POST", "/apis/authentication.k8s.io/v1/tokenreviews", KNOWN)
    api.script("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", ALLOWED)
    knock = Knock("GET", "/metrics", "Bearer t")
    assert await admitted(AccessOptions(), api, knock, knock) == [200, 200]
    assert len(api.requests) == 2


async def test_times_and_paths_are_those_of_the_flags():
    api = FakeTransport()
    api.script("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", *[ALLOWED] * 2)
    access = AccessOptions(always_allow_paths=("/open",), authorized_ttl_seconds=0.0)
    knocks = [Knock("GET", path) for path in ("/open", "/livez", "/livez")]
    assert await admitted(access, api, *knocks) == [200, 200, 200]
    assert len(api.requests) == 2


@pytest.mark.parametrize("which", ["authentication", "authorization"])
async def test_a_kubeconfig_that_is_not_there_is_named_with_its_flag(which):
    access = AccessOptions(**{f"{which}_kubeconfig": "/no/such/file"})
    with pytest.raises(CredentialsError, match=f"--{which}-kubeconfig: .*/no/such/file"):
        await admitted(access, FakeTransport())


@pytest.mark.parametrize(
    ("which", "asked"), [("authentication", 0), ("authorization", 1)], ids=["who", "what"]
)
async def test_another_server_may_be_asked_for_one_of_the_two(tmp_path, which, asked):
    file = tmp_path / "kubeconfig"
    config = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c"}}],
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
    }
    file.write_text(json.dumps(config))
    api = FakeTransport()
    api.script("POST", "/apis/authentication.k8s.io/v1/tokenreviews", KNOWN)
    access = AccessOptions(**{f"{which}_kubeconfig": str(file)})
    (status,) = await admitted(access, api, Knock("GET", "/metrics", "Bearer t"))
    assert status == (401 if which == "authentication" else 500)
    assert len(api.requests) == asked
