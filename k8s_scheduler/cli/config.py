"""`k8s-scheduler config`: what a configuration file may say and means, without running anything."""

import json
import sys
from pathlib import Path

import click

from k8s_scheduler.api.config_defaults_file import defaults_file
from k8s_scheduler.api.config_load import load_configuration
from k8s_scheduler.api.config_schema import configuration_schema
from k8s_scheduler.api.config_summary import summary
from k8s_scheduler.api.field_errors import ConfigurationError
from k8s_scheduler.app.configuration import known_plugins
from k8s_scheduler.app.exit_codes import ExitCode


@click.group("config")
def config() -> None:
    """Look at configuration files."""


@config.command()
@click.argument("file", type=click.Path(path_type=Path))
def check(file: Path) -> None:
    """Say what FILE means and OK, or every error with its line (exit code 2)."""
    try:
        configuration = load_configuration(file, known_plugins(), to_run=False)
    except ConfigurationError as error:
        click.echo(str(error), err=True)
        count = len(error.errors)
        click.echo(f"{count} error{'s' if count > 1 else ''}", err=True)
        sys.exit(ExitCode.USAGE)
    for warning in configuration.warnings:
        click.echo(f"warning: {warning}", err=True)
    click.echo(summary(configuration))
    click.echo("OK")


@config.command()
def defaults() -> None:
    """Print the whole default configuration as a file."""
    click.echo(defaults_file(known_plugins()), nl=False)


@config.command()
def schema() -> None:
    """Print the JSON schema (draft 2020-12) of configuration files."""
    click.echo(json.dumps(configuration_schema(known_plugins()), indent=2))
