"""Which single tokens of a source can be changed, and into what.

A mutation is a change that a reader would call a bug: a comparison, a
sign, a condition, a limit, a call that is left out. Annotations, decorators and what stands
outside of functions is left alone: there most changes have no effect at run time.
"""

import ast
import io
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_SWAPPED = {
    "==": "!=",
    "!=": "==",
    "<": "<=",
    "<=": "<",
    ">": ">=",
    ">=": ">",
    "+": "-",
    "-": "+",
    "*": "+",
    "//": "*",
    "+=": "-=",
    "-=": "+=",
    "and": "or",
    "or": "and",
    "True": "False",
    "False": "True",
    "min": "max",
    "max": "min",
    "any": "all",
    "all": "any",
    "break": "continue",
    "continue": "break",
    "0": "1",
    "1": "2",
}
# An operator of one word that is of two words when inverted, and the other way round.
_INVERTED = {("is",): "is not", ("is", "not"): "is", ("in",): "not in", ("not", "in"): "in"}

Position = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Mutation:
    """One change of one source."""

    path: Path
    source: str
    line: int
    start: int
    end: int
    text: str

    def applied(self) -> str:
        """Return the source with the change."""
        return self.source[: self.start] + self.text + self.source[self.end :]

    def compiles(self) -> bool:
        """Return whether the result is Python, as `f(+, x)` would not be."""
        try:
            compile(self.applied(), str(self.path), "exec")
        except SyntaxError:
            return False
        return True

    def difference(self) -> str:
        """Return the line before and after."""
        before = self.source.splitlines()[self.line - 1]
        after = self.applied().splitlines()[self.line - 1]
        return f"- {before}\n+ {after}"

    def __str__(self) -> str:
        old = " ".join(self.source[self.start : self.end].split())
        return f"{self.path}:{self.line}  {old} -> {self.text}"


class _Text:
    """A source, with offsets for its lines and columns."""

    def __init__(self, path: Path, source: str) -> None:
        self.path = path
        self.source = source
        self._lines = source.splitlines(keepends=True)
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line))

    def offset(self, place: Position) -> int:
        return self._starts[place[0] - 1] + place[1]

    def begin(self, node: ast.AST) -> int:
        return self._of_bytes(node.lineno, node.col_offset)

    def end(self, node: ast.AST) -> int:
        return self._of_bytes(node.end_lineno, node.end_col_offset)

    def _of_bytes(self, line: int, column: int) -> int:
        # The syntax tree counts bytes where tokens count characters.
        text = self._lines[line - 1].encode()[:column].decode()
        return self._starts[line - 1] + len(text)

    def mutation(self, line: int, start: int, end: int, text: str) -> Mutation:
        return Mutation(self.path, self.source, line, start, end, text)


def mutations_of(path: Path, source: str) -> list[Mutation]:
    """Return every mutation of a source, in its order; a few don't compile."""
    text, tree = _Text(path, source), ast.parse(source)
    bodies, left_alone = _regions(text, tree)

    def may_change(start: int) -> bool:
        is_inside = any(a <= start < b for a, b in bodies)
        return is_inside and not any(a <= start < b for a, b in left_alone)

    found = [m for m in (*_of_tokens(text), *_of_calls(text, tree)) if may_change(m.start)]
    return sorted(found, key=lambda m: (m.start, m.end))


def _regions(text: _Text, tree: ast.AST) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Return where changes count (bodies of functions), and where they don't inside of these."""
    bodies, left_alone = [], []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            bodies.append((text.begin(node.body[0]), text.end(node)))
            alone = [*node.decorator_list, node.returns]
            alone += [a.annotation for a in ast.walk(node.args) if isinstance(a, ast.arg)]
            left_alone += [(text.begin(n), text.end(n)) for n in alone if n is not None]
        elif isinstance(node, ast.AnnAssign):
            left_alone.append((text.begin(node.annotation), text.end(node.annotation)))
        elif isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
            # The `in` of a loop is not a comparison.
            left_alone.append((text.end(node.target), text.begin(node.iter)))
    return bodies, left_alone


def _of_tokens(text: _Text) -> Iterator[Mutation]:
    tokens = list(tokenize.generate_tokens(io.StringIO(text.source).readline))
    skips = False
    for before, token, after in zip(tokens, tokens[1:], tokens[2:], strict=False):
        is_unpacking = token.string == "*" and before.string in {"(", "[", "{", ","}
        start, end = text.offset(token.start), text.offset(token.end)
        if skips or token.type == tokenize.STRING:
            skips = False
        elif (pair := (token.string, after.string)) in _INVERTED:
            skips = True
            yield text.mutation(token.start[0], start, text.offset(after.end), _INVERTED[pair])
        elif (token.string,) in _INVERTED:
            yield text.mutation(token.start[0], start, end, _INVERTED[token.string,])
        elif token.string == "not":
            yield text.mutation(token.start[0], start, text.offset(after.start), "")
        elif token.string in _SWAPPED and not is_unpacking:
            yield text.mutation(token.start[0], start, end, _SWAPPED[token.string])


def _of_calls(text: _Text, tree: ast.AST) -> Iterator[Mutation]:
    """Leave out calls that are made for their effect."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call | ast.Await):
            yield text.mutation(node.lineno, text.begin(node), text.end(node), "pass")
