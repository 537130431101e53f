"""What this machine has: free disk, a way to the hosts, and files of a lock.

Run by the install script: ``machine.py lock FILE``, ``free FOLDER``, ``probe URL ...``,
``hold DESCRIPTOR SECONDS FOLDER``, ``local LOCK GOAL FOLDERS MIRRORS``,
``sdist INDEX NAME VERSION``, ``download URL SHA256 GOAL FOLDERS MIRRORS OFFLINE``.

What only one of these needs is imported there: a run asks often, and HTTP alone takes 100 ms.
"""

# ruff: noqa: PLC0415

from __future__ import annotations

import os
import shutil
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import re

PATIENCE = float(os.environ.get("UV_HTTP_TIMEOUT") or 10)


def sha256(path: str) -> str:
    """Return the hash of a file."""
    import hashlib

    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


def lock_hash(path: str) -> str:
    """Return the hash of a lock's text; git may have given its lines other ends."""
    import hashlib

    with open(path, "rb") as file:
        text = file.read().replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return hashlib.sha256(text).hexdigest()


def free(folder: str) -> int:
    """Return the bytes that can be written where a folder is, or will be."""
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder) or "."
    return shutil.disk_usage(folder).free


def hold(handle: str, seconds: str, folder: str) -> None:
    """Lock an open file of the shell, which keeps the lock; wait for whoever has it."""
    descriptor = int(handle)
    if locked(descriptor):
        return
    sys.stderr.write(f"envbuild: wait for another run in `{folder}`, or for a uv it left behind\n")
    end = time.monotonic() + float(seconds)
    while time.monotonic() < end:
        time.sleep(0.05)
        if locked(descriptor):
            return
    sys.exit(1)


def locked(descriptor: int) -> bool:
    """Return whether the lock is had, or cannot be: there are file systems without locks."""
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def reached(url: str) -> str:
    """Return why a host is not reached, empty where it answers at all; nothing is read."""
    import ssl
    import urllib.error
    import urllib.request

    request = urllib.request.Request(url, method="HEAD")
    context = ssl._create_unverified_context()  # noqa: S323, SLF001 - no answer is used
    try:
        urllib.request.urlopen(request, timeout=PATIENCE, context=context).close()
    except urllib.error.HTTPError:
        return ""
    except (OSError, ValueError) as error:
        return str(getattr(error, "reason", error))
    return ""


def probe(urls: list[str]) -> list[str]:
    """Return a line for each host that is not reached."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(max_workers=8) as pool:
        answers = zip(urls, pool.map(reached, urls), strict=True)
        return [f"{url} is not reached: {answer}" for url, answer in answers if answer]


def mirrored(url: str, mirrors: str) -> str:
    """Return an address with the first prefix that a mirror stands for replaced."""
    for pair in mirrors.split():
        prefix, _, goal = pair.partition("=")
        if goal and url.startswith(prefix):
            return goal + url[len(prefix) :]
    return url


def local_file(url: str, folders: str) -> str:
    """Return the file of a wheelhouse that stands for an address, empty where there is none."""
    import re
    from urllib.parse import unquote, urlsplit

    name = unquote(urlsplit(url).path.rpartition("/")[2])
    for folder in re.split(r"[,\s]+", folders):
        path = os.path.join(folder.removeprefix("file://"), name)
        if folder and "://" not in folder.removeprefix("file://") and os.path.isfile(path):
            return os.path.abspath(path)
    return ""


def relocated(text: str, folders: str, mirrors: str) -> tuple[str, list[str]]:
    """Return a lock whose files come from a wheelhouse and mirrors, and the addresses left."""
    import json
    import re

    left = []

    def change(match: re.Match[str]) -> str:
        url = json.loads(match[1])
        path = local_file(url, folders)
        if path:
            return f"path = {json.dumps(path)}"
        left.append(mirrored(url, mirrors))
        return f"url = {json.dumps(left[-1])}"

    return re.sub(r'\burl = ("(?:[^"\\]|\\.)*")', change, text), left


def sdist(index: str, name: str, version: str) -> tuple[str, str]:
    """Return address and hash of the sdist of a release, as an index gives them now."""
    import json
    import re
    import urllib.request
    from urllib.parse import unquote, urljoin, urlsplit

    accept = "application/vnd.pypi.simple.v1+json, text/html;q=0.1"
    page = f"{index.rstrip('/')}/{name}/"
    request = urllib.request.Request(page, headers={"Accept": accept})
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        text, base = answer.read().decode(), answer.url
    if text.lstrip().startswith("{"):
        pairs = [(f["url"], f["hashes"].get("sha256", "")) for f in json.loads(text)["files"]]
    else:
        found = re.findall(r'href="([^"#]+)(?:#sha256=([0-9a-f]{64}))?', text)
        pairs = [(url.replace("&amp;", "&"), digest) for url, digest in found]
    stem = re.compile(
        re.sub("-", "[-_.]+", re.escape(name).replace("\\-", "-"))
        + "-"
        + re.escape(version)
        + r"\.(tar\.gz|zip)",
        re.IGNORECASE,
    )
    for url, digest in pairs:
        if stem.fullmatch(unquote(urlsplit(url).path.rpartition("/")[2])):
            return urljoin(base, url), digest
    raise ValueError(f"{page} has no source of {name} {version}")


class OtherBytesError(ValueError):
    """A file that is not the one that was locked."""


def download(
    url: str, digest: str, goal: str, folders: str, mirrors: str = "", offline: str = ""
) -> None:
    """Write a file whose hash is right; raise OtherBytesError where it is not."""
    import urllib.request

    path = local_file(url, folders)
    if path:
        shutil.copyfile(path, goal)
    elif offline and not url.startswith("file:"):
        raise ValueError(f"offline, and no folder of UV_FIND_LINKS holds {url}")
    else:
        source = mirrored(url, mirrors)
        with urllib.request.urlopen(source, timeout=PATIENCE) as answer, open(goal, "wb") as file:
            shutil.copyfileobj(answer, file)
    found = sha256(goal)
    if digest not in ("", "-", found):
        os.unlink(goal)
        raise OtherBytesError(f"{url} has sha256 {found}, the lock has {digest}")


def answer(verb: str, words: list[str]) -> str:
    """Return what is asked, as lines."""
    if verb == "lock":
        return lock_hash(words[0])
    if verb == "free":
        return str(free(words[0]))
    if verb == "probe":
        return "\n".join(probe(words))
    if verb == "sdist":
        return "\n".join(sdist(*words))
    if verb in ("download", "hold"):
        download(*words) if verb == "download" else hold(*words)
        return ""
    return "\n".join(local(*words))


def local(lock: str, goal: str, folders: str, mirrors: str) -> list[str]:
    """Write the lock as it is installed here, and return the hosts that it leads to."""
    from pathlib import Path
    from urllib.parse import urlsplit

    text, left = relocated(Path(lock).read_text("utf-8"), folders, mirrors)
    Path(goal).write_text(text, "utf-8")
    asked = [urlsplit(url) for url in left if url.startswith("http")]
    return sorted({f"{url.scheme}://{url.netloc}/" for url in asked})


def main(arguments: list[str]) -> int:
    """Print the answer; what the world refuses is said in one line.

    Returns 23 for other bytes than the lock's, else 1.
    """
    try:
        text = answer(arguments[0], arguments[1:])
    except (OSError, ValueError, EOFError) as error:
        sys.stderr.write(f"{error}\n")
        return 23 if isinstance(error, OtherBytesError) else 1
    sys.stdout.write(f"{text}\n" if text else "")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
