"""The bed keeps its promises: it is a real cluster, and it leaves nothing behind."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from testbed.audit import COMPLETE, RECEIVED
from testbed.bed import Bed
from testbed.client import Client
from testbed.errors import ApiError, ComponentError
from testbed.options import API_SERVER, CONTROLLER_MANAGER, ETCD, KWOK, SCHEDULER, BedOptions
from testbed.processes import ProcessId
from testbed.registry import Registry
from testbed.sandbox import Sandbox
from testbed.waiting import eventually
from testbed.workload import make_node, make_pod

_PROJECT = Path(__file__).parents[2]

# Opens a bed, tells about it, and then waits for its end.
_OWNER = """
import json, signal, sys
# A shell's background jobs ignore Ctrl-C, and so do their children.
signal.signal(signal.SIGINT, signal.default_int_handler)
from pathlib import Path
from testbed.bed import Bed
from testbed.options import BedOptions
from testbed.registry import Registry
with Bed(BedOptions(components=()), registry=Registry(Path(sys.argv[1]))) as bed:
    pids = [bed.pid(name) for name in bed.options.all_components]
    print(json.dumps({"pids": pids, "state_dir": str(bed.state_dir)}), flush=True)
    signal.pause()
"""


def _start_owner(registry_root: Path) -> tuple[subprocess.Popen[str], list[ProcessId], Path]:
    owner = subprocess.Popen(
        [sys.executable, "-c", _OWNER, str(registry_root)],
        cwd=_PROJECT,
        stdout=subprocess.PIPE,
        text=True,
    )
    told = json.loads(owner.stdout.readline())
    owner.stdout.close()
    return owner, [ProcessId.of(pid) for pid in told["pids"]], Path(told["state_dir"])


def _assert_nothing_left(processes: list[ProcessId], folder: Path) -> None:
    eventually(
        lambda: not any(process.is_alive() for process in processes), 10, "processes are gone"
    )
    eventually(lambda: not folder.exists(), 10, f"{folder} is gone")


class TestCluster:
    """It is a real cluster."""

    def test_api_server_answers_with_the_version_it_was_built_as(self, control_plane: Bed):
        binary = control_plane.binary(API_SERVER)
        assert control_plane.client.get("/version")["gitVersion"] == binary.version
        if binary.origin == "build cache":
            assert binary.version == "v1.37.1"

    def test_service_account_without_a_role_is_forbidden(self, sandbox: Sandbox, tmp_path: Path):
        token = sandbox.bed.token_for_service_account(sandbox.namespace, "default")
        kubeconfig = sandbox.bed.kubeconfig_for_token(tmp_path / "kubeconfig", token)
        with Client.from_kubeconfig(kubeconfig) as client, pytest.raises(ApiError) as caught:
            client.list(f"{sandbox.path}/secrets")
        user = f"system:serviceaccount:{sandbox.namespace}:default"
        assert caught.value.status == 403
        assert user in caught.value.message

    def test_request_without_credentials_is_forbidden(self, control_plane: Bed):
        ca_pem = (control_plane.state_dir / "pki" / "ca.crt").read_text()
        with (
            Client(control_plane.url(API_SERVER), ca_pem=ca_pem) as client,
            pytest.raises(ApiError) as caught,
        ):
            client.list("/api/v1/nodes")
        assert caught.value.status == 403

    def test_pod_gets_a_token_volume_from_its_service_account(self, sandbox: Sandbox):
        (pod,) = sandbox.create_pods([make_pod("with-token")])
        projected = [volume["projected"] for volume in pod["spec"]["volumes"]]
        assert any("serviceAccountToken" in source for source in projected[0]["sources"])

    def test_ready_node_loses_the_not_ready_taint_and_keeps_what_it_was_given(
        self, sandbox: Sandbox
    ):
        taint = {"key": "dedicated", "value": "db", "effect": "NoSchedule"}
        sandbox.create_nodes([make_node("given", cpu="3", memory="5Gi", pods=7, taints=[taint])])
        node = eventually(
            lambda: [
                node
                for node in sandbox.client.list("/api/v1/nodes")
                if node["spec"].get("taints") == [taint]
            ],
            10,
            "only our own taint",
        )[0]
        assert node["status"]["allocatable"] == {"cpu": "3", "memory": "5Gi", "pods": "7"}

    def test_audit_log_shows_a_binding_when_it_arrives_and_when_it_is_answered(
        self, sandbox: Sandbox
    ):
        sandbox.create_nodes([make_node("audited")])
        (pod,) = sandbox.create_pods([make_pod("bound-once")])
        sandbox.bind(pod, "audited")
        with pytest.raises(ApiError) as caught:
            sandbox.bind(pod, "audited")
        assert caught.value.status == 409

        entries = [
            entry
            for entry in sandbox.bed.audit_entries()
            if entry.namespace == sandbox.namespace and entry.name == "bound-once"
        ]
        assert [entry.stage for entry in entries] == [RECEIVED, COMPLETE] * 2
        assert [entry.status for entry in entries] == [0, 201, 0, 409]
        (success,) = (entry for entry in entries if entry.is_successful_binding)
        assert (success.target_node, success.target_uid) == ("audited", pod["metadata"]["uid"])

    def test_kwok_runs_bound_pods_and_removes_deleted_ones(self, kwok_sandbox: Sandbox):
        kwok_sandbox.create_nodes([make_node("simulated")])
        (pod,) = kwok_sandbox.create_pods([make_pod("runs")])
        kwok_sandbox.bind(pod, "simulated")
        eventually(
            lambda: kwok_sandbox.pods()["runs"]["status"]["phase"] == "Running", 20, "it runs"
        )
        kwok_sandbox.client.delete(f"{kwok_sandbox.path}/pods/runs")
        eventually(lambda: "runs" not in kwok_sandbox.pods(), 20, "it is gone")


class TestComponents:
    """Single components stop, die and come back with their data."""

    def test_restart_and_crash_of_api_server_and_etcd_keep_data_and_kubeconfig(self, tmp_path):
        with Bed(BedOptions(components=()), registry=Registry(tmp_path / "registry")) as bed:
            bed.client.create("/api/v1/nodes", make_node("kept"))
            url = bed.url(API_SERVER)

            bed.restart(API_SERVER)
            assert bed.client.get("/api/v1/nodes/kept")["metadata"]["name"] == "kept"

            bed.kill(API_SERVER)
            assert bed.pid(API_SERVER) is None
            with pytest.raises(OSError, match=r"."):
                bed.client.get("/api/v1/nodes/kept")
            bed.kill(ETCD)
            bed.start(ETCD)
            bed.start(API_SERVER)

            assert bed.url(API_SERVER) == url
            assert bed.client.get("/api/v1/nodes/kept")["metadata"]["name"] == "kept"

    def test_resuming_a_watch_from_compacted_history_is_answered_410(self, tmp_path: Path):
        with Bed(BedOptions(components=()), registry=Registry(tmp_path / "registry")) as bed:
            old = bed.client.get("/api/v1/nodes")["metadata"]["resourceVersion"]
            for index in range(3):
                bed.client.create("/api/v1/nodes", make_node(f"node-{index}"))
            bed.compact_etcd()
            bed.restart(API_SERVER)
            status, body = bed.client.request(
                "GET",
                "/api/v1/nodes",
                query={"watch": "1", "resourceVersion": old, "timeoutSeconds": "5"},
            )
            event = json.loads(body.splitlines()[0])
        code = event["object"]["code"] if status == 200 else event["code"]
        assert code == 410

    def test_component_that_dies_at_start_shows_its_last_log_lines(self, tmp_path: Path):
        options = BedOptions(components=(), extra_flags={API_SERVER: ["--no-such-flag"]})
        bed = Bed(options, registry=Registry(tmp_path / "registry"))
        with pytest.raises(ComponentError, match="unknown flag: --no-such-flag"):
            bed.open()
        assert not (tmp_path / "registry").exists()

    def test_stock_scheduler_binds_a_pod(self, tmp_path: Path):
        options = BedOptions(components=(CONTROLLER_MANAGER, SCHEDULER, KWOK))
        with (
            Bed(options, registry=Registry(tmp_path / "registry")) as bed,
            Sandbox(bed) as sandbox,
        ):
            sandbox.create_nodes([make_node("only")])
            sandbox.create_pods([make_pod("placed")])
            eventually(
                lambda: sandbox.pods()["placed"]["spec"].get("nodeName") == "only", 20, "bound"
            )


class TestNothingLeft:
    """Whatever way a bed ends, no process and no file stays."""

    def test_closing_leaves_no_process_and_no_file(self, tmp_path: Path):
        options = BedOptions(components=(CONTROLLER_MANAGER, KWOK), state_dir=tmp_path / "state")
        with Bed(options, registry=Registry(tmp_path / "registry")) as bed:
            processes = [ProcessId.of(bed.pid(name)) for name in options.all_components]
            assert all(process.is_alive() for process in processes)
        assert not any(process.is_alive() for process in processes)
        assert list(tmp_path.iterdir()) == []

    def test_bed_outlives_the_thread_that_opened_it(self, tmp_path: Path):
        bed = Bed(BedOptions(components=()), registry=Registry(tmp_path / "registry"))
        opener = threading.Thread(target=bed.open)
        opener.start()
        opener.join()
        try:
            assert bed.client.get("/version")["major"] == "1"
            assert bed.pid(ETCD) is not None
        finally:
            bed.close()

    @pytest.mark.parametrize(
        "how",
        [
            pytest.param(signal.SIGKILL, id="killed hard"),
            pytest.param(signal.SIGTERM, id="terminated without a handler"),
            pytest.param(signal.SIGINT, id="interrupted by Ctrl-C"),
        ],
    )
    def test_end_of_the_owner_leaves_no_process_and_no_file(
        self, tmp_path: Path, how: signal.Signals
    ):
        owner, processes, state_dir = _start_owner(tmp_path / "registry")
        assert all(process.is_alive() for process in processes)
        assert state_dir.is_dir()
        owner.send_signal(how)
        owner.wait()
        _assert_nothing_left(processes, tmp_path / "registry")

    def test_orphan_whose_guardian_died_too_is_removed_by_the_next_bed(self, tmp_path: Path):
        root = tmp_path / "registry"
        owner, processes, state_dir = _start_owner(root)
        guardian = next(
            int(entry.name)
            for entry in Path("/proc").iterdir()
            if entry.name.isdigit() and _parent(entry) == owner.pid and _is_guardian(entry)
        )
        os.kill(guardian, signal.SIGKILL)
        owner.kill()
        owner.wait()
        eventually(lambda: not any(process.is_alive() for process in processes), 10, "all dead")
        assert state_dir.is_dir()
        with Bed(BedOptions(components=()), registry=Registry(root)):
            assert not state_dir.exists()
        assert not root.exists()


class TestCommandLine:
    """`python -m testbed` as a user types it."""

    def test_up_status_up_again_and_down(self, tmp_path: Path):
        def run(*arguments: str) -> subprocess.CompletedProcess[str]:
            return subprocess.run(
                [sys.executable, "-m", "testbed", *arguments],
                cwd=_PROJECT,
                env={**os.environ, "TMPDIR": str(tmp_path)},
                capture_output=True,
                text=True,
                check=False,
                timeout=120,
            )

        up = run("up", "--with", "kcm,kwok", "--nodes", "3")
        try:
            assert up.returncode == 0, up.stderr
            exported = up.stdout.splitlines()[-1].removeprefix("export KUBECONFIG=")
            with Client.from_kubeconfig(Path(exported)) as client:
                assert len(client.list("/api/v1/nodes")) == 3

            status = run("status")
            assert status.returncode == 0, status.stdout
            for component in (ETCD, API_SERVER, CONTROLLER_MANAGER, KWOK):
                assert component in status.stdout

            again = run("up")
            assert again.returncode == 0
            assert "runs already" in again.stderr
            assert again.stdout == up.stdout
        finally:
            down = run("down")
        assert down.returncode == 0, down.stderr
        assert list(tmp_path.iterdir()) == []
        assert run("status").returncode == 1


def _parent(entry: Path) -> int:
    try:
        return int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def _is_guardian(entry: Path) -> bool:
    return b"testbed.guardian" in (entry / "cmdline").read_bytes()
