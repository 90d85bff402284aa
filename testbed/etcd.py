"""What a bed asks of etcd itself, through its HTTP gateway (plain JSON, numbers as strings)."""

from testbed.client import Client
from testbed.errors import ApiError


def current_revision(client: Client) -> int:
    """Return the revision of the last write."""
    answer = client.create("/v3/kv/range", {"key": "AA==", "limit": "1"})
    return int(answer["header"]["revision"])


def compact(client: Client, revision: int) -> None:
    """Forget all history before `revision`, and return once it is gone from disk too."""
    try:
        client.create("/v3/kv/compaction", {"revision": str(revision), "physical": True})
    except ApiError as error:
        # Somebody (the API server does it every five minutes) has compacted at least as far.
        if "has been compacted" not in error.message:
            raise
