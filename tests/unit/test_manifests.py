"""What users deploy: the files in manifests/."""

import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import k8s_scheduler
from k8s_scheduler.api.config.load import load_configuration
from k8s_scheduler.cli.main import main
from k8s_scheduler.cli.run import run
from k8s_scheduler.core.builtins import known_plugins
from tests.unit.shipped import (
    APPLIED_FILES,
    KUSTOMIZE_FILES,
    MANIFESTS,
    ROOT,
    configuration,
    container,
    find,
    granted,
    objects,
    pod_spec,
    read,
)

READ = ("get", "list", "watch")
CLUSTER_SCOPED = {"ClusterRole", "ClusterRoleBinding", "FlowSchema"}
LABELS = {
    "app": "k8s-scheduler",
    "app.kubernetes.io/name": "k8s-scheduler",
    "app.kubernetes.io/component": "scheduler",
    "app.kubernetes.io/part-of": "k8s-scheduler",
    "app.kubernetes.io/managed-by": "kustomize",
    "app.kubernetes.io/version": k8s_scheduler.__version__,
}


class TestFiles:
    """`kubectl apply -k manifests` and `kubectl apply -f` of each file give the same objects."""

    def test_kustomization_lists_every_file(self) -> None:
        (kustomization,) = read(MANIFESTS / "kustomization.yaml")
        assert sorted(kustomization["resources"]) == APPLIED_FILES
        assert {"kustomization.yaml", *kustomization["configurations"]} == KUSTOMIZE_FILES

    def test_the_files_users_expect_are_there(self) -> None:
        expected = ["config-reader", "config", "flowschema", "last-good", "metrics-reader"]
        expected = [f"{name}.yaml" for name in (*expected, "networkpolicy", "rbac", "scheduler")]
        assert expected == APPLIED_FILES

    def test_every_object_names_the_namespace_of_the_kustomization(self) -> None:
        (kustomization,) = read(MANIFESTS / "kustomization.yaml")
        for o in objects():
            expected = None if o["kind"] in CLUSTER_SCOPED else kustomization["namespace"]
            assert o["metadata"].get("namespace") == expected, o["kind"]

    def test_the_namespace_setting_reaches_flow_schemas(self) -> None:
        (fields,) = read(MANIFESTS / "namespace-fields.yaml")
        (field,) = fields["namespace"]
        assert field["kind"] == "FlowSchema"
        for schema in (o for o in objects() if o["kind"] == "FlowSchema"):
            group = schema["apiVersion"].partition("/")[0]
            assert field["group"] == group
            places: list[Any] = [schema]
            for part in field["path"].split("/"):
                places = [p[part] for p in places]
                places = [q for p in places for q in (p if isinstance(p, list) else [p])]
            assert places == ["kube-system"]

    @pytest.mark.parametrize("kind", sorted({o["kind"] for o in objects()}))
    def test_every_object_carries_the_labels(self, kind: str) -> None:
        for o in objects():
            if o["kind"] == kind:
                assert o["metadata"]["labels"] == LABELS

    def test_no_two_objects_share_kind_and_name(self) -> None:
        names = [(o["kind"], o["metadata"]["name"]) for o in objects()]
        assert len(names) == len(set(names))


class TestConfiguration:
    """What is shipped is what the daemon accepts."""

    def test_configuration_loads_without_a_warning(self, tmp_path: Path) -> None:
        file = tmp_path / "config.yaml"
        file.write_text(find("ConfigMap")["data"]["config.yaml"])
        loaded = load_configuration(file, known_plugins())
        assert loaded.warnings == ()
        assert [p.scheduler_name for p in loaded.profiles] == ["k8s-scheduler"]

    def test_command_line_accepts_the_flags(self) -> None:
        command, *flags = container()["args"]
        assert command == run.name
        context = run.make_context(command, list(flags))
        assert str(context.params["config_file"]) == "/etc/kubernetes/k8s-scheduler/config.yaml"
        assert context.params["secure_port"] == 10259

    def test_lease_name_is_not_kube_schedulers(self) -> None:
        assert configuration()["leaderElection"]["resourceName"] != "kube-scheduler"


class TestRights:
    """The daemon may do what it does and nothing else; what that is says app/rights/table.py."""

    def test_the_file_is_what_the_command_prints_for_the_shipped_configuration(
        self, tmp_path: Path
    ) -> None:
        file = tmp_path / "config.yaml"
        file.write_text(find("ConfigMap")["data"]["config.yaml"])
        printed = CliRunner().invoke(main, ["rbac", "--config", str(file)])
        assert printed.exit_code == 0
        assert (MANIFESTS / "rbac.yaml").read_text() == printed.output

    def test_metrics_readers_may_read_metrics_and_nothing_else(self) -> None:
        role = find("ClusterRole", "k8s-scheduler-metrics-reader")
        paths = ["/metrics", "/metrics/slis", "/metrics/resources"]
        assert role["rules"] == [{"nonResourceURLs": paths, "verbs": ["get"]}]

    def test_who_runs_config_current_in_the_pod_may_read_the_configuration(self) -> None:
        assert ("", "/configz", "", "get") in granted(find("ClusterRole"))

    def test_readers_of_the_configuration_may_read_that_and_nothing_else(self) -> None:
        role = find("ClusterRole", "k8s-scheduler-config-reader")
        assert role["rules"] == [{"nonResourceURLs": ["/configz"], "verbs": ["get"]}]

    def test_lease_rights_are_limited_to_the_configured_name(self) -> None:
        name = configuration()["leaderElection"]["resourceName"]
        group = "coordination.k8s.io"
        assert granted(find("Role", "k8s-scheduler-leader-election")) == {
            (group, "leases", "", "create"),  # a create request has no name to be limited by
            (group, "leases", name, "get"),
            (group, "leases", name, "update"),
            (group, "leases", name, "watch"),  # by a field selector that names it
        }

    def test_rights_on_configuration_are_limited_to_two_names(self) -> None:
        own, saved = (
            find("ConfigMap", name)["metadata"]["name"]
            for name in ("k8s-scheduler", "k8s-scheduler-last-good")
        )
        assert granted(find("Role", "k8s-scheduler-configuration")) == {
            *(("", "configmaps", own, verb) for verb in READ),
            ("", "configmaps", saved, "get"),
            ("", "configmaps", saved, "patch"),
        }

    @pytest.mark.parametrize(
        ("binding", "name", "role"),
        [
            ("RoleBinding", "k8s-scheduler-configuration", "Role"),
            ("ClusterRoleBinding", "k8s-scheduler", "ClusterRole"),
            ("RoleBinding", "k8s-scheduler-leader-election", "Role"),
        ],
    )
    def test_bindings_join_the_role_to_the_service_account(
        self, binding: str, name: str, role: str
    ) -> None:
        account = find("ServiceAccount")["metadata"]
        found = find(binding, name)
        assert (found["roleRef"]["kind"], found["roleRef"]["name"]) == (role, name)
        (subject,) = found["subjects"]
        assert subject == {
            "kind": "ServiceAccount",
            "name": account["name"],
            "namespace": account["namespace"],
        }


class TestDeployment:
    """The pods: safe, observable, and able to hand over."""

    def test_configuration_is_mounted_as_a_directory(self) -> None:
        volumes = {v["name"]: v for v in pod_spec()["volumes"]}
        mounts = {m["mountPath"]: m for m in container()["volumeMounts"]}
        mount = mounts["/etc/kubernetes/k8s-scheduler"]
        assert volumes[mount["name"]]["configMap"]["name"] == find("ConfigMap")["metadata"]["name"]
        assert "--config=/etc/kubernetes/k8s-scheduler/config.yaml" in container()["args"]
        assert not any({"subPath", "subPathExpr"} & m.keys() for m in container()["volumeMounts"])

    def test_the_last_good_configuration_is_kept_where_the_role_allows_it(self) -> None:
        saved = find("ConfigMap", "k8s-scheduler-last-good")
        assert f"--last-good-config-map={saved['metadata']['name']}" in container()["args"]
        # Applied again, it must not take away what was saved.
        assert "data" not in saved

    def test_the_pod_knows_itself(self) -> None:
        environment = {e["name"]: e["valueFrom"]["fieldRef"] for e in container()["env"]}
        assert environment["POD_NAME"] == {"fieldPath": "metadata.name"}

    def test_everything_that_is_writable_is_a_bounded_volume(self) -> None:
        volumes = {v["name"]: v for v in pod_spec()["volumes"]}
        for mount in container()["volumeMounts"]:
            if not mount.get("readOnly", False):
                assert volumes[mount["name"]]["emptyDir"]["sizeLimit"]

    def test_the_lease_lives_in_the_pods_own_namespace(self) -> None:
        environment = {e["name"]: e for e in container()["env"]}
        assert "--leader-elect-resource-namespace=$(POD_NAMESPACE)" in container()["args"]
        source = environment["POD_NAMESPACE"]["valueFrom"]["fieldRef"]["fieldPath"]
        assert source == "metadata.namespace"
        assert "resourceNamespace" not in configuration()["leaderElection"]

    def test_replicas_elect_a_leader(self) -> None:
        assert find("Deployment")["spec"]["replicas"] == 2
        assert configuration()["leaderElection"]["leaderElect"] is True

    @pytest.mark.parametrize(
        ("probe", "path"), [("livenessProbe", "/livez"), ("readinessProbe", "/readyz")]
    )
    def test_probes_speak_https_to_the_secure_port(self, probe: str, path: str) -> None:
        request = container()[probe]["httpGet"]
        ports = {p["name"]: p["containerPort"] for p in container()["ports"]}
        assert (request["path"], request["scheme"]) == (path, "HTTPS")
        assert ports[request["port"]] == 10259
        assert "--secure-port=10259" in container()["args"]

    def test_container_has_no_privileges(self) -> None:
        pod, own = pod_spec()["securityContext"], container()["securityContext"]
        assert pod["runAsNonRoot"] is True
        assert pod["runAsUser"] == pod["runAsGroup"] == 65532
        assert pod["seccompProfile"] == {"type": "RuntimeDefault"}
        assert own == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }

    def test_image_user_is_the_one_the_manifests_name(self) -> None:
        user = re.search(r"^USER (\d+):(\d+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
        assert user is not None
        assert {int(u) for u in user.groups()} == {pod_spec()["securityContext"]["runAsUser"]}

    def test_image_is_the_released_version(self) -> None:
        assert container()["image"] == f"k8s-scheduler:{k8s_scheduler.__version__}"
        assert f"ARG VERSION={k8s_scheduler.__version__}\n" in (ROOT / "Dockerfile").read_text()

    def test_cpu_is_never_throttled(self) -> None:
        resources = container()["resources"]
        assert set(resources["requests"]) == {"cpu", "memory"}
        assert set(resources["limits"]) == {"memory"}

    def test_selectors_match_the_pods_and_nothing_of_another_component(self) -> None:
        labels = find("Deployment")["spec"]["template"]["metadata"]["labels"]
        assert labels == LABELS
        selector = find("Deployment")["spec"]["selector"]["matchLabels"]
        assert selector == find("Service")["spec"]["selector"]
        assert selector.items() <= labels.items()
        assert "app.kubernetes.io/component" in selector
        assert "app.kubernetes.io/version" not in selector

    def test_service_reaches_the_metrics_of_each_replica(self) -> None:
        service = find("Service")["spec"]
        (port,) = service["ports"]
        assert service["clusterIP"] == "None"
        assert port["targetPort"] in {p["name"] for p in container()["ports"]}


class TestNetworkPolicy:
    """Nothing but the secure port can be reached."""

    def test_it_is_about_our_pods_and_their_only_port(self) -> None:
        spec = find("NetworkPolicy")["spec"]
        selector = find("Deployment")["spec"]["selector"]["matchLabels"]
        assert spec["podSelector"]["matchLabels"] == selector
        assert spec["policyTypes"] == ["Ingress"]
        (port,) = container()["ports"]
        assert spec["ingress"] == [{"ports": [{"port": port["containerPort"], "protocol": "TCP"}]}]


class TestFlowSchemas:
    """API Priority and Fairness treats the daemon as it treats kube-scheduler."""

    @pytest.mark.parametrize(
        ("name", "level"),
        [
            ("k8s-scheduler", "workload-high"),
            ("k8s-scheduler-leader-election", "leader-election"),
        ],
    )
    def test_service_account_gets_the_priority_level(self, name: str, level: str) -> None:
        spec = find("FlowSchema", name)["spec"]
        account = find("ServiceAccount")["metadata"]
        (rule,) = spec["rules"]
        (subject,) = rule["subjects"]
        assert spec["priorityLevelConfiguration"]["name"] == level
        assert subject["serviceAccount"] == {
            "name": account["name"],
            "namespace": account["namespace"],
        }

    def test_leases_are_matched_before_everything_else(self) -> None:
        lease = find("FlowSchema", "k8s-scheduler-leader-election")["spec"]
        rest = find("FlowSchema")["spec"]
        kube_system_service_accounts = 900
        assert lease["matchingPrecedence"] < rest["matchingPrecedence"]
        assert rest["matchingPrecedence"] < kube_system_service_accounts
