"""What the condition of an `if` comes to on Linux under Python 3, as far as its text tells."""

from __future__ import annotations

import ast

_WHERE = {"sys.platform": "linux", "platform": "linux", "os.name": "posix"}
_KNOWN = {
    "sys.platform.startswith('linux')": True,
    "sys.platform.startswith('win')": False,
    "sys.platform.startswith('darwin')": False,
    "platform.system() == 'Linux'": True,
    "platform.system() == 'Windows'": False,
    "platform.system() == 'Darwin'": False,
    "__name__ == '__main__'": False,
    **{f"{name} == '{it}'": True for name, it in _WHERE.items()},
    **{f"{name} != '{it}'": False for name, it in _WHERE.items()},
    **{
        f"{name} {op} '{other}'": op == "!="
        for name in _WHERE
        for op in ("==", "!=")
        for other in ("win32", "darwin", "nt", "cygwin", "java")
    },
}


def truth_of(test: ast.expr) -> bool | None:
    """Return what a condition comes to on Linux, None where that cannot be said."""
    if isinstance(test, ast.Constant):
        return bool(test.value)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = truth_of(test.operand)
        return None if inner is None else not inner
    if isinstance(test, ast.BoolOp):
        return _joined([truth_of(one) for one in test.values], is_and=isinstance(test.op, ast.And))
    if getattr(test, "attr", getattr(test, "id", "")) == "TYPE_CHECKING":
        return False
    return _KNOWN.get(ast.unparse(test), _version_truth(test))


def _joined(values: list[bool | None], *, is_and: bool) -> bool | None:
    decisive = not is_and
    if decisive in values:
        return decisive
    return None if None in values else is_and


def _version_truth(test: ast.expr) -> bool | None:
    """Tell Python 2 from 3; what asks for a later one is left open."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return None
    try:
        wanted = ast.literal_eval(test.comparators[0])
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return None
    numbers = wanted if isinstance(wanted, tuple) else (wanted,)
    if not ast.unparse(test.left).startswith("sys.version_info"):
        return None
    if not all(isinstance(one, int) for one in numbers) or numbers[:2] > (3, 0):
        return None
    if isinstance(test.ops[0], ast.GtE):
        return True
    return False if isinstance(test.ops[0], ast.Lt) else None
