"""However bytes are cut into chunks, and lists into members, the same comes out."""

import itertools
import json

from hypothesis import given
from hypothesis import strategies as st

from k8s_scheduler.kube.watch.big_lists import split_big_list
from k8s_scheduler.kube.watch.streams import LineSplitter

LINES = st.lists(st.binary(min_size=1, max_size=50).filter(lambda line: b"\n" not in line))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


@given(lines=LINES, cuts=st.lists(st.integers(0, 2000)), tail=st.binary(max_size=5))
def test_lines_do_not_depend_on_chunks(lines: list[bytes], cuts: list[int], tail: bytes) -> None:
    tail = tail.replace(b"\n", b"")
    data = b"".join(line + b"\n" for line in lines) + tail
    splitter = LineSplitter()
    found: list[bytes] = []
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    for start, end in itertools.pairwise(edges):
        found += splitter.feed(data[start:end])
    assert found == lines
    assert splitter.feed(b"\n") == ([tail] if tail else [])


@given(
    members=st.dictionaries(st.text().filter(lambda name: name != "items"), JSON, max_size=3),
    items=st.lists(JSON, max_size=6),
    indent=st.sampled_from([None, 1]),
    ascii_only=st.booleans(),
)
def test_a_big_list_is_what_json_says_it_is(
    members: dict[str, object], items: list[object], *, indent: int | None, ascii_only: bool
) -> None:
    whole = members | {"items": items}
    body = json.dumps(whole, indent=indent, ensure_ascii=ascii_only).encode("utf-8", "replace")
    expected = json.loads(body)
    found = list(split_big_list(body))
    assert [json.loads(value) for member, value in found if member == "items"] == expected["items"]
    rest = {member: json.loads(value) for member, value in found if member != "items"}
    assert rest == {name: value for name, value in expected.items() if name != "items"}
