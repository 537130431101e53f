"""Whether an ELF file is all there, as far as its own head tells."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envbuild.core.elf.header import parse_header, read_sections
from envbuild.core.elf.pieces import ElfError, Window

if TYPE_CHECKING:
    from envbuild.core.elf.pieces import Bytes


def is_whole(data: Bytes) -> bool:
    """Return whether all that the head names lies in the file: segments, and its sections.

    The table of sections commonly stands last, so that hardly any cut leaves it. A file without
    one, or for another machine, is not known to be whole.
    """
    window = Window(data)
    try:
        header = parse_header(data, window)
        sections = read_sections(window, header)
    except ElfError:
        return False
    ends = (one.offset + one.size for one in sections if one.in_file)
    return max(ends, default=window.size + 1) <= window.size
