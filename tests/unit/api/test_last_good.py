"""`lastGood` in SchedulerExtras: what it may say, and how it is read from a broken file."""

import pytest

from k8s_scheduler.api import config_documents
from k8s_scheduler.api.config_documents import whole_extras
from k8s_scheduler.api.config_load import configuration_from_text
from k8s_scheduler.api.config_summary import summary
from k8s_scheduler.api.field_errors import ConfigurationError
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
def test_whole_extras_are_found_beside_anything(text):
    extras = whole_extras(text)
    assert extras is not None
    assert extras.last_good.config_map == "a/b"


@pytest.mark.parametrize(
    "text",
    [
        MAIN,
        f"{HEAD}lastGod: {{}}\n",
        f"{HEAD}lastGood: {{configMap: A}}\n",
        f"{HEAD}lastGood: [\n",
        HEAD.replace("v1alpha1", "v2"),
        "",
    ],
    ids=["none", "unknown field", "wrong name", "no YAML", "another version", "nothing"],
)
def test_extras_that_are_not_whole_say_nothing(text):
    assert whole_extras(text) is None


@pytest.mark.parametrize("part", ["- a\n", "# SchedulerExtras\n- a\n"], ids=["others", "named"])
def test_a_file_of_many_documents_is_not_parsed_one_by_one(monkeypatch, part):
    parsed = []

    def parse(text):
        parsed.append(text)
        return [], []

    monkeypatch.setattr(config_documents, "parse_yaml", parse)
    whole_extras("---\n".join([part] * 1000))
    assert len(parsed) <= 3
