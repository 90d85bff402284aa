"""The history of the cluster, read from etcd itself: a watch from the beginning, without holes.

An API server that restarts forgets what its watch cache held, and tells watches that come back to
list anew; pods that came and went in between are never seen. etcd forgets only what is compacted,
and the run compacts no further than this history has come. For that the API server of a chaos bed
stores its objects as JSON.
"""

import base64
import http.client
import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from testbed.chaos.evidence import Change, Seen
from testbed.chaos.trimming import is_kept, trim

_PREFIX = "/registry/"
_AGAIN_SECONDS = 0.2
_SILENT_SECONDS = 30.0


class History:
    """Follows etcd from a revision on, in a thread of its own; every change goes to a file."""

    def __init__(
        self, etcd_url: str, path: Path, *, clock: Callable[[], float] = time.time
    ) -> None:
        address = urlsplit(etcd_url)
        self._address = (str(address.hostname), int(address.port or 0))
        self._clock = clock
        self._file = path.open("wb")
        self._stop = threading.Event()
        self.revision = 0
        self.holes: list[str] = []
        self._thread = threading.Thread(target=self._follow, name="history", daemon=True)

    def start(self) -> None:
        """Begin at the very first write."""
        self._thread.start()

    def stop(self) -> None:
        """End; what was read is in the file."""
        self._stop.set()
        self._thread.join()
        self._file.close()

    def _follow(self) -> None:
        while not self._stop.is_set():
            try:
                self._read()
            except (OSError, http.client.HTTPException, ValueError):
                # etcd is being restarted, or said nothing for long: go on where we were.
                self._stop.wait(_AGAIN_SECONDS)

    def _read(self) -> None:
        connection = http.client.HTTPConnection(*self._address, timeout=_SILENT_SECONDS)
        try:
            connection.request("POST", "/v3/watch", body=self._request())
            answer = connection.getresponse()
            while not self._stop.is_set():
                line = answer.readline()
                if not line:
                    return
                self._take(json.loads(line).get("result", {}))
        finally:
            connection.close()

    def _request(self) -> bytes:
        last = _PREFIX[:-1] + chr(ord(_PREFIX[-1]) + 1)
        wanted = {
            "key": base64.b64encode(_PREFIX.encode()).decode(),
            "range_end": base64.b64encode(last.encode()).decode(),
            "start_revision": str(self.revision + 1),
            "prev_kv": True,
        }
        return json.dumps({"create_request": wanted}).encode()

    def _take(self, result: dict[str, Any]) -> None:
        compacted = int(result.get("compact_revision", 0))
        if compacted:
            self.holes.append(f"history begins anew at {compacted}, {self.revision} was seen")
            self.revision = compacted - 1
        for event in result.get("events", ()):
            self._note(event)

    def _note(self, event: dict[str, Any]) -> None:
        stored = event["kv"]
        revision = int(stored["mod_revision"])
        gone = event.get("type") == "DELETE"
        key = base64.b64decode(stored["key"]).decode()
        value = event.get("prev_kv", {}).get("value") if gone else stored.get("value")
        try:
            seen = _read(key, value)
        except (ValueError, KeyError) as error:
            # To ask for it again would not make it legible, and what comes after is not to blame.
            self.holes.append(f"{key} can't be read at revision {revision}: {error!r}")
            seen = None
        if seen is not None:
            change = Change(revision, self._clock(), gone, seen)
            self._file.write(msgspec.json.encode(encoded(change)) + b"\n")
            self._file.flush()
        self.revision = max(self.revision, revision)


def _read(key: str, value: str | None) -> Seen | None:
    """Return what is kept of a stored object; ValueError or KeyError if it is not legible."""
    if not is_kept(key):
        return None
    if value is None:
        raise ValueError("nobody says what was deleted")
    return trim(key, json.loads(base64.b64decode(value)))


def encoded(change: Change) -> dict[str, object]:
    """Return a change as plain data that names its kind."""
    return {
        "revision": change.revision,
        "at": change.at,
        "gone": change.gone,
        "kind": type(change.what).__name__,
        "what": msgspec.to_builtins(change.what),
    }
