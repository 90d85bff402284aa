"""A namespace behind a webhook that is down: its Bindings are answered 500 for minutes.

Some seeds get it, beside whatever else their plan holds. It lasts for longer than a bind in doubt
needs to be settled, so that binds there end, and their pods are tried again. What is drawn here
comes from a sequence of its own: the rest of a plan is the same with it and without.
"""

import random
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from k8s_scheduler.kube.http.protocol import Response
from tests.fakes.transport import status
from tests.simulation import documents as doc

if TYPE_CHECKING:
    from tests.simulation.plan import Plan

# One seed in so many.
_SHARE: Final = 20
_TEXT: Final = (
    'Internal error occurred: failed calling webhook "guard.example.com": failed to call webhook: '
    'Post "https://guard:443/": dial tcp 10.0.0.9:443: connect: connection refused'
)


def webhook_refusal() -> Response:
    """Return what the API server says when the webhook can't be called."""
    return status(500, "InternalError", _TEXT)


def with_webhook(plan: "Plan") -> "Plan":
    """Return the plan with such a namespace, or as it is."""
    from tests.simulation.plan import Action  # noqa: PLC0415 - plans are drawn with this

    rng = random.Random(f"webhook/{plan.seed}")
    if rng.randrange(_SHARE):
        return plan
    back_at = rng.uniform(150.0, 200.0)
    actions = [
        Action(rng.uniform(0.0, 4.0), "webhook", arguments={"down": True}),
        Action(back_at - 0.01, "webhook", arguments={"down": False}),
    ]
    for number in range(rng.randint(4, 10)):
        # Most of them early: they are in doubt, settled and tried again before it is over.
        at = rng.choice((rng.uniform(0.0, 10.0), rng.uniform(0.0, back_at)))
        actions.append(Action(at, "create_pod", arguments={"content": _pod(f"g{number}", rng)}))
    for number in range(rng.randint(3, 6)):
        content = doc.pod(f"q{number}", milli_cpu=rng.choice((200, 500)))
        at = rng.uniform(20.0, back_at)
        actions.append(Action(at, "create_pod", arguments={"content": content}))
    together = sorted((*plan.actions, *actions), key=lambda action: action.at)
    return replace(plan, actions=tuple(together), faults_end_at=max(back_at, plan.faults_end_at))


def _pod(name: str, rng: random.Random) -> dict[str, object]:
    return doc.pod(name, milli_cpu=rng.choice((200, 500, 1000)), namespace=doc.GUARDED)
