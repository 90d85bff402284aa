"""What users deploy, read from the tree: manifests/ as objects, the chart as templates.

The chart is compared by its plain parts (rules, probes, values), which are YAML as they stand, so
no helm is needed here.
"""

import functools
import re
from pathlib import Path
from typing import Any, TypeAlias

import yaml

ROOT = Path(__file__).parents[2]
MANIFESTS = ROOT / "manifests"
CHART = ROOT / "helm" / "k8s-scheduler"

Object: TypeAlias = dict[str, Any]

KUSTOMIZE_FILES = {"kustomization.yaml", "namespace-fields.yaml"}
APPLIED_FILES = sorted(p.name for p in MANIFESTS.glob("*.yaml") if p.name not in KUSTOMIZE_FILES)


def read(path: Path) -> list[Object]:
    return [d for d in yaml.safe_load_all(path.read_text()) if d is not None]


@functools.cache
def objects() -> list[Object]:
    return [document for name in APPLIED_FILES for document in read(MANIFESTS / name)]


def find(kind: str, name: str = "k8s-scheduler") -> Object:
    (found,) = [o for o in objects() if o["kind"] == kind and o["metadata"]["name"] == name]
    return found


def pod_spec() -> Object:
    spec: Object = find("Deployment")["spec"]["template"]["spec"]
    return spec


def container() -> Object:
    containers: list[Object] = pod_spec()["containers"]
    (only,) = containers
    return only


def configuration() -> Object:
    loaded: Object = yaml.safe_load(find("ConfigMap")["data"]["config.yaml"])
    return loaded


def granted(role: Object) -> set[tuple[str, str, str, str]]:
    """Return (group, resource or path, name, verb), one for each thing that is allowed."""
    return {
        (group, thing, name, verb)
        for rule in role["rules"]
        for group in rule.get("apiGroups", [""])
        for thing in rule.get("resources") or rule["nonResourceURLs"]
        for name in rule.get("resourceNames", [""])
        for verb in rule["verbs"]
    }


def template(name: str) -> str:
    return (CHART / "templates" / f"{name}.yaml").read_text()


def plain_block(text: str, key: str) -> Any:
    """Parse the block under the first line `key:`, which must hold no template."""
    pattern = rf"^(?P<indent> *){key}:\n(?P<block>(?:(?P=indent) +.*\n)+)"
    found = re.search(pattern, text, re.MULTILINE)
    assert found is not None, key
    assert "{{" not in found["block"]
    return yaml.safe_load(found["block"])
