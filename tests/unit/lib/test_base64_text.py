"""Base64 is taken as Go takes it."""

import pytest

from k8s_scheduler.lib.base64_text import decode_base64


@pytest.mark.parametrize("text", ["YWJjZGVm", "YWJj\nZGVm\n", "YW\r\nJjZGVm\r\n", "\nYWJjZGVm"])
def test_line_breaks_may_stand_anywhere(text):
    assert decode_base64(text) == b"abcdef"


@pytest.mark.parametrize("text", ["YWJj ZGVm", "YWJj\tZGVm", "YWJ", "%%%%", "é", "YQ==YQ=="])
def test_what_go_refuses_is_refused(text):
    with pytest.raises(ValueError):  # noqa: PT011  the text is the library's
        decode_base64(text)
