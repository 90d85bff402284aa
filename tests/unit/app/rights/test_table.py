"""What a configuration needs, and that less of it needs less."""

from dataclasses import replace

import pytest
import yaml

from k8s_scheduler.api.config.load import default_configuration, load_configuration
from k8s_scheduler.api.kinds import BUILT_IN, Kind, custom_kind
from k8s_scheduler.app.rights.manifest import Owner, rights_manifest
from k8s_scheduler.app.rights.table import ElectionLease, Needs, needs_of, roles_of
from k8s_scheduler.core.builtins import BUILT_INS, known_plugins
from k8s_scheduler.core.framework.plugin import PreBindPlugin, WritingPlugin

OWNER = Owner("k8s-scheduler", "kube-system")
NOTHING = Needs(reads=(), writes=(), preempts=False, lease=None, serves=False)
INFORM = ("list", "watch")
ALWAYS = {
    ("", "nodes", "list"),
    ("", "nodes", "watch"),
    ("", "pods", "get"),
    ("", "pods", "list"),
    ("", "pods", "watch"),
    ("", "pods/binding", "create"),
    ("", "pods/status", "patch"),
    ("events.k8s.io", "events", "create"),
    ("events.k8s.io", "events", "patch"),
}
SERVING = {
    ("authentication.k8s.io", "tokenreviews", "create"),
    ("authorization.k8s.io", "subjectaccessreviews", "create"),
    ("", "/configz", "get"),
}
LEASES = ("coordination.k8s.io", "leases", "list")


def granted(role):
    return {
        (rule.group, thing, verb)
        for rule in role.rules
        for thing in (*rule.resources, *rule.paths)
        for verb in rule.verbs
    }


def configured(tmp_path, text):
    file = tmp_path / "config.yaml"
    head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    file.write_text(head + text)
    return load_configuration(file, known_plugins())


def without(*plugins):
    names = "".join(f"      - name: {name}\n" for name in plugins)
    return f"profiles:\n- plugins:\n    multiPoint:\n      disabled:\n{names}"


class TestNeeds:
    """They follow from what the enabled plugins declare."""

    def test_the_defaults_read_every_kind_and_write_volumes(self):
        needs = needs_of(default_configuration(known_plugins()))
        assert set(needs.reads) == set(BUILT_IN)
        assert needs.writes == (Kind.PERSISTENT_VOLUME, Kind.PERSISTENT_VOLUME_CLAIM)
        assert needs.preempts
        assert needs.lease == ElectionLease(name="kube-scheduler", namespace="kube-system")

    def test_what_a_disabled_plugin_needs_is_not_needed(self, tmp_path):
        needs = needs_of(configured(tmp_path, without("DefaultPreemption")))
        assert not needs.preempts
        assert Kind.POD_DISRUPTION_BUDGET not in needs.reads
        assert Kind.NAMESPACE in needs.reads

    def test_what_one_of_several_profiles_needs_is_needed(self, tmp_path):
        text = without("DefaultPreemption").replace("- plugins", "- schedulerName: a\n  plugins")
        needs = needs_of(configured(tmp_path, text + "- schedulerName: b\n"))
        assert needs.preempts

    def test_a_plugin_that_only_filters_writes_nothing(self, tmp_path):
        text = "profiles:\n- plugins:\n    preBind:\n      disabled:\n      - name: VolumeBinding\n"
        needs = needs_of(configured(tmp_path, text))
        assert needs.writes == ()
        assert Kind.PERSISTENT_VOLUME in needs.reads

    def test_without_an_election_there_is_no_lease(self, tmp_path):
        text = "leaderElection:\n  leaderElect: false\n"
        assert needs_of(configured(tmp_path, text)).lease is None

    @pytest.mark.parametrize(
        ("rivals", "expected"),
        [
            ("{}", ()),
            ("{namespaces: [a, b]}", ("a", "b")),
            ("{action: Refuse, namespaces: [a]}", ("a",)),
            ("{action: Ignore, namespaces: [a]}", None),
        ],
    )
    def test_rivals_are_looked_for_where_the_extras_say(self, tmp_path, rivals, expected):
        extras = "---\napiVersion: k8s-scheduler.io/v1alpha1\nkind: SchedulerExtras\n"
        assert needs_of(configured(tmp_path, f"{extras}rivals: {rivals}\n")).rivals == expected

    def test_every_plugin_with_something_to_write_says_what(self):
        for registration in BUILT_INS.values():
            if issubclass(registration.kind, PreBindPlugin):
                assert hasattr(registration.kind, "writes")
        assert isinstance(BUILT_INS["VolumeBinding"].make({}), WritingPlugin)


class TestRoles:
    """The table, row by row."""

    def test_what_every_scheduler_needs(self):
        (role,) = roles_of(NOTHING)
        assert granted(role) == ALWAYS

    def test_the_defaults_need_exactly_this(self):
        cluster, election = roles_of(needs_of(default_configuration(known_plugins())))
        assert granted(cluster) == ALWAYS | SERVING | {
            *((k.group, k.resource, verb) for k in BUILT_IN for verb in INFORM),
            ("", "pods", "delete"),
            ("", "persistentvolumes", "patch"),
            ("", "persistentvolumeclaims", "patch"),
            LEASES,
        }
        assert (election.namespace, election.ending) == ("kube-system", "-leader-election")

    def test_each_kind_that_is_read_can_be_watched(self):
        for kind in BUILT_IN:
            needs = Needs(reads=(kind,), writes=(), preempts=False, lease=None, serves=False)
            (role,) = roles_of(needs)
            assert granted(role) - ALWAYS == {(kind.group, kind.resource, verb) for verb in INFORM}

    def test_custom_resources_can_be_watched_in_their_group(self):
        groups = custom_kind("Group", "groups.x.io", version="v1", paths=["spec"])
        queues = custom_kind("Queue", "queues.x.io", version="v1", paths=["spec"])
        (role,) = roles_of(replace(NOTHING, reads=(Kind.SERVICE, groups, queues), writes=(queues,)))
        assert granted(role) - ALWAYS == {
            *(("", "services", verb) for verb in INFORM),
            *(("x.io", plural, verb) for plural in ("groups", "queues") for verb in INFORM),
            ("x.io", "queues", "patch"),
        }

    def test_only_who_serves_looks_people_up_and_is_asked_for_its_configuration(self):
        (role,) = roles_of(Needs(reads=(), writes=(), preempts=False, lease=None))
        assert granted(role) - ALWAYS == SERVING

    def test_who_looks_for_rivals_everywhere_lists_the_leases_of_the_cluster(self):
        (role,) = roles_of(replace(NOTHING, rivals=()))
        assert granted(role) - ALWAYS == {LEASES}

    def test_who_looks_into_some_namespaces_lists_the_leases_there(self):
        cluster, *others = roles_of(replace(NOTHING, rivals=("a", "b")))
        assert granted(cluster) == ALWAYS
        assert [(role.namespace, granted(role)) for role in others] == [
            ("a", {LEASES}),
            ("b", {LEASES}),
        ]

    def test_nothing_is_granted_by_a_star_and_everything_has_its_reason(self):
        for role in roles_of(needs_of(default_configuration(known_plugins()))):
            for rule in role.rules:
                named = (rule.group, *rule.resources, *rule.verbs, *rule.names, *rule.paths)
                assert not any("*" in name for name in named)
                # Paths are of no API group: a rule is about one or the other.
                assert bool(rule.resources) != bool(rule.paths)
                assert rule.why


class TestManifest:
    """What is printed is what is meant."""

    def test_the_lease_has_its_name_and_namespace(self):
        lease = ElectionLease(name="my-lease", namespace="elsewhere")
        needs = Needs(reads=(), writes=(), preempts=False, lease=lease)
        text = rights_manifest(roles_of(needs), Owner("mine", "scheduling"))
        documents = {d["kind"]: d for d in yaml.safe_load_all(text)}
        assert documents["Role"]["metadata"]["namespace"] == "elsewhere"
        assert documents["Role"]["rules"][1]["resourceNames"] == ["my-lease"]
        assert documents["RoleBinding"]["metadata"]["namespace"] == "elsewhere"
        for kind in ("RoleBinding", "ClusterRoleBinding"):
            (subject,) = documents[kind]["subjects"]
            assert (subject["name"], subject["namespace"]) == ("mine", "scheduling")
        assert documents["RoleBinding"]["roleRef"]["name"] == "mine-leader-election"

    def test_roles_in_namespaces_of_others_are_told_apart_by_the_clusters_name(self):
        roles = roles_of(replace(NOTHING, rivals=("theirs",)))
        text = rights_manifest(roles, Owner("mine", "scheduling", "mine.scheduling"))
        documents = {d["kind"]: d for d in yaml.safe_load_all(text)}
        for kind in ("Role", "RoleBinding"):
            metadata = documents[kind]["metadata"]
            assert (metadata["name"], metadata["namespace"]) == (
                "mine.scheduling-rivals",
                "theirs",
            )
        assert documents["RoleBinding"]["roleRef"]["name"] == "mine.scheduling-rivals"
        (subject,) = documents["RoleBinding"]["subjects"]
        assert (subject["name"], subject["namespace"]) == ("mine", "scheduling")

    def test_paths_stand_by_themselves(self):
        needs = Needs(reads=(), writes=(), preempts=False, lease=None)
        (role,) = (
            d
            for d in yaml.safe_load_all(rights_manifest(roles_of(needs), OWNER))
            if d["kind"] == "ClusterRole"
        )
        (rule,) = [r for r in role["rules"] if "nonResourceURLs" in r]
        assert rule == {"nonResourceURLs": ["/configz"], "verbs": ["get"]}

    def test_odd_names_stay_names(self):
        for name in ("123", "1.2", "null", "on", "a.b-c", "x"):
            lease = ElectionLease(name=name, namespace=name)
            needs = Needs(reads=(), writes=(), preempts=False, lease=lease)
            documents = list(yaml.safe_load_all(rights_manifest(roles_of(needs), OWNER)))
            (role,) = [d for d in documents if d["kind"] == "Role"]
            assert role["rules"][1]["resourceNames"] == [name]
            assert role["metadata"]["namespace"] == name
