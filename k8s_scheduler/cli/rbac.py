"""`k8s-scheduler rbac`: the rights that a configuration needs, as a manifest."""

import sys
from pathlib import Path
from typing import Any

import click

from k8s_scheduler.api.config.field_errors import ConfigurationError
from k8s_scheduler.api.config_maps import ConfigMapName
from k8s_scheduler.app.configuration.interpretation import load
from k8s_scheduler.app.options import DEFAULT_SECURE_PORT, ConfigurationFlags
from k8s_scheduler.app.process.exit_codes import ExitCode
from k8s_scheduler.cli.flags import ConfigMapReference, NamespaceName, ObjectName
from k8s_scheduler.cli.leader_flags import leader_election_options, take_leader_election


@click.command("rbac")
@click.option("--config", "config_file", help="Configuration file (KubeSchedulerConfiguration).")
@click.option(
    "--namespace",
    type=NamespaceName(),
    default="kube-system",
    show_default=True,
    help="Namespace of the service account.",
)
@click.option(
    "--name",
    type=ObjectName(),
    default="k8s-scheduler",
    show_default=True,
    help="Name of the service account, the roles and the bindings.",
)
@click.option(
    "--cluster-name",
    type=ObjectName(),
    show_default="as --name",
    help="Name of the ClusterRole and its binding; two accounts of one name need two.",
)
@click.option(
    "--secure-port",
    type=click.IntRange(0, 65535),
    default=DEFAULT_SECURE_PORT,
    show_default=True,
    help="As for run; with 0 no token has to be looked up.",
)
@click.option(
    "--config-map",
    type=ConfigMapReference(with_key=True),
    show_default="the service account's name",
    help="As for run, or the one that is mounted.",
)
@click.option(
    "--last-good-config-map",
    type=ConfigMapReference(with_key=False),
    show_default="lastGood.configMap of the file, or the service account's name with -last-good",
    help="As for run.",
)
@leader_election_options
def rbac(**parameters: Any) -> None:
    """Print the service account, roles and bindings that the daemon needs, and no more.

    Give it the configuration file and the --leader-elect flags that `run` gets: fewer plugins need
    fewer rights. Leader election's Role is in the namespace of the Lease.
    """
    # The plugins are loaded only now: --help stays quick.
    from k8s_scheduler.app.rights.manifest import Owner, rights_manifest  # noqa: PLC0415
    from k8s_scheduler.app.rights.table import needs_of, roles_of  # noqa: PLC0415
    from k8s_scheduler.core.setup import ProfileError  # noqa: PLC0415

    file = parameters["config_file"]
    flags = ConfigurationFlags(
        config_file=Path(file) if file else None, leader_election=take_leader_election(parameters)
    )
    owner = Owner(parameters["name"], parameters["namespace"], parameters["cluster_name"] or "")
    try:
        configuration = load(flags)
        in_file = configuration.extras.last_good.config_map or f"{owner.name}-last-good"
        config_map = _located(parameters["config_map"], owner.name, owner.namespace)
        last_good = _located(parameters["last_good_config_map"], in_file, owner.namespace)
        needs = needs_of(
            configuration,
            serves=parameters["secure_port"] != 0,
            config_map=config_map,
            last_good=last_good,
        )
    except (ConfigurationError, ProfileError) as error:
        click.echo(str(error), err=True)
        sys.exit(ExitCode.USAGE)
    if config_map.is_in_same_map(last_good):
        raise click.UsageError(
            f"the ConfigMap {config_map} holds the configuration itself; keep the last good "
            "one in another (--last-good-config-map, or lastGood.configMap of the file)"
        )
    click.echo(rights_manifest(roles_of(needs), owner), nl=False)


def _located(given: ConfigMapName | None, usual: str, namespace: str) -> ConfigMapName:
    try:
        found = given or ConfigMapName.parse(usual)
    except ValueError as error:
        raise click.UsageError(
            f"--name is too long for a ConfigMap called after it: {error}; "
            "give --last-good-config-map"
        ) from error
    return ConfigMapName(found.name, found.namespace or namespace)
