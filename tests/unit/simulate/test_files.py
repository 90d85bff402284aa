"""Scenario files are read line by line; what is wrong is said with file, line and what is right."""

import gzip
import io
import json
import types

import pytest

from k8s_scheduler.simulate.files import (
    InputFileError,
    Removal,
    read_scenarios,
    read_sequences,
)

SCENARIO = {"id": "a", "objects": [{"kind": "Node"}], "pending": ["default/p"]}
SEQUENCE = {
    "id": "q",
    "objects": [],
    "config": {"kind": "K"},
    "steps": [
        {
            "apply": [{"kind": "Pod"}],
            "delete": [{"kind": "Node", "name": "n"}],
            "pending": ["default/p"],
        },
        {"pending": []},
    ],
}


def lines(*values):
    return "".join(f"{json.dumps(value)}\n" for value in values).encode()


@pytest.fixture
def file(tmp_path):
    def write(content, name="s.jsonl"):
        path = tmp_path / name
        path.write_bytes(content)
        return str(path)

    return write


class TestReading:
    """Plain, compressed, and from standard input."""

    def test_scenarios_come_with_their_line(self, file):
        path = file(lines(SCENARIO) + b"\n" + lines(SCENARIO | {"id": "b"}))
        found = [(number, s.id, s.config) for number, s in read_scenarios(path)]
        assert found == [(1, "a", None), (3, "b", None)]

    def test_sequences_have_steps(self, file):
        ((number, sequence),) = read_sequences(file(lines(SEQUENCE)))
        first, second = sequence.steps
        assert (number, sequence.id, sequence.config) == (1, "q", {"kind": "K"})
        assert first.delete == [Removal("Node", "n")]
        assert first.apply == [{"kind": "Pod"}]
        assert (second.apply, second.delete, second.pending) == ([], [], [])

    @pytest.mark.parametrize("name", ["s.jsonl.gz", "s.jsonl"])
    def test_gzip_is_known_by_its_content(self, file, name):
        path = file(gzip.compress(lines(SCENARIO)), name)
        assert [s.id for _, s in read_scenarios(path)] == ["a"]

    @pytest.mark.parametrize("compress", [gzip.compress, bytes], ids=["gzip", "plain"])
    def test_standard_input(self, monkeypatch, compress):
        content = io.BufferedReader(io.BytesIO(compress(lines(SCENARIO))))
        monkeypatch.setattr("sys.stdin", types.SimpleNamespace(buffer=content))
        assert [s.id for _, s in read_scenarios("-")] == ["a"]


def broken(path, reader=read_scenarios):
    with pytest.raises(InputFileError) as caught:
        list(reader(path))
    return str(caught.value)


class TestWrongFiles:
    """Every message names the file, the line where there is one, and what would be right."""

    @pytest.mark.parametrize(
        ("line", "said"),
        [
            (b"{", "not JSON"),
            (b"{'id': 1}", "not JSON"),
            (b'{"id": "\xff"}', "not JSON"),
            (b"[]", "Expected `object`, got `array`"),
            (b'{"id": 5, "objects": [], "pending": []}', "Expected `str`, got `int` - at `$.id`"),
            (b'{"id": "a", "objects": []}', "missing required field `pending`"),
            (b'{"id": "a", "objects": {}, "pending": []}', "at `$.objects`"),
            (b'{"id": "a", "objects": [5], "pending": []}', "at `$.objects[0]`"),
            (b'{"id": "a", "objects": [], "pending": [1]}', "at `$.pending[0]`"),
            (b'{"id": "a", "objects": [], "pending": [], "config": "x"}', "at `$.config`"),
            (b'{"config": {"x": ' + b"[" * 99999 + b"]" * 99999 + b"}}", "nested too deeply"),
            (b"[" * 99999, "Expected `object`, got `array`"),
            (b'{"config": {"x": ' + b"9" * 5000 + b"}}", "Integer value out of range"),
        ],
    )
    def test_a_line_that_is_no_scenario(self, file, line, said):
        path = file(lines(SCENARIO) + line + b"\n")
        message = broken(path)
        assert message.startswith(f"{path}:2: ")
        assert said in message
        right = "one whole JSON object" if "not JSON" in said else '"pending": ["NAMESPACE/NAME"'
        assert right in message

    def test_a_sequence_is_told_from_a_scenario(self, file):
        assert "use --sequence" in broken(file(lines(SEQUENCE)))
        assert "leave --sequence out" in broken(file(lines(SCENARIO)), read_sequences)

    def test_a_step_without_pending_pods(self, file):
        path = file(lines(SEQUENCE | {"steps": [{"apply": []}]}))
        assert "missing required field `pending` - at `$.steps[0]`" in broken(path, read_sequences)

    def test_a_file_that_is_not_there(self, tmp_path):
        path = str(tmp_path / "none.jsonl")
        assert broken(path) == f"{path}: cannot be read: No such file or directory"

    def test_a_folder(self, tmp_path):
        assert "cannot be read: Is a directory" in broken(str(tmp_path))

    def test_a_name_that_promises_gzip(self, file):
        assert "not gzip data; compress it" in broken(file(lines(SCENARIO), "s.gz"))

    def test_gzip_that_was_cut_off_or_changed(self, file):
        content = gzip.compress(lines(*[SCENARIO | {"id": str(n)} for n in range(500)]))
        assert "damaged gzip data" in broken(file(content[:-20], "cut.gz"))
        changed = bytearray(content)
        changed[-6] ^= 0xFF
        assert "damaged gzip data" in broken(file(bytes(changed), "changed.gz"))
