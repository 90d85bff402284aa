"""The chart says what the manifests say, and so does what is shipped for the shadow."""

import json
import re

import msgspec
import pytest
import yaml

import k8s_scheduler
from k8s_scheduler.api.config.types import KubeSchedulerConfiguration
from k8s_scheduler.api.kinds import BUILT_IN
from k8s_scheduler.app.configuration.status import FIXED
from k8s_scheduler.cli.shadow import shadow
from tests.unit.shipped import (
    CHART,
    MANIFESTS,
    Object,
    configuration,
    container,
    find,
    granted,
    plain_block,
    pod_spec,
    read,
    template,
)

INFORM = ("list", "watch")
QUOTED_FULLNAME = '{{ include "k8s-scheduler.fullname" . | quote }}'
# What stands alone behind a colon without quotes: numbers, words of a fixed set, checksums.
UNQUOTED = {
    "{{ . }}",
    "{{ .Chart.Name }}",
    "{{ .Release.Service }}",
    "{{ .Values.image.pullPolicy }}",
    "{{ .Values.replicaCount }}",
    "{{ .Values.terminationGracePeriodSeconds }}",
    '{{ include "k8s-scheduler.tlsPath" . }}',
}


class TestShadow:
    """`k8s-scheduler shadow` may look, and nothing else."""

    def test_its_role_has_no_verb_that_changes_anything(self) -> None:
        (role,) = [o for o in shadow_objects() if o["kind"] == "ClusterRole"]
        assert granted(role) == {
            *(("", kind, "", verb) for kind in ("pods", "nodes") for verb in INFORM),
            *((k.group, k.resource, "", verb) for k in BUILT_IN for verb in INFORM),
            # Questions about who reads its metrics: nothing is stored.
            ("authentication.k8s.io", "tokenreviews", "", "create"),
            ("authorization.k8s.io", "subjectaccessreviews", "", "create"),
        }

    def test_nothing_but_its_secure_port_can_be_reached(self) -> None:
        (policy,) = read(MANIFESTS / "shadow" / "networkpolicy.yaml")
        own = find("NetworkPolicy")["spec"]
        account = next(o for o in shadow_objects() if o["kind"] == "ServiceAccount")
        assert policy["metadata"] == account["metadata"]
        assert policy["spec"]["podSelector"]["matchLabels"] == {
            "app": "k8s-scheduler-shadow",
            "app.kubernetes.io/component": "shadow",
        }
        for key in ("policyTypes", "ingress"):
            assert policy["spec"][key] == own[key]

    def test_the_charts_policy_is_for_the_pods_of_its_deployment(self) -> None:
        text = template("networkpolicy")
        assert "(list $daemon $shadow) (list $daemon) .Values.shadow.enabled" in text
        assert '"selector" (include "k8s-scheduler.shadowSelectorLabels" .)' in text
        selector = template("shadow").partition("    matchLabels:\n")[2].partition("\n")[0]
        assert 'include "k8s-scheduler.shadowSelectorLabels"' in selector
        # Every rule stands once, for both: what is said of the daemon's holds for the shadow's.
        assert text.count("kind: NetworkPolicy") == text.count("  ingress:\n") == 1

    def test_the_role_is_bound_to_its_account(self) -> None:
        found = {o["kind"]: o for o in shadow_objects()}
        account = found["ServiceAccount"]["metadata"]
        (subject,) = found["ClusterRoleBinding"]["subjects"]
        assert (subject["name"], subject["namespace"]) == (account["name"], account["namespace"])
        assert found["ClusterRoleBinding"]["roleRef"]["name"] == "k8s-scheduler-shadow"

    def test_the_chart_grants_the_same(self) -> None:
        (role,) = [o for o in shadow_objects() if o["kind"] == "ClusterRole"]
        rules = plain_block(template("shadow"), "rules")
        assert granted({"rules": rules}) == granted(role)

    def test_the_chart_leaves_it_out_unless_asked_for_and_its_flags_exist(self) -> None:
        values = yaml.safe_load((CHART / "values.yaml").read_text())
        assert values["shadow"]["enabled"] is False
        flags = re.findall(r"^ {12}- (--?[a-z-]+)", template("shadow"), re.MULTILINE)
        known = {name for option in shadow.params for name in option.opts}
        assert set(flags) | {"--scheduler-name"} <= known


def shadow_objects() -> list[Object]:
    return read(MANIFESTS / "shadow" / "rbac.yaml")


def without_tls(text: str) -> str:
    """Leave out what is there with a certificate of one's own alone."""
    return re.sub(
        r" *\{\{- if \.Values\.tls\.secretName \}\}\n(.*\n)*? *\{\{- end \}\}\n", "", text
    )


class TestChart:
    """The chart installs what the manifests install."""

    def test_versions_are_the_packages(self) -> None:
        (chart,) = read(CHART / "Chart.yaml")
        assert chart["version"] == chart["appVersion"] == k8s_scheduler.__version__
        assert chart["kubeVersion"] == ">=1.30.0-0"

    def test_cluster_rights_are_the_same(self) -> None:
        """With all plugins; what is left out for others `make helm-check` compares."""
        text = template("clusterrole")
        with_all = re.sub(r"^ *\{\{- (if \S|end).*\}\}\n", "", text, flags=re.MULTILINE)
        rules = plain_block(with_all, "rules")
        assert granted({"rules": rules}) == granted(find("ClusterRole"))

    def test_lease_rights_are_the_same(self) -> None:
        text = template("role").replace(
            "{{ .Values.config.leaderElection.resourceName | quote }}", "k8s-scheduler"
        )
        role = find("Role", "k8s-scheduler-leader-election")
        assert granted({"rules": plain_block(text, "rules")}) == granted(role)

    def test_metrics_readers_are_the_same(self) -> None:
        rules = plain_block(template("metrics-reader"), "rules")
        assert rules == find("ClusterRole", "k8s-scheduler-metrics-reader")["rules"]

    def test_readers_of_the_configuration_are_the_same(self) -> None:
        values = yaml.safe_load((CHART / "values.yaml").read_text())
        rules = plain_block(template("config-reader"), "rules")
        assert rules == find("ClusterRole", "k8s-scheduler-config-reader")["rules"]
        assert values["configReader"] == values["metricsReader"] == {"create": True, "subjects": []}

    @pytest.mark.parametrize("name", ["clusterrole", "role", "configuration-role", "rivals-role"])
    def test_roles_that_the_command_prints_are_left_out_when_told(self, name: str) -> None:
        """With `rbac.create: false` people apply what `k8s-scheduler rbac` prints."""
        first, *_, last = template(name).splitlines()
        assert re.fullmatch(r"\{\{- if (and )?\.Values\.rbac\.create( .*)?\}\}", first)
        assert last == "{{- end }}"

    def test_every_role_of_the_daemon_is_in_one_of_those_files(self) -> None:
        ours = {
            *("clusterrole.yaml", "role.yaml", "configuration-role.yaml", "rivals-role.yaml"),
        }
        switches_of_their_own = {"metrics-reader.yaml", "config-reader.yaml", "shadow.yaml"}
        found = {
            file.name
            for file in (CHART / "templates").glob("*.yaml")
            if "rbac.authorization.k8s.io/v1" in file.read_text()
        }
        assert found == ours | switches_of_their_own

    def test_the_network_policy_is_the_same_by_default(self) -> None:
        values = yaml.safe_load((CHART / "values.yaml").read_text())["networkPolicy"]
        assert (values["enabled"], values["ingressFrom"]) == (True, [])
        assert values["egress"]["enabled"] is False
        spec = find("NetworkPolicy")["spec"]
        text = template("networkpolicy")
        block = text.partition("  ingress:\n")[2].partition(
            "      {{- with $policy.ingressFrom }}"
        )[0]
        assert yaml.safe_load(block) == spec["ingress"]

    def test_rights_on_configuration_are_the_same(self) -> None:
        text = template("configuration-role")
        for name in ('{{ include "k8s-scheduler.fullname" . }}', QUOTED_FULLNAME):
            text = text.replace(name, "k8s-scheduler")
        text = re.sub(r"^ *\{\{-.*\}\}\n", "", text, flags=re.MULTILINE)
        role = find("Role", "k8s-scheduler-configuration")
        assert granted({"rules": plain_block(text, "rules")}) == granted(role)

    @pytest.mark.parametrize(
        "key", ["livenessProbe", "readinessProbe", "ports", "env", "volumeMounts"]
    )
    def test_plain_parts_of_the_container_are_the_same(self, key: str) -> None:
        assert plain_block(without_tls(template("deployment")), key) == container()[key]

    def test_flags_are_the_same(self) -> None:
        values = yaml.safe_load((CHART / "values.yaml").read_text())
        text = template("deployment")
        for placeholder, value in (
            ('{{ include "k8s-scheduler.configFlag" . }}', container()["args"][1]),
            ("          {{- if .Values.lastGood.enabled }}\n", ""),
            ('{{ include "k8s-scheduler.fullname" . }}-last-good', "k8s-scheduler-last-good"),
            ("last-good\n          {{- end }}\n", "last-good\n"),
            ("{{ .Values.logging.format }}", values["logging"]["format"]),
            ("{{ .Values.logging.verbosity }}", str(values["logging"]["verbosity"])),
        ):
            assert placeholder in text
            text = text.replace(placeholder, value)
        block = text.partition("          args:\n")[2].partition("            {{-")[0]
        assert yaml.safe_load(block) == container()["args"]
        assert values["extraArgs"] == []
        assert values["lastGood"] == {"enabled": True}

    def test_the_configuration_comes_from_the_mount_or_through_the_api(self) -> None:
        values = yaml.safe_load((CHART / "values.yaml").read_text())
        helpers = (CHART / "templates" / "_helpers.tpl").read_text()
        flag = helpers.partition('define "k8s-scheduler.configFlag"')[2].split("\n")
        assert values["configFromApi"] is False
        assert flag[1] == "{{- if .Values.configFromApi -}}"
        assert flag[2].startswith("--config-map=$(POD_NAMESPACE)/")
        assert flag[4] == container()["args"][1]

    def test_default_values_are_the_manifests(self) -> None:
        values = yaml.safe_load((CHART / "values.yaml").read_text())
        assert values["replicaCount"] == find("Deployment")["spec"]["replicas"]
        assert values["resources"] == container()["resources"]
        assert values["securityContext"] == container()["securityContext"]
        assert values["podSecurityContext"] == pod_spec()["securityContext"]
        for key in ("priorityClassName", "terminationGracePeriodSeconds"):
            assert values[key] == pod_spec()[key]
        type_meta = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
        }
        assert type_meta | values["config"] == configuration()

    def test_schema_knows_every_default_value_and_no_other(self) -> None:
        values = yaml.safe_load((CHART / "values.yaml").read_text())
        schema = json.loads((CHART / "values.schema.json").read_text())
        assert schema["additionalProperties"] is False
        assert schema["properties"].keys() == values.keys() | {"global"}

    def test_every_name_is_quoted(self) -> None:
        """A release, a namespace or an account may be called `true` or `1234`."""
        folder = CHART / "templates"
        text = "".join(f.read_text() for f in (*folder.glob("*.yaml"), folder / "_helpers.tpl"))
        alone = re.findall(r": \[?(\{\{ [^}]*\}\})\]?$", text, re.MULTILINE)
        bare = {
            each for each in alone if not re.search(r"\| (quote|sha256sum|replace .*) \}\}", each)
        }
        assert bare == UNQUOTED
        ports = text.partition("{{- range $policy.egress.apiServerPorts }}\n")[2]
        assert (text.count(": {{ . }}"), ports.split("\n")[0].strip()) == (1, "- port: {{ . }}")

    def test_only_what_is_read_at_start_rolls_the_pods(self) -> None:
        (line,) = re.findall(r"checksum/config.*", template("deployment"))
        picked = re.findall(r'"(\w+)"', line)
        kinds = {f.name: f.encode_name for f in msgspec.structs.fields(KubeSchedulerConfiguration)}
        assert picked == [kinds[name] for name in (*FIXED, "delay_cache_until_active")]
