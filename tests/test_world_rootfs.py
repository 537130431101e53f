"""Reading below a root, which neither links nor dots lead out of."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from envmaker import EnvMaker
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from envbuild.errors import InputError
from envbuild.world.rootfs import Root

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(name="image")
def an_image(tmp_path: Path) -> Path:
    """Return an image's folder, with a secret beside it."""
    (tmp_path / "secret").write_text("outside")
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "name").write_text("outside")
    image = tmp_path / "image"
    (image / "etc").mkdir(parents=True)
    (image / "etc" / "name").write_text("inside")
    (image / "opt").mkdir()
    return image


def read(image: Path, path: str) -> str:
    return Root(str(image)).read(path, limit=100).decode()


@pytest.mark.parametrize("target", ["/etc/name", "../etc/name", "../../../../etc/name", "x"])
def test_links_stay_inside(image: Path, target: str) -> None:
    (image / "opt" / "link").symlink_to(target)
    (image / "opt" / "x").symlink_to("/opt/../etc/./name")
    assert read(image, "/opt/link") == "inside"


def test_a_folder_that_is_a_link(image: Path) -> None:
    (image / "opt" / "conf").symlink_to("/etc")
    root = Root(str(image))
    assert root.names("/opt/conf") == ("name",)
    assert root.real("/opt/conf/name") == "/etc/name"
    assert root.is_file("/opt/conf/name")
    assert root.is_folder("/opt/conf/../opt")


@pytest.mark.parametrize("path", ["/../secret", "/../../../secret", "/etc/../../secret"])
def test_dots_stay_inside(image: Path, path: str) -> None:
    with pytest.raises(FileNotFoundError):
        read(image, path)


def test_a_loop_is_an_error(image: Path) -> None:
    (image / "a").symlink_to("b")
    (image / "b").symlink_to("a")
    root = Root(str(image))
    for path in ("/a", "/a/x"):
        with pytest.raises(OSError, match="Too many levels of symbolic links"):
            root.real(path)
        assert not root.is_file(path)
        assert root.names(path) == ()
        assert root.text(path) is None
    assert root.is_there("/a")


def test_a_link_that_grows(image: Path) -> None:
    (image / "a").symlink_to("a/a")
    assert not Root(str(image)).is_folder("/a")


@pytest.mark.parametrize("path", ["/" + "a" * 5000, "/" + "a/" * 3000, "/a\0b"])
def test_names_that_no_file_has(image: Path, path: str) -> None:
    for root in (Root(str(image)), Root()):
        assert not root.is_file(path)
        assert not root.is_there(path)


def test_only_regular_files_are_opened(image: Path) -> None:
    os.mkfifo(image / "pipe")
    for path in ("/pipe", "/etc"):
        with pytest.raises(OSError, match="is no regular file"):
            Root(str(image)).open(path)
    with pytest.raises(OSError, match="is no regular file"):
        Root().open("/dev/null")


def test_limits(image: Path) -> None:
    root = Root(str(image))
    assert root.head("/etc/name", 3) == b"ins"
    assert root.text("/etc/name", limit=6) == "inside"
    assert root.text("/etc/name", limit=5) is None
    with pytest.raises(OSError, match="has more than 5 bytes"):
        root.read("/etc/name", limit=5)


def test_paths_that_begin_with_the_root(image: Path) -> None:
    root = Root(str(image))
    assert root.inside(f"{image}/etc/name") == root.inside("/etc/name") == "/etc/name"
    assert root.inside(str(image)) == "/"
    assert root.inside("../etc") == "/etc"


def test_the_machine_itself(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    (tmp_path / "b").symlink_to("a")
    root = Root()
    assert (root.path, root.is_image) == ("/", False)
    assert root.text(f"{tmp_path}/b") == "x"
    assert root.real(f"{tmp_path}/b") == f"{tmp_path.resolve()}/a"


def test_a_root_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is no folder, wanted the root folder of an image"):
        Root(str(tmp_path / "gone"))


PARTS = st.lists(st.sampled_from(["..", ".", "", "etc", "opt", "name", "l0", "l1"]), max_size=7)
TARGETS = st.tuples(st.sampled_from(["", "/"]), PARTS).map(lambda one: one[0] + "/".join(one[1]))


@given(TARGETS, TARGETS, TARGETS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_path_leaves_the_root(image: Path, first: str, second: str, path: str) -> None:
    for name, target in (("l0", first), ("l1", second)):
        for folder in (image, image / "opt"):
            (folder / name).unlink(missing_ok=True)
            (folder / name).symlink_to(target or ".")
    root = Root(str(image))
    with suppress(OSError):
        where = root.host_path(f"/{path}")
        assert os.path.realpath(where) == where
        assert where == str(image) or where.startswith(f"{image}/")
    with suppress(OSError):
        assert root.read(f"/{path}", limit=100) == b"inside"


@pytest.mark.parametrize("kind", ["venv", "conda", "debian", "standalone"])
def test_an_environment_in_an_image(tmp_path: Path, kind: str) -> None:
    maker = EnvMaker(tmp_path, image=True)
    env = getattr(maker, kind)().torch()
    installed = env.read()
    assert installed.root == str(tmp_path)
    assert installed.torch is not None
    assert installed.torch.version == "2.7.0+cu128"
    paths = (installed.prefix, installed.executable, *installed.sites)
    assert not [path for path in paths if path.startswith(str(tmp_path))]
    assert env.ownership().missing == ()


def test_debian(tmp_path: Path) -> None:
    env = EnvMaker(tmp_path, image=True).debian().install("numpy", "2.0")
    env.at(tmp_path / "usr/lib/python3/dist-packages").egg_info("six", "1.16", as_file=True)
    installed = env.read()
    assert installed.python == "3.11.2"
    assert installed.sites == (
        "/usr/local/lib/python3.11/dist-packages",
        "/usr/lib/python3/dist-packages",
    )
    assert [one.label for one in installed.distributions] == ["numpy 2.0", "six 1.16"]


def test_an_image_whose_links_point_at_the_machine(tmp_path: Path) -> None:
    """The site folder is an absolute link, RECORD and METADATA are links out of the image."""
    image = tmp_path / "image"
    outside = tmp_path / "outside"
    EnvMaker(outside).venv("v").install("secret", "1.0")
    env = EnvMaker(image, image=True).venv().install("a", "1.0")
    site = outside / "v/lib/python3.11/site-packages"
    env.link("secret-1.0.dist-info", str(site / "secret-1.0.dist-info"))
    env.link("a-1.0.dist-info/RECORD", f"../../../../../../..{site}/secret-1.0.dist-info/RECORD")
    installed = env.read()
    assert [one.label for one in installed.distributions] == ["a 1.0"]
    assert installed.distributions[0].record is None
