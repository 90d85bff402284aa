"""`k8s-scheduler rbac` prints what `run` needs with the same flags."""

import pytest
import yaml
from click.testing import CliRunner

from k8s_scheduler.app.process.exit_codes import ExitCode
from k8s_scheduler.cli.main import main


def printed(*arguments):
    result = CliRunner().invoke(main, ["rbac", *arguments])
    assert result.exit_code == 0, result.output
    return list(yaml.safe_load_all(result.output))


def resources(documents):
    (role,) = [d for d in documents if d["kind"] == "ClusterRole"]
    return {resource for rule in role["rules"] for resource in rule.get("resources", ())}


def paths(documents):
    (role,) = [d for d in documents if d["kind"] == "ClusterRole"]
    return {path for rule in role["rules"] for path in rule.get("nonResourceURLs", ())}


def test_without_a_file_it_is_for_the_defaults():
    kinds = [d["kind"] for d in printed()]
    assert kinds == [
        "ServiceAccount",
        "ClusterRole",
        "ClusterRoleBinding",
        "Role",
        "RoleBinding",
        "Role",
        "RoleBinding",
    ]


def test_names_and_namespaces_can_be_chosen():
    documents = printed("--name=mine", "--namespace=a", "--leader-elect-resource-namespace=b")
    assert {d["metadata"]["name"] for d in documents} == {
        "mine",
        "mine-leader-election",
        "mine-configuration",
    }
    assert documents[0]["metadata"]["namespace"] == "a"
    assert documents[3]["metadata"]["namespace"] == "b"


def test_what_is_switched_off_needs_no_rights():
    documents = printed("--secure-port=0", "--leader-elect=false")
    assert {d["metadata"]["name"] for d in documents} == {
        "k8s-scheduler",
        "k8s-scheduler-configuration",
    }
    assert "tokenreviews" not in resources(documents)
    assert "tokenreviews" in resources(printed())
    assert "/configz" not in paths(documents)
    assert "/configz" in paths(printed())


def test_config_maps_in_two_namespaces_get_a_role_in_each():
    documents = printed("--config-map=a/mine:key", "--last-good-config-map=b/kept")
    roles = {d["metadata"]["namespace"]: d["rules"] for d in documents if d["kind"] == "Role"}
    assert [rule["resourceNames"] for rule in roles["a"]] == [["mine"]]
    assert [rule["verbs"] for rule in roles["b"]] == [["get", "patch"]]


@pytest.mark.parametrize(
    ("flags", "place"),
    [
        (["--namespace=a"], ("b", "kept")),
        (["--namespace=a", "--last-good-config-map=other"], ("a", "other")),
    ],
    ids=["the file's", "the flag wins"],
)
def test_the_last_good_configuration_is_kept_where_the_file_says(tmp_path, flags, place):
    file = tmp_path / "config.yaml"
    file.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n---\n"
        "apiVersion: k8s-scheduler.io/v1alpha1\nkind: SchedulerExtras\n"
        "lastGood: {configMap: b/kept}\n"
    )
    documents = printed(f"--config={file}", *flags)
    allowed = [
        (d["metadata"]["namespace"], *rule["resourceNames"])
        for d in documents
        for rule in d.get("rules", ())
        if "patch" in rule["verbs"] and rule.get("resources") == ["configmaps"]
    ]
    assert allowed == [place]


@pytest.mark.parametrize(
    "flag", ["--name=Mine", "--name=", "--namespace=a b", f"--namespace={'n' * 64}"]
)
def test_a_name_that_cannot_be_is_refused(flag):
    result = CliRunner().invoke(main, ["rbac", flag])
    assert result.exit_code == ExitCode.USAGE
    assert f"Invalid value for '{flag.partition('=')[0]}'" in result.output
    assert '" cannot be a name' in result.output


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ([f"--name={'n' * 250}"], "--name is too long for a ConfigMap called after it: "),
        (
            ["--config-map=a/x:k", "--last-good-config-map=a/x"],
            "the ConfigMap a/x holds the config",
        ),
        (["--last-good-config-map=k8s-scheduler"], "the ConfigMap kube-system/k8s-scheduler holds"),
    ],
    ids=["too long", "one for both", "the usual one for both"],
)
def test_config_maps_that_cannot_be_are_refused(flags, message):
    result = CliRunner().invoke(main, ["rbac", *flags])
    assert result.exit_code == ExitCode.USAGE
    assert f"Error: {message}" in result.output


def test_a_long_name_is_fine_where_the_config_map_has_another():
    long = "n" * 250
    documents = printed(f"--name={long}", "--last-good-config-map=x", "--config-map=y")
    assert documents[0]["metadata"]["name"] == long


def test_a_wrong_file_is_refused_with_its_errors(tmp_path):
    file = tmp_path / "config.yaml"
    file.write_text("apiVersion: kubescheduler.config.k8s.io/v1\nkind: Nonsense\n")
    result = CliRunner().invoke(main, ["rbac", "--config", str(file)])
    assert result.exit_code == ExitCode.USAGE
    assert f"{file}:2" in result.output
