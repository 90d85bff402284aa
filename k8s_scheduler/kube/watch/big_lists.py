"""Taking apart a list too big to scan in one go.

Pages are small, but a server may ignore the limit, and an expired continue token makes us ask
for everything at once. Such a body is walked member by member and item by item through a window,
so that the consumer of the items can let the event loop run in between. It costs several times
more per item than decoding a page does, which is why pages do not come this way.
"""

import codecs
import json
import re
from collections.abc import Generator, Iterator
from typing import Final

WINDOW_BYTES: Final = 256 * 1024
# No object is this big: what can't be decoded by then is not JSON.
MAX_ITEM_CHARS: Final = 8 * 1024 * 1024

_SPACE = re.compile(r"[ \t\n\r]*")
_scan = json.JSONDecoder().raw_decode


def split_big_list(body: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield (member, value) for every member of the list object, and one pair per item.

    Raises ValueError when the body is not a JSON object with an array of items.
    """
    window = _Window(body)
    window.expect("{")
    while not window.skip("}"):
        member = json.loads(window.value())
        window.expect(":")
        if member == "items" and window.skip("["):
            yield from _items(window)
        else:
            yield str(member), window.value().encode()
        window.separator("}")


def _items(window: "_Window") -> Generator[tuple[str, bytes], None, None]:
    while not window.skip("]"):
        yield "items", window.value().encode()
        window.separator("]")


class _Window:
    """The part of a body that is decoded at the moment, and where in it we are."""

    def __init__(self, body: bytes) -> None:
        self._body = memoryview(body)
        self._taken = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._text = ""
        self._at = 0

    def value(self) -> str:
        while True:
            self._next_char()
            try:
                _, end = _scan(self._text, self._at)
            except ValueError:
                if len(self._text) - self._at > MAX_ITEM_CHARS or not self._extend():
                    raise
                continue
            # A number that ends with the window may go on behind it.
            if end < len(self._text) or not self._extend():
                break
        taken = self._text[self._at : end]
        self._at = end
        return taken

    def skip(self, char: str) -> bool:
        if self._next_char() != char:
            return False
        self._at += 1
        return True

    def expect(self, char: str) -> None:
        if not self.skip(char):
            raise ValueError(f"expected {char!r} near byte {self._taken}")

    def separator(self, end: str) -> None:
        """Take a comma; only before `end` there may be none."""
        if self._next_char() != end:
            self.expect(",")

    def _next_char(self) -> str:
        while True:
            space = _SPACE.match(self._text, self._at)
            self._at = self._at if space is None else space.end()
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._extend():
                return ""

    def _extend(self) -> bool:
        """Decode some more and drop what is done; False when there is nothing more."""
        if self._taken >= len(self._body):
            return False
        more = self._body[self._taken : self._taken + WINDOW_BYTES]
        self._taken += len(more)
        last = self._taken >= len(self._body)
        self._text = self._text[self._at :] + self._decoder.decode(more, final=last)
        self._at = 0
        return True
