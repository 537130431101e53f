"""The wheels of each index, from the fact files."""

from __future__ import annotations

import re
from itertools import product
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from catalog_text import clean, origin, read_facts
from catalog_wheels import Wheel, is_wanted
from packaging.requirements import Requirement

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# One path and the same bytes on each of these; links became absolute and moved in 2026.
_HOSTS = re.compile(
    r"https://(?:download(?:-r2)?\.pytorch\.org|d21usjoq99fcb9\.cloudfront\.net)/whl/"
)
PYPI = "(PyPI)"
FLASH_ATTN = "https://github.com/Dao-AILab/flash-attention/releases/download/v"
PROJECTS = frozenset(
    {
        "flash-attn-3",
        "pytorch-triton",
        "torch",
        "torchao",
        "torchaudio",
        "torchcodec",
        "torchtext",
        "torchvision",
        "triton",
        "xformers",
    }
)
_FOLDER = re.compile(r"(?:(cpu|cu\d+)/)?[^/]+")
_FULL_CUDA_UNTIL = (2, 6, 3)


def requirements(lines: list[str] | None) -> tuple[str, ...] | None:
    """Return requirements in one spelling, for equal ones to be stored once."""
    return None if lines is None else tuple(str(Requirement(line)) for line in lines)


def pytorch_wheels(facts: Path) -> Iterator[Wheel]:
    """Yield the wheels of PyTorch's index and of the same projects on PyPI.

    The folder is taken from the address: the page of a CUDA version also lists what lies at
    the root, and locks made on the root's page name files of every folder.
    """
    for row in read_facts(facts, "indexes.json")["wheels"]:
        if row["project"] not in PROJECTS or not is_wanted(row["filename"]):
            continue
        place = _place(row)
        if place is not None:
            yield _index_wheel(row, *place)


def _place(row: dict[str, Any]) -> tuple[str, str] | None:
    """Return the kind and key of the page that a wheel lies on; None for what is left out."""
    if row["url"] == PYPI:
        return ("pypi", row["project"]) if row["index"] == "pypi" else None
    host = _HOSTS.match(row["url"])
    match = _FOLDER.fullmatch(row["url"], host.end()) if host else None
    if match is None or not unquote(row["url"]).endswith("/" + row["filename"]):
        return None
    return "pytorch", match[1] or "root"


def _index_wheel(row: dict[str, Any], kind: str, key: str) -> Wheel:
    conflict = "; several hashes seen" if "sha256_conflict" in row else ""
    text = origin(
        observed=not row.get("inferred"),
        kinds=row["kinds"],
        names=row["source"],
        requires=row["requires_dist_origin"] or "",
    )
    return Wheel(
        kind=kind,
        key=key,
        filename=row["filename"],
        origin=text + conflict,
        sha256=None if conflict else row["sha256"],
        size=row["size"],
        requires=requirements(row["requires_dist"]),
        python=row["requires_python"],
        metadata=row.get("metadata_sha256"),
        from_page="index-page-copy" in row["kinds"],
    )


def pyg_wheels(facts: Path) -> tuple[list[Wheel], dict[str, str]]:
    """Return the wheels of PyG's pages, and each alias page with the page it repeats."""
    data = read_facts(facts, "pyg.json")
    needs = {"torch-sparse": ("scipy",), "torch-cluster": ("scipy",)}
    wheels, aliases = [], {}
    for page in data["pages"]:
        key = f"{page['torch']}+{page['accelerator']}"
        aliases |= {
            url.rpartition("/torch-")[2].removesuffix(".html"): key for url in page["aliases"]
        }
        wheels += [
            _pyg_wheel(row, key, needs) for row in page["wheels"] if is_wanted(row["filename"])
        ]
    return wheels, aliases


def _pyg_wheel(row: dict[str, Any], key: str, needs: dict[str, tuple[str, ...]]) -> Wheel:
    return Wheel(
        kind="pyg",
        key=key,
        filename=row["filename"],
        origin=origin(
            observed=row["observed"],
            kinds=(),
            names=row["source"],
            requires="as in the project's setup.py",
        ),
        sha256=row["sha256"],
        requires=needs.get(row["project"], ()),
    )


def flash_attn_wheels(facts: Path) -> Iterator[Wheel]:
    """Yield the release wheels of flash-attn: seen ones, and what the build matrices say.

    Some locks spell a name in lower case (`cxx11abifalse`); it is the same file.
    """
    data = read_facts(facts, "others.json")["flash_attn"]
    needs = tuple(data["runtime_requires"])
    names = {filename.lower(): filename for filename in sorted(_matrix_names(data))}
    for row in data["official_seen"]:
        if row["url"].startswith(FLASH_ATTN) and is_wanted(row["filename"]):
            yield Wheel(
                kind="flash-attn",
                key=row["url"].removeprefix(FLASH_ATTN).partition("/")[0],
                filename=names.get(row["filename"].lower(), row["filename"]),
                origin=_flash_origin(row["source"], observed=True),
                sha256=row["sha256"],
                requires=needs,
                from_page=True,
            )
    origin_of_names = _flash_origin([data["source"]], observed=False)
    for filename in names.values():
        yield Wheel(
            kind="flash-attn",
            key=filename.split("-")[1].partition("+")[0],
            filename=filename,
            origin=origin_of_names,
            requires=needs,
        )


def _flash_origin(names: list[str], *, observed: bool) -> str:
    return origin(observed=observed, kinds=(), names=names, requires="its setup.py")


def _matrix_names(data: dict[str, Any]) -> set[str]:
    """Return the file names that follow from the build matrices, for torch 2.0 and newer."""
    names = set(data["generated_filenames"]["names"])
    for tag, matrix in data["matrix_by_tag"].items():
        if matrix["cxx11abi"]:
            names |= set(_tag_names(tag.removeprefix("v"), matrix))
    return {name for name in names if "torch1." not in name}


def _tag_names(version: str, matrix: dict[str, Any]) -> Iterator[str]:
    columns = (matrix["python"], matrix["torch"], matrix["cuda"], matrix["cxx11abi"])
    for python, torch, cuda, abi in product(*columns):
        cell = {"python-version": python, "torch-version": torch, "cuda-version": cuda}
        if any(rule.items() <= cell.items() for rule in matrix["exclude"]):
            continue
        tag = "cp" + python.replace(".", "")
        minor = ".".join(torch.split(".")[:2])
        local = f"cu{_cuda_tag(version, cuda)}torch{minor}cxx11abi{abi}"
        yield f"flash_attn-{version}+{local}-{tag}-{tag}-linux_x86_64.whl"


def _cuda_tag(version: str, cuda: str) -> str:
    """Return how the name of a release tells CUDA: ``118`` up to 2.6.3, ``12`` after."""
    release = tuple(int(part) for part in version.split(".")[:3])
    parts = cuda.split(".")
    return "".join(parts[:2]) if release <= _FULL_CUDA_UNTIL else parts[0]


def spconv_wheels(facts: Path) -> Iterator[Wheel]:
    """Yield the wheels of spconv and cumm on PyPI."""
    data = read_facts(facts, "others.json")["spconv_cumm"]
    for row in data["wheels"]:
        if is_wanted(row["filename"]):
            yield Wheel(
                kind="pypi",
                key=row["project"],
                filename=row["filename"],
                origin=f"observed: {clean(data['source'])}",
                sha256=row["sha256"],
                size=row["size"],
                requires=requirements(data["requires"].get(f"{row['project']} {row['version']}")),
                from_page=True,
            )
