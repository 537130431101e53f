"""Read what the NVIDIA driver says of itself and of the GPUs: procfs, file names, nvidia-smi."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass

from packaging.version import Version

_VERSION = r"\d{3}\.\d{1,3}(?:\.\d{1,3})?"
_MODULE = re.compile(rf"Kernel Module(?: for \S+)?\s+({_VERSION})\b")
_LIBRARY = re.compile(rf"lib(?:cuda|nvidia-ml)\.so\.({_VERSION})")
_PLAIN = re.compile(_VERSION)
_MODEL = re.compile(r"^Model:[ \t]*(\S[^\n]*?)[ \t]*$", re.MULTILINE)
_SMI_DRIVER = re.compile(rf"Driver Version\s*:\s*({_VERSION})", re.IGNORECASE)
_SMI_LISTED = re.compile(r"^GPU \d+: (.+?)(?: \(UUID: [^)]*\))?\s*$", re.MULTILINE)
_SMI_QUERIED = re.compile(r"^\s*Product Name\s*:\s*(\S.*?)\s*$", re.MULTILINE)
_SMI_ROW = re.compile(r"^\|\s+\d+\s{2,}(\S.*?)\s{2,}(?:On|Off|N/A)\s+\|\s+[\dA-F]+:", re.MULTILINE)
_TEGRA = re.compile(r"R(\d+)\s*\(release\),\s*REVISION:\s*([\d.]+)")
_MOST_GPUS = 64


@dataclass(frozen=True, kw_only=True, slots=True)
class SmiText:
    """The driver's version, None where the text has none, and the GPUs' names."""

    driver: str | None = None
    gpus: tuple[str, ...] = ()


def parse_module_version(text: str) -> str | None:
    """Read ``/proc/driver/nvidia/version`` or ``/sys/module/nvidia/version``."""
    found = _MODULE.search(text)
    if found is not None:
        return found[1]
    plain = text.strip()
    return plain if _PLAIN.fullmatch(plain) else None


def library_version(name: str) -> str | None:
    """Return the driver version in a file name, ``libcuda.so.570.86.10`` say."""
    found = _LIBRARY.fullmatch(name)
    return found[1] if found else None


def newest_driver(versions: tuple[str, ...]) -> str | None:
    """Return the newest of some driver versions."""
    return max(versions, key=Version, default=None)


def parse_gpu_information(text: str) -> str | None:
    """Return the model in ``/proc/driver/nvidia/gpus/*/information``."""
    found = _MODEL.search(text)
    return found[1] if found and found[1].lower() != "unknown" else None


def parse_nvidia_smi(text: str) -> SmiText:
    """Read the output of ``nvidia-smi``, of its ``-L``, ``-q`` or ``--format=csv``."""
    driver = _SMI_DRIVER.search(text)
    for pattern in (_SMI_LISTED, _SMI_QUERIED, _SMI_ROW):
        names = pattern.findall(text)
        if names:
            return SmiText(driver=driver[1] if driver else None, gpus=tuple(names[:_MOST_GPUS]))
    return SmiText(driver=driver[1]) if driver else _smi_csv(text)


def _smi_csv(text: str) -> SmiText:
    """Read ``name`` and ``driver_version`` by the header, in whatever order they were asked."""
    try:
        rows = [[cell.strip() for cell in row] for row in csv.reader(text.splitlines())]
    except csv.Error:
        return SmiText()
    header = rows[0] if rows else []
    names = _column(rows, "name") or _column(rows, "gpu_name")
    drivers = [one for one in _column(rows, "driver_version") if _PLAIN.fullmatch(one)]
    if not {"name", "gpu_name", "driver_version"} & set(header):
        return SmiText()
    return SmiText(driver=drivers[0] if drivers else None, gpus=names[:_MOST_GPUS])


def _column(rows: list[list[str]], name: str) -> tuple[str, ...]:
    if not rows or name not in rows[0]:
        return ()
    place = rows[0].index(name)
    return tuple(row[place] for row in rows[1:] if len(row) > place and row[place])


def parse_tegra_release(text: str) -> str | None:
    """Return the Jetson Linux release (``36.4.3``) of ``/etc/nv_tegra_release``."""
    found = _TEGRA.search(text)
    return f"{found[1]}.{found[2]}" if found else None
