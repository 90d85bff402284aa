"""A plugin sees what it declares and nothing else, in production too."""

import msgspec
import pytest

from k8s_scheduler.api.config_load import default_configuration
from k8s_scheduler.api.pod import Pod
from k8s_scheduler.core.builtins import BUILT_INS, known_plugins
from k8s_scheduler.core.framework.preemption import DryRunError
from k8s_scheduler.core.framework.registry import Registration
from k8s_scheduler.core.framework.runtime import PluginError
from k8s_scheduler.core.scheduler import Setup
from tests.builders import make_node, make_pod
from tests.unit.core.harness import Harness

READERS = sorted(name for name, r in BUILT_INS.items() if r.kind.depends_on)
PROFILES = default_configuration(known_plugins()).profiles


def demanding_pod() -> Pod:
    """Return a pod that gives every plugin something to do."""
    raw = make_pod("p").request(cpu="1", memory="1Gi").raw
    raw["spec"]["containers"][0].update(image="i", ports=[{"hostPort": 80}])
    raw["spec"]["nodeSelector"] = {"zone": "a"}
    raw["spec"]["affinity"] = {
        "nodeAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {
                    "weight": 1,
                    "preference": {"matchExpressions": [{"key": "zone", "operator": "Exists"}]},
                }
            ]
        },
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}
            ]
        },
    }
    return msgspec.convert(raw, Pod)


def judge(plugins):
    h = Harness(Setup(profiles=PROFILES, plugins=plugins))
    for name in ("n1", "n2"):
        h.node(make_node(name).label(zone="a").obj())
    found = h.core.judge(demanding_pod())
    # One that fits nowhere, but could if another left.
    for name in ("n1", "n2"):
        h.pod(make_pod(f"low-{name}").request(cpu="3").on(name).obj())
    h.core.judge(make_pod("high").request(cpu="4").priority(1).obj())
    return found


def test_the_built_ins_read_only_what_they_declare():
    assert judge(BUILT_INS).feasible == ("n1", "n2")


@pytest.mark.parametrize(
    ("name", "dropped"),
    [(name, d) for name in READERS for d in BUILT_INS[name].kind.depends_on],
    ids=lambda value: getattr(value, "column", value),
)
def test_every_declaration_is_needed(name, dropped):
    kind = BUILT_INS[name].kind
    kept = tuple(d for d in kind.depends_on if d != dropped)
    blind = type(name, (kind,), {"depends_on": kept})
    factory = BUILT_INS[name].factory
    takes_arguments = factory is kind
    registration = Registration(blind, blind if takes_arguments else lambda _args: blind())
    with pytest.raises((PluginError, DryRunError), match="without declaring it in depends_on"):
        judge(dict(BUILT_INS, **{name: registration}))
