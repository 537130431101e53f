"""Reading the binaries of an environment that lies in a folder."""

from __future__ import annotations

import gc
import os
import struct
from typing import TYPE_CHECKING

import pytest
from elfmaker import ONLY_THIS, PTX, SASS, fat_binary, make_elf
from imagemaker import NVIDIA, SITE, TORCH, with_torch
from test_core_ldcache import X86_64, cache

from envbuild.core.elf.pieces import TABLE_LIMIT
from envbuild.core.elf.sharedobject import ElfError
from envbuild.model.installed import EnvironmentKind, Installed, TorchText
from envbuild.world.binaries import read_device_codes, read_ld_cache, read_links
from envbuild.world.objectfiles import FileBytes, ObjectFiles, OpenFiles
from envbuild.world.rootfs import Root

if TYPE_CHECKING:
    from pathlib import Path


def installed(root: Path, *, executable: str = "/usr/bin/python3.11") -> Installed:
    """Describe the environment of `imagemaker` below a folder."""
    return Installed(
        root=str(root),
        prefix="/venv",
        executable=executable,
        python="3.11.7",
        kind=EnvironmentKind.VENV,
        sites=(SITE,),
        own_sites=(SITE,),
        distributions=(),
        torch=TorchText(version="2.8.0+cu128", cuda="12.8"),
    )


def test_a_sound_image(tmp_path: Path) -> None:
    with_torch().write(tmp_path)
    gc.enable()  # a command of another test may have left it disabled
    links = read_links(installed(tmp_path), root=Root(str(tmp_path)), environment={})
    assert (links.libraries, links.symbols, links.versions, links.broken) == ((), (), (), ())
    assert {one.path.split("/")[1] for one in links.loaded} == {"venv", "lib"}
    assert gc.isenabled()


def test_the_text_of_torch_and_the_environment_are_used(tmp_path: Path) -> None:
    image = with_torch()
    shadow = "/opt/cuda/lib64/libnvJitLink.so.12"
    image.add(shadow, defines=("__nvJitLinkCreate_12_1@@libnvJitLink.so.12",))
    image.write(tmp_path)
    where = tmp_path / TORCH.lstrip("/") / "__init__.py"
    root = Root(str(tmp_path))
    environment = {"LD_LIBRARY_PATH": ":relative:/nowhere;/opt/cuda/lib64"}
    where.write_text("", encoding="utf-8")
    links = read_links(installed(tmp_path), root=root, environment=environment)
    assert [one.provider for one in links.symbols] == [shadow]
    where.write_text(image.torch_text, encoding="utf-8")
    assert read_links(installed(tmp_path), root=root, environment=environment).symbols == ()


def test_ld_preload_from_both_places(tmp_path: Path) -> None:
    image = with_torch()
    image.add("/opt/a/libnccl.so.2", defines=("ncclSend",))
    image.write(tmp_path)
    root = Root(str(tmp_path))
    links = read_links(
        installed(tmp_path), root=root, environment={"LD_PRELOAD": "/opt/a/libnccl.so.2"}
    )
    assert len(links.symbols) == 1
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/ld.so.preload").write_text("/opt/a/libnccl.so.2\n", encoding="utf-8")
    assert read_links(installed(tmp_path), root=root, environment={}).symbols == links.symbols


def test_the_cache_of_the_image_is_read(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    root = Root(str(tmp_path))
    assert read_ld_cache(root, machine="x86_64") == {}
    where = tmp_path / "etc/ld.so.cache"
    where.write_bytes(cache(("libz.so.1", "/opt/libz.so.1", X86_64, 0)))
    assert read_ld_cache(root, machine="x86_64") == {"libz.so.1": ("/opt/libz.so.1",)}
    where.write_bytes(struct.pack("<I", 7))
    assert read_ld_cache(root, machine="x86_64") == {}


def test_a_link_leads_nowhere_outside_of_the_image(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "libnccl.so.2").write_bytes(make_elf(soname="libnccl.so.2", defines=("ncclSend",)))
    image = with_torch()
    del image.files[f"{NVIDIA}/nccl/lib/libnccl.so.2"]
    image.links[f"{NVIDIA}/nccl/lib/libnccl.so.2"] = str(outside / "libnccl.so.2")
    image.write(tmp_path / "image")
    root = Root(str(tmp_path / "image"))
    links = read_links(installed(tmp_path / "image"), root=root, environment={})
    assert [one.library for one in links.libraries] == ["libnccl.so.2"]


@pytest.mark.parametrize("kind", ["fifo", "folder", "loop", "dangling"])
def test_what_is_no_regular_file_is_passed_over(tmp_path: Path, kind: str) -> None:
    image = with_torch()
    nccl = f"{NVIDIA}/nccl/lib/libnccl.so.2"
    del image.files[nccl]
    image.write(tmp_path)
    where = tmp_path / nccl.lstrip("/")
    where.parent.mkdir(parents=True)
    if kind == "fifo":
        os.mkfifo(where)
    elif kind == "folder":
        where.mkdir()
    else:
        where.symlink_to(where.name if kind == "loop" else "gone.so")
    root = Root(str(tmp_path))
    links = read_links(installed(tmp_path), root=root, environment={})
    assert [one.library for one in links.libraries] == ["libnccl.so.2"]
    assert read_device_codes(installed(tmp_path), root=root).binaries == ()


def test_a_link_in_a_venv_to_its_interpreter(tmp_path: Path) -> None:
    image = with_torch()
    image.links["/venv/bin/python"] = "/usr/bin/python3.11"
    image.write(tmp_path)
    found = installed(tmp_path, executable="/venv/bin/python")
    assert read_links(found, root=Root(str(tmp_path)), environment={}).symbols == ()


def grown(path: Path, *, strings: int) -> None:
    """Make a file's string table larger than any that is read; its end is a hole on the disk."""
    data = bytearray(path.read_bytes())
    at = next(at for at in range(0, len(data), 8) if data[at : at + 8] == struct.pack("<Q", 10))
    data[at + 8 : at + 16] = struct.pack("<Q", strings)
    path.write_bytes(data)
    os.truncate(path, strings + len(data))


@pytest.mark.parametrize("path", [f"{NVIDIA}/nccl/lib/libnccl.so.2", f"{TORCH}/lib/libc10.so"])
def test_names_are_looked_for_in_a_table_larger_than_is_read(tmp_path: Path, path: str) -> None:
    with_torch().write(tmp_path)
    grown(tmp_path / path.lstrip("/"), strings=TABLE_LIMIT + 1)
    links = read_links(installed(tmp_path), root=Root(str(tmp_path)), environment={})
    assert (links.libraries, links.symbols, links.versions, links.broken) == ((), (), (), ())
    assert links.unread == ()


def test_a_library_that_is_larger_than_is_read_as_a_whole_is_not_missing(tmp_path: Path) -> None:
    with_torch().write(tmp_path)
    path = f"{NVIDIA}/nccl/lib/libnccl.so.2"
    file = tmp_path / path.lstrip("/")
    data = bytearray(file.read_bytes())
    at = data.index(struct.pack("<II", 2, 6), 64)  # PT_DYNAMIC
    data[at + 32 : at + 40] = struct.pack("<Q", 65537 * 16)
    file.write_bytes(data)
    os.truncate(file, 2 << 20)
    links = read_links(installed(tmp_path), root=Root(str(tmp_path)), environment={})
    assert [one.path for one in links.unread] == [path]
    assert (links.libraries, links.symbols, links.broken) == ((), (), ())


def test_device_code_that_is_broken_is_not_known(tmp_path: Path) -> None:
    site = tmp_path / SITE.lstrip("/")
    site.mkdir(parents=True)
    code = fat_binary((SASS, 5, 0))
    (site / "a.so").write_bytes(make_elf(sections={".nv_fatbin": code}))
    codes = read_device_codes(installed(tmp_path), root=Root(str(tmp_path)))
    assert codes.binaries == ()
    assert [one.reason for one in codes.unread] == [
        "the GPU code is for `sm_5`, wanted one like `sm_90`"
    ]


def test_device_code_of_every_object_once(tmp_path: Path) -> None:
    site = tmp_path / SITE.lstrip("/")
    (site / "pkg").mkdir(parents=True)
    code = fat_binary((SASS, 90, ONLY_THIS), (PTX, 120, 0))
    (site / "pkg/a.so").write_bytes(make_elf(sections={".nv_fatbin": code}))
    (site / "pkg/b.so").symlink_to("a.so")
    (site / "pkg/c.so").write_bytes(make_elf(soname="c.so"))
    (site / "pkg/d.so").write_bytes(b"INPUT(-lx)")
    (one,) = read_device_codes(installed(tmp_path), root=Root(str(tmp_path))).binaries
    assert one.path == f"{SITE}/pkg/a.so"
    assert [capability.sm for capability in one.code.sass] == ["sm_90a"]
    assert [capability.compute for capability in one.code.ptx] == ["compute_120"]


def test_only_some_files_stay_open_and_all_can_be_read(tmp_path: Path) -> None:
    for number in range(300):
        (tmp_path / f"{number}.so").write_bytes(str(number).encode())
    files = OpenFiles(Root(str(tmp_path)))
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    every = [FileBytes(files, f"/{number}.so") for number in range(300)]
    assert len(os.listdir("/proc/self/fd")) - before < 150  # noqa: PTH208
    assert [int(data.read(0, 9)) for data in every] == list(range(300))
    (tmp_path / "0.so").unlink()
    with pytest.raises(ElfError, match="cannot be read"):
        every[0].read(0, 1)
    files.close()
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


def test_absurd_offsets_are_an_elf_error(tmp_path: Path) -> None:
    (tmp_path / "a.so").write_bytes(b"x")
    library = ObjectFiles(Root(str(tmp_path)))
    data = library.data("/a.so")
    assert data is not None
    assert data.read(5, 9) == b""
    for offset in (-1, 1 << 63, 1 << 70):
        with pytest.raises(ElfError):
            data.read(offset, 1)
    library.close()
