"""Bounded reads of a binary file: small pieces by offset, and one error for all that is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import struct

TABLE_LIMIT = 256 << 20  # the names of libtensorflow_cc.so.2 take 87 MB
_PAGE_BITS = 14
_PAGE = 1 << _PAGE_BITS


class ElfError(ValueError):
    """The bytes are no ELF file that can be read, and why."""


class UnreadElfError(ElfError):
    """The file may well be in order: it holds more than is read here."""


class ForeignElfError(ElfError):
    """The file is for another machine: a loader passes over it, whatever else is in it."""


class BlankElfError(ElfError):
    """The file holds zeros where its head belongs: nobody ships such a file."""


class Bytes(Protocol):
    """A file, read in pieces."""

    @property
    def size(self) -> int:
        """How many bytes there are."""
        ...

    def read(self, offset: int, length: int) -> bytes:
        """Return the bytes from ``offset``; fewer than ``length`` only where the file ends."""
        ...


class Window:
    """Reads within bounds: nothing outside the file, and never more than a table may hold."""

    __slots__ = ("_data", "_number", "_page", "size")

    def __init__(self, data: Bytes) -> None:
        self._data = data
        self._page, self._number = b"", -1
        self.size = data.size

    def table(self, offset: int, length: int, *, what: str) -> bytes:
        """Return exactly these bytes; raise ElfError where they are not all in the file.

        Raises UnreadElfError where there are too many of them.
        """
        self.check(offset, length, what=what)
        if length > TABLE_LIMIT:
            raise UnreadElfError(f"the {what} takes {length} bytes, at most {TABLE_LIMIT} are read")
        found = self._data.read(offset, length) if length else b""
        if len(found) != length:
            raise ElfError(f"the {what} is cut short at {len(found)} of {length} bytes")
        return found

    def check(self, offset: int, length: int, *, what: str) -> None:
        """Raise ElfError where these bytes are not all in the file."""
        if offset < 0 or length < 0 or offset + length > self.size:
            raise ElfError(f"the {what} lies outside of the file, wanted it within {self.size}")

    def unpack(self, form: struct.Struct, offset: int, *, what: str) -> tuple[Any, ...]:
        """Unpack one record; records that lie near each other cost one read."""
        if offset < 0 or offset + form.size > self.size:
            self.check(offset, form.size, what=what)
        number = offset >> _PAGE_BITS
        if number != self._number:
            # Twice the step, so that a record across the border is whole.
            self._page = self._data.read(number << _PAGE_BITS, 2 * _PAGE)
            self._number = number
        start = offset - (number << _PAGE_BITS)
        if start + form.size > len(self._page):
            raise ElfError(f"the {what} is cut short")
        return form.unpack_from(self._page, start)

    def forget(self) -> None:
        """Drop the piece kept from the last read."""
        self._page, self._number = b"", -1
