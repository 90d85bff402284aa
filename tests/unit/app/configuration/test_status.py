"""Which configuration is in force: what can change, what is shown, and where it comes from."""

import asyncio
from pathlib import Path

import pytest

from k8s_scheduler.api.config_maps import ConfigMapName
from k8s_scheduler.app.configuration.interpretation import interpret, log_warnings
from k8s_scheduler.app.configuration.mounts import is_mounted_alone
from k8s_scheduler.app.configuration.offered import Offer, RefusedOffer
from k8s_scheduler.app.configuration.reload_parts import FileOrigin
from k8s_scheduler.app.configuration.status import ConfigStatus, mean_the_same, settle
from k8s_scheduler.app.options import ConfigurationFlags
from k8s_scheduler.obs.metrics import Metrics
from tests.fakes.clock import virtual_time

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
EXTENDER = """\
extenders:
- urlPrefix: https://example.com
  ignorable: true
  filterVerb: f
  tlsConfig: {certData: aGVsbG8=, keyData: c2VjcmV0}
"""


def meaning(text=""):
    return interpret(ConfigurationFlags(), Offer("f.yaml", HEAD + text))


def status(text="", **options):
    return ConfigStatus(
        meaning(text), "h", metrics=Metrics().config, wall_clock=lambda: 0.0, **options
    )


class TestSettle:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("parallelism: 4\n", ()),
            ("profiles: [{schedulerName: x}]\n", ()),
            ("leaderElection: {leaseDuration: 20s}\n", ("leaderElection.leaseDuration",)),
            ("clientConnection: {kubeconfig: /f}\n", ("clientConnection.kubeconfig",)),
            ("delayCacheUntilActive: true\n", ("delayCacheUntilActive",)),
        ],
    )
    def test_what_is_read_at_start_alone_needs_a_restart(self, text, expected):
        started = meaning()
        in_force, needed = settle(started, meaning(text))
        assert needed == expected
        assert mean_the_same(in_force, started) == bool(expected)

    def test_the_rest_of_such_a_change_holds(self):
        changed = meaning("leaderElection: {leaderElect: false}\nparallelism: 4\n")
        in_force, _ = settle(meaning(), changed)
        assert in_force.settings.leader_election.leader_elect is True
        assert in_force.settings.parallelism == 4

    def test_remarks_mean_nothing(self):
        assert mean_the_same(meaning(), meaning("# remark\n"))


class TestWarnings:
    """What is asked for in a place where it does not count is said."""

    EXTRAS = (
        "---\napiVersion: k8s-scheduler.io/v1alpha1\nkind: SchedulerExtras\n"
        "lastGood: {configMap: kept}\n"
    )

    def said(self, text, caplog, **options):
        flags = ConfigurationFlags(**options)
        log_warnings(interpret(flags, Offer("f.yaml", HEAD + text)), flags)
        return [record.fields["reason"] for record in caplog.records]

    def test_a_login_in_a_config_map_that_is_read_through_the_api(self, caplog):
        named = {"config_map": ConfigMapName("m", "ns"), "kubeconfig": "/f"}
        (reason,) = self.said("clientConnection: {kubeconfig: /other}\n", caplog, **named)
        assert reason.startswith("f.yaml:3: clientConnection.kubeconfig: the login that read")
        caplog.clear()
        assert self.said("clientConnection: {kubeconfig: /f}\n", caplog, **named) == []

    def test_a_flag_about_the_connection_names_where_it_belongs(self, caplog):
        named = {"config_map": ConfigMapName("m", "ns"), "kube_api_qps": 5.0}
        (reason,) = self.said("", caplog, **named)
        assert reason == "--kube-api-qps: set clientConnection.qps in the ConfigMap of --config-map"

    @pytest.mark.parametrize(
        ("flag", "said"),
        [("ns/kept", []), ("ns/x", ["lastGood.configMap: --last-good-config-map=ns/x wins"])],
    )
    def test_a_place_for_the_last_good_one_that_the_flag_overrules(self, caplog, flag, said):
        named = {"config_file": Path("f"), "pod_namespace": "ns"}
        last_good = ConfigMapName.parse(flag)
        assert self.said(self.EXTRAS, caplog, last_good=last_good, **named) == said


class TestPage:
    def test_upstreams_part_and_ours(self):
        page = status("parallelism: 4\n").page()
        assert page["kubescheduler.config.k8s.io"]["parallelism"] == 4
        ours = page["k8s-scheduler.io"]
        assert (ours["hash"], ours["since"]) == ("h", "1970-01-01T00:00:00Z")
        assert ours["source"] == "f.yaml"
        assert ours["extras"]["batch"]["maxPods"] == 16

    def test_source_and_hash_are_those_of_one_text_also_where_it_means_the_same(self):
        """As when the last good one was started with, and then the file was put right."""
        shown = status()
        repaired = interpret(ConfigurationFlags(), Offer("repaired.yaml", HEAD + "# remark\n"))
        shown.unchanged(repaired, "other", ())
        ours = shown.page()["k8s-scheduler.io"]
        assert (ours["hash"], ours["source"]) == ("other", "repaired.yaml")

    def test_private_keys_are_not_shown(self):
        page = str(status(EXTENDER).page())
        assert "aGVsbG8=" in page
        assert "c2VjcmV0" not in page

    def test_an_extenders_password_is_not_shown(self):
        page = status(EXTENDER.replace("example.com", "user:hunter22@example.com/a@b")).page()
        (extender,) = page["kubescheduler.config.k8s.io"]["extenders"]
        assert extender["urlPrefix"] == "https://<redacted>@example.com/a@b"

    def test_what_was_refused_last_stays_until_something_else_is(self):
        shown = status(refused=RefusedOffer("x", "s", 0.0, ("wrong",)))
        assert shown.page()["k8s-scheduler.io"]["lastReloadSuccessful"] is False
        shown.applied(meaning(), "y", ())
        ours = shown.page()["k8s-scheduler.io"]
        assert ours["lastReloadSuccessful"] is True
        assert ours["refused"]["errors"] == ["wrong"]


class TestFile:
    async def test_a_swapped_link_is_another_text(self, tmp_path):
        # As the kubelet does it: `..data` points to another directory from now on.
        for version in ("1", "2"):
            (tmp_path / version).mkdir()
            (tmp_path / version / "c.yaml").write_text(version)
        data = tmp_path / "..data"
        data.symlink_to("1")
        (tmp_path / "c.yaml").symlink_to("..data/c.yaml")
        origin = FileOrigin(tmp_path / "c.yaml")
        first = await origin.look()
        (tmp_path / "new").symlink_to("2")
        (tmp_path / "new").replace(data)
        second = await origin.look()
        assert (first.text, second.text) == ("1", "2")
        assert first.hash != second.hash

    async def test_a_file_that_is_gone_says_so(self, tmp_path):
        offer = await FileOrigin(tmp_path / "c.yaml").look()
        assert offer.problem.endswith("c.yaml: cannot be read: No such file or directory")

    async def test_one_that_is_no_text_says_so(self, tmp_path):
        (tmp_path / "c.yaml").write_bytes(b"ab\xff")
        offer = await FileOrigin(tmp_path / "c.yaml").look()
        assert offer.problem.endswith("is not text in UTF-8: byte 2 is not")

    async def test_one_without_an_end_is_not_read_to_it(self):
        offer = await FileOrigin(Path("/dev/zero")).look()
        assert offer.problem == ("/dev/zero: is longer than 4194304 bytes; is this the right file?")

    @virtual_time
    async def test_it_is_looked_at_every_two_seconds(self):
        began = asyncio.get_running_loop().time()
        await FileOrigin(Path("f")).changed()
        assert asyncio.get_running_loop().time() - began == 2.0


MOUNTS = """\
22 1 0:21 / / rw - overlay overlay rw
30 22 0:40 /volumes/c /etc/directory ro - tmpfs tmpfs rw
31 22 0:40 /volumes/d /etc/with\\040space.yaml ro - tmpfs tmpfs rw
32 22 0:41 /volumes/e/..data/c.yaml /etc/alone.yaml ro - tmpfs tmpfs rw
33 22 0:42 /volumes/f/..2026_01_31_10_00_00.123/sub /etc/sub ro - tmpfs tmpfs rw
34 33 0:43 / /etc/sub/own rw - tmpfs tmpfs rw
"""


@pytest.mark.parametrize(
    ("path", "alone"),
    [
        ("/etc/alone.yaml", True),
        ("/etc/with space.yaml", True),
        ("/etc/directory/config.yaml", False),
        ("/etc/other.yaml", False),
        ("/etc/sub/config.yaml", True),
        ("/etc/sub/deeper/config.yaml", True),
        ("/etc/sub/own/config.yaml", False),
    ],
)
def test_a_file_that_is_mounted_by_itself_is_known(tmp_path, path, alone):
    mounts = tmp_path / "mountinfo"
    mounts.write_text(MOUNTS)
    assert is_mounted_alone(Path(path), mounts=mounts) is alone


def test_where_mounts_are_not_shown_nothing_is_claimed(tmp_path):
    assert is_mounted_alone(Path("/etc/x"), mounts=tmp_path / "missing") is False
