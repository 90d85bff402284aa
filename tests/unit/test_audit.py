"""`make audit` finds what is there, and does not take silence for an answer."""

import json

import pytest

from tools import audit


def report(*dependencies):
    return json.dumps({"dependencies": list(dependencies), "fixes": []})


def test_every_locked_requirement_is_pinned_and_hashed():
    for lock in audit.LOCKS:
        text = (audit.ROOT / lock).read_text(encoding="utf-8")
        assert len(list(audit.requirements(text))) > 0
        assert audit.loose_requirements(text) == []


def test_the_image_is_built_with_the_back_end_that_developers_have():
    developers, builders = (
        set(audit.requirements((audit.ROOT / lock).read_text(encoding="utf-8")))
        for lock in ("requirements-dev.lock", "tools/build.lock.txt")
    )
    assert builders <= developers
    assert any(line.startswith("hatchling==") for line in builders)


@pytest.mark.parametrize(
    ("text", "loose"),
    [
        ("a==1.0 \\\n    --hash=sha256:00 \\\n    --hash=sha256:11\n", []),
        ("a[b]==1.0 ; python_version > '3' \\\n    --hash=sha256:00\n", []),
        ("a==1.0\n", ["a==1.0"]),
        ("a>=1.0 --hash=sha256:00\n", ["a>=1.0"]),
        ("a @ file:///x --hash=sha256:00\n", ["a"]),
        ("# a comment\n\na==1 --hash=sha256:0  # why\n", []),
    ],
)
def test_what_is_not_pinned_or_hashed_is_found(text, loose):
    assert audit.loose_requirements(text) == loose


def test_key_material_is_found(tmp_path):
    key = tmp_path / "key.pem"
    key.write_text("-----BEGIN PRIVATE " + "KEY-----\n" + "A" * 64 + "\n")
    plain = tmp_path / "plain.txt"
    plain.write_text("-----BEGIN PRIVATE KEY----- in prose")
    assert audit.key_material([key, plain, tmp_path / "gone"]) == [str(key)]


def test_vulnerabilities_are_named_with_what_fixes_them():
    found = audit.read_findings(
        report(
            {"name": "a", "version": "1", "vulns": []},
            {"name": "b", "version": "2", "vulns": [{"id": "X-1", "fix_versions": ["3"]}]},
        )
    )
    assert found.vulnerable == ("b 2: X-1, fixed in 3",)
    assert found.unanswered == ()


def test_a_package_nobody_answered_about_is_not_a_good_one():
    found = audit.read_findings(report({"name": "a", "skip_reason": "Dependency not found"}))
    assert (found.vulnerable, found.unanswered) == ((), ("a",))


@pytest.mark.parametrize("text", ["", "connection refused", "[]", "{}"])
def test_no_report_is_an_error(text):
    with pytest.raises(ValueError, match="no report"):
        audit.read_findings(text)


@pytest.mark.parametrize(
    ("findings", "code", "said"),
    [
        (audit.Findings((), ()), 0, "nothing known against what is locked"),
        (audit.Findings(("b 2: X-1, fixed in 3",), ()), 1, "b 2: X-1"),
        (audit.Findings((), ("a",)), 1, "nobody answered about 1 packages (a ...)"),
        (ValueError("pip-audit gave no report: no route"), 1, "not audited: pip-audit gave no"),
    ],
    ids=["all well", "vulnerable", "nobody answered", "broken"],
)
def test_the_exit_code_says_whether_all_is_known_to_be_well(
    monkeypatch, capsys, findings, code, said
):
    def ask(_program, _lock):
        if isinstance(findings, Exception):
            raise findings
        return findings

    monkeypatch.setattr(audit, "tree_problems", lambda: iter(()))
    monkeypatch.setattr(audit, "ask_index", ask)
    assert audit.main("pip-audit") == code
    captured = capsys.readouterr()
    assert said in captured.out + captured.err
