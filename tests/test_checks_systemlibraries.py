"""EB309: what is said of a library that the system lacks, and how each system is told."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from checkvalues import at, dist, env, found, library, one, owned

from envbuild.checks.registry import all_rules
from envbuild.checks.systemlibraries import lacking_system
from envbuild.checks.systempackages import bringing
from envbuild.checks.tables import table
from envbuild.core.cause import sort_findings
from envbuild.model.finding import Severity
from envbuild.model.fix import Manual
from envbuild.model.host import Host
from envbuild.model.links import Links, StoppedModule

if TYPE_CHECKING:
    from envbuild.model.finding import Finding
    from envbuild.model.installed import Distribution

DEBIAN = Host(system=("debian",), system_version="12")
PARTS = ("gui", "view", "draw")
OPEN3D = dist("open3d 0.19.0", *(f"open3d/{name}.so" for name in (*PARTS, "pybind", "libOpen3D")))


def stopped(*missing: str, **changes: object) -> StoppedModule:
    base = StoppedModule(
        path=at("open3d/pybind.so"),
        missing=tuple(library("open3d/libOpen3D.so", one, optional=True) for one in missing),
        stops=("open3d",),
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def finding_of(*modules: StoppedModule, host: Host = DEBIAN, of: Distribution = OPEN3D) -> Finding:
    return one(lacking_system, env(of), owned(of), Links(stopped=modules), host)


def test_an_import_that_fails_is_an_error_with_the_command_that_mends_it() -> None:
    finding = finding_of(stopped("libusb-1.0.so.0"))
    assert finding.severity is Severity.ERROR
    assert finding.message == (
        "open3d 0.19.0 cannot be imported (`import open3d`): the system lacks `libusb-1.0.so.0`"
    )
    assert finding.evidence == (f"needed by {at('open3d/libOpen3D.so')}",)
    assert finding.fixes == (Manual(text="apt-get install -y libusb-1.0-0", is_command=True),)
    assert finding.brings == ("import:open3d",)
    assert sort_findings([finding]).problems[0].cause is finding


def test_nothing_is_said_of_a_system_that_has_everything() -> None:
    assert found(lacking_system, env(OPEN3D), owned(OPEN3D), Links(), DEBIAN) == []


def test_a_condition_makes_it_a_warning_and_a_part_a_note() -> None:
    warning = finding_of(stopped("libgomp.so.1", stops=(), may_stop=("open3d",)))
    assert warning.severity is Severity.WARNING
    assert "open3d 0.19.0 most likely cannot be imported" in warning.message
    note = finding_of(stopped("libmpi.so.40", stops=(), part="open3d.MPI"))
    assert (note.severity, note.brings) == (Severity.NOTE, ())
    assert note.message == "open3d 0.19.0 is without `open3d.MPI`: the system lacks `libmpi.so.40`"
    assert sort_findings([note]).problems == ()


def test_the_worst_alone_is_told_of_a_package() -> None:
    part = stopped("libX11.so.6", path=at("open3d/gui.so"), stops=(), part="open3d.gui")
    finding = finding_of(part, stopped("libusb-1.0.so.0"))
    assert "libX11" not in str(finding)


def test_several_libraries_are_counted_and_listed() -> None:
    finding = finding_of(stopped("libusb-1.0.so.0", "libGL.so.1", "libX11.so.6"))
    assert finding.message.endswith("the system lacks `libGL.so.1` and 2 more libraries")
    assert finding.evidence[0] == "missing: libGL.so.1, libX11.so.6, libusb-1.0.so.0"
    assert finding.fixes == (
        Manual(text="apt-get install -y libgl1 libusb-1.0-0 libx11-6", is_command=True),
    )


def test_several_parts_are_counted() -> None:
    parts = [
        stopped("libGL.so.1", path=at(f"open3d/{name}.so"), stops=(), part=f"open3d.{name}")
        for name in PARTS
    ]
    assert "is without `open3d.gui` and 2 more modules" in finding_of(*parts).message


def test_another_build_of_opencv_is_named() -> None:
    cv = dist("opencv-python 4.12.0", "open3d/pybind.so")
    finding = finding_of(stopped("libGL.so.1", stops=("cv2",)), of=cv)
    assert finding.hint == "`opencv-python-headless` does without any of them"
    assert finding_of(stopped("libGL.so.1")).hint is None


def texts(*libraries: str, system: tuple[str, ...], version: str = "") -> tuple[str, ...]:
    fixes = bringing(libraries, Host(system=system, system_version=version))
    return tuple(f"{'$ ' if fix.is_command else ''}{fix.text}" for fix in fixes)


def test_each_system_is_told_in_its_own_way() -> None:
    sound = "libasound.so.2"
    assert texts(sound, system=("debian",), version="12") == ("$ apt-get install -y libasound2",)
    newer = ("$ apt-get install -y libasound2t64",)
    assert texts(sound, system=("debian",), version="13") == newer
    assert texts(sound, system=("debian",)) == newer
    assert texts(sound, system=("ubuntu", "debian"), version="24.04") == newer
    older = texts(sound, system=("ubuntu", "debian"), version="22.04")
    assert older == ("$ apt-get install -y libasound2",)
    rpm = "'libGL.so.1()(64bit)' 'libasound.so.2()(64bit)'"
    assert texts(sound, "libGL.so.1", system=("fedora",)) == (f"$ dnf install -y {rpm}",)
    rocky = ("rocky", "rhel", "centos", "fedora")
    assert texts(sound, "libGL.so.1", system=rocky) == (f"$ dnf install -y {rpm}",)
    suse = ("opensuse-leap", "suse", "opensuse")
    assert texts(sound, "libGL.so.1", system=suse) == (f"$ zypper install -y {rpm}",)


def test_what_is_not_known_is_said() -> None:
    assert texts("libodd.so.1", "libGL.so.1", system=("debian",)) == (
        "$ apt-get install -y libgl1",
        "install what brings `libodd.so.1`",
    )
    assert texts("libGL.so.1", system=()) == (
        "install what brings `libGL.so.1` (on Debian libgl1)",
    )


def test_the_table_names_packages() -> None:
    every = table("systemlibs")
    assert set(every) == {"date", "source", "apt", "apt-t64", "without"}
    assert len(every["apt"]) > 150
    for section in ("apt", "apt-t64"):
        for library_, package in every[section].items():
            assert library_.startswith("lib")
            assert ".so" in library_
            assert package == package.lower()
            assert " " not in package
    assert "EB309" in [rule.code for rule in all_rules()]
