"""Which environment is found, and what is read of it."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from envmaker import EnvMaker, MadeEnv
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from envbuild.errors import InputError
from envbuild.model.installed import Distribution, EnvironmentKind, TorchText
from envbuild.world.environment import read_environment, site_prefix
from envbuild.world.ownership import read_ownership
from envbuild.world.place import Surroundings

if TYPE_CHECKING:
    from envbuild.model.installed import Installed


@pytest.fixture(name="made")
def a_venv(tmp_path: Path) -> MadeEnv:
    return EnvMaker(tmp_path).venv().torch(requires=["filelock"]).install("filelock", "3.1")


def labels(installed: Installed) -> list[str]:
    return [one.label for one in installed.distributions]


def found(path: object, *, folder: Path = Path("/"), **environ: str) -> Installed:
    around = Surroundings(folder=str(folder), own_prefix="/nowhere")
    return read_environment(None if path is None else str(path), environ=environ, around=around)


def test_a_venv(made: MadeEnv) -> None:
    installed = made.read()
    assert (installed.prefix, installed.kind) == (str(made.prefix), EnvironmentKind.VENV)
    assert installed.executable == f"{made.prefix}/bin/python"
    assert (installed.python, installed.machine) == ("3.11.7", "x86_64")
    assert installed.sites == installed.own_sites == (str(made.site),)
    assert installed.torch == TorchText(version="2.7.0+cu128", cuda="12.8", git="0" * 40)
    assert installed.skipped == ()
    assert installed.user_site is None
    assert not installed.system_site
    assert installed.site_of("torch") == str(made.site)
    assert installed.site_of("numpy") is None


def test_a_distribution(tmp_path: Path) -> None:
    env = EnvMaker(tmp_path).venv()
    env.install(
        "Flash_Attn",
        "2.8.3",
        files={"flash_attn/__init__.py": "", "../../../bin/fa": "#!"},
        requires=["torch", 'einops; extra == "x"'],
        tag="py3-none-any",
        installer="pip",
        origin={"url": "https://user:word@host/fa.whl", "archive_info": {}},
        requested=True,
    )
    (one,) = env.read().distributions
    assert one == Distribution(
        name="flash-attn",
        version="2.8.3",
        site=str(env.site),
        info="Flash_Attn-2.8.3.dist-info",
        requires=("torch", 'einops; extra == "x"'),
        record=one.record,
        tags=("py3-none-any",),
        installer="pip",
        origin="https://host/fa.whl",
        origin_kind="archive",
        requested=True,
    )
    assert one.record is not None
    assert {f"{env.prefix}/bin/fa", "flash_attn/__init__.py"} < {entry.path for entry in one.record}


@pytest.mark.parametrize("creator", ["uv", "virtualenv", "venv"])
def test_who_made_it_makes_no_difference(tmp_path: Path, creator: str) -> None:
    env = EnvMaker(tmp_path).venv(python="3.12", patch="4", creator=creator)
    assert env.read().python == "3.12.4"


@pytest.mark.parametrize("below", ["", "bin", "bin/python", "bin/python3", "lib", "site", "up"])
def test_names_of_a_venv(made: MadeEnv, below: str) -> None:
    paths = {"site": made.site, "up": made.prefix.parent}
    if below == "lib":
        with pytest.raises(InputError, match=r"found no environment in `.*/lib`, wanted"):
            found(made.prefix / below)
        return
    installed = found(paths.get(below, made.prefix / below))
    assert installed.prefix == str(made.prefix)
    assert labels(installed) == ["filelock 3.1", "torch 2.7.0+cu128"]


def test_a_path_may_be_relative(made: MadeEnv) -> None:
    assert found(".venv", folder=made.prefix.parent).prefix == str(made.prefix)


def test_a_bare_name_is_looked_up_as_a_shell_does(made: MadeEnv) -> None:
    path = f"/gone:{made.prefix}/bin"
    assert found("python3", PATH=path).prefix == str(made.prefix)
    with pytest.raises(InputError, match="found nothing at"):
        found("python3.9", PATH=path)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("nothing", "found nothing at"),
        ("file.txt", "found a file at"),
        ("empty", "found no environment in"),
        ("python3", "has no `lib/pythonX.Y`"),
    ],
)
def test_what_is_no_environment(tmp_path: Path, path: str, message: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file.txt").touch()
    (tmp_path / "python3").touch()
    with pytest.raises(InputError, match=message) as caught:
        found(tmp_path / path)
    assert caught.value.hint


def test_pypy_is_refused(tmp_path: Path) -> None:
    env = EnvMaker(tmp_path).venv(config={"implementation": "PyPy"})
    with pytest.raises(InputError, match="is an environment of PyPy, wanted one of CPython"):
        env.read()


def test_pypy_by_its_folder(tmp_path: Path) -> None:
    (tmp_path / "pypy" / "lib" / "pypy3.10" / "site-packages").mkdir(parents=True)
    with pytest.raises(InputError, match="PyPy"):
        found(tmp_path / "pypy")


def test_free_threaded(tmp_path: Path) -> None:
    installed = EnvMaker(tmp_path).venv(python="3.13", patch="1", threads="t").read()
    assert (installed.python, installed.free_threaded) == ("3.13.1", True)
    assert installed.sites[0].endswith("/lib/python3.13t/site-packages")


def test_lib64_apart_from_lib(tmp_path: Path) -> None:
    env = EnvMaker(tmp_path).venv().install("filelock", "3.1")
    env.at(env.prefix / "lib64" / "python3.11" / "site-packages").torch()
    installed = env.read()
    assert [Path(site).parts[-3] for site in installed.sites] == ["lib", "lib64"]
    assert labels(installed) == ["filelock 3.1", "torch 2.7.0+cu128"]


def test_lib64_that_is_lib(made: MadeEnv) -> None:
    (made.prefix / "lib64").symlink_to("lib")
    assert made.read().sites == (str(made.site),)


def test_an_interpreter_that_is_gone(made: MadeEnv) -> None:
    (made.prefix.parent / "base" / "bin" / "python3.11").unlink()
    installed = found(made.prefix / "bin" / "python")
    assert len(installed.distributions) == 2
    (why,) = installed.skipped
    assert why == f"`{made.prefix}/bin/python` is a link to an interpreter that is gone"
    assert installed.lost_python == str(made.prefix.parent / "base" / "bin" / "python3.11")


def test_an_interpreter_in_a_loop_is_not_called_gone(made: MadeEnv) -> None:
    (made.prefix / "bin" / "python").unlink()
    (made.prefix / "bin" / "python").symlink_to("python")
    assert found(made.prefix / "bin" / "python").lost_python == ""


def test_an_interpreter_that_is_gone_from_an_image(tmp_path: Path) -> None:
    env = EnvMaker(tmp_path, image=True).venv()
    assert env.read().lost_python == ""
    (tmp_path / "base" / "bin" / "python3.11").unlink()
    assert env.read().lost_python == "/base/bin/python3.11"


def test_a_link_that_leads_nowhere_is_called_so(tmp_path: Path) -> None:
    (tmp_path / "dead").symlink_to("nowhere")
    with pytest.raises(InputError, match="found a link that leads nowhere at"):
        found(tmp_path / "dead")


def test_a_venv_of_another_python_than_it_says(tmp_path: Path) -> None:
    env = EnvMaker(tmp_path).venv(python="3.12", config={"version_info": "3.11.7"})
    (env.prefix / "bin" / "python").unlink()
    installed = env.read()
    assert installed.python == "3.12"
    assert any("says Python 3.11, found the folder of `python3.12`" in w for w in installed.skipped)


class TestNothingNamed:
    """The active environment, then the nearest, then conda's."""

    def test_active(self, made: MadeEnv) -> None:
        assert found(None, VIRTUAL_ENV=str(made.prefix)).prefix == str(made.prefix)

    def test_nearest(self, made: MadeEnv, tmp_path: Path) -> None:
        deep = tmp_path / "a" / "b"
        deep.mkdir(parents=True)
        assert found(None, folder=deep).prefix == str(made.prefix)

    def test_conda(self, tmp_path: Path) -> None:
        env = EnvMaker(tmp_path).conda("c")
        assert found(None, CONDA_PREFIX=str(env.prefix)).kind is EnvironmentKind.CONDA

    def test_none(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="found no environment: no active venv") as caught:
            found(None, folder=tmp_path / "x", VIRTUAL_ENV=str(tmp_path / "gone"))
        assert "--python" in str(caught.value.hint)

    def test_never_the_one_envbuild_runs_in(self, made: MadeEnv, tmp_path: Path) -> None:
        around = Surroundings(folder="/", own_prefix=str(made.prefix))
        environ = {"VIRTUAL_ENV": str(made.prefix)}
        with pytest.raises(InputError, match="found no environment"):
            read_environment(None, environ=environ, around=around)
        near = Surroundings(folder=str(tmp_path), own_prefix=str(made.prefix))
        assert read_environment(None, environ=environ, around=near).prefix == str(made.prefix)
        asked = read_environment(str(made.prefix), environ=environ, around=around)
        assert asked.prefix == str(made.prefix)


class TestConda:
    def test_packages_of_both_kinds(self, tmp_path: Path) -> None:
        env = EnvMaker(tmp_path).conda(python="3.10", patch="14")
        env.install("numpy", "1.26.4", installer="conda")
        env.conda_package("numpy", "1.26.4").conda_package("mkl", "2024.1.0", build="h1_693")
        installed = env.read()
        assert (installed.kind, installed.python) == (EnvironmentKind.CONDA, "3.10.14")
        assert labels(installed) == ["numpy 1.26.4", "mkl 2024.1.0", "python 3.10.14"]
        mkl = installed.find("mkl")
        assert mkl is not None
        assert (mkl.record, mkl.installer, mkl.site) == (None, "conda", f"{env.prefix}/conda-meta")

    def test_interpreter(self, tmp_path: Path) -> None:
        env = EnvMaker(tmp_path).conda()
        assert found(env.prefix / "bin" / "python").prefix == str(env.prefix)


class TestUserSite:
    def user(self, tmp_path: Path, env: MadeEnv) -> Path:
        site = tmp_path / "home" / ".local" / "lib" / "python3.11" / "site-packages"
        env.at(site).torch("2.6.0+cu124")
        return site

    def test_conda_imports_from_it_first(self, tmp_path: Path) -> None:
        env = EnvMaker(tmp_path).conda().torch()
        site = self.user(tmp_path, env)
        installed = env.read(environ={"HOME": str(tmp_path / "home")})
        assert installed.user_site == str(site)
        assert installed.sites == (str(site), str(env.site))
        torch = installed.find("torch")
        assert torch is not None
        assert (torch.version, torch.site) == ("2.6.0+cu124", str(site))
        assert installed.torch is not None
        assert installed.torch.version == "2.6.0+cu124"

    @pytest.mark.parametrize("variable", ["PYTHONNOUSERSITE", "HOME"])
    def test_switched_off_or_elsewhere(self, tmp_path: Path, variable: str) -> None:
        env = EnvMaker(tmp_path).conda()
        self.user(tmp_path, env)
        environ = {"HOME": str(tmp_path / "home"), variable: "/1"}
        assert env.read(environ=environ).user_site is None

    def test_another_base(self, tmp_path: Path) -> None:
        env = EnvMaker(tmp_path).conda()
        site = self.user(tmp_path, env)
        environ = {"PYTHONUSERBASE": str(tmp_path / "home" / ".local")}
        assert env.read(environ=environ).user_site == str(site)

    @pytest.mark.parametrize("system_site", [True, False])
    def test_a_venv_has_one_only_with_the_system(self, tmp_path: Path, system_site: bool) -> None:  # noqa: FBT001
        env = EnvMaker(tmp_path).venv(system_site=system_site)
        self.user(tmp_path, env)
        installed = env.read(environ={"HOME": str(tmp_path / "home")})
        assert (installed.user_site is not None) == system_site
        assert installed.sites[0] == str(env.site)


class TestPaths:
    def test_pythonpath_comes_first(self, made: MadeEnv, tmp_path: Path) -> None:
        (tmp_path / "leak" / "torch").mkdir(parents=True)
        (tmp_path / "leak" / "torch" / "version.py").write_text("__version__ = '1.0'")
        installed = made.read(environ={"PYTHONPATH": f"relative::{tmp_path}/leak:/gone"})
        assert installed.sites == (f"{tmp_path}/leak", str(made.site))
        assert installed.own_sites == (str(made.site),)
        assert installed.site_of("torch") == f"{tmp_path}/leak"
        assert installed.torch == TorchText(version="1.0", cuda=None)

    def test_pth(self, made: MadeEnv, tmp_path: Path) -> None:
        source = tmp_path / "src"
        made.at(source).egg_info("pointops", "1.0", requires_txt="torch\n")
        made.pth("b", str(source), "../../..", "/gone", str(source))
        made.pth("a", "import os; os.abort()")
        installed = made.read()
        assert installed.sites == (str(made.site), str(source), str(made.prefix))
        assert installed.startup == ((f"{made.site}/a.pth", "import os; os.abort()"),)
        pointops = installed.find("pointops")
        assert pointops is not None
        assert (pointops.site, pointops.requires) == (str(source), ("torch",))
        assert pointops.record is None

    def test_site_folder_alone(self, tmp_path: Path) -> None:
        env = MadeEnv(prefix=tmp_path / "target", site=tmp_path / "target").torch()
        installed = env.read()
        assert labels(installed) == ["torch 2.7.0+cu128"]
        assert (installed.executable, installed.python) == ("", "")

    @pytest.mark.parametrize(
        ("site", "prefix"),
        [
            ("/v/lib/python3.11/site-packages", "/v"),
            ("/v/lib64/python3.13t/site-packages", "/v"),
            ("/usr/lib/python3/dist-packages", "/usr"),
            ("/lib/python3/dist-packages", "/"),
            ("/home/src", "/home/src"),
        ],
    )
    def test_prefix_of_a_site(self, site: str, prefix: str) -> None:
        assert site_prefix(site) == prefix


class TestEggs:
    def test_kinds(self, tmp_path: Path) -> None:
        env = EnvMaker(tmp_path).venv()
        env.egg_info("old", "1.0", as_file=True)
        env.egg_info("listed", "2.0", installed_files=["../listed.py"], files={"listed.py": "x"})
        env.write("pointops-1.0-py3.11-linux-x86_64.egg/EGG-INFO/PKG-INFO", "Name: pointops\n")
        env.write("zipped-3.0-py3.11.egg", b"PK")
        installed = env.read()
        assert labels(installed) == ["listed 2.0", "old 1.0", "pointops 1.0", "zipped 3.0"]
        listed = installed.find("listed")
        assert listed is not None
        assert listed.record is not None
        assert [entry.path for entry in listed.record] == ["listed.py"]


class TestDefects:
    def test_two_versions_of_one_name(self, made: MadeEnv) -> None:
        made.install("torch", "2.10.0", files={}).install("torch", "2.9.1", files={})
        versions = [label for label in labels(made.read()) if label.startswith("torch")]
        assert versions == ["torch 2.10.0", "torch 2.9.1", "torch 2.7.0+cu128"]

    def test_what_an_interrupted_pip_leaves(self, made: MadeEnv) -> None:
        made.write("~orch-2.6.0.dist-info/METADATA", "Name: torch\nVersion: 2.6.0\n")
        installed = made.read()
        assert "torch 2.6.0" not in labels(installed)
        assert any("~orch-2.6.0.dist-info" in why for why in installed.skipped)

    def test_an_empty_folder(self, made: MadeEnv) -> None:
        (made.site / "numpy-2.0.dist-info").mkdir()
        installed = made.read()
        assert installed.find("numpy") is None
        assert len(installed.skipped) == 1

    def test_no_metadata_and_no_record(self, made: MadeEnv) -> None:
        made.install("numpy", "2.0", record=False).remove("numpy-2.0.dist-info/METADATA")
        numpy = made.read().find("numpy")
        assert numpy is not None
        assert (numpy.version, numpy.record) == ("2.0", None)

    @pytest.mark.parametrize("name", ["METADATA", "RECORD", "WHEEL", "INSTALLER"])
    def test_a_pipe_in_the_place_of_a_file(self, made: MadeEnv, name: str) -> None:
        path = made.site / "filelock-3.1.dist-info" / name
        path.unlink()
        os.mkfifo(path)
        installed = made.read()
        assert installed.find("filelock") is not None
        assert [why for why in installed.skipped if name in why]

    @pytest.mark.parametrize("name", ["METADATA", "RECORD", "WHEEL"])
    def test_a_folder_in_the_place_of_a_file(self, made: MadeEnv, name: str) -> None:
        path = made.site / "filelock-3.1.dist-info" / name
        path.unlink()
        path.mkdir()
        assert [why for why in made.read().skipped if name in why]

    def test_a_link_to_itself(self, made: MadeEnv) -> None:
        made.link("filelock-3.1.dist-info/RECORD", "RECORD")
        filelock = made.read().find("filelock")
        assert filelock is not None
        assert filelock.record is None

    @pytest.mark.skipif(os.geteuid() == 0, reason="root reads every folder")
    def test_a_folder_that_may_not_be_read(self, made: MadeEnv) -> None:
        path = made.site / "filelock-3.1.dist-info"
        path.chmod(0)
        try:
            assert made.read().skipped
        finally:
            path.chmod(stat.S_IRWXU)

    @pytest.mark.skipif(os.geteuid() == 0, reason="root reads every folder")
    @pytest.mark.parametrize("path", [".", "lib"])
    def test_an_environment_that_may_not_be_read(self, made: MadeEnv, path: str) -> None:
        closed = made.prefix / path
        closed.chmod(0)
        try:
            with pytest.raises(InputError, match="may not be read"):
                found(made.prefix)
        finally:
            closed.chmod(stat.S_IRWXU)

    def test_torch_that_names_no_version(self, made: MadeEnv) -> None:
        made.write("torch/version.py", "import os\n")
        installed = made.read()
        assert installed.torch is None
        assert "assigns no text to `__version__`" in installed.skipped[0]

    def test_headers_without_end(self, made: MadeEnv) -> None:
        made.write("big-1.0.dist-info/METADATA", b"Requires-Dist: a\n" * 100_000)
        installed = made.read()
        assert installed.find("big") is not None
        assert "has headers of more than 1,048,576 bytes" in installed.skipped[0]

    def test_a_large_description_is_not_in_the_way(self, made: MadeEnv) -> None:
        head = b"Name: big\nVersion: 1.5\nRequires-Dist: x\n\n"
        made.write("big-1.0.dist-info/METADATA", head + b"a\n" * 4_000_000)
        big = made.read().find("big")
        assert big is not None
        assert (big.version, big.requires) == ("1.5", ("x",))

    def test_a_record_that_names_the_password_file(self, made: MadeEnv) -> None:
        made.install("evil", "1.0", files={}, record="../../../../../../etc/passwd,,\nevil.py,,\n")
        installed = made.read()
        evil = installed.find("evil")
        assert evil is not None
        assert [entry.path for entry in evil.record or ()] == ["evil.py"]
        assert "/etc/passwd`: leaves" in installed.skipped[0]

    def test_skipped_files_do_not_fill_the_report(self, tmp_path: Path) -> None:
        env = EnvMaker(tmp_path).venv()
        for number in range(250):
            (env.site / f"a{number}-1.dist-info").mkdir()
        skipped = env.read().skipped
        assert len(skipped) == 201
        assert skipped[-1] == "50 more files were skipped"


FILES = ("METADATA", "RECORD", "WHEEL", "INSTALLER", "direct_url.json")


@given(st.dictionaries(st.sampled_from(FILES), st.binary(max_size=200)), st.binary(max_size=200))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_in_any_file(made: MadeEnv, files: dict[str, bytes], other: bytes) -> None:
    for name, content in files.items():
        made.write(f"filelock-3.1.dist-info/{name}", content)
    made.write("torch/version.py", other).write("any.pth", other)
    made.write("egg-1.0.egg-info", other)
    (made.prefix / "pyvenv.cfg").write_bytes(other)
    installed = made.read()
    assert {"torch", "egg"} <= {one.name for one in installed.distributions}
    read_ownership(installed)


def many(tmp_path: Path, *, count: int) -> MadeEnv:
    env = EnvMaker(tmp_path).venv()
    for number in range(count):
        files = {f"p{number}/m{module}.py": f"{module}" for module in range(5)}
        env.install(f"p{number}", "1.0", files=files, requires=["a>=1", "b"] * 5)
    return env


def test_a_hundred_distributions(tmp_path: Path) -> None:
    env = many(tmp_path, count=100)
    assert len(env.read().distributions) == 100
    assert env.ownership().missing == ()


@pytest.mark.slow
def test_a_thousand_distributions_take_less_than_three_seconds(tmp_path: Path) -> None:
    env = many(tmp_path, count=1000)
    begin = time.perf_counter()
    assert len(env.read().distributions) == 1000
    env.ownership()
    assert time.perf_counter() - begin < 3


@pytest.mark.slow
def test_a_million_entries(tmp_path: Path) -> None:
    env = EnvMaker(tmp_path).venv()
    line = "evil/file{}.py,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0\n"
    env.install("evil", "1.0", files={}, record="".join(map(line.format, range(1_000_000))))
    evil = env.read().find("evil")
    assert evil is not None
    assert len(evil.record or ()) == 1_000_000
