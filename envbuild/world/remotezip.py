"""Read members of a wheel where it lies, by ranges, without the rest of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from envbuild.core.redact import redact_url
from envbuild.core.zipdirectory import find_directory, member_data, parse_directory
from envbuild.errors import WorldError

if TYPE_CHECKING:
    from envbuild.core.zipdirectory import Member
    from envbuild.world.http import HttpClient
    from envbuild.world.httpanswer import Part

TAIL = 32 << 10


@dataclass(frozen=True, kw_only=True, slots=True)
class RemoteZip:
    """An archive on a host: its members, and the last bytes of it that were read already."""

    client: HttpClient
    url: str
    tail: Part
    members: tuple[Member, ...]

    def read(self, member: Member) -> bytes:
        """Return an unpacked member; raise WorldError where it is not what the archive says."""
        length = min(member.span, self.tail.total - member.offset)
        return member_data(_span(self.client, self.url, self.tail, member.offset, length), member)


def open_remote(client: HttpClient, url: str, *, tail: int = TAIL) -> RemoteZip | None:
    """Read the directory of an archive; None where it is absent or ranges are not served."""
    end = client.tail(url, tail)
    if end is None:
        return None
    try:
        found = find_directory(end.data, size=end.total)
        data = _span(client, url, end, found.offset, found.length)
        members = parse_directory(data, entries=found.entries)
    except WorldError as error:
        raise WorldError(f"`{redact_url(url)}`: {error.message}", hint=error.hint) from None
    return RemoteZip(client=client, url=url, tail=end, members=members)


def _span(client: HttpClient, url: str, tail: Part, start: int, length: int) -> bytes:
    known = start - tail.start
    if known >= 0:
        return tail.data[known : known + length]
    part = client.part(url, start=start, length=length) if length > 0 else None
    if part is None or part.total != tail.total:
        raise WorldError(f"`{redact_url(url)}` changed while it was read", hint="try again")
    return part.data
