"""Which pods came and left, as far as counts are concerned: behind which doors, and no more."""

from k8s_scheduler.core.state.news import pod_news
from k8s_scheduler.core.state.news.pod_news import PodNews
from tests.builders import make_pod


def labelled(name, count):
    pod = make_pod(name)
    pod.raw["metadata"]["labels"] = {f"k{i}": "v" for i in range(count)}
    return pod.obj()


def test_a_pod_is_behind_its_namespace_and_each_of_its_labels():
    news = PodNews()
    pod = make_pod("p").label(app="web").obj()
    news.meet(pod)
    space = pod.metadata.namespace
    assert not news.is_any
    assert not news.hold_terms
    assert {(None, None), (space, None), (None, ("app", "web")), (space, ("app", "web"))} == set(
        news.doors
    )


def test_a_pod_with_very_many_labels_may_be_behind_any_door_and_is_not_held():
    news = PodNews()
    news.meet(labelled("few", pod_news._LABELS))
    assert not news.is_any
    news.meet(labelled("many", pod_news._LABELS + 1))
    news.meet(labelled("later", 3))
    assert news.is_any
    assert news.hold_terms
    assert dict(news.doors) == {}
    assert news._unfiled == []


def test_as_many_pods_as_nobody_looks_at_are_bounded(monkeypatch):
    monkeypatch.setattr(PodNews, "MOST", 100)
    news = PodNews()
    for number in range(5 * pod_news._UNFILED):
        news.meet(make_pod(f"p{number}").label(app=f"a{number}").obj())
        assert len(news._unfiled) < pod_news._UNFILED
    assert news.is_any
    assert dict(news.doors) == {}


def test_what_others_know_is_taken_over():
    news, other = PodNews(), PodNews()
    other.meet(make_pod("p").label(app="web").obj())
    news.include(other)
    assert (None, ("app", "web")) in news.doors
    news.include(PodNews(is_any=True))
    assert news.is_any
