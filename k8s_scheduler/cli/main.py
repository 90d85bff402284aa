"""The command `k8s-scheduler` and its subcommands. Exit codes: app/process/exit_codes.py."""

import click

from k8s_scheduler import __version__
from k8s_scheduler.cli.config import config
from k8s_scheduler.cli.evaluate import evaluate
from k8s_scheduler.cli.rbac import rbac
from k8s_scheduler.cli.replay import replay
from k8s_scheduler.cli.run import run
from k8s_scheduler.cli.shadow import shadow


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="k8s-scheduler", message="%(prog)s %(version)s")
def main() -> None:
    """Run a Kubernetes scheduler that decides as kube-scheduler does."""


main.add_command(run)
main.add_command(config)
main.add_command(evaluate)
main.add_command(rbac)
main.add_command(shadow)
main.add_command(replay)

if __name__ == "__main__":
    main()
