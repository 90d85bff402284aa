"""Base64 as Go's decoder takes it: files that other tools read must not be refused here.

Line breaks may stand anywhere in it, since `base64` makes them; nothing else is passed over.
"""

import base64
from typing import Final

_LINE_BREAKS: Final = str.maketrans("", "", "\r\n")


def decode_base64(text: str) -> bytes:
    """Return what the text stands for; ValueError if it is no base64."""
    return base64.b64decode(text.translate(_LINE_BREAKS), validate=True)
