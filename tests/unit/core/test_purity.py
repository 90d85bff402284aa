"""The core does no I/O, owns no clock and no randomness, and does not depend on hash order."""

import ast
from pathlib import Path

import pytest

import k8s_scheduler.core

ROOT = Path(k8s_scheduler.core.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
FORBIDDEN_MODULES = {
    "asyncio",
    "logging",
    "os",
    "random",
    "secrets",
    "socket",
    "subprocess",
    "threading",
    "time",
    "uuid",
}
FORBIDDEN_CALLS = {"open", "hash", "print", "input", "id"}


def impurities(tree: ast.AST) -> list[str]:
    found = []
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        match node:
            case ast.AsyncFunctionDef() | ast.Await() | ast.AsyncFor() | ast.AsyncWith():
                found.append(f"{line}: async")
            case ast.Import(names=names):
                found += [
                    f"{line}: import {n.name}"
                    for n in names
                    if n.name.split(".")[0] in FORBIDDEN_MODULES
                ]
            case ast.ImportFrom(module=str(module)) if module.split(".")[0] in FORBIDDEN_MODULES:
                found.append(f"{line}: from {module}")
            case ast.Call(func=ast.Name(id=name)) if name in FORBIDDEN_CALLS:
                found.append(f"{line}: {name}()")
            case ast.For(iter=iterated) | ast.comprehension(iter=iterated) if is_set(iterated):
                found.append(f"{iterated.lineno}: iteration over a set")
    return found


def is_set(node: ast.expr) -> bool:
    match node:
        case ast.Set() | ast.SetComp():
            return True
        case ast.Call(func=ast.Name(id="set" | "frozenset")):
            return True
        case ast.Call(func=ast.Name(id="list" | "tuple" | "iter" | "enumerate"), args=[inner]):
            return is_set(inner)
    return False


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_is_pure(path):
    assert impurities(ast.parse(path.read_text())) == []


@pytest.mark.parametrize(
    "source",
    [
        "import time",
        "from random import choice",
        "async def f(): ...",
        "open('x')",
        "hash(1)",
        "for x in {1, 2}: ...",
        "[x for x in set(y)]",
        "for x in list(frozenset(y)): ...",
    ],
)
def test_the_check_finds(source):
    assert impurities(ast.parse(source))
