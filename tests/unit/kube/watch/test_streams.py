"""Lines out of chunks."""

import pytest

from k8s_scheduler.kube.watch import streams
from k8s_scheduler.kube.watch.streams import LineSplitter, StreamError


def test_a_chunk_of_whole_lines_gives_them_all() -> None:
    assert LineSplitter().feed(b"a\nbb\nccc\n") == [b"a", b"bb", b"ccc"]


def test_a_line_over_many_chunks_is_put_together_once() -> None:
    splitter = LineSplitter()
    piece = b"x" * 1000
    for _ in range(1000):
        assert splitter.feed(piece) == []
    assert splitter.feed(b"end\nnext\nre") == [piece * 1000 + b"end", b"next"]
    assert splitter.feed(b"st\n") == [b"rest"]


def test_the_end_of_a_line_may_be_a_chunk_of_its_own() -> None:
    splitter = LineSplitter()
    assert splitter.feed(b"abc") == []
    assert splitter.feed(b"\n") == [b"abc"]
    assert splitter.feed(b"\n") == []


def test_empty_lines_are_left_out() -> None:
    assert LineSplitter().feed(b"\n\na\n\n") == [b"a"]


def test_a_line_without_end_does_not_eat_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "MAX_LINE_BYTES", 10)
    splitter = LineSplitter()
    splitter.feed(b"123456789\n12345")
    splitter.feed(b"12345\n12345")
    with pytest.raises(StreamError) as caught:
        splitter.feed(b"678901")
    assert caught.value.reason == "malformed"
