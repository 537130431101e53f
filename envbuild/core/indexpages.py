"""Addresses and names of the index pages that hold coupled wheels.

The layouts are those of PyTorch's wheel index, PyG's find-links pages and the release pages
of flash-attn; a mirror keeps the layout below its own base address.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from envbuild.model.wheel import IndexPage, PageKind

if TYPE_CHECKING:
    from envbuild.model.project import IndexUrls

PYPI = IndexPage(kind=PageKind.PYPI, key="", name="pypi", url="https://pypi.org/simple")


def pytorch_page(indexes: IndexUrls, accelerator: str) -> IndexPage | None:
    """Return PyTorch's index of one accelerator (``cu128``, ``cpu``); None if it is disabled."""
    if indexes.pytorch is None:
        return None
    return IndexPage(
        kind=PageKind.PYTORCH,
        key=accelerator,
        name=f"pytorch-{accelerator}",
        url=f"{indexes.pytorch.rstrip('/')}/{accelerator}",
    )


def pyg_page(indexes: IndexUrls, torch: str, accelerator: str) -> IndexPage:
    """Return PyG's page for a torch release and an accelerator.

    PyG builds once for each torch minor, so ``2.7.1`` leads to the page of ``2.7.0``.
    """
    major, minor = torch.split(".")[:2]
    key = f"{major}.{minor}.0+{accelerator}"
    return IndexPage(
        kind=PageKind.PYG,
        key=key,
        name=f"pyg-torch{major}{minor}-{accelerator}",
        url=f"{indexes.pyg.rstrip('/')}/torch-{key.replace('+', '%2B')}.html",
        flat=True,
    )


def flash_attn_page(indexes: IndexUrls, version: str) -> IndexPage:
    """Return the page that lists the wheels of one flash-attn release."""
    return IndexPage(
        kind=PageKind.FLASH_ATTN,
        key=version,
        name=f"flash-attn-{version.replace('.', '-')}",
        url=f"{indexes.flash_attn.rstrip('/')}/expanded_assets/v{version}",
        flat=True,
    )


def pypi_page(indexes: IndexUrls) -> IndexPage:
    """Return the default index: PyPI, or the user's mirror of it."""
    if indexes.pypi is None:
        return PYPI
    return IndexPage(kind=PageKind.PYPI, key="", name="pypi", url=indexes.pypi)
