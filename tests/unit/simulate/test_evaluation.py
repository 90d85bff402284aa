"""One scheduler lives through a scenario or sequence, and answers in the recorded form."""

import json

import pytest

from k8s_scheduler.simulate.answers import encode
from k8s_scheduler.simulate.evaluation import ScenarioEngine
from k8s_scheduler.simulate.files import Removal, Scenario, Sequence, SequenceStep


def node(name="n", cpu="2", **metadata):
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}, **metadata},
        "status": {"allocatable": {"cpu": cpu, "memory": "4Gi", "pods": "10"}},
    }


def pod(name="p", cpu="1", *, on=None, phase=None, uid=None, **spec):
    asked = {"resources": {"requests": {"cpu": cpu}}}
    metadata = {"name": name, "namespace": "default"} | ({"uid": uid} if uid else {})
    made = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [{"name": "c", **asked}], **spec},
    }
    if on:
        made["spec"]["nodeName"] = on
    if phase:
        made["status"] = {"phase": phase}
    return made


def scenario(*objects, pending=("default/p",), config=None):
    return list(ScenarioEngine().scenario(Scenario("s", list(objects), list(pending), config)))


def sequence(objects, *steps, config=None):
    return list(ScenarioEngine().sequence(Sequence("q", list(objects), list(steps), config)))


def step(*apply, delete=(), pending=("default/p",)):
    return SequenceStep(list(pending), list(apply), list(delete))


def feasible(answers):
    return [answer["feasible"] for answer in answers]


class TestAnswers:
    """The form of a decision."""

    def test_scores_come_with_a_total_under_no_name(self):
        (answer,) = scenario(node(), pod())
        scores = answer["scores"]["n"]
        total = scores.pop("")
        assert total == sum(scores.values())
        assert "NodeResourcesFit" in scores
        assert "rejected" not in answer
        assert "message" not in answer

    def test_a_rejection_has_plugin_code_and_reasons(self):
        (answer,) = scenario(node(cpu="1500m"), pod("b", on="n"), pod())
        assert answer["rejected"] == {
            "n": {
                "plugin": "NodeResourcesFit",
                "code": "Unschedulable",
                "reasons": ["Insufficient cpu"],
            }
        }
        assert answer["feasible"] == []
        assert answer["message"] == "0/1 nodes are available: 1 Insufficient cpu."

    def test_a_node_left_out_by_prefilter_has_no_reasons(self):
        terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}]
        affinity = {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}
            }
        }
        (answer,) = scenario(node(), node("m"), pod(affinity=affinity))
        assert answer["feasible"] == ["n"]
        assert answer["rejected"]["m"] == {
            "plugin": "PreFilterResult",
            "code": "UnschedulableAndUnresolvable",
            "reasons": None,
        }

    def test_a_pod_rejected_as_such_has_no_verdict_by_node(self):
        volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "none"}}]
        (answer,) = scenario(node(), pod(volumes=volumes))
        assert answer["preFilter"]["code"] == "UnschedulableAndUnresolvable"
        assert answer["preFilter"]["reasons"] == ['persistentvolumeclaim "none" not found']
        assert "rejected" not in answer

    def test_preemption_names_victims_and_picks(self):
        bound = [pod(f"b{i}", on="n", priority=1) for i in range(2)]
        (answer,) = scenario(node(), *bound, pod(cpu="2", priority=9))
        victims = answer["preemption"]["n"]["victims"]
        assert sorted(victims) == ["default/b0", "default/b1"]
        assert answer["preemption"]["n"]["pdbViolations"] == 0
        assert answer["preemptionPicks"] == ["n"]

    def test_who_may_not_preempt_learns_why(self):
        (answer,) = scenario(
            node(cpu="1"), pod("b", on="n"), pod(priority=9, preemptionPolicy="Never")
        )
        assert "preemptionPolicy=Never" in answer["preemptionNotEligible"]

    def test_an_answer_is_one_line_of_json(self):
        (answer,) = scenario(node(), pod())
        line = encode(answer)
        assert line.endswith(b"\n")
        assert json.loads(line) == answer


class TestScenarios:
    """What is in force, and what is left out."""

    def test_each_pod_is_judged_alone(self):
        answers = scenario(node(cpu="1"), pod("a"), pod("b"), pending=["default/a", "default/b"])
        assert feasible(answers) == [["n"], ["n"]]

    def test_the_first_profile_serves_every_pod(self):
        config = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [
                {
                    "schedulerName": "first",
                    "plugins": {"multiPoint": {"disabled": [{"name": "ImageLocality"}]}},
                },
                {"schedulerName": "second"},
            ],
        }
        (answer,) = scenario(node(), pod(schedulerName="somebody"), config=config)
        assert answer["scores"]["n"]
        assert "ImageLocality" not in answer["scores"]["n"]

    def test_finished_pods_and_pods_without_their_node_take_no_room(self):
        (answer,) = scenario(
            node(cpu="1"),
            pod("done", on="n", phase="Succeeded"),
            pod("failed", on="n", phase="Failed"),
            pod("lost", on="gone"),
            pod(),
        )
        assert answer["feasible"] == ["n"]

    def test_pods_need_no_uid(self):
        bound = [pod(f"b{i}", on="n") for i in range(2)]
        (answer,) = scenario(node(cpu="3"), *bound, pod(cpu="2"))
        assert answer["feasible"] == []

    def test_defaults_are_filled_in(self):
        limited = pod("b", on="n")
        resources = limited["spec"]["containers"][0]["resources"]
        resources["limits"] = resources.pop("requests")
        (answer,) = scenario(node(cpu="1"), limited, pod())
        assert answer["feasible"] == []

    def test_kinds_and_versions_that_nobody_reads_pass_by(self):
        (answer,) = scenario(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}},
            {"apiVersion": "example.com/v1", "kind": "Node", "metadata": {"name": 5}},
            node(),
            pod(),
        )
        assert answer["feasible"] == ["n"]

    def test_null_is_what_is_not_there(self):
        given = pod()
        given["spec"] |= {"nodeName": None, "schedulerName": None, "affinity": None}
        (answer,) = scenario(node(), given)
        assert answer["feasible"] == ["n"]


class TestWrongScenarios:
    """A scenario that cannot be judged is answered with one error."""

    @pytest.mark.parametrize(
        ("objects", "said"),
        [
            ([], "pending pod default/p not among the objects"),
            ([pod() | {"kind": ""}], "an object has no kind"),
            ([pod() | {"metadata": {}}], "missing required field `name`"),
            ([pod() | {"metadata": {"name": ""}}], "Expected a name"),
            ([pod(priority="high")], "Pod default/p: Expected `int | null`, got `str`"),
            ([pod(), node(cpu="two")], "Node n: 'two' is not a quantity"),
            ([pod(), pod("b", "two", on="n")], "Pod default/b: 'two' is not a quantity"),
        ],
    )
    def test_what_is_wrong_is_said(self, objects, said):
        (answer,) = scenario(*objects)
        assert answer["id"] == "s"
        assert answer["pod"] == ""
        assert said in answer["error"]

    def test_a_wrong_configuration_is_said_with_its_paths(self):
        config = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "parallelism": "many",
            "profiles": [{"plugins": {"filter": {"enabled": [{"name": "NodeNme"}]}}}],
        }
        (answer,) = scenario(node(), pod(), config=config)
        assert answer["error"].startswith("config: ")
        assert "parallelism" in answer["error"]
        assert "profiles[0].plugins.filter.enabled[0].name" in answer["error"]

    def test_a_pod_past_a_limit_is_answered_with_it(self):
        large = pod("large", tolerations=[{"key": f"k{i}"} for i in range(1001)])
        answers = scenario(node(), large, pod(), pending=["default/large", "default/p"])
        assert "podLimits.tolerations" in answers[0]["error"]
        assert answers[1]["feasible"] == ["n"]

    def test_a_cycle_that_fails_leaves_the_other_pods_alone(self):
        answers = scenario(node(), pod("bad", "two"), pod(), pending=["default/bad", "default/p"])
        assert "'two' is not a quantity" in answers[0]["error"]
        assert answers[0]["pod"] == "default/bad"
        assert answers[1]["feasible"] == ["n"]


class TestSequences:
    """One engine lives through all steps."""

    def test_steps_are_numbered_and_change_the_cluster(self):
        answers = sequence(
            [node(cpu="1"), pod()],
            step(),
            step(pod("b", on="n")),
            step(delete=[Removal("Pod", "b", "default")]),
            step(delete=[Removal("Node", "n")]),
            step(node("m")),
        )
        assert [answer["id"] for answer in answers] == [f"q/{n}" for n in range(5)]
        assert feasible(answers) == [["n"], [], ["n"], [], ["m"]]

    def test_a_pod_moves_finishes_and_comes_back_under_another_uid(self):
        nodes = [node("m", "1"), node("n", "1")]
        answers = sequence(
            [*nodes, pod(), pod("b", on="n", uid="1")],
            step(),
            step(pod("b", on="m", uid="1")),
            step(pod("b", on="m", phase="Succeeded", uid="1")),
            step(pod("b", on="n", uid="2")),
            step(pod("b", uid="2")),
        )
        assert feasible(answers) == [["m"], ["n"], ["m", "n"], ["m"], ["m", "n"]]

    def test_other_kinds_come_and_go(self):
        volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]
        claim = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "c"},
            "spec": {"accessModes": ["ReadWriteMany"], "storageClassName": "now"},
        }
        later = {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "now"},
            "provisioner": "example.com/made",
            "volumeBindingMode": "WaitForFirstConsumer",
        }
        answers = sequence(
            [node(), pod(volumes=volumes)],
            step(),
            step(claim, later),
            step(delete=[Removal("PersistentVolumeClaim", "c")]),
        )
        assert feasible(answers) == [[], ["n"], []]

    def test_a_mistake_lasts_until_it_is_put_right(self):
        answers = sequence(
            [node(), pod()],
            step(pod("b", "two", on="n")),
            step(),
            step(pod("b", "1", on="n")),
            step(pod("b", "two", on="n")),
            step(delete=[Removal("Pod", "b", "default")]),
        )
        assert [bool(answer.get("error")) for answer in answers] == [True, True, False, True, False]

    def test_a_wrong_configuration_fails_every_step(self):
        answers = sequence([node(), pod()], step(), step(), config={"kind": "Other"})
        assert [(answer["id"], bool(answer["error"])) for answer in answers] == [
            ("q/0", True),
            ("q/1", True),
        ]
