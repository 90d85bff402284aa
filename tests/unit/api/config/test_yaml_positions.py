"""YAML values know their lines, and mean what kube-scheduler's loader takes them for."""

import pytest
import yaml

from k8s_scheduler.api.config.yaml_positions import parse_yaml

TAB = "a tab where YAML allows only spaces; indent with spaces"


def value_of(text):
    documents, errors = parse_yaml(text)
    assert errors == []
    return documents[0].value


class TestLines:
    """Every path has the line of its key, and a missing one the line of what would hold it."""

    TEXT = "# comment\na: 1\nb:\n  - c: 2\n    d:\n      e: 3\n  - x\n"

    @pytest.mark.parametrize(
        ("path", "line"),
        [
            ((), 2),
            (("a",), 2),
            (("b",), 3),
            (("b", 0), 4),
            (("b", 0, "d"), 5),
            (("b", 0, "d", "e"), 6),
            (("b", 1), 7),
            (("b", 0, "missing", "deep"), 4),
            (("missing",), 2),
        ],
    )
    def test_path_has_its_line(self, path, line):
        ((document,), _) = parse_yaml(self.TEXT)
        assert document.line_of(path) == line

    def test_has_tells_given_from_absent_and_null(self):
        ((document,), _) = parse_yaml("a: {b: null, c: 0}\nd: [1]\n")
        assert document.has(("a", "c"))
        assert document.has(("d", 0))
        for path in [("a", "b"), ("a", "x"), ("d", 1), ("d", "x"), ("a", "c", "y")]:
            assert not document.has(path)


class TestScalars:
    """Plain scalars become what Go's loader makes of them."""

    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ("1", 1),
            ("-7", -7),
            ("+7", 7),
            ("010", 8),
            ("0x10", 16),
            ("0b11", 3),
            ("1_000", 1000),
            ("0x_", "0x_"),
            ("1.5", 1.5),
            ("1e3", 1000.0),
            ('"1e3"', "1e3"),
            ("1:30", "1:30"),
            ("1:30.5", "1:30.5"),
            ("2026-01-02", "2026-01-02"),
            ("true", True),
            ("on", True),
            ("no", False),
            ("~", None),
            ("'1'", "1"),
            ("abc", "abc"),
            ("=", "="),
            ("!!float abc", "abc"),
            ("!!bool maybe", "maybe"),
            ("18446744073709551615", 2**64 - 1),
            ("-9223372036854775808", -(2**63)),
            ("18446744073709551616", 2.0**64),
            ("1" + "0" * 300, 1e300),
            ("1" + "0" * 400, "1" + "0" * 400),
            ("9" * 5000, "9" * 5000),
            ("0x" + "f" * 5000, "0x" + "f" * 5000),
            ("\u0661e\u0663", "\u0661e\u0663"),
            ('"\\ud83d\\ude00"', "\U0001f600"),
        ],
    )
    def test_scalar_means(self, text, value):
        result = value_of(f"a: {text}\n")["a"]
        assert result == value
        assert type(result) is type(value)

    def test_infinity_is_a_number_for_the_decoder_to_refuse(self):
        assert value_of("a: .inf\n")["a"] == float("inf")


class TestHalvesOfCharacters:
    """An escape for half of a character gives a text that nobody can write down."""

    MESSAGE = "holds half of a character: an escape from \\ud800 to \\udfff stands alone"

    @pytest.mark.parametrize(
        ("text", "path"),
        [('a: "x\\ud800"', ("a",)), ('b: {"\\udfff": 1}', ("b",)), ('a: "\\ude00\\ud83d"', ("a",))],
        ids=["a value", "a name", "two in the wrong order"],
    )
    def test_one_alone_is_an_error_with_its_line(self, text, path):
        documents, errors = parse_yaml(f"# remark\n{text}\n")
        assert [(e.path, e.message, e.line) for e in errors] == [(path, self.MESSAGE, 2)]
        assert str(documents[0].value).encode()

    def test_other_characters_beside_it_stay(self):
        documents, _ = parse_yaml('a: "é\\ud800"\n')
        assert documents[0].value == {"a": "é\\ud800"}


class TestStructure:
    """Repeated keys are errors; anchors and merges work; nothing explodes."""

    def test_repeated_key_is_an_error_with_both_lines(self):
        documents, errors = parse_yaml("a: 1\nb: 2\na: 3\n")
        assert documents[0].value == {"a": 1, "b": 2}
        (error,) = errors
        assert error.message == 'duplicate field "a", first given on line 1'
        assert error.line == 3

    def test_merge_key_brings_fields_that_explicit_ones_override(self):
        text = (
            "base: &base {a: 1, b: 2}\nx:\n  a: 9\n  <<: *base\ny:\n  <<: [*base, {b: 5, c: 6}]\n"
        )
        value = value_of(text)
        assert value["x"] == {"a": 9, "b": 2}
        assert value["y"] == {"a": 1, "b": 2, "c": 6}

    def test_merge_of_something_else_is_an_error(self):
        _, errors = parse_yaml("x:\n  <<: 5\n")
        assert [str(e) for e in errors] == ["line 2: x: << needs a mapping"]

    def test_json_with_tabs_is_fine(self):
        assert value_of('{\n\t"a": [\n\t\t1\n\t]\n}\n') == {"a": [1]}

    def test_several_documents_come_back_as_several(self):
        documents, errors = parse_yaml("a: 1\n---\nb: 2\n")
        assert [d.value for d in documents] == [{"a": 1}, {"b": 2}]
        assert errors == []

    @pytest.mark.parametrize(
        ("text", "message", "line"),
        [
            ("a:\n\t- b\n", f"is not valid YAML: {TAB}", 2),
            ("a: [1\n", "is not valid YAML: expected ',' or ']', but got '<stream end>'", 2),
            ("a: &x [*x]\n", "is nested more than 64 levels deep", 1),
            ("a: &x {<<: *x}\n", "is nested more than 64 levels deep", None),
            ("[" * 2000, "is nested more than 64 levels deep", 1),
            ("a: \x01\n", "is not valid YAML: special characters are not allowed", None),
        ],
        ids=["tab", "open bracket", "anchor in itself", "merge of itself", "deep", "control"],
    )
    def test_unusable_text_is_one_error(self, text, message, line):
        documents, errors = parse_yaml(text)
        assert documents == []
        assert [(e.message, e.line) for e in errors] == [(message, line)]

    def test_a_file_of_another_size_is_refused_early(self):
        _, errors = parse_yaml("- x\n" * 20_000)
        assert errors[0].message == "holds more than 6000 values; too many aliases?"
        _, errors = parse_yaml("#" * (1 << 20) + "x")
        assert errors[0].message.startswith("is longer than 1048576 characters")

    @pytest.mark.parametrize("line", ["- x\n", "extenders: []\n"], ids=["items", "fields"])
    def test_no_more_is_taken_apart_than_may_be_held(self, monkeypatch, line):
        composed = []
        compose = yaml.SafeLoader.compose_node

        def counted(loader, parent, index):
            composed.append(index)
            return compose(loader, parent, index)

        monkeypatch.setattr(yaml.SafeLoader, "compose_node", counted)
        _, errors = parse_yaml(line * 6_001)
        assert errors[0].message == "holds more than 6000 values; too many aliases?"
        assert len(composed) <= 12_001

    def test_all_that_may_be_held_is_read(self):
        (document,), errors = parse_yaml("- x\n" * 5_999)
        assert (len(document.value), errors) == (5_999, [])

    def test_aliases_cannot_explode(self):
        levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
        levels += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]
        documents, errors = parse_yaml("\n".join(levels))
        assert documents == []
        assert errors[0].message == "holds more than 6000 values; too many aliases?"

    def test_foreign_tags_and_compound_keys_are_errors(self):
        _, errors = parse_yaml("a: !secret x\n? [1, 2]\n: 3\n")
        assert [e.message for e in errors] == [
            "the tag !secret is not supported",
            "a field name must be plain text",
        ]
