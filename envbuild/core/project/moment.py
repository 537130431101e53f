"""Dates and times as a project writes them, and as uv compares them."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta, timezone

_MOMENT = re.compile(
    r"(\d{4}-\d{2}-\d{2})(?:[Tt ](\d{2}:\d{2}:\d{2})(?:\.\d+)?([Zz]|[+-]\d{2}:\d{2}))?"
)


def moment_of(value: object) -> str | None:
    """Return RFC 3339 text in UTC and whole seconds; a date means up to its end, as for uv."""
    try:
        moment = _parsed_moment(value.strip()) if isinstance(value, str) else value
        if isinstance(moment, datetime):
            if moment.tzinfo is None:
                return None
            return moment.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        if isinstance(moment, date):
            return f"{(moment + timedelta(days=1)).isoformat()}T00:00:00Z"
    except (ValueError, OverflowError):
        pass
    return None


def _parsed_moment(text: str) -> date | None:
    match = _MOMENT.fullmatch(text)
    if match is None:
        return None
    day, time, offset = match.groups()
    if time is None:
        return date.fromisoformat(day)
    return datetime.fromisoformat(f"{day}T{time}{offset.upper().replace('Z', '+00:00')}")
