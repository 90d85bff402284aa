"""`k8s-scheduler shadow`: what it is told, and what it is made of."""

import dataclasses
import re

import pytest
from click.testing import CliRunner

from k8s_scheduler.api.config.load import load_configuration
from k8s_scheduler.app.driver.watch_set import WatchSet
from k8s_scheduler.app.options import RunOptions
from k8s_scheduler.app.process.memory import MemoryWatch
from k8s_scheduler.app.shadow import process as shadow
from k8s_scheduler.app.shadow.options import (
    ShadowOptions,
    UnknownProfileError,
    following_profiles,
)
from k8s_scheduler.cli.main import main
from k8s_scheduler.cli.shadow import shadow as command
from k8s_scheduler.core.builtins import known_plugins
from k8s_scheduler.kube.watch.informer import Informer
from k8s_scheduler.lib.clock import SteadyClock
from k8s_scheduler.lib.slices import SliceMeter
from k8s_scheduler.obs.metrics import Metrics
from k8s_scheduler.simulate.shadowing.following import Follower
from k8s_scheduler.simulate.shadowing.report import Report
from tests.fakes.api import FakeApi
from tests.unit.shipped import ROOT

HEADER = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def configuration(tmp_path, *names):
    file = tmp_path / "config.yaml"
    listed = ", ".join(f"{{schedulerName: {name}}}" for name in names)
    file.write_text(f"{HEADER}profiles: [{listed}]\n")
    return load_configuration(file, known_plugins())


def followed(tmp_path, names, *wanted):
    return [p.scheduler_name for p in following_profiles(configuration(tmp_path, *names), wanted)]


class TestWhoIsFollowed:
    """Schedulers by name, and the profile that judges each."""

    def test_every_profile_follows_its_own_name(self, tmp_path):
        assert followed(tmp_path, ["a", "b"]) == ["a", "b"]

    def test_the_only_profile_follows_whoever_is_named(self, tmp_path):
        assert followed(tmp_path, ["a"], "default-scheduler", "other") == [
            "default-scheduler",
            "other",
        ]

    def test_a_profile_can_be_named(self, tmp_path):
        assert followed(tmp_path, ["a", "b"], "default-scheduler=b") == ["default-scheduler"]

    @pytest.mark.parametrize(
        ("wanted", "message"),
        [
            (("x",), 'no profile "x", and several to choose from: say --scheduler-name x=PROFILE'),
            (("x=c",), 'no profile "c"; the configuration has "a", "b"'),
            (("x=",), '"x=" is neither NAME nor NAME=PROFILE'),
            (("a", "a"), '"a" is to be followed twice'),
        ],
    )
    def test_what_makes_no_sense_is_refused(self, tmp_path, wanted, message):
        with pytest.raises(UnknownProfileError) as error:
            followed(tmp_path, ["a", "b"], *wanted)
        assert str(error.value).startswith(message)


def test_nodes_of_our_own_are_no_limit_for_other_schedulers(tmp_path):
    file = tmp_path / "config.yaml"
    file.write_text(
        f"{HEADER}profiles: [{{schedulerName: ours}}]\n---\n"
        "apiVersion: k8s-scheduler.io/v1alpha1\nkind: SchedulerExtras\n"
        "nodeOwnership: {nodeSelector: {nodeSelectorTerms: [{matchExpressions: "
        "[{key: a, operator: Exists}]}]}}\n"
    )
    loaded = load_configuration(file, known_plugins())
    ours, theirs = following_profiles(loaded, ["ours", "default-scheduler"])
    assert ours.points["filter"][0].name == "NodeOwnership"
    assert not any(u.name == "NodeOwnership" for uses in theirs.points.values() for u in uses)
    assert "NodeOwnership" not in theirs.plugin_args
    file.write_text(f"{HEADER}profiles: [{{schedulerName: default-scheduler}}]\n")
    assert theirs.points == load_configuration(file, known_plugins()).profiles[0].points


@pytest.fixture
def started(monkeypatch):
    """Return the options that a command line comes to, instead of running."""
    taken = []
    monkeypatch.setattr(shadow, "run", lambda options: taken.append(options) or 0)
    return taken


def test_flags_reach_the_options(started):
    line = "shadow --kubeconfig k --scheduler-name default-scheduler --latency 5s --sample 0.5"
    line += " --percentage-of-nodes-to-score 30 --out r.json --for 2m --pods 7 --report-every 10s"
    result = CliRunner().invoke(main, line.split())
    assert result.exit_code == 0, result.output
    (options,) = started
    assert (options.latency_seconds, options.sample, options.for_seconds) == (5.0, 0.5, 120.0)
    assert (options.percentage_of_nodes_to_score, options.pods) == (30, 7)
    assert (str(options.out), options.report_seconds) == ("r.json", 10.0)
    assert options.run.configuration.settings.client_connection.kubeconfig == "k"


@pytest.mark.parametrize(
    ("flag", "counts"),
    [("", {"a": 70, "b": 40}), ("--percentage-of-nodes-to-score=0", {"a": 0, "b": 0})],
)
def test_without_a_flag_a_profile_says_how_many_nodes_are_scored(started, tmp_path, flag, counts):
    file = tmp_path / "config.yaml"
    file.write_text(
        f"{HEADER}percentageOfNodesToScore: 40\n"
        "profiles: [{schedulerName: a, percentageOfNodesToScore: 70}, {schedulerName: b}]\n"
    )
    result = CliRunner().invoke(main, ["shadow", "--config", str(file), *flag.split()])
    assert result.exit_code == 0, result.output
    assert started[0].percentages_of_nodes_to_score() == counts


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--scheduler-name a=b", '--scheduler-name: no profile "b"'),
        ("--sample 2", "2.0 is not in the range"),
        ("--sample nan", '"nan" is not a number from 0 to 1'),
        ("--tls-cert-file c", "--tls-cert-file and --tls-private-key-file go together"),
        ("--report-every 0s", "--report-every needs a time above 0"),
        ("--config /does/not/exist", "/does/not/exist"),
        ("--out /does/not/exist.json", "--out /does/not/exist.json: there is no directory"),
        ("--out /", "--out /: is a directory"),
    ],
)
def test_mistakes_are_told_without_a_traceback(started, line, message):
    result = CliRunner().invoke(main, ["shadow", *line.split()])
    assert result.exit_code == 2
    assert message in result.output
    assert started == []


def test_an_empty_file_name_counts_as_not_given(started):
    result = CliRunner().invoke(main, ["shadow", "--config="])
    assert result.exit_code == 0, result.output
    assert started[0].run.configuration_flags.config_file is None


def test_every_flag_is_in_the_docs():
    text = (ROOT / "docs" / "beside-other-schedulers.md").read_text()
    of_shadow = text.partition("| Flag |")[2].partition("\n\n")[0]
    flags = {option for each in command.params for option in each.opts} - {"--v"}
    assert flags - set(re.findall(r"`(--?[a-z-]+)`", of_shadow)) == set()


async def test_nothing_in_the_graph_can_write(tmp_path):
    loaded = configuration(tmp_path, "default-scheduler")
    options = ShadowOptions(run=RunOptions(configuration=loaded), following=loaded.profiles)
    graph = shadow.wire_shadow(options, FakeApi(), Metrics())
    parts = [getattr(graph, field.name) for field in dataclasses.fields(graph)]
    flat = [p for part in parts for p in (part if isinstance(part, WatchSet) else (part,))]
    allowed = (Follower, Report, Informer, SteadyClock, SliceMeter, MemoryWatch)
    assert [p for p in flat if p is not None and not isinstance(p, allowed)] == []
