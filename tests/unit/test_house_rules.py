"""Rules of the house that no linter knows."""

import ast
import re
from collections import Counter
from pathlib import Path
from typing import get_args

import pytest

from k8s_scheduler.core.builtins import BUILT_INS
from k8s_scheduler.core.messages.outgoing import Instruction

ROOT = Path(__file__).parents[2]
SOURCES = sorted(p for d in ("k8s_scheduler", "testbed", "tests") for p in (ROOT / d).rglob("*.py"))
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
CORE = sorted((ROOT / "k8s_scheduler" / "core").rglob("*.py"))
INSTRUCTIONS = {"Instruction", "Request", *(kind.__name__ for kind in get_args(Instruction))}
LAZY = {"Generator", "Iterable", "Iterator"}
# Test files of the package that are not named after a module of it: rules for all its modules.
MOST_STORIES = 2
PACKAGE = sorted((ROOT / "k8s_scheduler").rglob("*.py"))
PEOPLE = re.compile(r"\b(?:whoever|nobody|somebody|anybody|whom)\b", re.IGNORECASE)
# A value of a metric's label and the text of an outcome: users know them.
SHOWN = ('Final = "nobody"', "f'nobody on node")
REASONS = [reason for r in BUILT_INS.values() for reason in r.kind.reasons]


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_files_hold_one_idea(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 500


def test_a_module_has_400_lines_at_most():
    long = {_place(p) for p in PACKAGE if len(p.read_text(encoding="utf-8").splitlines()) > 400}
    assert long == set()


def test_folders_show_themselves():
    """A folder holds 22 modules at most."""
    folders = Counter(path.parent for path in PACKAGE)
    assert [_place(folder) for folder, modules in folders.items() if modules > 22] == []


def test_a_public_class_name_has_one_meaning():
    names = Counter(name for _, node in classes() if not (name := node.name).startswith("_"))
    assert {name for name, times in names.items() if times > 1} == set()


def test_constructors_take_six_parameters_at_most():
    wide = {
        f"{place}:{node.name}"
        for place, node in classes()
        for method in node.body
        if isinstance(method, ast.FunctionDef) and method.name == "__init__"
        if len(method.args.posonlyargs + method.args.args + method.args.kwonlyargs) > 7
    }
    assert wide == set()


def test_parts_of_the_program_do_things_not_people():
    found = [
        (_place(path), line)
        for path in PACKAGE
        for line in path.read_text(encoding="utf-8").splitlines()
        if PEOPLE.search(line) and not any(shown in line for shown in SHOWN)
    ]
    assert found == []


def classes():
    """Yield every class at the top of a module of the package, and its module's place."""
    for path in PACKAGE:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                yield _place(path), node


def _place(path):
    return path.relative_to(ROOT / "k8s_scheduler").as_posix()


def test_every_dependency_has_its_why():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    listed = re.findall(r'^  "[a-z][\w-]*(?:\[\w+\])?[><=~].*$', text, re.MULTILINE)
    assert len(listed) > 15
    assert [line for line in listed if " # " not in line] == []


def test_reason_codes_are_unique_and_name_their_plugin():
    codes = [reason.code for reason in REASONS]
    assert len(codes) == len(set(codes))
    for name, registration in BUILT_INS.items():
        assert all(reason.plugin == name for reason in registration.kind.reasons)


def test_tests_are_where_their_module_is():
    """A test file is named after a module of its folder; stories of several only get fewer."""
    strays = [path for path in (ROOT / "tests/unit").rglob("test_*.py") if _is_stray(path)]
    assert len(strays) <= MOST_STORIES, sorted(str(path.relative_to(ROOT)) for path in strays)


def _is_stray(path):
    tests, package = ROOT / "tests/unit", ROOT / "k8s_scheduler"
    place = path.relative_to(tests)
    if not (package / place.parts[0]).is_dir():
        return False
    beside = [found.stem for found in (package / place.parent).glob("*")]
    name = path.stem.removeprefix("test_")
    return not any(name == module or name.startswith(f"{module}_") for module in beside)


def test_tests_look_into_a_core_through_one_door():
    """Its parts are had from `inside(core)`; no other test names private fields of a core."""
    doors = {ROOT / "tests/inside.py", Path(__file__)}
    reaches = [
        found
        for path in SOURCES
        if path.is_relative_to(ROOT / "tests") and path not in doors
        for found in re.findall(r"core\._[a-z]\w*", path.read_text(encoding="utf-8"))
    ]
    assert reaches == []


@pytest.mark.parametrize("name", BUILT_INS)
def test_every_plugin_has_examples(name):
    module = re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
    assert (ROOT / f"tests/unit/core/plugins/test_{module}_examples.py").exists()


@pytest.mark.parametrize("path", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(path):
    for target in re.findall(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)", path.read_text("utf-8")):
        assert (path.parent / target).exists(), target


def test_lock_files_name_no_address():
    for name in (
        "requirements.lock",
        "requirements-dev.lock",
        "tools/uv.lock.txt",
        "tools/audit.lock.txt",
    ):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert "--hash=sha256:" in text
        assert "://" not in text


def test_make_targets_named_in_the_readme_exist():
    targets = set(
        re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    )
    named = set(re.findall(r"make ([a-z0-9-]+)", (ROOT / "README.md").read_text("utf-8")))
    assert named - {"it", "sure"} <= targets


def names(annotation: ast.AST | None) -> set[str]:
    """Return the names in an annotation, also in one that is written as a text."""
    if annotation is None:
        return set()
    found = {node.id for node in ast.walk(annotation) if isinstance(node, ast.Name)}
    for node in ast.walk(annotation):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found |= names(ast.parse(node.value, mode="eval"))
    return found


def lazy_effects(tree: ast.AST) -> list[str]:
    """Return where instructions are handed on by something that has yet to be iterated."""
    found = []
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name, returns=returned):
                pass
            case ast.Subscript(value=ast.Name(id="Callable" as name), slice=ast.Tuple(elts=parts)):
                returned = parts[-1]
            case ast.Yield(value=ast.Call(func=ast.Name(id=name))) if name in INSTRUCTIONS:
                found.append(f"{node.lineno}: yield {name}")
                continue
            case _:
                continue
        mentioned = names(returned)
        if mentioned & LAZY and mentioned & INSTRUCTIONS:
            found.append(f"{node.lineno}: {name}")
    return found


@pytest.mark.parametrize("path", CORE, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_function_of_the_core_returns_an_iterator_of_instructions(path):
    """Instructions go into the outbox at the moment of their effect (ADR 0030)."""
    assert lazy_effects(ast.parse(path.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    "source",
    [
        "def f() -> Iterator[Instruction]: ...",
        "def f() -> Iterable[ReadPod] | None: ...",
        "def f() -> 'Generator[Log, None, float]': ...",
        "Handler = Callable[[int], Iterator[Instruction]]",
        "def f():\n    yield Log(1, 2, {})",
    ],
)
def test_the_check_for_lazy_effects_finds(source):
    assert lazy_effects(ast.parse(source))
