"""Which modules the text of a module imports as it is itself imported, without running it.

What only a function does that nobody calls, or what a handler forgives, does not count.
"""

from __future__ import annotations

import ast
import warnings
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from envbuild.core.link.conditions import truth_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_FORGIVING = frozenset({"ImportError", "Exception", "BaseException"})
_LOADERS = frozenset({"CDLL", "PyDLL", "LoadLibrary", "dlopen"})
_IMPORTERS = frozenset({"import_module", "__import__"})
_MOST_TEXT = 2_000_000
_MOST_DEPTH = 40
_MOST_NAME = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class Imported:
    """One import: ``level`` is the number of its dots, ``names`` what is taken from it.

    ``surely`` is False where it hangs on a condition that no text decides.
    """

    module: str
    level: int = 0
    names: tuple[str, ...] = ()
    surely: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class ImportText:
    """What a module imports, in order; ``opens`` tells whether it opens a library by itself.

    ``opens`` is True or False as ``surely`` of an import is, None where it opens none.
    """

    imports: tuple[Imported, ...] = ()
    opens: bool | None = None


@dataclass(kw_only=True, slots=True)
class _Reader:
    functions: dict[str, ast.FunctionDef] = field(default_factory=dict)
    imports: list[Imported] = field(default_factory=list)
    opens: bool | None = None
    _called: set[tuple[str, bool]] = field(default_factory=set)

    def block(self, statements: Iterable[ast.stmt], *, surely: bool, depth: int = 0) -> None:
        """Read statements that run one after the other."""
        if depth > _MOST_DEPTH:
            return
        for one in statements:
            self._statement(one, surely=surely, depth=depth + 1)
            if isinstance(one, ast.Raise | ast.Return):
                return
            if isinstance(one, ast.If) and truth_of(one.test) is None and _may_return(one):
                surely = False

    def _statement(self, one: ast.stmt, *, surely: bool, depth: int) -> None:
        if isinstance(one, ast.Import | ast.ImportFrom):
            self.imports += _imports_of(one, surely=surely)
        elif isinstance(one, ast.If):
            self._branches(one, surely=surely, depth=depth)
        elif isinstance(one, ast.Try):
            self._try(one, surely=surely, depth=depth)
        elif isinstance(one, ast.With):
            if not any(map(_suppresses, one.items)):
                self.block(one.body, surely=surely, depth=depth)
        elif isinstance(one, ast.For | ast.While):
            self.block((*one.body, *one.orelse), surely=False, depth=depth)
        elif isinstance(one, ast.ClassDef):
            self.block(one.body, surely=surely, depth=depth)
        elif not isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef):
            self._calls(one, surely=surely, depth=depth)

    def _branches(self, one: ast.If, *, surely: bool, depth: int) -> None:
        truth = truth_of(one.test)
        if truth is not False:
            self.block(one.body, surely=surely and truth is True, depth=depth)
        if truth is not True:
            self.block(one.orelse, surely=surely and truth is False, depth=depth)

    def _try(self, one: ast.Try, *, surely: bool, depth: int) -> None:
        if not any(map(_forgives, one.handlers)):
            self.block((*one.body, *one.orelse), surely=surely, depth=depth)
        self.block(one.finalbody, surely=surely, depth=depth)

    def _calls(self, statement: ast.stmt, *, surely: bool, depth: int) -> None:
        for call in _calls_of(statement):
            name = _name_of(call.func)
            if name in _LOADERS:
                self.opens = surely or bool(self.opens)
            elif name in _IMPORTERS:
                self._by_name(call, surely=surely)
            elif isinstance(call.func, ast.Name) and (name, surely) not in self._called:
                self._called.add((name, surely))
                called = self.functions.get(name)
                self.block(called.body if called else (), surely=surely, depth=depth)

    def _by_name(self, call: ast.Call, *, surely: bool) -> None:
        word = call.args[0] if call.args else None
        if isinstance(word, ast.Constant) and isinstance(word.value, str):
            module = word.value.lstrip(".")
            level = len(word.value) - len(module)
            self.imports.append(Imported(module=module, level=level, surely=surely))


def read_imports(text: str) -> ImportText:
    """Read what a module does as it is imported; nothing where the text is no Python."""
    tree = _parsed(text)
    if tree is None:
        return ImportText()
    reader = _Reader()
    for one in _top_functions(tree.body):
        reader.functions.setdefault(one.name, one)
    reader.block(tree.body, surely=True)
    found: dict[Imported, None] = {}
    for imported in reader.imports:
        if imported.surely:
            found.pop(replace(imported, surely=False), None)
            found.setdefault(imported)
        elif replace(imported, surely=True) not in found:
            found.setdefault(imported)
    return ImportText(imports=tuple(found), opens=reader.opens)


def mentions(text: str, name: str) -> bool:
    """Return whether some import anywhere in a text, be it in a function, is one of a name."""
    if name not in text:
        return False
    tree = _parsed(text)
    return tree is not None and any(name in _names_in(one) for one in ast.walk(tree))


def _imports_of(one: ast.Import | ast.ImportFrom, *, surely: bool) -> Iterator[Imported]:
    names = tuple(name.name for name in one.names)
    if isinstance(one, ast.ImportFrom):
        yield Imported(module=one.module or "", level=one.level, names=names, surely=surely)
    else:
        yield from (Imported(module=name, surely=surely) for name in names)


def _names_in(one: ast.AST) -> set[str]:
    if isinstance(one, ast.Import):
        return {part for name in one.names for part in name.name.split(".")}
    if isinstance(one, ast.ImportFrom):
        return {*(one.module or "").split("."), *(name.name for name in one.names)}
    if isinstance(one, ast.Constant) and isinstance(one.value, str) and len(one.value) < _MOST_NAME:
        return set(one.value.split("."))
    return set()


def _parsed(text: str) -> ast.Module | None:
    if len(text) > _MOST_TEXT:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _top_functions(statements: Iterable[ast.stmt]) -> Iterator[ast.FunctionDef]:
    for one in statements:
        if isinstance(one, ast.FunctionDef):
            yield one
        elif isinstance(one, ast.If | ast.Try):
            yield from _top_functions((*one.body, *one.orelse))


def _calls_of(statement: ast.stmt) -> Iterator[ast.Call]:
    """Give the calls a statement makes, the inner ones first, none of those in a lambda."""
    pending: list[ast.AST] = [statement]
    found: list[ast.Call] = []
    while pending:
        one = pending.pop()
        if isinstance(one, ast.Call):
            found.append(one)
        if not isinstance(one, ast.Lambda):
            pending.extend(ast.iter_child_nodes(one))
    return reversed(found)


def _name_of(func: ast.expr) -> str:
    if isinstance(func, ast.Attribute):
        return func.attr
    return func.id if isinstance(func, ast.Name) else ""


def _forgives(handler: ast.ExceptHandler) -> bool:
    """Say whether an import that fails is forgiven by a handler: one that does not end in raise."""
    if handler.body and isinstance(handler.body[-1], ast.Raise):
        return False
    return _is_forgiving(handler.type)


def _is_forgiving(kind: ast.expr | None) -> bool:
    if kind is None:
        return True
    if isinstance(kind, ast.Tuple):
        return any(map(_is_forgiving, kind.elts))
    name = _name_of(kind)
    return name in _FORGIVING or not name.endswith(("Error", "Exception"))


def _suppresses(item: ast.withitem) -> bool:
    call = item.context_expr
    if not isinstance(call, ast.Call) or _name_of(call.func) != "suppress":
        return False
    return any(map(_is_forgiving, call.args))


def _may_return(one: ast.If) -> bool:
    return any(isinstance(end, ast.Return) for end in (*one.body, *one.orelse))
