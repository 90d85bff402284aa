"""A binding that a restored storage knows nothing of is undone; one that may yet be made is not."""

from k8s_scheduler.app.driver.undone import Undone
from k8s_scheduler.kube.write.pod_reader import ReadOutcome
from tests.builders import make_pod


class Scene:
    def __init__(self, *, binding=False):
        self.told, self.reads, self.binding = [], [], binding
        self.undone = Undone(
            may_land=lambda _uid: self.binding,
            read=self.reads.append,
            tell=lambda uid, pod: self.told.append(
                (uid, None if pod is None else pod.spec.node_name)
            ),
        )

    def answer(self, pod):
        asked = self.reads[-1]
        return self.undone.was_read(ReadOutcome(asked.uid, asked.attempt, pod))


def bound(name="p"):
    return make_pod(name).on("n1").obj()


def test_a_pod_that_lost_its_node_is_gone_and_comes_again():
    scene, pod = Scene(), make_pod("p").obj()
    assert scene.undone.changed(bound(), pod)
    assert scene.told == [(pod.metadata.uid, None), (pod.metadata.uid, "")]


def test_ordinary_changes_are_told_as_they_are():
    scene = Scene()
    assert not scene.undone.changed(None, make_pod("p").obj())
    assert not scene.undone.changed(make_pod("p").obj(), bound())
    assert not scene.undone.changed(bound(), bound())
    assert scene.told == scene.reads == []


def test_while_a_bind_is_under_way_nothing_is_told_and_its_failure_ends_it():
    scene, pod = Scene(binding=True), make_pod("p").obj()
    assert scene.undone.changed(bound(), pod)
    assert scene.told == []
    scene.binding = False
    scene.undone.bind_ended(pod.metadata.uid, bound=False)
    assert scene.told == [(pod.metadata.uid, None), (pod.metadata.uid, "")]


def test_a_bind_that_succeeded_may_be_of_before_the_restore_so_the_pod_is_read():
    scene, pod = Scene(binding=True), make_pod("p").obj()
    scene.undone.changed(bound(), pod)
    scene.binding = False
    scene.undone.bind_ended(pod.metadata.uid, bound=True)
    assert len(scene.reads) == 1
    assert scene.answer(bound())
    assert scene.told == [(pod.metadata.uid, "n1")]


def test_what_was_read_before_the_watch_showed_something_newer_does_not_count():
    scene, pod = Scene(), make_pod("p").obj()
    scene.undone.suspect(pod)
    first = scene.reads[-1]
    assert scene.undone.changed(pod, pod)
    assert not scene.undone.was_read(ReadOutcome(first.uid, first.attempt, pod))
    scene.undone.remind()
    assert scene.reads[-1].attempt != first.attempt
    assert scene.answer(pod)
    assert scene.told == [(pod.metadata.uid, None), (pod.metadata.uid, "")]


def test_a_pod_that_the_watch_shows_bound_or_gone_is_not_asked_about_any_more():
    for news in (lambda undone, uid: undone.changed(None, bound()), lambda u, uid: u.gone(uid)):
        scene, pod = Scene(), make_pod("p").obj()
        scene.undone.suspect(pod)
        news(scene.undone, pod.metadata.uid)
        assert pod.metadata.uid not in scene.undone
        assert not scene.answer(pod)


def test_readings_of_the_core_are_not_taken():
    scene, pod = Scene(), make_pod("p").obj()
    scene.undone.suspect(pod)
    assert not scene.undone.was_read(ReadOutcome(pod.metadata.uid, 3, pod))


def test_a_request_that_may_land_after_its_bind_has_ended_is_waited_for():
    scene, pod = Scene(binding=True), make_pod("p").obj()
    assert scene.undone.changed(bound(), pod)
    scene.undone.remind()
    assert scene.told == scene.reads == []
    scene.binding = False
    scene.undone.remind()
    assert scene.answer(pod)
    assert scene.told == [(pod.metadata.uid, None), (pod.metadata.uid, "")]


def test_a_pod_whose_end_was_undone_waits_for_requests_that_may_land():
    scene, pod = Scene(binding=True), make_pod("p").obj()
    assert scene.undone.changed(None, pod)
    assert pod.metadata.uid in scene.undone
    scene.binding = False
    scene.undone.bind_ended(pod.metadata.uid, bound=False)
    assert scene.told == [(pod.metadata.uid, None), (pod.metadata.uid, "")]


def test_a_pod_that_the_core_has_had_read_unbound_waits_for_requests_that_may_land():
    scene, pod = Scene(binding=True), make_pod("p").obj()
    for gone in (None, bound()):
        assert not scene.undone.was_read(ReadOutcome(pod.metadata.uid, 3, gone))
    assert scene.undone.was_read(ReadOutcome(pod.metadata.uid, 3, pod))
    scene.binding = False
    scene.undone.remind()
    assert scene.answer(pod)
    assert scene.told == [(pod.metadata.uid, None), (pod.metadata.uid, "")]
