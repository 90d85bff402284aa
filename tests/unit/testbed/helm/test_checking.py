"""The check of the chart notices what is wrong, and looks at every value that there is."""

import json
from types import SimpleNamespace

import pytest
import yaml

from testbed.helm import checking
from testbed.helm.cases import CASES, REFUSED, RENAMED, Case
from testbed.helm.checking import Helm, RefusedError

DEFAULTS = ["Deployment/k8s-scheduler", "ConfigMap/k8s-scheduler"]
GOOD = """\
kind: Deployment
metadata: {name: k8s-scheduler}
---
kind: ConfigMap
metadata: {name: k8s-scheduler}
data:
  config.yaml: |
    apiVersion: kubescheduler.config.k8s.io/v1
    kind: KubeSchedulerConfiguration
"""
# Prints what it is told to, and ends as it is told to.
FAKE_HELM = """#!/bin/sh
cat "{folder}/out"; cat "{folder}/err" >&2
for each; do case $each in --values=*) cp "${{each#--values=}}" "{folder}/values" ;; esac; done
echo "$*" > "{folder}/called"
exit "$(cat "{folder}/code")"
"""


@pytest.fixture
def fake(tmp_path, program):
    """A helm that says what it is told to."""
    path = program(tmp_path / "bin" / "helm", FAKE_HELM.format(folder=tmp_path))

    def say(out="", err="", code=0):
        for name, text in (("out", out), ("err", err), ("code", code)):
            (tmp_path / name).write_text(str(text))

    say()
    helm = Helm(path or tmp_path / "bin" / "helm", tmp_path, "v1.37.1")
    return SimpleNamespace(helm=helm, say=say, folder=tmp_path)


def leaves(value, path=()):
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from leaves(inner, (*path, key))
    else:
        yield path


def touched(values):
    return {path[:end] for path in leaves(values) for end in range(1, len(path) + 1)}


def test_every_value_of_the_chart_is_set_by_some_case():
    defaults = yaml.safe_load((checking.CHART / "values.yaml").read_text())
    cases = [*CASES.values(), RENAMED]
    known = {path for case in cases for path in touched(case.values)}
    # Limits and security contexts are handed on as they are.
    handed_on = ("resources", "podSecurityContext", "securityContext")
    wanted = {path[:1] if path[0] in handed_on else path for path in leaves(defaults)}
    assert wanted - known == set()


def test_every_value_that_something_is_read_of_has_to_be_there():
    schema = json.loads((checking.CHART / "values.schema.json").read_text())
    templates = "".join(f.read_text() for f in (checking.CHART / "templates").iterdir())
    read_of = {
        name
        for name, rule in schema["properties"].items()
        if rule["type"] == "object" and f".Values.{name}." in templates and name != "extras"
    }
    assert read_of <= set(schema["required"])


def test_what_is_to_be_refused_says_in_which_words():
    assert all(words for _, words in REFUSED.values())


class TestRendered:
    def test_a_rendering_that_is_right(self, fake):
        fake.say(GOOD)
        assert checking.rendered(fake.helm, Case({"a": 1}, says=("kind: Dep",)), DEFAULTS) == []
        assert json.loads((fake.folder / "values").read_text()) == {"a": 1}
        assert "--kube-version=v1.37.1" in (fake.folder / "called").read_text()

    @pytest.mark.parametrize(
        ("text", "case", "problem"),
        [
            ("a: [", Case(), "expected"),
            (GOOD, Case(adds=("Role/a",)), "Role/a is missing"),
            (GOOD, Case(drops=DEFAULTS[:1]), "Deployment/k8s-scheduler should not be there"),
            (GOOD, Case(says=("nowhere",)), "'nowhere' stands nowhere"),
            (f"{GOOD}---\n{GOOD}", Case(), "Deployment/k8s-scheduler is there twice"),
            (GOOD.replace("Configuration\n", "Nonsense\n"), Case(), "kind: Invalid value"),
        ],
        ids=["no YAML", "missing", "too much", "a text", "twice", "configuration"],
    )
    def test_what_is_wrong_is_told(self, fake, text, case, problem):
        fake.say(text)
        assert any(problem in each for each in checking.rendered(fake.helm, case, DEFAULTS))

    def test_values_that_helm_refuses_are_a_problem(self, fake):
        fake.say(err="no\n", code=1)
        assert checking.rendered(fake.helm, Case(), DEFAULTS) == ["no"]


def test_roles_that_differ_from_the_printed_ones_are_told(fake):
    fake.say(
        GOOD.replace("---", "---\napiVersion: v1").replace("kind: D", "apiVersion: v1\nkind: D")
    )
    problems = checking.same_rights(fake.helm, {})
    assert any(
        each.startswith("ClusterRole//k8s-scheduler.scheduling: None in the chart")
        for each in problems
    )
    assert any(each.startswith("RoleBinding/scheduling/k8s-sch") for each in problems)


def test_a_release_is_right_only_without_a_warning(fake):
    kubeconfig = fake.folder / "kubeconfig"
    assert checking.released(fake.helm, Case(), kubeconfig) == []
    fake.say(err="Warning: would violate PodSecurity")
    assert checking.released(fake.helm, Case(), kubeconfig) == [
        "Warning: would violate PodSecurity"
    ]
    fake.say(err="no", code=1)
    assert checking.released(fake.helm, Case(), kubeconfig) == ["no"]


def test_values_are_refused_in_the_right_words_or_not_at_all(fake):
    assert checking.refused(fake.helm, {}, "because") == ["it was not refused"]
    fake.say(err="no, because", code=1)
    assert checking.refused(fake.helm, {}, "because") == []
    (problem,) = checking.refused(fake.helm, {}, "why")
    assert "but: no, because" in problem


def test_lint_that_finds_something_is_an_error(fake):
    fake.say("[ERROR] templates/", code=1)
    with pytest.raises(RefusedError, match="ERROR"):
        fake.helm.lint()
