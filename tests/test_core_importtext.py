"""What the text of a module is taken to import as it is imported."""

from __future__ import annotations

import pytest
from fuzzing import FUZZ
from hypothesis import given
from hypothesis import strategies as st

from envbuild.core.link.importtext import Imported, ImportText, mentions, read_imports


def of(text: str) -> dict[str, bool]:
    """Return the modules that are imported, and whether surely."""
    found = read_imports(text).imports
    return {
        "." * one.level + ".".join((one.module, *one.names)).strip("."): one.surely for one in found
    }


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("import a.b, c", {"a.b": True, "c": True}),
        ("from . import core", {".core": True}),
        ("from ..up import a, b", {"..up.a.b": True}),
        ("class A:\n    import a", {"a": True}),
        ("def f():\n    import a", {}),
        ("def f():\n    import a\nf()", {"a": True}),
        ("def f():\n    g()\ndef g():\n    import a\nX = [f()]", {"a": True}),
        ("def f():\n    f()\n    import a\nf()", {"a": True}),
        ("f = lambda: __import__('a')", {}),
        ("__import__('a')", {"a": True}),
        ("import_module('.a', __package__)", {".a": True}),
        ("import importlib\nimportlib.import_module('a.b')", {"importlib": True, "a.b": True}),
        ("import_module(name)", {}),
        ("raise OSError\nimport a", {}),
        ("for x in y:\n    import a", {"a": False}),
    ],
)
def test_what_runs_is_found_and_what_does_not_is_not(text: str, found: dict[str, bool]) -> None:
    assert of(text) == found


@pytest.mark.parametrize(
    ("text", "is_found"),
    [
        ("try:\n    import a\nexcept ImportError:\n    a = None", False),
        ("try:\n    import a\nexcept (ImportError, OSError):\n    a = None", False),
        ("try:\n    import a\nexcept:\n    import b", False),
        ("try:\n    import a\nexcept builtins.Exception as e:\n    pass", False),
        ("try:\n    import a\nexcept pkg.Anything:\n    pass", False),
        ("try:\n    import a\nexcept ImportError as e:\n    raise RuntimeError from e", True),
        ("try:\n    import a\nexcept ModuleNotFoundError:\n    pass", True),
        ("try:\n    import a\nexcept KeyError:\n    pass", True),
        ("try:\n    pass\nfinally:\n    import a", True),
        ("with suppress(ImportError):\n    import a", False),
        ("with contextlib.suppress(Exception):\n    import a", False),
        ("with contextlib.suppress(KeyError):\n    import a", True),
        ("with lock:\n    import a", True),
    ],
)
def test_what_is_forgiven_does_not_count(text: str, *, is_found: bool) -> None:
    assert of(text) == ({"a": True} if is_found else {})


@pytest.mark.parametrize(
    ("condition", "then", "otherwise"),
    [
        ("TYPE_CHECKING", None, True),
        ("typing.TYPE_CHECKING", None, True),
        ("not TYPE_CHECKING", True, None),
        ("sys.platform == 'win32'", None, True),
        ("sys.platform.startswith('linux')", True, None),
        ("os.name == 'nt' and x", None, True),
        ("os.name != 'nt' or x", True, None),
        ("sys.version_info[:2] < (3, 0)", None, True),
        ("sys.version_info >= (3,)", True, None),
        ("sys.version_info >= (3, 12)", False, False),
        ("sys.version_info[0] > 3", False, False),
        ("sys.version_info >= ('a',)", False, False),
        ("os.environ.get('X')", False, False),
        ("0", None, True),
    ],
)
def test_conditions(condition: str, *, then: bool | None, otherwise: bool | None) -> None:
    found = of(f"if {condition}:\n    import a\nelse:\n    import b")
    assert (found.get("a"), found.get("b")) == (then, otherwise)


def test_what_comes_after_a_way_out_is_not_sure() -> None:
    text = "def f():\n    if x:\n        return\n    import a\nf()\nimport b"
    assert of(text) == {"a": False, "b": True}


def test_what_is_sure_somewhere_is_sure() -> None:
    for text in ("if x:\n    import a\nimport a", "import a\nif x:\n    import a"):
        assert read_imports(text).imports == (Imported(module="a"),)


@pytest.mark.parametrize(
    ("text", "opens"),
    [
        ("import ctypes\nL = ctypes.CDLL(path)", True),
        ("def load():\n    return ctypes.cdll.LoadLibrary(p)\nL = load()", True),
        ("if x:\n    L = None\nelse:\n    L = ffi.dlopen('x')", False),
        ("def load():\n    return ctypes.CDLL(p)", None),
    ],
)
def test_libraries_that_are_opened_by_name(text: str, *, opens: bool | None) -> None:
    assert read_imports(text).opens is opens


def test_an_import_is_mentioned_wherever_it_stands() -> None:
    assert mentions("def f():\n    from a.b import tbbpool as lib", "tbbpool")
    assert mentions("x = load('a.tbbpool')", "tbbpool")
    assert not mentions("# tbbpool\nx = 'no tbbpool here'", "tbbpool")


def test_what_is_no_python_imports_nothing() -> None:
    for text in ("print 'x'", "import a\0", "(" * 5000, "x = " + "-" * 100_000 + "1"):
        assert read_imports(text) == ImportText()
        assert not mentions(text, "import")


@FUZZ
@given(st.text(alphabet="import tryexcept:\n ()ab.'=if", max_size=80))
def test_no_text_is_too_odd(text: str) -> None:
    read_imports(text)
    mentions(text, "a")
