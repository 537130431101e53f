"""The order in which the loader looks into folders."""

from __future__ import annotations

from elfmaker import Held, make_elf

from envbuild.core.elf.sharedobject import Elf
from envbuild.core.link.search import Module, SearchPath


def module(path: str, **parts: object) -> Module:
    """Make an object at a path."""
    return Module(path=path, real=path, elf=Elf(Held(make_elf(**parts))))  # type: ignore[arg-type]


SEARCH = SearchPath(ld_library_path=("/ld",), cache={"x.so": ("/cached/x.so",)})


def order(one: Module, *chain: Module, search: SearchPath = SEARCH) -> list[tuple[str, str]]:
    """Give the folders before the default ones."""
    found = search.candidates("x.so", one, chain)
    return [(folder, how) for folder, how in found if how != "default"]


def test_rpath_then_ld_library_path_then_the_cache() -> None:
    one = module("/a/a.so", rpath="/r1:$ORIGIN/../lib")
    assert order(one) == [
        ("/r1", "rpath"),
        ("/a/../lib", "rpath"),
        ("/ld", "ld_library_path"),
        ("/cached", "cache"),
    ]


def test_a_runpath_comes_after_ld_library_path_and_voids_every_rpath() -> None:
    one = module("/a/a.so", rpath="/r1", runpath="${ORIGIN}")
    parent = module("/p/p.so", rpath="/parent")
    assert order(one, parent) == [
        ("/ld", "ld_library_path"),
        ("/a", "runpath"),
        ("/cached", "cache"),
    ]


def test_rpath_is_inherited_from_those_that_loaded_it_but_for_one_with_a_runpath() -> None:
    one = module("/a/a.so")
    near = module("/b/b.so", rpath="/near", runpath="/run")
    far = module("/c/c.so", rpath="$ORIGIN/far")
    assert order(one, near, far)[0] == ("/c/far", "rpath")


def test_the_rpath_of_the_program_counts_last() -> None:
    """Conda's interpreter points at its own lib folder so."""
    main = module("/conda/bin/python", rpath="$ORIGIN/../lib")
    search = SearchPath(ld_library_path=("/ld",), cache={}, main=main)
    one = module("/a/a.so", rpath="/r1")
    expected = [("/r1", "rpath"), ("/conda/bin/../lib", "rpath"), ("/ld", "ld_library_path")]
    assert order(one, search=search) == expected
    assert order(one, main, search=search) == expected


def test_tokens() -> None:
    one = module("/a/a.so", rpath="$LIB:relative::/opt/${LIB}/$PLATFORM")
    assert [folder for folder, how in order(one) if how == "rpath"] == [
        "/opt/lib/x86_64-linux-gnu/x86_64",
        "/opt/lib64/x86_64",
        "/opt/lib/x86_64",
    ]


def test_default_folders_of_both_families() -> None:
    arm = SearchPath(machine="aarch64", cache={}).default_folders()
    assert arm[0] == "/lib/aarch64-linux-gnu"
    assert {"/usr/lib64", "/usr/lib"} <= set(arm)
    assert SEARCH.default_folders()[1] == "/usr/lib/x86_64-linux-gnu"
