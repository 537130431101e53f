"""Why uv failed, out of what it printed: short, and without the names of the scratch project."""

from __future__ import annotations

import re

from envbuild.core.uvsettings import GROUP

NO_SOLUTION = "No solution found"

_CHATTER = re.compile(r"(?:Using CPython|warning:|Resolved | +(?:Updating|Updated|Building) )")
_REFUSED = re.compile(
    r"(?P<lacking>An index URL \((?P<first>\S+)\) could not be queried due to a lack of valid)"
    r"|An index \((?P<second>\S+)\) returned a 403"
)
_MISSING = re.compile(r"(?<![\w.-])([a-z0-9][\w.-]*) was not found in the package registry")
_YANKED = re.compile(r"^warning: `([^`]+)` is yanked(?: \(reason: \"?(.*?)\"?\))?$", re.MULTILINE)
_NO_EXTRA = re.compile(
    r"^warning: The package `([^=`]+)==[^`]*` does not have an extra named `([^`]+)`", re.MULTILINE
)
_MARKERS = re.compile(r"\{[^{}]*\}")
_FIT = re.compile(r"has no `[^`]*`-compatible wheels?")
_OWN = re.compile(rf"[\w.-]+:{GROUP}\b")
_SENTENCE = re.compile(r"\.(?: \(\d+\))?(?= (?:And|Because|So) |$)")
_START = re.compile(r"(?:And |So )?[Bb]ecause ")
_CONCLUSION = re.compile(r", we can conclude that .*$")
_KNOWN = re.compile(r"(?:,? and )?we know from \(\d+\) that (?:[^,]*)(?:, and )?")
_MOST = 6


def without_chatter(stderr: str) -> str:
    """Return the lines that tell of the failure."""
    lines = [line for line in stderr.splitlines() if line.strip() and not _CHATTER.match(line)]
    return "\n".join(lines).removeprefix("error: ")


def contradiction(text: str) -> str:
    """Return the facts from which uv concludes that nothing fits, joined by semicolons.

    Its conclusions are left out, and of a long chain the middle too.
    """
    _, found, proof = text.partition("cause:")
    proof = proof.partition("\nhint:")[0] if found else text
    proof = _FIT.sub("has no wheel for the target", _MARKERS.sub("", " ".join(proof.split())))
    proof = _OWN.sub("the chosen stack", proof)
    facts = [fact for part in _SENTENCE.split(proof) if (fact := _fact(part))]
    if len(facts) > _MOST:
        half = _MOST // 2
        facts = [*facts[:half], "…", *facts[-half:]]
    return "; ".join(facts)


def _fact(sentence: str) -> str:
    text = _CONCLUSION.sub("", _START.sub("", sentence.strip(), count=1))
    text = _KNOWN.sub("", text).strip(" ,")
    return "" if text.startswith("your project requires ") else text


def yanked_releases(stderr: str) -> tuple[tuple[str, str], ...]:
    """Return the releases that uv took though they were withdrawn, each with its reason."""
    return tuple((found[1], found[2] or "") for found in _YANKED.finditer(stderr))


def absent_extras(stderr: str) -> tuple[tuple[str, str], ...]:
    """Return the extras that are asked for and that their packages do not have."""
    return tuple(dict.fromkeys((found[1], found[2]) for found in _NO_EXTRA.finditer(stderr)))


def missing_projects(reason: str) -> tuple[str, ...]:
    """Return the packages that no index has, each once."""
    return tuple(dict.fromkeys(_MISSING.findall(reason)))


def refused_by(text: str) -> tuple[str, int] | None:
    """Return the index that asked for credentials or refused them, and its status."""
    found = _REFUSED.search(text)
    if found is None:
        return None
    return (found["first"], 401) if found["lacking"] else (found["second"], 403)


def names(reason: str, project: str) -> bool:
    """Whether a reason speaks of a package, and not only of one whose name holds its name."""
    return re.search(rf"(?<![\w.-]){re.escape(project)}(?![\w-]|\.\w)", reason) is not None
