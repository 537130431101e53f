"""Live where the host is reached, the catalog where it is not, and the line that says so."""

from __future__ import annotations

import pytest

from envbuild.errors import WorldError
from envbuild.model.lock import Artifact
from envbuild.model.wheel import IndexPage, PageKind, WheelFile
from envbuild.world.autosource import AutoSource

TORCH = IndexPage(
    kind=PageKind.PYTORCH, key="cu128", name="t", url="https://u:p@download.pytorch.org/whl/cu128"
)
PYG = IndexPage(
    kind=PageKind.PYG, key="k", name="p", url="https://data.pyg.org/whl/x.html", flat=True
)


def wheel(page: IndexPage, *, url: str | None = None, origin: str = "") -> WheelFile:
    address = url or page.url.replace("u:p@", "")
    return WheelFile(
        project="a",
        version="1",
        filename="a-1-py3-none-any.whl",
        url=address,
        page=page,
        origin=origin,
    )


class Fake:
    """A source that knows one answer of each kind."""

    def __init__(self, name: str, *, knows: bool = True, error: str = "") -> None:
        self.name = name
        self.knows = knows
        self.error = error
        self.asked: list[str] = []

    def wheels(self, page: IndexPage, project: str) -> tuple[WheelFile, ...]:
        self.asked.append(f"wheels {project}")
        if self.error:
            raise WorldError(self.error)
        return (wheel(page, origin=self.name),)

    def requires_dist(self, wheel: WheelFile) -> tuple[str, ...] | None:
        self.asked.append(f"requires {wheel.project}")
        return (self.name,) if self.knows else None

    def sha256(self, wheel: WheelFile) -> str | None:
        self.asked.append(f"sha256 {wheel.project}")
        return self.name if self.knows else None

    def sdist(self, page: IndexPage, project: str, version: str) -> Artifact | None:
        self.asked.append(f"sdist {project}")
        return Artifact(filename=f"{project}-{version}.zip", url=page.url, sha256=self.name)


class Probe:
    def __init__(self, *reached: str) -> None:
        self.reached = reached
        self.asked: list[str] = []

    def __call__(self, url: str) -> bool:
        self.asked.append(url)
        return any(host in url for host in self.reached)


def auto(live: Fake, catalog: Fake, probe: Probe) -> AutoSource:
    return AutoSource(live, catalog, reaches=probe, catalog_date="2026-11-29")


def test_each_host_by_itself() -> None:
    probe = Probe("data.pyg.org")
    source = auto(Fake("live"), Fake("catalog"), probe)
    for _ in range(2):
        assert [w.origin for w in source.wheels(TORCH, "a")] == ["catalog"]
        assert [w.origin for w in source.wheels(PYG, "a")] == ["live"]
    assert len(probe.asked) == 2
    assert source.said == (
        "index pages: catalog of 2026-11-29 (download.pytorch.org not reached), live: data.pyg.org"
    )


@pytest.mark.parametrize(
    ("reached", "said"),
    [
        (["pytorch", "pyg"], "index pages: live: data.pyg.org, download.pytorch.org"),
        (
            [],
            "index pages: catalog of 2026-11-29 (data.pyg.org, download.pytorch.org not reached)",
        ),
    ],
)
def test_said(reached: list[str], said: str) -> None:
    source = auto(Fake("live"), Fake("catalog"), Probe(*reached))
    assert source.said == "index pages: none were asked for"
    source.wheels(TORCH, "a")
    source.wheels(PYG, "a")
    source.sha256(wheel(PYG, url="https://elsewhere.org/a.whl"))
    assert source.said == said


def test_an_error_of_a_reached_host_is_seen() -> None:
    catalog = Fake("catalog")
    source = auto(Fake("live", error="answered 403"), catalog, Probe("pytorch"))
    with pytest.raises(WorldError, match="answered 403"):
        source.wheels(TORCH, "a")
    assert catalog.asked == []


@pytest.mark.parametrize(
    ("live_knows", "reached", "answer", "live_asked"),
    [
        (True, ["r2.org"], "live", 1),
        (False, ["r2.org"], "catalog", 1),
        (True, [], "catalog", 0),
    ],
)
def test_wheels_are_asked_of_their_own_host(
    *, live_knows: bool, reached: list[str], answer: str, live_asked: int
) -> None:
    live = Fake("live", knows=live_knows)
    source = auto(live, Fake("catalog"), Probe(*reached))
    file = wheel(TORCH, url="https://r2.org/a.whl")
    assert source.requires_dist(file) == (answer,)
    assert source.sha256(file) == answer
    assert len(live.asked) == 2 * live_asked


@pytest.mark.parametrize(("reached", "who"), [(["pypi.org"], "live"), ([], "catalog")])
def test_an_sdist_is_asked_of_the_index_where_it_is_reached(reached: list[str], who: str) -> None:
    page = IndexPage(kind=PageKind.PYPI, key="", name="pypi", url="https://pypi.org/simple")
    source = auto(Fake("live"), Fake("catalog"), Probe(*reached))
    found = source.sdist(page, "a", "1")
    assert found is not None
    assert found.sha256 == who


def test_what_is_known_is_not_asked_for() -> None:
    probe = Probe()
    source = auto(Fake("live"), Fake("catalog"), probe)
    known = WheelFile(
        project="a", version="1", filename="a", url="u", page=PYG, sha256="s", requires_dist=()
    )
    assert (source.requires_dist(known), source.sha256(known)) == ((), "s")
    assert probe.asked == []


def test_nobody_knows() -> None:
    source = auto(Fake("live", knows=False), Fake("catalog", knows=False), Probe("pyg"))
    assert source.requires_dist(wheel(PYG)) is None
    assert source.sha256(wheel(PYG)) is None


def test_what_the_catalog_knows_of_the_default_index_is_not_asked_for() -> None:
    page = IndexPage(kind=PageKind.PYPI, key="", name="pypi", url="https://pypi.org/simple")
    live, catalog, probe = Fake("live"), Fake("catalog"), Probe("pypi.org")
    source = AutoSource(live, catalog, reaches=probe, catalog_date="2026-11-29")
    assert [wheel.origin for wheel in source.wheels(page, "spconv-cu126")] == ["catalog"]
    assert live.asked == []
    assert probe.asked == []


def test_a_mirror_of_the_default_index_is_asked() -> None:
    page = IndexPage(kind=PageKind.PYPI, key="", name="pypi", url="https://mirror.org/simple")
    live = Fake("live")
    source = AutoSource(
        live, Fake("catalog"), reaches=Probe("mirror.org"), catalog_date="2026-11-29"
    )
    assert [wheel.origin for wheel in source.wheels(page, "torch")] == ["live"]


class Empty(Fake):
    """A catalog that has not heard of the project."""

    def wheels(self, page: IndexPage, project: str) -> tuple[WheelFile, ...]:
        super().wheels(page, project)
        return ()


def test_what_the_catalog_does_not_know_of_the_default_index_is_asked_for() -> None:
    page = IndexPage(kind=PageKind.PYPI, key="", name="pypi", url="https://pypi.org/simple")
    live = Fake("live")
    source = AutoSource(
        live, Empty("catalog"), reaches=Probe("pypi.org"), catalog_date="2026-11-29"
    )
    assert [wheel.origin for wheel in source.wheels(page, "new-project")] == ["live"]
