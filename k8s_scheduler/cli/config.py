"""`k8s-scheduler config`: what a configuration file may say and means, and which is in force."""

import json
import sys
from pathlib import Path
from typing import Any

import click

from k8s_scheduler.api.config.defaults_file import defaults_file
from k8s_scheduler.api.config.field_errors import ConfigurationError
from k8s_scheduler.api.config.load import load_configuration
from k8s_scheduler.api.config.schema import configuration_schema
from k8s_scheduler.api.config.summary import summary
from k8s_scheduler.app.configuration.current import Address, CurrentError, describe, fetch
from k8s_scheduler.app.configuration.interpretation import known_plugins
from k8s_scheduler.app.options import DEFAULT_SECURE_PORT
from k8s_scheduler.app.process.exit_codes import ExitCode


@click.group("config")
def config() -> None:
    """Look at configurations."""


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


@config.command()
@click.option(
    "--server",
    default=f"https://127.0.0.1:{DEFAULT_SECURE_PORT}",
    show_default=True,
    help="Where the scheduler serves: its --secure-port.",
)
@click.option(
    "--certificate-authority",
    type=click.Path(path_type=Path),
    help="CA that signed its certificate; on this machine none is needed.",
)
@click.option("--insecure-skip-tls-verify", "insecure", is_flag=True, help="Trust any certificate.")
@click.option(
    "--token-file",
    type=click.Path(path_type=Path),
    show_default="in a pod, for a server on this machine: the service account's",
    help="File with the token to show to it.",
)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["yaml", "json"]),
    default="yaml",
    show_default=True,
    help="A file with remarks, or what /configz answers.",
)
def current(output: str, **address: Any) -> None:
    """Show the configuration that a running scheduler goes by, its hash and since when."""
    try:
        page = fetch(Address(**address))
    except CurrentError as error:
        click.echo(str(error), err=True)
        sys.exit(ExitCode.FAILURE)
    click.echo(json.dumps(page, indent=2) if output == "json" else describe(page).rstrip())
