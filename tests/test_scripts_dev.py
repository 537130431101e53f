"""scripts/dev on a machine made of stubs: what it sets up, says, and leaves alone."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ("cat", "chmod", "cksum", "cp", "dirname", "mkdir", "sed", "sh")

# An interpreter that notes its arguments, and can make a venv and install uv into it.
PYTHON = r"""#!/bin/sh
printf 'python %s\n' "$*" >>"$CALLS"
bin=$(dirname "$0")
case "$*" in
*ensurepip*) exit "${NO_ENSUREPIP:-0}" ;;
*'-m venv'*)
    for folder; do :; done
    mkdir -p "$folder/bin" && cp "$0" "$folder/bin/python"
    ;;
*'pip install'*)
    printf 'noise of pip\n'
    cp "$UV" "$bin/uv"
    ;;
esac
"""
UV = r"""#!/bin/sh
printf 'uv %s\n' "$*" >>"$CALLS"
printf 'noise of uv %s\n' "${UV_FAILS:-}" >&2
[ -z "${UV_FAILS:-}" ] || exit 1
for name in envbuild nox; do
    cp "$TOOL" "$(dirname "$0")/$name"
done
"""
TOOL = r"""#!/bin/sh
printf '%s in %s\n' "${0##*/}" "$PWD"
for argument; do printf '<%s>\n' "$argument"; done
exit "${TOOL_EXIT:-0}"
"""


class Checkout:
    """A checkout with a space in its path, on a machine with few tools."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "check out"
        self.bin = folder / "bin"
        self.calls = folder / "calls"
        (self.root / "scripts").mkdir(parents=True)
        self.bin.mkdir()
        for name in ("pyproject.toml", "scripts/dev"):
            shutil.copy2(ROOT / name, self.root / name)
        for tool in TOOLS:
            found = shutil.which(tool)
            assert found is not None
            (self.bin / tool).symlink_to(found)
        for name, text in (("uv-stub", UV), ("tool-stub", TOOL)):
            self.add(name, text)
        self.environment = {
            "PATH": str(self.bin),
            "CALLS": str(self.calls),
            "UV": str(self.bin / "uv-stub"),
            "TOOL": str(self.bin / "tool-stub"),
        }

    def add(self, name: str, text: str) -> None:
        path = self.bin / name
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.root / "scripts/dev", *arguments],
            cwd=self.bin,
            env={**self.environment, **environment},
            check=False,
            capture_output=True,
            text=True,
        )

    def installs(self) -> list[str]:
        lines = self.calls.read_text(encoding="utf-8").splitlines()
        return [line for line in lines if line.startswith("uv ")]


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


@pytest.fixture
def ready(checkout: Checkout) -> Checkout:
    checkout.add("python3", PYTHON)
    return checkout


def test_no_python(checkout: Checkout) -> None:
    done = checkout.run("lock")
    assert (done.returncode, done.stdout) == (3, "")
    assert "error: no Python 3.10 or newer found on PATH" in done.stderr
    assert "hint: " in done.stderr


def test_python_too_old(checkout: Checkout) -> None:
    checkout.add("python3", "#!/bin/sh\nexit 1\n")
    assert "no Python 3.10 or newer" in checkout.run("lock").stderr


def test_no_ensurepip(ready: Checkout) -> None:
    done = ready.run("lock", NO_ENSUREPIP="1")
    assert (done.returncode, done.stdout) == (3, "")
    assert "error: `python3` has no ensurepip module" in done.stderr
    assert "apt-get install python3-venv" in done.stderr
    assert not (ready.root / ".venv").exists()


def test_the_next_python_is_taken_when_the_first_has_no_ensurepip(ready: Checkout) -> None:
    ready.add("python3.12", PYTHON)
    ready.add("python3", PYTHON.replace('"${NO_ENSUREPIP:-0}"', "1"))
    assert ready.run("lock").returncode == 0


def test_a_command_of_envbuild(ready: Checkout) -> None:
    done = ready.run("lock", "a b", "--check")
    assert done.returncode == 0
    assert done.stdout == f"envbuild in {ready.bin}\n<lock>\n<a b>\n<--check>\n"
    assert done.stderr == f"setting up {ready.root}/.venv\n"
    (install,) = ready.installs()
    assert f"--editable {ready.root}" in install
    assert "nox" not in install


def test_the_second_run_sets_nothing_up(ready: Checkout) -> None:
    ready.run("lock")
    calls = ready.calls.read_text(encoding="utf-8")
    done = ready.run("doctor")
    assert (done.stdout.splitlines()[1], done.stderr) == ("<doctor>", "")
    assert ready.calls.read_text(encoding="utf-8") == calls


def test_changed_requirements_are_installed(ready: Checkout) -> None:
    ready.run("lock")
    with (ready.root / "pyproject.toml").open("a", encoding="utf-8") as file:
        file.write("# changed\n")
    ready.run("lock")
    assert len(ready.installs()) == 2


def test_the_tests_run_through_nox(ready: Checkout) -> None:
    done = ready.run("test", "-k", "a b")
    assert done.stdout.splitlines()[1:] == [
        "<--noxfile>",
        f"<{ready.root}/noxfile.py>",
        *("<--session>", "<tests>", "<-->", "<-k>", "<a b>"),
    ]
    assert ready.installs()[0].endswith(" nox>=2025.5.1")


def test_other_sessions(ready: Checkout) -> None:
    assert ready.run("nox", "-s", "lint").stdout.endswith("<-s>\n<lint>\n")


def test_the_status_of_the_command_is_kept(ready: Checkout) -> None:
    assert ready.run("lock", "--check", TOOL_EXIT="1").returncode == 1


def test_a_set_up_that_failed_says_why_and_is_done_again(ready: Checkout) -> None:
    done = ready.run("lock", UV_FAILS="1")
    assert (done.returncode, done.stdout) == (3, "")
    assert "noise of uv" in done.stderr
    assert "noise of pip" not in done.stderr
    assert ready.run("lock").returncode == 0


def test_an_unknown_certificate_has_a_hint_of_its_own(ready: Checkout) -> None:
    done = ready.run("lock", UV_FAILS="invalid peer certificate: UnknownIssuer")
    assert done.returncode == 3
    assert "export SSL_CERT_FILE=" in done.stderr


def test_without_arguments_it_says_what_it_is_for(checkout: Checkout) -> None:
    done = checkout.run()
    assert (done.returncode, done.stdout) == (2, "")
    assert "scripts/dev lock examples/ptv3-blackwell" in done.stderr
    asked = checkout.run("--help")
    assert (asked.returncode, asked.stdout) == (0, done.stderr)


@pytest.mark.online
def test_a_bare_machine(checkout: Checkout) -> None:
    """Set up for real, then again in no time."""
    for name in ("envbuild", "README.md", "LICENSE"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
        copy(ROOT / name, checkout.root / name)
    kept = {key: value for key, value in os.environ.items() if key not in checkout.environment}
    kept["PATH"] = os.environ["PATH"]
    first = checkout.run("--version", **kept)
    assert first.returncode == 0, first.stderr
    began = time.monotonic()
    second = checkout.run("--version", **kept)
    assert time.monotonic() - began < 2
    assert (second.stdout, second.stderr) == (first.stdout, "")
