"""Say what went wrong with a request in words: what was asked, what came, what to do."""

from __future__ import annotations

import socket
import ssl
from http import HTTPStatus
from typing import TYPE_CHECKING

import requests
from urllib3.exceptions import HTTPError, IncompleteRead, ReadTimeoutError

from envbuild.core.redact import host_of, redact_url
from envbuild.errors import WorldError

if TYPE_CHECKING:
    from collections.abc import Iterator

TRANSPORT = (requests.RequestException, HTTPError, UnicodeError)
OFFLINE_HINT = "`--source catalog` needs no network"
_PROXY_HINT = "check the network, HTTPS_PROXY and NO_PROXY; `--source catalog` needs no network"
_LATER = f"try again later; {OFFLINE_HINT}"
_MIRROR_HINT = "check the address in [tool.envbuild.indexes] or in ENVBUILD_INDEX_..."
_CERTIFICATE_HINT = (
    "if your network replaces certificates, set REQUESTS_CA_BUNDLE to its certificate bundle"
)


class UnreachedError(WorldError):
    """The host was not reached at all: no name, no route, no answer to a connection, offline."""


class BrokenOffError(WorldError):
    """The host was reached, and its answer did not come or broke off; worth another try."""


def offline_error(url: str) -> UnreachedError:
    """Say that the network must not be touched."""
    return UnreachedError(
        f"`{host_of(url)}` is needed, and the network is switched off", hint=OFFLINE_HINT
    )


def untrusted_certificate(error: BaseException) -> bool:
    """Whether a request failed because the certificate of the host is not trusted."""
    return any(isinstance(cause, ssl.SSLCertVerificationError) for cause in _causes(error))


def transport_error(error: Exception, *, url: str, connect: float, read: float) -> WorldError:
    """Turn what requests raised into an error of envbuild's; credentials do not get through."""
    shown = redact_url(url)
    if untrusted_certificate(error):
        return WorldError(
            f"the certificate of `{host_of(url)}` is not trusted", hint=_CERTIFICATE_HINT
        )
    if _timed_out(error):
        return BrokenOffError(f"`{shown}` sent nothing for {read:g} s", hint=_LATER)
    if isinstance(error, requests.ConnectionError):
        return UnreachedError(_no_connection(error, host_of(url), connect), hint=_PROXY_HINT)
    if isinstance(error, (ValueError, requests.TooManyRedirects)):
        return WorldError(_wrong_address(error, shown), hint=_MIRROR_HINT)
    parts = _incomplete(error)
    if parts is not None:
        return length_error(url, got=parts[0], wanted=sum(parts))
    return BrokenOffError(f"`{shown}` broke off, wanted the whole of it", hint=_LATER)


def _incomplete(error: BaseException) -> tuple[int, int] | None:
    """Return how many bytes came and how many were still to come, where that is known."""
    for argument in error.args:
        if isinstance(argument, IncompleteRead) and isinstance(argument.partial, int):
            return argument.partial, argument.expected or 0
        found = _incomplete(argument) if isinstance(argument, BaseException) else None
        if found is not None:
            return found
    return None


def _wrong_address(error: Exception, shown: str) -> str:
    if isinstance(error, requests.exceptions.InvalidProxyURL):
        return "the address of the proxy is wrong, wanted `http://host:port` in HTTPS_PROXY"
    if isinstance(error, requests.TooManyRedirects):
        return f"`{shown}` redirects without end"
    return f"`{shown}` is no address of the web, wanted `https://...`"


def _no_connection(error: Exception, host: str, connect: float) -> str:
    if isinstance(error, requests.exceptions.ProxyError):
        return f"the proxy does not lead to `{host}`"
    if isinstance(error, requests.ConnectTimeout):
        return f"`{host}` did not answer within {connect:g} s"
    if any(isinstance(cause, socket.gaierror) for cause in _causes(error)):
        return f"the name `{host}` cannot be resolved"
    return f"`{host}` cannot be reached"


def status_error(status: int, *, url: str, answered: str) -> WorldError:
    """Say what a status means; ``answered`` is the address after redirects."""
    shown, host = redact_url(url), host_of(answered)
    if status in {401, 403}:
        return WorldError(
            f"`{shown}` answered {status}: `{host}` refuses to serve it",
            hint="does the index want credentials? put `USER:PASSWORD@` before the host in its"
            " address, or use ~/.netrc",
        )
    if status == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED:
        return WorldError(f"the proxy wants credentials for `{host}`", hint="set HTTPS_PROXY")
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status == HTTPStatus.TOO_MANY_REQUESTS:
        return WorldError(
            f"`{shown}` answered {status}: `{host}` has a problem of its own",
            hint=_LATER,
        )
    return WorldError(f"`{shown}` answered {status}, wanted 200", hint=_MIRROR_HINT)


def length_error(url: str, *, got: int, wanted: int) -> BrokenOffError:
    """Say that an answer is shorter or longer than it announced."""
    return BrokenOffError(
        f"`{redact_url(url)}` broke off after {got} of {wanted} bytes", hint=_LATER
    )


def _timed_out(error: Exception) -> bool:
    """Whether nothing came in time after the connection stood."""
    return isinstance(error, requests.ReadTimeout) or any(
        isinstance(cause, ReadTimeoutError) for cause in _causes(error)
    )


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and everything that led to it: arguments, reasons and contexts."""
    seen: set[int] = set()
    waiting: list[object] = [error]
    while waiting:
        cause = waiting.pop()
        if not isinstance(cause, BaseException) or id(cause) in seen:
            continue
        seen.add(id(cause))
        yield cause
        waiting += [*cause.args, getattr(cause, "reason", None), cause.__cause__, cause.__context__]
