"""Files are read up to a bound."""

import pytest

from k8s_scheduler.lib.bounded_files import TooLongError, read_bounded


def test_as_long_as_allowed_is_fine(tmp_path):
    (tmp_path / "f").write_bytes(b"12345")
    assert read_bounded(tmp_path / "f", 5) == b"12345"


def test_one_byte_more_is_too_long(tmp_path):
    (tmp_path / "f").write_bytes(b"123456")
    with pytest.raises(TooLongError, match="is longer than 5 bytes; is this the right file"):
        read_bounded(tmp_path / "f", 5)
