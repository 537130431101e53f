"""Commits and sdists that the install script compiles: fetched, checked, and refused."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from buildworld import pure_sdist, write_source
from gitworld import commit, git, serve
from index import LocalIndex
from lockworld import World, pyproject
from scriptworld import SCRIPT, contents, make_script, run_script, shellchecked, versions

from envbuild.errors import InputError

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator

    from gitworld import Repository

    from envbuild.catalog.reader import Catalog

LOCK = "lockfiles/pylock.cu128.toml"
MORE = """\
[tool.envbuild.build]
gitext = {{ git = "{url}@{commit}", requires = [] }}
sdext = {{ prefer = "source", requires = ["wheel"] }}
"""
SDIST = pure_sdist("sdext")
FILE = "/pypi/files/sdext-1.0.tar.gz"


@dataclass(frozen=True, kw_only=True)
class Made:
    """A locked project with a script, and where its sources lie."""

    root: Path
    index: LocalIndex
    repository: Repository


@pytest.fixture(scope="module")
def template(
    shared_index: LocalIndex,
    shared_cache: Path,
    catalog: Catalog,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Made]:
    """Lock a project that compiles a commit and an sdist, the latter of a host of its own."""
    folder = tmp_path_factory.mktemp("sources")
    write_source(folder / "gitext", "gitext", hollow="")
    repository = commit(folder / "gitext", folder / "gitext.git")
    world = World(index=shared_index, root=folder / "project", cache=shared_cache, catalog=catalog)
    more = MORE.format(url=repository.url, commit=repository.commit)
    world.write(pyproject("six", "sdext==1.0", layer="pip", more=more))
    with LocalIndex() as files:
        files.put(FILE, SDIST)
        world.lock()
        world.write(world.read(LOCK).replace(f"{shared_index.base}{FILE}", files.base + FILE), LOCK)
        make_script(world)
        yield Made(root=world.root, index=files, repository=repository)


@pytest.fixture(name="made")
def a_project_with_sources(world: World, template: Made) -> Iterator[Made]:
    """Return a copy of it, whose host of sdists is whole again afterwards."""
    shutil.copytree(template.root, world.root, dirs_exist_ok=True)
    yield Made(root=world.root, index=template.index, repository=template.repository)
    template.index.heal()
    template.index.put(FILE, SDIST)


def run(world: World, *arguments: str, **changes: str) -> subprocess.CompletedProcess[str]:
    """Run the script; what one test has built is at hand for the others."""
    return run_script(
        world, *arguments, **{"ENVBUILD_CACHE_DIR": str(world.cache / "b"), **changes}
    )


def relock(world: World, old: str, new: str) -> None:
    """Put another text into the lock, and make its script."""
    text = world.read(LOCK)
    assert old in text
    world.write(text.replace(old, new), LOCK)
    make_script(world)


def test_a_commit_and_an_sdist_are_built_once(world: World, made: Made) -> None:
    own = str(world.root.parent / "built")
    ended = run(world, ENVBUILD_CACHE_DIR=own)
    assert ended.returncode == 0, ended.stderr
    assert "compile gitext" in ended.stderr
    held = versions(world.root / ".venv")
    assert (held["gitext"], held["sdext"]) == ("1.0", "1.0")
    assert "warning" not in ended.stderr
    before = contents(world.root / ".venv")
    made.index.forget_requests()
    away = made.repository.folder.rename(made.repository.folder.with_name("away"))
    try:
        second = run(world)
    finally:
        away.rename(made.repository.folder)
    assert second.returncode == 0, second.stderr
    assert "nothing to do" in second.stderr
    assert contents(world.root / ".venv") == before
    assert not made.index.requests
    assert run(world, "--check-only").returncode == 0


@pytest.mark.usefixtures("made")
def test_shellcheck_finds_nothing(world: World) -> None:
    assert shellchecked(world) == ""


def test_a_repository_of_plain_files_with_submodules(
    world: World, made: Made, tmp_path: Path
) -> None:
    write_source(tmp_path / "inner", "gitext", hollow="")
    inner = commit(tmp_path / "inner", tmp_path / "inner.git")
    outer = tmp_path / "outer"
    outer.mkdir()
    git(outer, "init", "-q")
    git(outer, "submodule", "--quiet", "add", inner.url, "ext")
    modules = outer / ".gitmodules"
    modules.write_text(modules.read_text().replace(inner.url, "../inner.git"))
    both = commit(outer, tmp_path / "outer.git")
    serve(inner, made.index, "/git/inner.git")
    url = serve(both, made.index, "/git/outer.git")
    was = f"{made.repository.url}@{made.repository.commit}"
    relock(world, was, f"{url}@{both.commit}#subdirectory=ext")
    ended = run(world)
    assert ended.returncode == 0, ended.stderr
    assert "gitext" in versions(world.root / ".venv")
    relock(world, "#subdirectory=ext", "#subdirectory=none")
    (world.root / ".venv/.envbuild-stamp").unlink()
    ended = run(world)
    assert ended.returncode == 23
    assert "has no folder `none`" in ended.stderr


def test_a_folder_that_a_link_leads_to(world: World, made: Made, tmp_path: Path) -> None:
    write_source(tmp_path / "tree/libs/ext", "gitext", hollow="")
    (tmp_path / "tree/ext").symlink_to("libs/ext")
    linked = commit(tmp_path / "tree", tmp_path / "linked.git")
    was = f"{made.repository.url}@{made.repository.commit}"
    relock(world, was, f"{linked.url}@{linked.commit}#subdirectory=ext")
    ended = run(world)
    assert ended.returncode == 0, ended.stderr
    assert "gitext" in versions(world.root / ".venv")


def test_a_folder_that_is_none_of_the_commit(world: World, made: Made) -> None:
    with pytest.raises(InputError, match=r"found `.*` as `builds\.git`"):
        relock(world, made.repository.commit, f"{made.repository.commit}#subdirectory=../..")


@pytest.mark.parametrize("folder", ["..", "../../home", "a/../../b", "/home"])
def test_a_project_names_a_folder_of_the_commit(world: World, folder: str) -> None:
    git_url = f"https://example.org/x@{'0' * 40}#subdirectory={folder}"
    more = f'[tool.envbuild.build]\nx = {{ git = "{git_url}" }}'
    world.write(pyproject("six", layer="pip", more=more))
    with pytest.raises(InputError, match="wanted a folder of the commit"):
        world.lock()


def test_a_project_names_a_folder_in_one_line(world: World) -> None:
    more = '[tool.envbuild.build]\nx = { path = "a\\nb" }'
    world.write(pyproject("six", layer="pip", more=more))
    with pytest.raises(InputError, match="wanted a folder relative to the project"):
        world.lock()


def test_a_commit_that_is_not_there(world: World, made: Made) -> None:
    relock(world, made.repository.commit, "0" * 40)
    ended = run(world)
    assert ended.returncode == 23
    assert f"has no commit {'0' * 40}, of gitext" in ended.stderr
    assert not (world.root / ".venv").exists()


@pytest.mark.parametrize("address", ["file:///nowhere/x.git", "http://127.0.0.1:9/x.git"])
def test_a_repository_that_is_not_reached(world: World, made: Made, address: str) -> None:
    relock(world, made.repository.url, address)
    ended = run(world)
    assert ended.returncode == 14
    assert f"the repository of gitext, {address}, is not reached" in ended.stderr


def test_other_bytes_of_an_sdist(world: World, made: Made) -> None:
    made.index.put(FILE, SDIST + b"x")
    ended = run(world)
    assert ended.returncode == 23
    assert "has sha256" in ended.stderr
    assert "the lock has" in ended.stderr
    assert not (world.root / ".venv").exists()
    made.index.put(FILE, SDIST)
    assert run(world).returncode == 0


def test_an_sdist_that_is_gone(world: World, made: Made) -> None:
    del made.index.resources[FILE]
    ended = run(world)
    assert ended.returncode == 14
    assert "the source of sdext 1.0 cannot be had" in ended.stderr


def test_a_mirror_of_an_sdist(world: World, made: Made) -> None:
    relock(world, made.index.base, "https://gone.invalid")
    assert run(world, UV_HTTP_TIMEOUT="2").returncode == 14
    ended = run(world, ENVBUILD_MIRRORS=f"https://gone.invalid={made.index.base}")
    assert ended.returncode == 0, ended.stderr


def test_offline_an_sdist_comes_from_a_folder(world: World, made: Made, tmp_path: Path) -> None:
    made.index.forget_requests()
    ended = run(world, "--offline")
    assert ended.returncode == 14
    assert "offline, and no folder of UV_FIND_LINKS holds" in ended.stderr
    (tmp_path / "house").mkdir()
    (tmp_path / "house/sdext-1.0.tar.gz").write_bytes(SDIST)
    for path, one in world.index.resources.items():
        if Path(path).name.startswith(("six-", "wheel-", "ninja-", "setuptools-")):
            (tmp_path / "house" / Path(path).name).write_bytes(one.body)
    ended = run(world, "--offline", UV_FIND_LINKS=str(tmp_path / "house"))
    assert ended.returncode == 0, ended.stderr
    assert not made.index.requests
    relock(world, made.repository.url, "https://git.invalid/x.git")
    ended = run(world, "--offline", UV_FIND_LINKS=str(tmp_path / "house"))
    assert ended.returncode == 14
    assert "offline, and the source of gitext is a commit" in ended.stderr


def test_an_sdist_without_a_hash_is_installed_only_where_that_is_allowed(
    world: World, made: Made
) -> None:
    text = world.read(LOCK)
    lines = text.splitlines(keepends=True)
    start = lines.index('name = "sdext"\n')
    kept = [x for n, x in enumerate(lines) if n < start or not x.startswith(("url", "sha256"))]
    world.write("".join(kept), LOCK)
    make_script(world)
    made.index.forget_requests()
    ended = run(world)
    assert ended.returncode == 20
    assert "the lock has no hash for sdext" in ended.stderr
    index = str(world.index.urls.pypi)
    ended = run(world, "--allow-unhashed", UV_DEFAULT_INDEX=index)
    assert ended.returncode == 0, ended.stderr
    assert "warning: the lock has no hash for the source of sdext 1.0" in ended.stderr
    assert made.index.requests[FILE] == 0


@pytest.mark.parametrize("user", ["u:secret@", "secret@"])
def test_credentials_of_a_repository_get_nowhere(world: World, made: Made, user: str) -> None:
    address = f"https://{user}git.invalid/x"
    relock(world, made.repository.url, address)
    assert "https://git.invalid/x@" in world.read(SCRIPT)
    assert "secret" not in world.read(SCRIPT)
    more = MORE.format(url=address, commit=made.repository.commit)
    world.write(pyproject("six", "sdext==1.0", layer="pip", more=more))
    with pytest.raises(InputError, match="found a user or password") as caught:
        world.lock()
    assert "secret" not in caught.value.message


def test_a_password_for_ssh_is_refused_and_a_user_is_not(world: World, made: Made) -> None:
    text = pyproject("six", "sdext==1.0", layer="pip", more=MORE)
    for address in ("ssh://git@h.invalid/x", "git@h.invalid:x"):
        world.write(text.format(url=address, commit=made.repository.commit))
        world.lock()
        make_script(world)
        assert f"{address}@{made.repository.commit}" in world.read(SCRIPT)
    world.write(text.format(url="ssh://git:secret@h.invalid/x", commit=made.repository.commit))
    with pytest.raises(InputError, match="found a user or password"):
        world.lock()
