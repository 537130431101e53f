"""Who owns the files of an environment, and what is wrong with them."""

from __future__ import annotations

import hashlib
import os
import stat
from typing import TYPE_CHECKING

import pytest
from envmaker import EnvMaker

from envbuild.model.installed import OnDisk, Ownership, RecordEntry, SharedPath
from envbuild.world.ownership import read_ownership
from envbuild.world.sharedobjects import is_shared_object

if TYPE_CHECKING:
    from pathlib import Path

    from envmaker import MadeEnv

NCCL = "nvidia/nccl/lib/libnccl.so.2"
CU12 = "nvidia-nccl-cu12 2.26.2"
CU13 = "nvidia-nccl-cu13 2.28.9"


@pytest.fixture(name="env")
def an_empty_venv(tmp_path: Path) -> MadeEnv:
    return EnvMaker(tmp_path).venv()


def twins(env: MadeEnv, *, cu13: bytes, cu12: bytes) -> MadeEnv:
    env.install("nvidia-nccl-cu13", "2.28.9", files={NCCL: cu13, "nvidia/__init__.py": ""})
    return env.install("nvidia-nccl-cu12", "2.26.2", files={NCCL: cu12, "nvidia/__init__.py": ""})


def entry(content: bytes) -> RecordEntry:
    sha256 = hashlib.sha256(content).hexdigest()
    return RecordEntry(path=NCCL, sha256=sha256, size=len(content))


def owners(first: bytes, second: bytes) -> tuple[tuple[str, RecordEntry], ...]:
    return ((CU12, entry(first)), (CU13, entry(second)))


def test_a_healthy_environment(env: MadeEnv) -> None:
    env.torch(files={"torch/lib/libc10.so": b"x", "../../../bin/torchrun": "#!"})
    env.install("numpy", "2.0")
    assert env.ownership() == Ownership(
        owners=((f"{env.site}/torch/lib/libc10.so", "torch 2.7.0+cu128"),)
    )


def test_size_tells_whose_bytes_lie_there(env: MadeEnv) -> None:
    found = twins(env, cu13=b"larger", cu12=b"small").ownership()
    assert found.shared == (
        SharedPath(path=NCCL, owners=owners(b"small", b"larger"), disk=OnDisk(size=5), winner=CU12),
    )
    assert (found.missing, found.resized, found.unowned) == ((), (), ())
    assert found.owners == ((f"{env.site}/{NCCL}", CU12),)


def test_hash_tells_where_sizes_are_equal(env: MadeEnv) -> None:
    found = twins(env, cu13=b"aaaa", cu12=b"bbbb").ownership()
    disk = OnDisk(size=4, sha256=hashlib.sha256(b"bbbb").hexdigest())
    assert found.shared == (
        SharedPath(path=NCCL, owners=owners(b"bbbb", b"aaaa"), disk=disk, winner=CU12),
    )


def test_nobody_wins_with_bytes_of_a_third(env: MadeEnv) -> None:
    found = twins(env, cu13=b"aaaa", cu12=b"bbbb").write(NCCL, b"cccc").ownership()
    assert [one.winner for one in found.shared] == [None]
    assert found.resized == ()


def test_the_same_content_has_no_winner_and_no_hash(env: MadeEnv) -> None:
    (shared,) = twins(env, cu13=b"same", cu12=b"same").ownership().shared
    assert shared.identical
    assert (shared.winner, shared.disk) == (None, OnDisk(size=4))


def test_a_hash_that_no_record_gives(env: MadeEnv) -> None:
    env.install("a", "1", files={"x.so": b"1"}, record="x.so,,\n")
    env.install("b", "1", files={"x.so": b"22"})
    (shared,) = env.ownership().shared
    assert shared.winner == "b 1"


def test_the_twin_is_uninstalled(env: MadeEnv) -> None:
    twins(env, cu13=b"larger", cu12=b"small").uninstall("nvidia-nccl-cu12", "2.26.2")
    found = env.ownership()
    assert found.missing == ((CU13, ("nvidia/__init__.py", NCCL)),)
    assert (found.shared, found.owners) == ((), ())


def test_a_shared_file_that_is_gone(env: MadeEnv) -> None:
    found = twins(env, cu13=b"larger", cu12=b"small").remove(NCCL).ownership()
    assert [(one.disk, one.winner) for one in found.shared] == [(None, None)]
    assert found.missing == ((CU12, (NCCL,)), (CU13, (NCCL,)))


def test_a_file_cut_short(env: MadeEnv) -> None:
    env.install("a", "1", files={"a.so": b"whole", "b.py": "x"}).write("a.so", b"who")
    assert env.ownership().resized == (("a 1", ("a.so",)),)


def test_a_script_of_the_prefix_that_is_gone(env: MadeEnv) -> None:
    env.install("a", "1", files={"../../../bin/a": "#!"}).remove("../../../bin/a")
    assert env.ownership().missing == (("a 1", (f"{env.prefix}/bin/a",)),)


def test_compiled_python_does_not_count(env: MadeEnv) -> None:
    record = "a/__pycache__/x.cpython-311.pyc,,\na/x.pyc,sha256=x,7\nb/__pycache__,,\n"
    env.install("a", "1", record=record).install("b", "1", files={}, record=record)
    assert env.ownership() == Ownership()


def test_what_installers_change_in_their_own_folder(env: MadeEnv) -> None:
    env.install("a", "1", installer="pip").write("a-1.dist-info/INSTALLER", "conda\n")
    assert env.ownership() == Ownership()
    assert env.remove("a-1.dist-info/METADATA").ownership().missing == (
        ("a 1", ("a-1.dist-info/METADATA",)),
    )


def test_one_distribution_that_names_a_file_twice(env: MadeEnv) -> None:
    env.install("a", "1", files={"a.py": ""}, record="a.py,,0\n./a.py,,0\n")
    assert env.ownership().shared == ()


def test_files_that_are_links_into_a_cache(env: MadeEnv, tmp_path: Path) -> None:
    """As uv's link mode ``symlink`` has them: the link's own size says nothing."""
    env.install("a", "1", files={"a.so": b"content"})
    (tmp_path / "cached").write_bytes(b"content")
    assert env.link("a.so", str(tmp_path / "cached")).ownership().resized == ()
    assert env.link("a.so", str(tmp_path / "gone")).ownership().missing == (("a 1", ("a.so",)),)


def test_two_versions_of_one_distribution(env: MadeEnv) -> None:
    env.install("a", "2", files={"a.py": "22"}).install("a", "1", files={"a.py": "1"})
    (shared,) = env.ownership().shared
    assert shared.winner == "a 1"
    assert [label for label, _ in shared.owners] == ["a 2", "a 1"]


def test_sites_do_not_share(env: MadeEnv, tmp_path: Path) -> None:
    env.install("a", "1", files={"a.py": "1"})
    env.at(tmp_path / "other").install("a", "2", files={"a.py": "22"})
    found = env.ownership(environ={"PYTHONPATH": f"{tmp_path}/other"})
    assert (found.shared, found.resized) == ((), ())


def test_shared_objects_without_an_owner(env: MadeEnv, tmp_path: Path) -> None:
    env.install("a", "1", files={"a/_C.so": b"x"})
    env.write("a/deep/er/_built.cpython-311-x86_64-linux-gnu.so", b"x").write("a/x.so.py", "")
    source = tmp_path / "pointops"
    env.at(source).egg_info("pointops", "1.0", files={"pointops/_C.so": b"x"})
    env.at(source / ".venv" / "x").write("y.so", b"")
    env.at(source / "env").write("pyvenv.cfg", "").write("z.so", b"")
    assert env.pth("easy-install", str(source)).ownership().unowned == tuple(
        sorted(
            [
                f"{env.site}/a/deep/er/_built.cpython-311-x86_64-linux-gnu.so",
                f"{source}/pointops/_C.so",
            ]
        )
    )


def test_shared_objects_of_an_editable_build(env: MadeEnv, tmp_path: Path) -> None:
    source = tmp_path / "my code"
    env.at(source).write("ops/_C.so", b"x")
    origin = {"url": f"file://{tmp_path}/my%20code", "dir_info": {"editable": True}}
    env.install("ops", "1", files={"_ops.pth": ""}, origin=origin)
    assert env.ownership().unowned == (f"{source}/ops/_C.so",)


def test_a_link_to_a_folder_above_is_not_followed(env: MadeEnv) -> None:
    env.write("a/b.so", b"").link("a/up", "..")
    assert env.ownership().unowned == (f"{env.site}/a/b.so",)


def test_shared_objects_that_are_known_already(env: MadeEnv) -> None:
    env.install("a", "1", files={"a.so": b"x"})
    known = (f"{env.site}/a.so", f"{env.site}/b.so")
    assert read_ownership(env.read(), objects=known).unowned == (f"{env.site}/b.so",)


def test_an_image(tmp_path: Path) -> None:
    env = EnvMaker(tmp_path, image=True).venv()
    found = twins(env, cu13=b"aaaa", cu12=b"bbbb").ownership()
    assert [one.winner for one in found.shared] == [CU12]
    assert found.owners == ((f"/.venv/lib/python3.11/site-packages/{NCCL}", CU12),)


def test_a_folder_of_an_image_that_leads_out_of_it(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "x.so").write_bytes(b"1")
    env = EnvMaker(tmp_path / "image", image=True).venv()
    env.install("a", "1", files={"a/x.so": b"1"}).remove("a")
    installed = env.link("a", str(tmp_path / "outside")).read()
    assert read_ownership(installed).missing == (("a 1", ("a/x.so",)),)


@pytest.mark.parametrize(
    "name", ["x.so", "libnccl.so.2", "_C.cpython-311-x86_64-linux-gnu.so", "a/libcudart-1a.so.12.4"]
)
def test_names_of_shared_objects(name: str) -> None:
    assert is_shared_object(name)


@pytest.mark.parametrize("name", ["x.py", "x.sop", "a.so/b", "x.so.py", "lib.solution", "x.so.txt"])
def test_names_of_other_files(name: str) -> None:
    assert not is_shared_object(name)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every folder")
def test_what_may_not_be_looked_at_is_not_gone(env: MadeEnv) -> None:
    env.install("closed", "1", files={"closed/part/a.py": "1", "closed/b.so": b"2"})
    folder = env.site / "closed"
    folder.chmod(0)
    try:
        assert env.ownership().missing == ()
    finally:
        folder.chmod(stat.S_IRWXU)
    (folder / "b.so").unlink()
    assert env.ownership().missing == (("closed 1", ("closed/b.so",)),)
