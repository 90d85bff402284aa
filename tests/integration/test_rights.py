"""Each right is needed: the daemon runs under exactly its roles, and says so when one is missing.

The roles are those that `k8s-scheduler rbac` prints. One trial for each rule (and for each verb or
resource of a rule that stands for different work): the right is taken away, the daemon is given
something to do that needs it, and has to name it in its log. A rule without a trial is an error,
so a new one in `app/rights/table.py` needs one here.
"""

import asyncio
import http.client
import logging
import ssl
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from k8s_scheduler.api.config.load import default_configuration
from k8s_scheduler.api.config_maps import ConfigMapName
from k8s_scheduler.app.configuration.initial import StartError, load_start
from k8s_scheduler.app.options import ConfigurationFlags
from k8s_scheduler.app.rights.table import Role, Rule, needs_of, roles_of
from k8s_scheduler.core.builtins import known_plugins
from testbed.daemon import Daemon
from testbed.ports import choose_ports
from testbed.sandbox import Sandbox
from testbed.waiting import eventually
from testbed.workload import make_node, make_pod
from tests.integration.daemons import node_of, refusals, says, stand_up
from tests.integration.lent_rights import (
    Account,
    Ear,
    configuration_text,
    daemon_of,
    options_for,
    roles_for,
)
from tests.integration.volume_situations import BY_HAND, claim_body, volume_body

ROOMY, FULL = {"room": "roomy"}, {"room": "full"}
# The ConfigMaps that rights are limited to, by how their names end.
OFFERED, LAST_GOOD = "offered", "last-good"
# A right that the daemon has for a command beside it: test_config_current.py takes it away.
ELSEWHERE = {("", "/configz", "get", "")}
_HEARD_SECONDS = 30.0
_AT_ONCE = 4


@dataclass(frozen=True)
class Trial:
    """A right that is taken away, what makes the daemon want it, and what it has to say then."""

    group: str
    resources: tuple[str, ...]
    verb: str
    prepare: Callable[[Sandbox, str], None] = lambda _sandbox, _name: None
    provoke: Callable[[Sandbox, str, int], None] = lambda _sandbox, _name, _port: None
    elects: bool = False
    serves: bool = False
    bindings_are: str = ""
    # The ConfigMap that the right is about, OFFERED or LAST_GOOD.
    config_map: str = ""
    # Whether the right is needed to start at all; who cannot start ends with the text.
    starts: bool = False

    @property
    def title(self) -> str:
        end = f" {self.config_map}" if self.config_map else ""
        return f"{self.verb} {','.join(self.resources)}{end}"

    @property
    def texts(self) -> list[str]:
        end = f".{self.group}" if self.group else ""
        return [f"missing permission: {self.verb} {resource}{end}" for resource in self.resources]

    def takes(self, rule: Rule) -> bool:
        return (
            rule.group == self.group
            and set(self.resources) <= set(rule.resources)
            and self.verb in rule.verbs
            and self.config_map == which_config_map(rule)
        )

    def rights(self) -> set[tuple[str, str, str, str]]:
        return {(self.group, each, self.verb, self.config_map) for each in self.resources}


def which_config_map(rule: Rule) -> str:
    """Return OFFERED or LAST_GOOD; empty for a rule about something else."""
    return rule.names[0].partition(".")[2] if "configmaps" in rule.resources else ""


def config_maps(name: str, namespace: str) -> dict[str, ConfigMapName]:
    """Return the two ConfigMaps of a trial."""
    return {end: ConfigMapName(f"{name}.{end}", namespace) for end in (OFFERED, LAST_GOOD)}


def create_config_maps(sandbox: Sandbox, name: str, text: str) -> None:
    """Create both; the last good one is empty, as it is shipped."""
    for end, wanted in config_maps(name, sandbox.namespace).items():
        data = {"data": {"config.yaml": text}} if end == OFFERED else {}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": wanted.name}} | data
        sandbox.client.create(f"{sandbox.path}/configmaps", body)


def fits(sandbox: Sandbox, name: str) -> None:
    pod = make_pod(name, cpu="10m", scheduler_name=name, node_selector=ROOMY)
    sandbox.create_pods([pod])


def fits_nowhere(sandbox: Sandbox, name: str) -> None:
    sandbox.create_pods([make_pod(name, cpu="99", scheduler_name=name, node_selector=ROOMY)])


def has_to_preempt(sandbox: Sandbox, name: str) -> None:
    pod = make_pod(name, cpu="3", scheduler_name=name, priority_class="vip", node_selector=FULL)
    sandbox.create_pods([pod])


def wants_volume(sandbox: Sandbox, name: str, provisioner: str) -> None:
    sandbox.create_cluster_object(
        "/apis/storage.k8s.io/v1/storageclasses",
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": name},
            "provisioner": provisioner,
            "volumeBindingMode": "WaitForFirstConsumer",
        },
    )
    if provisioner == BY_HAND:
        body = volume_body(name, class_name=name)
        sandbox.create_cluster_object("/api/v1/persistentvolumes", body)
    sandbox.client.create(f"{sandbox.path}/persistentvolumeclaims", claim_body(name, name))
    pod = make_pod(name, cpu="10m", scheduler_name=name, node_selector=ROOMY)
    pod["spec"]["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": name}}]
    sandbox.create_pods([pod])


def somebody_leads(sandbox: Sandbox, name: str) -> None:
    """Let the daemon be a standby, and its watch of the lease be wanted."""
    sandbox.client.create(
        f"/apis/coordination.k8s.io/v1/namespaces/{sandbox.namespace}/leases",
        {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": name},
            "spec": {"holderIdentity": "another", "leaseDurationSeconds": 60},
        },
    )


def ask(token: str) -> Callable[[Sandbox, str, int], None]:
    def knock(_sandbox: Sandbox, _name: str, port: int) -> None:
        connection = http.client.HTTPSConnection(
            "127.0.0.1", port, timeout=10, context=ssl._create_unverified_context()
        )
        connection.request(
            "GET", "/metrics", headers={"Authorization": f"Bearer {token}"} if token else {}
        )
        assert connection.getresponse().status in {401, 500}
        connection.close()

    return knock


def default_roles() -> tuple[Role, ...]:
    maps = config_maps("default", "kube-system")
    configuration = default_configuration(known_plugins())
    needs = needs_of(configuration, config_map=maps[OFFERED], last_good=maps[LAST_GOOD])
    return roles_of(needs)


def read_trials() -> list[Trial]:
    """Return one trial for each rule about what is watched; every resource has to be named."""
    return [
        Trial(rule.group, rule.resources, "watch")
        for rule in default_roles()[0].rules
        if "watch" in rule.verbs
    ]


WRITE_TRIALS = [
    Trial("", ("pods",), "get", fits, bindings_are="lost"),
    Trial("", ("pods/binding",), "create", fits),
    Trial("", ("pods/status",), "patch", fits_nowhere),
    Trial("", ("pods",), "delete", has_to_preempt),
    Trial("", ("persistentvolumes",), "patch", lambda s, n: wants_volume(s, n, BY_HAND)),
    Trial(
        "", ("persistentvolumeclaims",), "patch", lambda s, n: wants_volume(s, n, "x.example.com")
    ),
    Trial("events.k8s.io", ("events",), "create", fits),
    # An attempt that fails is made again, and the second event of a series extends the first.
    Trial("events.k8s.io", ("events",), "patch", fits, bindings_are="refused"),
    Trial("authentication.k8s.io", ("tokenreviews",), "create", provoke=ask("t"), serves=True),
    Trial(
        "authorization.k8s.io", ("subjectaccessreviews",), "create", provoke=ask(""), serves=True
    ),
    Trial("coordination.k8s.io", ("leases",), "create", elects=True),
    Trial("coordination.k8s.io", ("leases",), "get", elects=True),
    Trial("coordination.k8s.io", ("leases",), "update", elects=True),
    Trial("coordination.k8s.io", ("leases",), "watch", somebody_leads, elects=True),
    Trial("coordination.k8s.io", ("leases",), "list"),
]
CONFIGURATION_TRIALS = [
    Trial("", ("configmaps",), "get", config_map=OFFERED, starts=True),
    Trial("", ("configmaps",), "watch", config_map=OFFERED),
    Trial("", ("configmaps",), "get", config_map=LAST_GOOD),
    Trial("", ("configmaps",), "patch", config_map=LAST_GOOD),
]
TRIALS = {t.title: t for t in (*read_trials(), *WRITE_TRIALS, *CONFIGURATION_TRIALS)}


def test_every_rule_has_a_trial():
    tried = {right for trial in TRIALS.values() for right in trial.rights()} | ELSEWHERE
    needed = {
        (rule.group, thing, verb, which_config_map(rule))
        for role in default_roles()
        for rule in role.rules
        for thing in (*rule.resources, *rule.paths)
        for verb in rule.verbs
    }
    # Lists are the way of servers without streaming lists, and watches need the same rule.
    assert {right for right in needed - tried if right[2] != "list"} == set()
    assert tried <= needed


def without(roles: tuple[Role, ...], trial: Trial) -> tuple[Role, ...]:
    """Return the roles but for one right; where lists would do instead, also those."""

    def less(rule: Rule) -> list[Rule]:
        if not trial.takes(rule):
            return [rule]
        gone = {"list", "watch"} if trial.verb == "watch" else {trial.verb}
        others = tuple(name for name in rule.resources if name not in trial.resources)
        verbs = tuple(verb for verb in rule.verbs if verb not in gone)
        kept = [replace(rule, resources=others)] if others else []
        return [
            *kept,
            *([replace(rule, resources=trial.resources, verbs=verbs)] if verbs else []),
        ]

    lessened = tuple(
        replace(role, rules=tuple(left for rule in role.rules for left in less(rule)))
        for role in roles
    )
    assert lessened != roles
    return lessened


@pytest.fixture(scope="module")
def corner(control_plane):
    """Two nodes, one with room and one full of somebody unimportant."""
    with Sandbox(control_plane) as sandbox:
        stand_up(
            sandbox,
            make_node("roomy", cpu="32", labels=ROOMY),
            make_node("full", cpu="4", labels=FULL),
        )
        sandbox.create_cluster_object(
            "/apis/scheduling.k8s.io/v1/priorityclasses",
            {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": "vip"},
                "value": 1000,
            },
        )
        (filler,) = sandbox.create_pods([make_pod("filler", cpu="3", scheduler_name="nobody")])
        sandbox.bind(filler, "full")
        yield sandbox


@pytest.fixture(scope="module")
def heard(corner, tmp_path_factory):
    """What was heard in each trial; they run side by side."""
    folder = tmp_path_factory.mktemp("rights")
    ear = Ear()
    logging.getLogger("k8s_scheduler").addHandler(ear)
    try:
        return asyncio.run(_try_all(corner, folder, ear))
    finally:
        logging.getLogger("k8s_scheduler").removeHandler(ear)


async def _try_all(corner, folder, ear):
    turns = asyncio.Semaphore(_AT_ONCE)

    async def attempt(number: int, trial: Trial) -> bool:
        name = f"trial-{number}"
        (port,) = choose_ports(1, taken=set()) if trial.serves else (0,)
        text = configuration_text(name, corner.namespace, elects=trial.elects)
        async with turns:
            maps = config_maps(name, corner.namespace) if trial.config_map else {}
            flags = ConfigurationFlags(config_map=maps.get(OFFERED), last_good=maps.get(LAST_GOOD))
            options = options_for(folder, text, port=port, flags=flags)
            account = Account(corner, name, without(roles_for(options), trial))
            trial.prepare(corner, name)
            if trial.config_map:
                create_config_maps(corner, name, text)
            await asyncio.to_thread(account.wait_granted)
            if trial.starts:
                flags = replace(flags, kubeconfig=str(account.log_in()))
                return await asyncio.to_thread(_cannot_start, trial, account, flags)
            async with daemon_of(options, account.log_in(), bindings_are=trial.bindings_are):
                return await _hear(trial, account, corner, port=port, ear=ear)

    trials = TRIALS.values()
    return dict(
        zip(TRIALS, await asyncio.gather(*map(attempt, range(len(trials)), trials)), strict=True)
    )


def _cannot_start(trial: Trial, account: Account, flags: ConfigurationFlags) -> bool:
    """Whether a start ends, and says for want of which right."""
    try:
        load_start(flags)
    except StartError as error:
        return all(text in str(error) for text in (*trial.texts, account.user))
    return False


async def _hear(trial, account, corner, *, port, ear) -> bool:
    """Wait until the daemon has named the right; what provokes it is done again and again."""
    loop = asyncio.get_running_loop()
    deadline, provoke_at = loop.time() + _HEARD_SECONDS, loop.time()
    while loop.time() < deadline:
        if all(ear.heard(text, account.user) for text in trial.texts):
            return True
        if loop.time() >= provoke_at:
            await asyncio.to_thread(trial.provoke, corner, account.name, port)
            provoke_at = loop.time() + 1.0
        await asyncio.sleep(0.05)
    return False


@pytest.mark.parametrize("right", TRIALS)
def test_a_right_that_is_taken_away_is_named(heard, right):
    assert heard[right]


REDUCED = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: reduced
  plugins:
    multiPoint:
      disabled:
      - name: '*'
      enabled:
      - name: PrioritySort
      - name: SchedulingGates
      - name: NodeResourcesFit
      - name: TaintToleration
      - name: NodeUnschedulable
      - name: DefaultBinder
"""


def test_a_profile_with_fewer_plugins_runs_under_fewer_rights(corner, tmp_path):
    options = options_for(tmp_path, REDUCED, port=1)
    election = replace(needs_of(options.configuration), lease=None)
    (role,) = roles_of(election)
    resources = {resource for rule in role.rules for resource in rule.resources}
    assert resources == {
        *("nodes", "pods", "pods/binding", "pods/status", "events"),
        *("tokenreviews", "subjectaccessreviews", "leases"),
    }
    assert "delete" not in {verb for rule in role.rules for verb in rule.verbs}
    account = Account(corner, "reduced", [role])
    account.wait_granted()
    pods = [
        make_pod("small", cpu="10m", scheduler_name="reduced", node_selector=ROOMY),
        make_pod("large", cpu="99", scheduler_name="reduced", node_selector=ROOMY),
    ]
    corner.create_pods(pods)
    daemon = Daemon(
        corner.bed,
        name="reduced",
        configuration=REDUCED,
        kubeconfig=account.log_in(),
        guarded=True,
    ).start()
    eventually(lambda: node_of(corner, "small"), 30, "the small one is bound")
    eventually(lambda: says(corner, "large", "message"), 30, "the large one is told why")
    assert daemon.get("/metrics")[0] == 403
    assert daemon.stop() == 0, daemon.log_tail()
    assert refusals(daemon) == []
