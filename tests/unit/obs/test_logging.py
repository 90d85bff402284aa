"""Log lines: text for people, JSON for machines, levels by verbosity, no trace left behind."""

import io
import json
import logging
import re
import warnings

import pytest

from k8s_scheduler.obs import logging as logs

OWN = "k8s_scheduler.test"


@pytest.fixture(autouse=True)
def _restore():
    yield
    logs.reset()


def written(format_, verbosity=0, *, log):
    stream = io.StringIO()
    logs.configure(format_, verbosity, stream=stream)
    log(logging.getLogger(OWN))
    return stream.getvalue()


def fail():
    raise ValueError("broken")


def at(record_time, format_, **record):
    """Format a record made at a fixed time."""
    made = logging.makeLogRecord(
        {"name": OWN, "levelno": logging.INFO, "levelname": "INFO", "created": record_time} | record
    )
    formatter = logs.JsonFormatter() if format_ == "json" else logs.TextFormatter()
    return formatter.format(made)


class TestText:
    """Lines in klog's manner."""

    def test_line_has_time_level_logger_message_and_fields(self):
        fields = {"pod": "ns/a", "attempt": 3, "ready": True, "none": None, "seconds": 0.5}
        assert at(1767323045.678901, "text", msg="Bound pod", fields=fields) == (
            "2026-01-02T03:04:05.678901Z INFO k8s_scheduler.test "
            '"Bound pod" pod="ns/a" attempt=3 ready=true none=null seconds=0.5'
        )

    @pytest.mark.parametrize(
        ("value", "text"),
        [
            ('say "hi"', r'"say \"hi\""'),
            ("two\nlines", r'"two\nlines"'),
            ("grün", '"grün"'),
            ([1, "a"], r'"[1,\"a\"]"'),
            ({"k": 1}, r'"{\"k\":1}"'),
            (ValueError("bad"), '"bad"'),
            (float("nan"), "null"),
        ],
        ids=["quotes", "line breaks", "letters", "list", "mapping", "exception", "not a number"],
    )
    def test_values_are_quoted_so_that_a_line_stays_a_line(self, value, text):
        line = at(0, "text", msg="m", fields={"key": value})
        assert line.endswith(f' "m" key={text}')
        assert "\n" not in line

    def test_traceback_follows_its_line(self):
        def log(logger):
            try:
                fail()
            except ValueError:
                logger.exception("Failed", extra={"fields": {"n": 1}})

        first, second, *_, last = written("text", log=log).splitlines()
        assert re.fullmatch(r'\S+Z ERROR k8s_scheduler\.test "Failed" n=1', first)
        assert second == "Traceback (most recent call last):"
        assert last == "ValueError: broken"


class TestJson:
    """One object per line, whatever is in it."""

    def test_line_is_an_object_with_the_fields_merged_in(self):
        line = at(1767323045.678901, "json", msg="Bound pod", fields={"pod": "ns/a", "n": 3})
        assert json.loads(line) == {
            "ts": "2026-01-02T03:04:05.678901Z",
            "level": "info",
            "logger": OWN,
            "msg": "Bound pod",
            "pod": "ns/a",
            "n": 3,
        }

    def test_traceback_is_a_string_field(self):
        def log(logger):
            try:
                fail()
            except ValueError:
                logger.exception("Failed")

        (line,) = written("json", log=log).splitlines()
        exc = json.loads(line)["exc"]
        assert exc.startswith("Traceback")
        assert exc.endswith("ValueError: broken")

    def test_a_field_cannot_hide_what_every_line_has(self):
        line = json.loads(at(0, "json", msg="m", fields={"msg": "x", "ts": 1, "level": 2}))
        assert (line["msg"], line["msg_"], line["ts_"], line["level_"]) == ("m", "x", 1, 2)

    def test_what_json_does_not_know_is_printed(self):
        line = json.loads(at(0, "json", msg="m", fields={"o": ValueError("bad"), 5: {1, 2}}))
        assert line["o"] == "bad"
        assert sorted(line["5"]) == [1, 2]

    @pytest.mark.parametrize("format_", logs.FORMATS)
    def test_what_cannot_be_encoded_at_all_is_shown_as_it_prints(self, format_):
        loop = []
        loop.append(loop)
        line = at(0, format_, msg="m", fields={"loop": loop, "half": "a\ud800", "n": 1})
        line.encode()
        if format_ == "text":
            assert line.endswith(' "m" loop="[[...]]" half="a\\ud800" n=1')
        else:
            decoded = json.loads(line)
            assert (decoded["loop"], decoded["half"]) == ("[[...]]", "'a\\ud800'")
            assert (decoded["msg"], decoded["n"]) == ("m", 1)


class TestArguments:
    """The standard library's own ways still work, and bad ones lose nothing."""

    @pytest.mark.parametrize("format_", logs.FORMATS)
    def test_percent_arguments_are_filled_in(self, format_):
        assert "got 3 of 4" in at(0, format_, msg="got %d of %d", args=(3, 4))

    @pytest.mark.parametrize("format_", logs.FORMATS)
    def test_arguments_that_do_not_fit_are_shown_as_they_are(self, format_):
        assert "got %d ('x',)" in at(0, format_, msg="got %d", args=("x",))

    def test_fields_that_are_no_mapping_are_left_out(self):
        assert at(0, "text", msg="m", fields=3).endswith(' "m"')


class TestVerbosity:
    """-v decides whose lines are written."""

    @pytest.mark.parametrize(
        ("verbosity", "expected"),
        [
            (0, ["own info", "library warning"]),
            (3, ["own info", "library warning"]),
            (4, ["own debug", "own info", "library warning"]),
            (5, ["own debug", "own info", "library warning"]),
            (6, ["own debug", "own info", "library debug", "library info", "library warning"]),
            (10, ["own debug", "own info", "library debug", "library info", "library warning"]),
        ],
    )
    def test_levels(self, verbosity, expected):
        def log(own):
            own.debug("own debug")
            own.info("own info")
            for level in ("debug", "info", "warning"):
                getattr(logging.getLogger("asyncio"), level)(f"library {level}")

        lines = written("json", verbosity, log=log).splitlines()
        assert [json.loads(line)["msg"] for line in lines] == expected


class TestHousekeeping:
    """Configuring twice writes once; reset leaves nothing."""

    def test_configuring_again_replaces(self):
        first, second = io.StringIO(), io.StringIO()
        logs.configure("text", 0, stream=first)
        logs.configure("json", 0, stream=second)
        logging.getLogger(OWN).info("once")
        assert first.getvalue() == ""
        assert json.loads(second.getvalue())["msg"] == "once"

    def test_reset_leaves_the_standard_library_as_it_was(self):
        root = logging.getLogger()
        handlers, level, show = list(root.handlers), root.level, warnings.showwarning
        logs.configure("text", 6, stream=io.StringIO())
        assert len(root.handlers) == len(handlers) + 1
        logs.reset()
        assert (root.handlers, root.level) == (handlers, level)
        assert warnings.showwarning is show
        assert logging.getLogger(logs.OWN_LOGGER).level == logging.NOTSET

    def test_lines_go_to_stderr(self, capsys):
        logs.configure("text", 0)
        logging.getLogger(OWN).info("here")
        captured = capsys.readouterr()
        assert captured.out == ""
        assert '"here"' in captured.err

    def test_unknown_format_is_refused(self):
        with pytest.raises(ValueError, match='unknown log format "xml"; one of text, json'):
            logs.configure("xml", 0)
