"""Which imports are found to fail for want of a library of the system."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from imagemaker import SITE, machine, with_torch

from envbuild.model.links import MissingLibrary

if TYPE_CHECKING:
    from imagemaker import Image

    from envbuild.model.links import StoppedModule

USB = "libusb-1.0.so.0"


def with_open3d(init: str = "from open3d.pybind import core\n") -> Image:
    """Return a package whose extension is linked to its own library, and that to libusb."""
    image = machine()
    image.text("open3d/__init__.py", init)
    image.add(f"{SITE}/open3d/libOpen3D.so", needed=(USB,))
    image.extension("open3d/pybind", needed=("libOpen3D.so",), rpath="$ORIGIN")
    image.tops = ("open3d",)
    return image


def stopped(image: Image) -> dict[str, tuple[tuple[str, ...], tuple[str, ...], str]]:
    return {one.path[len(SITE) + 1 :]: (one.stops, one.may_stop, one.part) for one in found(image)}


def found(image: Image) -> tuple[StoppedModule, ...]:
    links = image.judge()
    assert not links.broken
    return links.stopped


def test_a_library_that_the_packages_own_library_lacks_stops_the_import() -> None:
    (one,) = found(with_open3d())
    path = f"{SITE}/open3d/libOpen3D.so"
    assert one.missing == (MissingLibrary(path=path, library=USB, optional=True),)
    assert (one.stops, one.may_stop, one.part) == (("open3d",), (), "")


def test_nothing_is_said_where_the_system_has_it() -> None:
    image = with_open3d()
    image.add(f"/usr/lib/x86_64-linux-gnu/{USB}")
    assert found(image) == ()


@pytest.mark.parametrize(
    ("init", "expected"),
    [
        ("import open3d.pybind", (("open3d",), (), "")),
        ("from . import pybind", (("open3d",), (), "")),
        ("from .pybind import *", (("open3d",), (), "")),
        ("if GPU:\n    from . import pybind", ((), ("open3d",), "")),
        (
            "try:\n    from . import pybind\nexcept ImportError:\n    pass",
            ((), (), "open3d.pybind"),
        ),
        ("def load():\n    from . import pybind", ((), (), "open3d.pybind")),
        ("", ((), (), "open3d.pybind")),
    ],
)
def test_the_text_of_the_package_decides(
    init: str, expected: tuple[tuple[str, ...], tuple[str, ...], str]
) -> None:
    assert list(stopped(with_open3d(init)).values()) == [expected]


def test_imports_are_followed_through_the_package() -> None:
    image = with_open3d("from .a import x\n")
    image.text("open3d/a/__init__.py", "from . import b\n")
    image.text("open3d/a/b.py", "from ..c import y\nimport open3d\n")
    image.text("open3d/c.py", "import numpy, open3d.pybind\n")
    assert list(stopped(image).values()) == [(("open3d",), (), "")]


def test_a_condition_on_the_way_leaves_it_open() -> None:
    image = with_open3d("if x:\n    from . import a\n")
    image.text("open3d/a.py", "import open3d.pybind\n")
    assert list(stopped(image).values()) == [((), ("open3d",), "")]


def test_a_part_with_an_underscore_that_nothing_imports_is_nobodys_business() -> None:
    image = with_open3d("")
    image.extension("open3d/_cuda", needed=("libmpi.so.12",))
    image.extension("open3d/deep/rdma", needed=("libibverbs.so.1",))
    assert list(stopped(image)) == ["open3d/pybind.cpython-311-x86_64-linux-gnu.so"]


def test_a_package_that_puts_its_own_folder_on_the_path() -> None:
    image = machine()
    image.text(
        "cv2/__init__.py", "def bootstrap():\n    importlib.import_module('cv2')\nbootstrap()\n"
    )
    image.extension("cv2/cv2", needed=("libGL.so.1",))
    assert list(stopped(image).values()) == [(("cv2",), (), "")]


def test_a_module_of_the_site_itself_and_the_package_beside_it() -> None:
    image = machine()
    image.text("polyscope/__init__.py", "import _bindings\n")
    image.extension("_bindings", needed=("libX11.so.6",))
    image.tops = ("_bindings", "polyscope")
    assert list(stopped(image).values()) == [(("polyscope",), (), "")]
    image.text("polyscope/__init__.py")
    assert found(image) == ()
    image.extension("pyodbc", needed=("libodbc.so.2",))
    assert list(stopped(image).values()) == [(("pyodbc",), (), "")]


def test_a_namespace_is_no_package() -> None:
    image = machine()
    image.text("nvidia/dali/__init__.py", "from . import backend\n")
    image.extension("nvidia/dali/backend", needed=("libgomp.so.1",))
    assert list(stopped(image).values()) == [(("nvidia.dali",), (), "")]
    image.extension("loose/part", needed=("libgomp.so.1",))
    assert len(found(image)) == 1


def test_libraries_of_wheels_and_of_the_driver_are_no_matter_of_the_system() -> None:
    image = with_torch()
    image.text("a/__init__.py", "from . import _C\n")
    image.extension("a/_C", needed=("libcuda.so.1", "libcudart.so.13"))
    assert found(image) == ()


def test_a_file_of_another_package_may_be_opened_before() -> None:
    image = with_open3d()
    image.add(f"{SITE}/other/{USB}")
    assert found(image) == ()


def test_an_extension_module_for_another_python_is_none() -> None:
    image = with_open3d()
    assert image.judge(tag="312").stopped == ()


def test_a_plain_name_counts_where_python_can_load_it() -> None:
    image = machine()
    image.text("a/__init__.py", "from . import core\n")
    image.add(f"{SITE}/a/core.so", needed=("libGL.so.1",), defines=("PyInit_core",))
    image.add(f"{SITE}/a/plugin.so", needed=("libGL.so.1",))
    assert stopped(image) == {"a/core.so": (("a",), (), "")}


def with_lightgbm(text: str) -> Image:
    image = machine()
    image.text("lightgbm/__init__.py", "from .basic import Booster\n")
    image.text("lightgbm/basic.py", text)
    image.add(f"{SITE}/lightgbm/lib/lib_lightgbm.so", needed=("libgomp.so.1",))
    return image


def test_the_only_library_of_a_package_that_opens_one_by_itself() -> None:
    image = with_lightgbm("def f():\n    return ctypes.CDLL(find())\nLIB = f()\n")
    assert stopped(image) == {"lightgbm/lib/lib_lightgbm.so": (("lightgbm",), (), "")}
    image = with_lightgbm("if x:\n    LIB = ctypes.CDLL(find())\n")
    assert stopped(image) == {"lightgbm/lib/lib_lightgbm.so": ((), ("lightgbm",), "")}
    assert found(with_lightgbm("def f():\n    return ctypes.CDLL(find())\n")) == ()


def test_of_several_libraries_nobody_knows_which_is_opened() -> None:
    image = with_lightgbm("LIB = ctypes.CDLL(find())\n")
    image.add(f"{SITE}/lightgbm/lib/libplugin.so")
    assert found(image) == ()


def test_a_copy_of_pythons_own_module_is_for_programs_that_a_package_makes() -> None:
    image = machine()
    image.extension("deploy_libs/_ssl", needed=("libssl.so.9",))
    links = image.judge()
    assert (links.libraries, links.stopped) == ((), ())
    image.extension("deploy_libs/other", needed=("libssl.so.9",))
    assert [one.library for one in image.judge().libraries] == ["libssl.so.9"]
