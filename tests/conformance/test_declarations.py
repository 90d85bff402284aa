"""A plugin sees what it declares and nothing else: tried on recorded scenarios.

First every read is watched, to find for each declaration of each plugin a pod that makes use of
it. Then the plugin is made blind to just that, and the same pod has to end in an error.
"""

import itertools

import pytest

from k8s_scheduler.api.config.extras import NodeOwnershipSettings
from k8s_scheduler.api.config.node_selector import AffinityRequirement, Selector, Term
from k8s_scheduler.api.config.profiles.node_ownership import within_own_nodes
from k8s_scheduler.core import setup
from k8s_scheduler.core.builtins import BUILT_INS
from k8s_scheduler.core.framework.dependencies import Declarations, Object, Row
from k8s_scheduler.core.framework.plugin_errors import PluginError
from k8s_scheduler.core.framework.preemption import DryRunError
from k8s_scheduler.core.framework.registry import Registration
from k8s_scheduler.core.framework.views.rows_view import RowsView
from k8s_scheduler.simulate.cluster import Cluster
from k8s_scheduler.simulate.profiles import profile_in_force
from tests.conformance.oracle.compare import read_lines
from tests.conformance.recorded_sets import SCENARIOS

DECLARED = [
    (name, dependency)
    for name, registration in sorted(BUILT_INS.items())
    for dependency in registration.kind.depends_on
]
# Every so many recorded scenarios; all families are among them.
STEP = 12
# What the recorded ones do not reach: declared features, a claim whose class names a provisioner
# that a CSI driver has taken over, and a scheduler with nodes of its own.
NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n", "labels": {"kubernetes.io/hostname": "n"}},
    "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}},
}
FURTHER = [
    {
        "id": "ownership",
        "ownership": NodeOwnershipSettings(
            Selector((Term((AffinityRequirement("own", "Exists"),)),))
        ),
        "objects": [
            NODE,
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "p", "namespace": "default"},
                "spec": {"containers": [{"name": "c"}]},
            },
        ],
        "pending": ["default/p"],
    },
    {
        "id": "features",
        "objects": [
            NODE,
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "p", "namespace": "default"},
                "spec": {"hostNetwork": True, "hostUsers": False, "containers": [{"name": "c"}]},
            },
        ],
        "pending": ["default/p"],
    },
    {
        "id": "migrated",
        "objects": [
            NODE,
            {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "StorageClass",
                "metadata": {"name": "disk"},
                "provisioner": "kubernetes.io/gce-pd",
                "volumeBindingMode": "WaitForFirstConsumer",
            },
            {
                "apiVersion": "v1",
                "kind": "PersistentVolume",
                "metadata": {"name": "pv", "labels": {"topology.kubernetes.io/zone": "us-east1-a"}},
                "spec": {
                    "capacity": {"storage": "1Gi"},
                    "accessModes": ["ReadWriteOnce"],
                    "storageClassName": "disk",
                    "gcePersistentDisk": {"pdName": "d"},
                    "claimRef": {"namespace": "default", "name": "c"},
                    "nodeAffinity": {
                        "required": {
                            "nodeSelectorTerms": [
                                {
                                    "matchExpressions": [
                                        {
                                            "key": "kubernetes.io/hostname",
                                            "operator": "In",
                                            "values": ["n"],
                                        }
                                    ]
                                }
                            ]
                        }
                    },
                },
                "status": {"phase": "Bound"},
            },
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {
                    "name": "c",
                    "namespace": "default",
                    "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
                },
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "storageClassName": "disk",
                    "volumeName": "pv",
                    "resources": {"requests": {"storage": "1Gi"}},
                },
                "status": {"phase": "Bound"},
            },
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "p", "namespace": "default"},
                "spec": {
                    "containers": [{"name": "c"}],
                    "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}],
                },
            },
        ],
        "pending": ["default/p"],
    },
]


def judged(scenario, pod):
    profile = profile_in_force(scenario.get("config"))
    cluster = Cluster(within_own_nodes(profile, scenario.get("ownership", NodeOwnershipSettings())))
    cluster.start(scenario["objects"])
    found = cluster.judge(cluster.pod(pod))
    if found.preemption is not None and found.preemption.error:
        raise DryRunError(found.preemption.error)
    return found


def watch_checks(monkeypatch, take_note):
    """Let somebody take note of every declaration that a read goes by."""
    for method, covers in (
        ("_check", lambda d, name: isinstance(d, Row) and Declarations([d]).cover(name)),
        ("_check_kind", lambda d, kind: d == Object(kind)),
    ):
        original = getattr(RowsView, method)

        def spy(view, name, original=original, covers=covers):
            original(view, name)
            for dependency in view._declared.listed:
                if covers(dependency, name):
                    take_note(view._reader.name, dependency)

        monkeypatch.setattr(RowsView, method, spy)


def show_checks(monkeypatch):
    """Have reads checked one by one that are remembered as checked otherwise."""
    block, make_counter = RowsView.block, RowsView.counter

    def show_block(view, families, resources, **options):
        for name in families.columns(resources):
            view._check(name)
        return block(view, families, resources, **options)

    def show_counter(view, counted):
        counter = make_counter(view, counted)
        for name in counter.columns:
            view._check(name)
        return counter

    monkeypatch.setattr(RowsView, "block", show_block)
    monkeypatch.setattr(RowsView, "counter", show_counter)


@pytest.fixture(scope="module")
def users():
    """Return, by (plugin, dependency), a scenario and a pod that make use of it."""
    found = {}
    current = []

    def take_note(plugin, dependency):
        found.setdefault((plugin, dependency), current[0])

    with pytest.MonkeyPatch.context() as monkeypatch:
        watch_checks(monkeypatch, take_note)
        show_checks(monkeypatch)
        recorded = itertools.islice(read_lines(SCENARIOS.questions), 0, None, STEP)
        for scenario in itertools.chain(FURTHER, recorded):
            for pod in scenario["pending"]:
                current[:] = [(scenario, pod)]
                judged(scenario, pod)
    return found


@pytest.mark.parametrize(("name", "dropped"), DECLARED, ids=str)
def test_every_declaration_is_needed(name, dropped, users, monkeypatch):
    assert (name, dropped) in users, "no recorded pod makes use of this declaration"
    kind = BUILT_INS[name].kind
    kept = tuple(d for d in kind.depends_on if d != dropped)
    blind = type(name, (kind,), {"depends_on": kept})
    blinded = {**BUILT_INS, name: Registration(blind)}
    monkeypatch.setattr(setup, "BUILT_INS", blinded)
    with pytest.raises((PluginError, DryRunError), match="without declaring it in depends_on"):
        judged(*users[name, dropped])
