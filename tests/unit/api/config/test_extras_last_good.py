"""`lastGood` in SchedulerExtras: what it may say, and how it is read from a broken file."""

import pytest

from k8s_scheduler.api.config import documents as config_documents
from k8s_scheduler.api.config.documents import kept_in
from k8s_scheduler.api.config.field_errors import ConfigurationError
from k8s_scheduler.api.config.load import configuration_from_text
from k8s_scheduler.api.config.summary import summary
from k8s_scheduler.core.builtins import known_plugins

MAIN = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
HEAD = "apiVersion: k8s-scheduler.io/v1alpha1\nkind: SchedulerExtras\n"


def load(config_map):
    text = f"{MAIN}---\n{HEAD}lastGood:\n  configMap: {config_map}\n"
    return configuration_from_text(text, known_plugins(), source="f.yaml")


@pytest.mark.parametrize("name", ["ns/name", "name"])
def test_a_config_map_is_named_with_or_without_its_namespace(name):
    found = load(name)
    assert found.extras.last_good.config_map == name
    assert f"last good configuration: kept in ConfigMap {name}" in summary(found)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ns/name:key", "names a key; only NAMESPACE/NAME is expected"),
        ("ns/Name", '"Name" cannot be the name of a ConfigMap'),
        ("a/b/name", '"a/b" cannot be a namespace'),
    ],
)
def test_a_name_that_cannot_be_is_an_error_with_its_line(name, message):
    with pytest.raises(ConfigurationError) as caught:
        load(f'"{name}"')
    assert str(caught.value).startswith("f.yaml:7: lastGood.configMap: Invalid value: ")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        f"{MAIN}---\n{HEAD}lastGood: {{configMap: a/b}}\n",
        f"{HEAD}lastGood: {{configMap: a/b}}\n---\n{MAIN}nonsense: [\n",
        f"{{{{ not even YAML\n--- # ours\n{HEAD}lastGood: {{configMap: a/b}}\n",
        f"kind: Other\n---\n{HEAD}lastGood: {{configMap: a/b}}\n---\n[]\n",
    ],
    ids=["all is well", "broken after it", "broken before it", "something else around it"],
)
def test_the_place_is_found_beside_anything(text):
    assert kept_in(text) == "a/b"


@pytest.mark.parametrize(
    "field",
    [
        "nodeOwnership: {nodeSelector: {nodeSelectorTerms: []}}",
        "nodeOwnership: {nodeSelector: {nodeSelectorTerms: [{}]}}",
        "batch: {maxPods: 0}",
        "batch: []",
        "bach: {}",
        "batch: {}\nbatch: {}",
    ],
    ids=["no terms", "an empty term", "a number", "a type", "a name", "twice"],
)
def test_what_is_wrong_elsewhere_in_our_own_document_does_not_hide_the_place(field):
    text = f"{MAIN}---\n{HEAD}{field}\nlastGood: {{configMap: a/b}}\n"
    with pytest.raises(ConfigurationError):
        configuration_from_text(text, known_plugins(), source="f.yaml")
    assert kept_in(text) == "a/b"


@pytest.mark.parametrize(
    "text",
    [
        MAIN,
        HEAD,
        f"{HEAD}lastGod: {{configMap: a/b}}\n",
        f"{HEAD}lastGood: {{configMap: A}}\n",
        f"{HEAD}lastGood: {{configMap: a/b, key: c}}\n",
        f"{HEAD}lastGood: {{configMap: a/b}}\nlastGood: {{configMap: c/d}}\n",
        f"{HEAD}lastGood: {{configMap: 1}}\n",
        f"{HEAD}lastGood: [\n",
        HEAD.replace("v1alpha1", "v2") + "lastGood: {configMap: a/b}\n",
        "",
    ],
    ids=[
        "no extras",
        "not set",
        "misspelt",
        "no name",
        "with something unknown",
        "two places",
        "no text",
        "no YAML",
        "another version",
        "nothing",
    ],
)
def test_a_place_that_is_doubtful_itself_is_none(text):
    assert not kept_in(text)


@pytest.mark.parametrize("part", ["- a\n", "# SchedulerExtras\n- a\n"], ids=["others", "named"])
def test_a_file_of_many_documents_is_not_parsed_one_by_one(monkeypatch, part):
    parsed = []

    def parse(text):
        parsed.append(text)
        return [], []

    monkeypatch.setattr(config_documents, "parse_yaml", parse)
    kept_in("---\n".join([part] * 1000))
    assert len(parsed) <= 3
