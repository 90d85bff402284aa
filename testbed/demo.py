"""`make demo`: the scheduler at work on a real control plane, to watch.

Brings up etcd, API server, controller manager and kwok with simulated nodes, starts the
scheduler under its shipped roles, creates a few Deployments and shows how their pods are placed.
Ends by itself without a terminal or with --once; exit code 0 only if every pod is bound.
"""

import argparse
import signal
import sys
import time
from types import FrameType

from testbed.bed import DETACHED, Bed
from testbed.client import Object
from testbed.daemon import Daemon
from testbed.demo_view import Picture, View
from testbed.errors import BedExistsError, TestbedError
from testbed.options import CONTROLLER_MANAGER, KWOK, BedOptions
from testbed.workload import create_all, make_deployments, make_nodes

NAMESPACE = "default"
SCHEDULER_NAME = "k8s-scheduler"
_DEPLOYMENTS = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
_LOOK_SECONDS = 0.5
# Nothing bound for so long: what is left does not fit.
_STANDSTILL_SECONDS = 15.0


def main(arguments: list[str]) -> int:
    """Run the demo; return the exit code."""
    options = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, _as_interrupt)
    bed = Bed(
        BedOptions(components=(CONTROLLER_MANAGER, KWOK)),
        name=DETACHED if options.keep else None,
        detachable=options.keep,
    )
    show = Demo(bed, options)
    try:
        print("starting etcd, kube-apiserver, kube-controller-manager and kwok ...", flush=True)
        bed.open()
        return show.run()
    except TestbedError as error:
        print(f"demo: {error}", file=sys.stderr)
        if isinstance(error, BedExistsError):
            print("demo: one is running already; make down stops it", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 0 if show.all_bound else 130
    finally:
        if bed.is_open:
            print("\nstopping everything ...", flush=True)
        bed.close()


class Demo:
    """One showing."""

    def __init__(self, bed: Bed, options: argparse.Namespace) -> None:
        self._bed = bed
        self._options = options
        self._live = sys.stdout.isatty() and not options.once
        self.all_bound = False

    def run(self) -> int:
        """Set the stage, create the load, watch it being placed."""
        options = self._options
        print(f"creating {options.nodes} simulated nodes ...", flush=True)
        create_all(self._bed.client, make_nodes(options.nodes))
        print("starting k8s-scheduler ...", flush=True)
        daemon = Daemon(self._bed).start()
        self._say_where(daemon)
        # Their controllers make the pods, as in any cluster.
        for deployment in make_deployments(
            options.pods, namespace=NAMESPACE, scheduler_name=SCHEDULER_NAME
        ):
            self._bed.client.create(_DEPLOYMENTS, deployment)
        picture = self._watch()
        self.all_bound = picture.bound == options.pods
        self._sum_up(picture, daemon)
        if options.keep:
            self._keep()
        elif self._live:
            print("Ctrl-C stops and removes everything.", flush=True)
            while True:
                time.sleep(3600)
        return 0 if self.all_bound else 1

    def _watch(self) -> Picture:
        """Show the progress until all that can be placed is placed."""
        view = View(total_pods=self._options.pods, live=sys.stdout.isatty())
        started = last_progress = time.monotonic()
        bound = 0
        while True:
            now = time.monotonic()
            picture = Picture.of(self._pods(), self._nodes(), seconds=now - started)
            view.show(picture)
            if picture.bound > bound:
                bound, last_progress = picture.bound, now
            if picture.bound == self._options.pods:
                break
            if now - last_progress > _STANDSTILL_SECONDS:
                break
            time.sleep(_LOOK_SECONDS)
        view.end()
        return picture

    def _pods(self) -> list[Object]:
        return self._bed.client.list(f"/api/v1/namespaces/{NAMESPACE}/pods")

    def _nodes(self) -> list[Object]:
        return self._bed.client.list("/api/v1/nodes")

    def _say_where(self, daemon: Daemon) -> None:
        print(f"  cluster   export KUBECONFIG={self._bed.kubeconfig}")
        print(f"  metrics   https://127.0.0.1:{daemon.port}/metrics")
        print(f"  log       {daemon.log}", flush=True)

    def _sum_up(self, picture: Picture, daemon: Daemon) -> None:
        usage = daemon.usage()
        print(
            f"{picture.bound} of {self._options.pods} pods bound on {picture.used_nodes} of "
            f"{picture.nodes} nodes in {picture.seconds:.1f} s "
            f"({picture.bound / max(picture.seconds, 0.001):.0f} pods/s, load created meanwhile)"
        )
        print(
            f"the scheduler used {usage.cpu_seconds / max(picture.bound, 1) * 1000:.1f} ms of CPU "
            f"per pod (start included) and at most {usage.peak_rss_bytes / 2**20:.0f} MiB",
            flush=True,
        )

    def _keep(self) -> None:
        kubeconfig = self._bed.kubeconfig
        self._bed.detach()
        print("everything keeps running. Look at it with:")
        print(f"  export KUBECONFIG={kubeconfig}")
        print("  kubectl get nodes; kubectl get pods -o wide; kubectl get events")
        print("stop and remove it with: make down", flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="testbed.demo", description=__doc__)
    parser.add_argument("--nodes", type=int, default=100, help="simulated nodes (default 100)")
    parser.add_argument("--pods", type=int, default=500, help="pods to place (default 500)")
    parser.add_argument("--keep", action="store_true", help="leave everything running")
    parser.add_argument("--once", action="store_true", help="end when all is placed")
    return parser


def _as_interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
