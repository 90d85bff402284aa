"""Whoever is installed starts under roles that the API server goes by already."""

from types import SimpleNamespace

import pytest

from testbed import installation
from testbed.errors import ApiError
from testbed.installation import install, load_manifest, reviews_of


class Api:
    """An API server that goes by roles only after some questions."""

    def __init__(self, *, is_installed=False, lag=0):
        self.is_installed, self.lag = is_installed, lag
        self.created, self.asked = [], []

    def create(self, path, body):
        if body["kind"] == "SubjectAccessReview":
            self.asked.append(body["spec"])
            return {"status": {"allowed": len(self.asked) > self.lag}}
        if self.is_installed:
            raise ApiError("there", status=409, reason="AlreadyExists")
        self.created.append(body)
        return body


def bed_of(api):
    return SimpleNamespace(client=api)


def test_every_rule_is_asked_about_until_it_holds():
    api = Api(lag=3)
    install(bed_of(api))
    rules = [
        rule
        for item in load_manifest("rbac.yaml")
        for rule in item.get("rules", ())
        if "resources" in rule
    ]
    assert len(api.asked) == 3 + len(rules)
    spec = api.asked[0]
    assert spec["user"] == "system:serviceaccount:kube-system:k8s-scheduler"
    assert spec["resourceAttributes"]["resource"] == "nodes"
    lease = next(s for s in api.asked if s["resourceAttributes"]["name"] == "k8s-scheduler")
    assert lease["resourceAttributes"]["namespace"] == "kube-system"


def test_what_is_there_already_is_not_asked_about():
    api = Api(is_installed=True)
    install(bed_of(api))
    assert api.asked == []


def test_a_role_that_never_holds_is_named(monkeypatch):
    monkeypatch.setattr(installation, "_GRANTED_SECONDS", 0.0)
    with pytest.raises(AssertionError, match=r"goes by a new role: .*k8s-scheduler"):
        install(bed_of(Api(lag=100)))


def test_a_subresource_is_asked_about_as_one():
    reviews = list(reviews_of(load_manifest("rbac.yaml")))
    attributes = [review["spec"]["resourceAttributes"] for review in reviews]
    assert any((a["resource"], a["subresource"]) == ("pods", "binding") for a in attributes)
