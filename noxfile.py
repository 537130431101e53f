"""The one entry for every check of this repository: ``scripts/dev nox``, or ``nox``."""

from __future__ import annotations

import shutil
from pathlib import Path

import nox

nox.needs_version = ">=2025.5.1"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.download_python = "never"
nox.options.reuse_venv = "yes"
nox.options.sessions = ["lint", "types", "tests"]

PYPROJECT = nox.project.load_toml("pyproject.toml")
PYTHONS = nox.project.python_versions(PYPROJECT, max_version="3.14")
SHELL_SCRIPTS = ("scripts/dev", ".ci/run", "examples/pointcept-blackwell/scripts/install-cu128.sh")


DEV_LOCK = "lockfiles/pylock.dev.toml"


def install(session: nox.Session, *groups: str) -> None:
    """Install the package as a user gets it, rebuilt from the tree, among what DEV_LOCK pins."""
    if session.venv_backend == "uv":
        session.install("--requirements", DEV_LOCK, "--preview-features", "pylock")
        session.install("--reinstall-package", "envbuild", "--no-deps", ".")
    else:  # an old pip reads no pylock
        session.install(".", *nox.project.dependency_groups(PYPROJECT, *groups))


def run_pytest(session: nox.Session, *arguments: str) -> None:
    """Run pytest on the installed package, two processes wide."""
    install(session, "test")
    session.run("pytest", "-n", "2", *arguments, *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Check form, style, the direction of imports, and the shell scripts."""
    install(session, "lint")
    session.run("ruff", "format", "--check", ".")
    session.run("ruff", "check", ".")
    session.run("lint-imports")
    session.run("shellcheck", *SHELL_SCRIPTS)


@nox.session
def types(session: nox.Session) -> None:
    """Check the types."""
    install(session, "types")
    session.run("mypy", *session.posargs)


@nox.session
def tests(session: nox.Session) -> None:
    """Run the tests that need no network."""
    run_pytest(session)


@nox.session(python=PYTHONS, default=False)
def every_python(session: nox.Session) -> None:
    """Run the tests on every supported Python that this machine has."""
    run_pytest(session)


@nox.session(default=False)
def online(session: nox.Session) -> None:
    """Run the tests that reach the network."""
    run_pytest(session, "--online", "-m", "online")


@nox.session(default=False)
def thorough(session: nox.Session) -> None:
    """Run the property tests with many more examples, at random, and what repeats for long."""
    run_pytest(session, "-m", "hypothesis", "--hypothesis-profile", "thorough")
    run_pytest(session, "-m", "slow")


@nox.session(python="3.11", default=False)
def fuzz(session: nox.Session) -> None:
    """Fuzz the readers of files: ``nox -s fuzz -- [--inputs 1000000] [--replay FILE]``."""
    install(session, "test")
    session.install("atheris==3.0.0")  # no wheels for every Python, so not among the groups
    session.run("python", "scripts/fuzz.py", *session.posargs)


@nox.session(default=False)
def lock(session: nox.Session) -> None:
    """Pin anew, with hashes and for every supported Python, what the sessions install."""
    session.install("uv")
    requirements = Path(session.create_tmp(), "dev.in")
    wanted = [*PYPROJECT["project"]["dependencies"]]
    wanted += nox.project.dependency_groups(PYPROJECT, "dev")
    requirements.write_text("\n".join(wanted), encoding="utf-8")
    options = ("--universal", "--python-version", PYTHONS[0], "--upgrade", "--no-config")
    header = ("--custom-compile-command", "nox -s lock")
    written = ("--format", "pylock.toml", "-o", DEV_LOCK, "--quiet")
    session.run("uv", "pip", "compile", str(requirements), *options, *header, *written)


@nox.session(default=False)
def catalog(session: nox.Session) -> None:
    """Rebuild the embedded catalog: ``nox -s catalog -- FOLDER_OF_FACTS``."""
    if len(session.posargs) != 1:
        session.error("give the folder of facts: nox -s catalog -- FOLDER_OF_FACTS")
    facts = Path(session.invoked_from, session.posargs[0])
    session.install("--editable", ".")
    session.run("python", "scripts/build_catalog.py", str(facts))


@nox.session(default=False)
def symbols(session: nox.Session) -> None:
    """Read anew since when NVIDIA's libraries export what: ``nox -s symbols -- [PACKAGE ...]``."""
    session.install("--editable", ".")
    session.run("python", "scripts/read_symbols.py", *session.posargs)


@nox.session(default=False)
def toolkits(session: nox.Session) -> None:
    """Read anew which compilers and architectures each nvcc accepts, from its wheels."""
    session.install("--editable", ".")
    session.run("python", "scripts/read_toolkits.py", *session.posargs)


@nox.session(default=False)
def numpy_abi(session: nox.Session) -> None:
    """Read anew which release of each package is the first that is compiled against numpy 2."""
    session.install("--editable", ".")
    session.run("python", "scripts/read_numpy_abi.py", *session.posargs)


@nox.session(default=False)
def generated(session: nox.Session) -> None:
    """Write docs/checks.md anew from the rules."""
    session.install("--editable", ".")
    session.run("python", "scripts/render_checks.py", *session.posargs)


@nox.session(default=False)
def image(session: nox.Session) -> None:
    """Build container images for real; needs root, buildah and debootstrap."""
    for program in ("buildah", "debootstrap"):
        if shutil.which(program) is None:
            session.error(f"needs `{program}`: apt-get install -y buildah debootstrap")
    install(session, "test")
    for script in ("build.py", "frozen.py"):
        session.run("python", f"tests/image/{script}", *session.posargs)


@nox.session(default=False)
def benchmarks(session: nox.Session) -> None:
    """Measure the budgets."""
    if not Path("benchmarks/run.py").is_file():
        session.skip("this checkout has no benchmarks/run.py")
    install(session, "test")
    session.run("python", "benchmarks/run.py", *session.posargs)
