"""What must be true of the chart, for each set of values: checks that return what is wrong.

rendered    it is YAML, no object is there twice, what the values add and drop is what they
            should, and the daemon's own `config check` takes the configuration
released    a real API server takes it, as an upgrade of the release before, without a warning
            at the restricted Pod Security level
"""

import itertools
import json
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from testbed.client import Client
from testbed.daemon import PROGRAM
from testbed.errors import TestbedError
from testbed.helm.cases import Case, Values

CHART = Path(__file__).parents[2] / "helm" / "k8s-scheduler"
RELEASE = "k8s-scheduler"
NAMESPACE = "scheduling"
_LAST_GOOD = f"/api/v1/namespaces/{NAMESPACE}/configmaps/{RELEASE}-last-good"
_SAVED = {"config.yaml": "saved by the daemon"}
_SECONDS = 120.0


class RefusedError(TestbedError):
    """Helm said no; the text is what it said."""


@dataclass(frozen=True, slots=True)
class Helm:
    """A helm that knows nothing of its user's home."""

    program: Path
    home: Path
    kube_version: str

    def lint(self) -> str:
        """Return what it says of the chart; RefusedError if that is more than a remark."""
        return self._run(["lint", "--strict", str(CHART)])[0]

    def render(self, values: Values) -> str:
        """Return the manifest that the values make; RefusedError with the reason if none."""
        command = ["template", RELEASE, str(CHART), f"--namespace={NAMESPACE}"]
        return self._run([*command, f"--kube-version={self.kube_version}"], values)[0]

    def release(self, values: Values, kubeconfig: Path) -> str:
        """Install or upgrade; return the warnings; RefusedError if it did not work."""
        command = ["upgrade", RELEASE, str(CHART), "--install", "--reset-values"]
        flags = [f"--namespace={NAMESPACE}", f"--kubeconfig={kubeconfig}"]
        return self._run([*command, *flags], values)[1]

    def remove(self, kubeconfig: Path) -> None:
        """Uninstall the release."""
        self._run(["uninstall", RELEASE, f"--namespace={NAMESPACE}", f"--kubeconfig={kubeconfig}"])

    def _run(self, command: Sequence[str], values: Values | None = None) -> tuple[str, str]:
        with tempfile.NamedTemporaryFile("w", suffix=".json", dir=self.home) as file:
            given = []
            if values:
                json.dump(values, file)
                file.flush()
                given = [f"--values={file.name}"]
            done = subprocess.run(
                [str(self.program), *command, *given],
                env={"HOME": str(self.home), "PATH": "/usr/bin:/bin"},
                capture_output=True,
                text=True,
                check=False,
                timeout=_SECONDS,
            )
        if done.returncode != 0:
            raise RefusedError(done.stderr.strip() or done.stdout.strip())
        return done.stdout, done.stderr.strip()


def objects_of(text: str) -> list[dict[str, Any]]:
    """Return the objects of a manifest."""
    return [document for document in yaml.safe_load_all(text) if document]


def names_of(objects: Sequence[dict[str, Any]]) -> list[str]:
    """Return each object as `Kind/name`."""
    return [f"{each['kind']}/{each['metadata']['name']}" for each in objects]


def rendered(helm: Helm, case: Case, defaults: Sequence[str]) -> list[str]:
    """Return what is wrong with what the values make; `defaults` are the objects without them."""
    try:
        text = helm.render(case.values)
        objects = objects_of(text)
    except (RefusedError, yaml.YAMLError) as error:
        return [str(error)]
    names = names_of(objects)
    problems = [f"{name} is there twice" for name in sorted(set(names)) if names.count(name) > 1]
    wanted = set(defaults) - set(case.drops) | set(case.adds)
    if defaults:
        problems += [f"{name} is missing" for name in sorted(wanted - set(names))]
        problems += [f"{name} should not be there" for name in sorted(set(names) - wanted)]
    problems += [f"{words!r} stands nowhere" for words in case.says if words not in text]
    return problems + _configuration(objects, helm.home)


def _configuration(objects: Sequence[dict[str, Any]], folder: Path) -> list[str]:
    """Have the daemon look at its configuration."""
    file = folder / "config.yaml"
    texts = [o["data"]["config.yaml"] for o in objects if o["kind"] == "ConfigMap" and "data" in o]
    if len(texts) != 1:
        return [f"there are {len(texts)} configurations"]
    file.write_text(texts[0], encoding="utf-8")
    done = subprocess.run(
        [str(PROGRAM), "config", "check", str(file)], capture_output=True, text=True, check=False
    )
    return [] if done.returncode == 0 else [done.stderr.strip()]


def same_rights(helm: Helm, values: Values) -> list[str]:
    """Return where the chart's roles and those that `k8s-scheduler rbac` prints differ."""
    ours = objects_of(helm.render(values))
    command = [str(PROGRAM), "rbac", f"--name={RELEASE}", f"--namespace={NAMESPACE}"]
    command += [f"--cluster-name={RELEASE}.{NAMESPACE}"]
    flags = [f"--config={helm.home / 'config.yaml'}"]
    flags += [f"--leader-elect-resource-namespace={NAMESPACE}"]
    if problems := _configuration(ours, helm.home):
        return problems
    done = subprocess.run([*command, *flags], capture_output=True, text=True, check=False)
    printed = _rights(objects_of(done.stdout))
    if not printed:
        return [f"nothing was printed: {done.stderr.strip()}"]
    # The roles for readers are bound to nobody, and the command knows nothing of them.
    charted = {key: rules for key, rules in _rights(ours).items() if "-reader" not in key}
    return [
        f"{key}: {charted.get(key)} in the chart, {printed.get(key)} printed"
        for key in sorted(printed.keys() | charted.keys())
        if charted.get(key) != printed.get(key)
    ]


def _rights(objects: Sequence[dict[str, Any]]) -> dict[str, list[str]]:
    """Return what each role allows, and whom each binding binds to what."""
    found = {}
    for each in objects:
        if each["apiVersion"].startswith("rbac."):
            metadata = each["metadata"]
            key = f"{each['kind']}/{metadata.get('namespace', '')}/{metadata['name']}"
            bound = [each["roleRef"], *each["subjects"]] if "rules" not in each else []
            found[key] = sorted({json.dumps(part, sort_keys=True) for part in bound})
            found[key] += sorted({one for rule in each.get("rules", ()) for one in _granted(rule)})
    return found


def _granted(rule: dict[str, Any]) -> Iterator[str]:
    """Yield each thing that a rule allows: how rules are put together makes no difference."""
    for group, thing, name, verb in itertools.product(
        rule.get("apiGroups", [""]),
        rule.get("resources") or rule["nonResourceURLs"],
        rule.get("resourceNames", [""]),
        rule["verbs"],
    ):
        yield f"{verb} {group}/{thing} {name}"


def released(helm: Helm, case: Case, kubeconfig: Path) -> list[str]:
    """Return what is wrong with a release of these values, made of the one before."""
    try:
        said = helm.release(case.values, kubeconfig)
    except RefusedError as error:
        return [str(error)]
    return said.splitlines()


def kept(helm: Helm, case: Case, kubeconfig: Path, client: Client) -> list[str]:
    """Return what is wrong if an upgrade takes away what the daemon has saved."""
    client.patch(_LAST_GOOD, {"data": _SAVED})
    problems = released(helm, case, kubeconfig)
    if client.get(_LAST_GOOD).get("data") != _SAVED:
        problems.append("an upgrade took the last good configuration away")
    return problems


def refused(helm: Helm, values: Values, words: str) -> list[str]:
    """Return what is wrong if these values are not refused in these words."""
    try:
        helm.render(values)
    except RefusedError as error:
        said = str(error)
        return [] if words in said else [f"it says nothing of {words!r}, but: {said}"]
    return ["it was not refused"]
