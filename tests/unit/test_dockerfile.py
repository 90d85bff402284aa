"""The image: nothing is fetched that is not checked, and the builder gets what it copies."""

import re

from tests.unit.shipped import ROOT

# One line for each instruction.
DOCKERFILE = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")


def test_everything_that_is_installed_is_checked_by_hash_or_is_ours() -> None:
    installs = re.findall(r"pip\b[^&\n]* install [^&\n]*", DOCKERFILE)
    assert len(installs) == 3
    for install in installs:
        checked = "--require-hashes --only-binary :all: --requirement" in install
        assert checked != ("--no-deps --no-index /wheels/*.whl" in install)


def test_both_stages_begin_with_one_base_image_that_is_named_by_its_digest() -> None:
    bases = re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)
    assert len(bases) == 2
    assert len(set(bases)) == 1
    assert re.fullmatch(r"python:3\.\d+-slim@sha256:[0-9a-f]{64}", bases[0])


def test_what_only_controllers_need_is_not_in_the_image() -> None:
    lock = (ROOT / "requirements.lock").read_text()
    assert "\nkopf==" not in lock
    assert "requirements.lock" in DOCKERFILE
    assert "[controllers]" not in DOCKERFILE


def test_what_is_copied_is_let_through_to_the_builder() -> None:
    copied = [
        source
        for words in re.findall(r"^COPY (?!--from)(.*)$", DOCKERFILE, re.MULTILINE)
        for source in words.split()[:-1]
    ]
    passed = re.findall(r"^!(.*)$", (ROOT / ".dockerignore").read_text(), re.MULTILINE)
    assert sorted(set(copied)) == sorted(passed)
    assert all((ROOT / source).exists() for source in copied)
