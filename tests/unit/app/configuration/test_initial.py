"""What the daemon starts with: what is offered, the last good one, or nothing and every reason."""

import pytest

from k8s_scheduler.api.config_maps import ConfigMap, ConfigMapName
from k8s_scheduler.app.configuration import interpretation as configuration
from k8s_scheduler.app.configuration.initial import StartError, load_start, place_to_keep
from k8s_scheduler.app.options import ConfigurationFlags
from k8s_scheduler.kube.errors import (
    CredentialsError,
    Forbidden,
    NotFound,
    NotSent,
    ServerError,
)

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
GOOD = HEAD + "profiles: [{schedulerName: good}]\n"
BAD = HEAD + "paralellism: 3\n"
EXTRAS = (
    "---\napiVersion: k8s-scheduler.io/v1alpha1\nkind: SchedulerExtras\n"
    "lastGood: {configMap: saved}\n"
)
OWN, SAVED = ConfigMapName("own", "ns"), ConfigMapName("saved", "ns")


class Maps:
    """ConfigMaps by name; an exception in the place of one is raised."""

    def __init__(self, **maps):
        self.maps = maps

    def __call__(self, wanted):
        found = self.maps.get(wanted.name)
        if found is None:
            raise NotFound("not there", status=404)
        if isinstance(found, Exception):
            raise found
        return ConfigMap(data=found)


def names(start):
    return [profile.scheduler_name for profile in start.configuration.profiles]


def test_without_a_source_there_are_the_defaults():
    start = load_start(ConfigurationFlags(), read=Maps())
    assert names(start) == ["default-scheduler"]
    assert (start.text, start.refused) == (None, None)


def test_a_file_is_taken_with_its_text(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text(GOOD)
    start = load_start(ConfigurationFlags(config_file=path), read=Maps())
    assert names(start) == ["good"]
    assert start.text == GOOD


@pytest.mark.parametrize(
    ("data", "key"),
    [
        ({"anything": GOOD}, ""),
        ({"config.yaml": GOOD, "other": BAD}, ""),
        ({"config.yaml": BAD, "other": GOOD}, "other"),
    ],
    ids=["the only key", "the usual one of several", "the one that is named"],
)
def test_a_config_map_is_taken(data, key):
    flags = ConfigurationFlags(config_map=ConfigMapName("own", "ns", key))
    start = load_start(flags, read=Maps(own=data))
    assert names(start) == ["good"]
    assert start.configuration.source.startswith("ns/own:")


@pytest.mark.parametrize(
    ("found", "key", "message"),
    [
        (None, "", "ConfigMap ns/own does not exist"),
        ({}, "", 'ConfigMap ns/own has no key "config.yaml"; it is empty'),
        ({"a": "", "b": ""}, "", 'no key "config.yaml"; it has a, b; name one: ns/own:KEY'),
        ({"a": ""}, "b", 'ConfigMap ns/own has no key "b"; it has a'),
        (Forbidden("no right", status=403), "", "ConfigMap ns/own may not be read: no right"),
        (
            Forbidden('User "u" cannot get resource "configmaps"', status=403),
            "",
            "may not be read: missing permission: get configmaps in namespace ns: User",
        ),
        ({"a": BAD}, "", 'ns/own:a:3: paralellism: unknown field "paralellism"; did you'),
    ],
    ids=["missing", "empty", "several", "no such key", "refused", "no right", "wrong"],
)
def test_a_config_map_that_is_of_no_use_is_named(found, key, message):
    flags = ConfigurationFlags(config_map=ConfigMapName("own", "ns", key))
    with pytest.raises(StartError) as caught:
        load_start(flags, read=Maps(own=found))
    assert message in str(caught.value)


@pytest.mark.parametrize("error", [NotSent("refused"), ServerError("down", status=503)])
def test_a_server_that_is_away_is_no_mistake_of_the_configuration(error):
    with pytest.raises(type(error)):
        load_start(ConfigurationFlags(config_map=OWN, last_good=SAVED), read=Maps(own=error))


def test_a_text_on_which_our_own_code_fails_is_refused(monkeypatch, caplog):
    def fail(*_, **__):
        raise OverflowError("hunter22")

    monkeypatch.setattr(configuration, "configuration_from_text", fail)
    with pytest.raises(StartError) as caught:
        load_start(ConfigurationFlags(config_map=OWN), read=Maps(own={"config.yaml": GOOD}))
    assert str(caught.value) == (
        "ns/own:config.yaml: cannot be interpreted: OverflowError in the scheduler, a defect; its "
        "log has more"
    )
    assert "Traceback" in caplog.text


class TestLastGood:
    """A bad file, and something better."""

    def start(self, text, *, saved, flag=True, namespace="ns"):
        flags = ConfigurationFlags(
            config_map=OWN, last_good=SAVED if flag else None, pod_namespace=namespace
        )
        maps = {} if saved is None else {"saved": {"config.yaml": saved}}
        return load_start(flags, read=Maps(own={"config.yaml": text}, **maps))

    def test_it_is_started_with_and_the_refusal_is_kept(self, caplog):
        start = self.start(BAD, saved=GOOD)
        assert names(start) == ["good"]
        assert start.text == GOOD
        assert "paralellism" in start.refused.errors[0]
        assert "STARTING WITH THE LAST GOOD ONE" in caplog.text

    def test_a_good_file_needs_none(self):
        assert self.start(GOOD, saved=BAD).refused is None

    @pytest.mark.parametrize(
        "text",
        ["profiles: [\n" + EXTRAS, GOOD + EXTRAS + "nodeOwnership: {nodeSelector: {}}\n"],
        ids=["beside our own document", "in it"],
    )
    def test_its_place_is_read_whatever_else_is_wrong(self, text):
        start = self.start(text, saved=GOOD, flag=False)
        assert names(start) == ["good"]
        assert start.refused is not None

    @pytest.mark.parametrize(
        "text",
        [BAD, BAD + EXTRAS.replace("lastGood", "lastGod"), BAD + EXTRAS.replace("saved", "S")],
        ids=["no extras", "misspelt", "a name that cannot be"],
    )
    def test_without_a_place_everything_that_is_wrong_is_told(self, text):
        with pytest.raises(StartError, match="paralellism"):
            self.start(text, saved=GOOD, flag=False)

    def test_a_place_without_a_namespace_is_none_where_ours_is_not_known(self):
        with pytest.raises(StartError, match="paralellism"):
            self.start(BAD + EXTRAS, saved=GOOD, flag=False, namespace="")

    @pytest.mark.parametrize(
        ("place", "namespace", "message"),
        [
            (
                "saved",
                "",
                "saved has no namespace, and our own is not known: write NAMESPACE/saved",
            ),
            ("own", "ns", "ns/own holds the configuration itself; name another ConfigMap"),
        ],
        ids=["nowhere", "where the configuration is"],
    )
    def test_a_place_that_it_cannot_be_kept_in_is_an_error_of_the_file(
        self, place, namespace, message
    ):
        """Started with all the same, nothing would ever be saved, or a ConfigMap be spoilt."""
        text = GOOD + EXTRAS.replace("saved", place)
        with pytest.raises(StartError, match=f"lastGood.configMap: .*{message}"):
            self.start(text, saved=GOOD, flag=False, namespace=namespace)
        assert self.start(text, saved=GOOD, flag=True, namespace=namespace).refused is None

    @pytest.mark.parametrize(
        ("saved", "message"), [(BAD, "last good configuration: ns/saved"), (None, "does not exist")]
    )
    def test_if_that_is_of_no_use_either_both_are_told(self, saved, message):
        with pytest.raises(StartError) as caught:
            self.start(BAD, saved=saved)
        assert message in str(caught.value)
        assert "ns/own:config.yaml:3: paralellism" in str(caught.value)

    def test_who_cannot_ask_for_it_is_told_what_is_wrong_with_the_file(self):
        flags = ConfigurationFlags(config_map=OWN, last_good=SAVED)
        away = Maps(own={"config.yaml": BAD}, saved=CredentialsError("no way to log in"))
        with pytest.raises(StartError) as caught:
            load_start(flags, read=away)
        assert str(caught.value).splitlines() == [
            (
                'ns/own:config.yaml:3: paralellism: unknown field "paralellism"; '
                'did you mean "parallelism"?'
            ),
            "last good configuration: no way to log in",
        ]

    def test_a_server_that_is_away_leaves_what_is_wrong_with_the_file_in_the_log(self, caplog):
        flags = ConfigurationFlags(config_map=OWN, last_good=SAVED)
        with pytest.raises(NotSent):
            load_start(flags, read=Maps(own={"config.yaml": BAD}, saved=NotSent("refused")))
        (record,) = caplog.records
        assert record.message == "Configuration refused, looking for the last good one"
        assert "paralellism" in record.fields["errors"][0]

    def test_the_flag_wins_over_the_file(self):
        start = self.start(GOOD + EXTRAS, saved=None, flag=False)
        flags = ConfigurationFlags(pod_namespace="ns")
        assert place_to_keep(flags, start.configuration) == SAVED
        flags = ConfigurationFlags(last_good=OWN)
        assert place_to_keep(flags, start.configuration) == OWN
