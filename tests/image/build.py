"""Builds the image of a small project for real, with Debian's tools and nothing of a registry.

    python build.py [--folder FOLDER] [--ca-file FILE] [--project FOLDER]

Needs root, `buildah` and `debootstrap`. Makes a base image from Debian's packages, locks the
project and writes its Dockerfile, builds it, runs it as its user, and builds it twice more: every
step comes from the cache, and after a change of the source all of them but the copy of the source
and the doctor. FOLDER is kept, for the next run.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from itertools import takewhile
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parent.parent
DEBIAN = ("bookworm", "http://deb.debian.org/debian")
PACKAGES = "python3.11,ca-certificates"
TARGET = "image"
DOCKERFILE = f"scripts/Dockerfile.{TARGET}"
CA_FILE = "etc/session-ca.crt"
WHEEL = "file:///app/wheels"


def say(text: str) -> None:
    """Tell whoever watches."""
    sys.stdout.write(text)
    sys.stdout.flush()


class Buildah:
    """`buildah` with its storage in one folder; a step's commands run in a chroot."""

    def __init__(self, folder: Path, driver: str) -> None:
        self._words = ["buildah", "--root", str(folder / "store"), "--runroot", str(folder / "run")]
        self._words += ["--storage-driver", driver]
        self._environ = {**os.environ, "BUILDAH_ISOLATION": "chroot"}

    def attempt(self, *words: str) -> tuple[int, str]:
        """Return the exit code of a command, and what it says on both streams."""
        done = subprocess.run(
            [*self._words, *words],
            env=self._environ,
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        return done.returncode, done.stdout

    def run(self, *words: str) -> str:
        """Return what the command says; stop the session where it fails."""
        code, said = self.attempt(*words)
        if code != 0:
            sys.exit(f"{said}\nbuildah {words[0]} ended with {code}")
        return said

    def image(self, name: str, folder: Path, dockerfile: str) -> None:
        """Build an image of a folder's content."""
        path = folder.with_name(f"Dockerfile.{folder.name}")
        path.write_text(dockerfile, encoding="utf-8")
        self.run("build", "--quiet", "--file", str(path), "--tag", name, str(folder))


def make_base(buildah: Buildah, folder: Path, ca_file: Path | None) -> None:
    """Make the images that the Dockerfile stands on: Debian with Python, and uv."""
    root = folder / "root"
    if not (root / "usr/bin/python3.11").exists():
        shutil.rmtree(root, ignore_errors=True)
        words = ["debootstrap", "--variant=minbase", f"--include={PACKAGES}", DEBIAN[0], str(root)]
        subprocess.run([*words, DEBIAN[1]], check=True, stdout=subprocess.DEVNULL)
    dockerfile = "FROM scratch\nCOPY . /\n"
    if ca_file is not None:
        shutil.copyfile(ca_file, root / CA_FILE)
        dockerfile += f"ENV SSL_CERT_FILE=/{CA_FILE}\n"
    buildah.image("localhost/base", root, dockerfile)
    (folder / "uv").mkdir(exist_ok=True)
    shutil.copy2(shutil.which("uv") or sys.exit("`uv` was not found"), folder / "uv" / "uv")
    buildah.image("localhost/uv", folder / "uv", "FROM scratch\nCOPY uv /uv\n")


def make_project(source: Path, project: Path, *lock_options: str) -> str:
    """Lock a copy of the project and write its Dockerfile; return the requirement of the doctor."""
    shutil.rmtree(project, ignore_errors=True)
    shutil.copytree(source, project)
    words = ["uv", "build", "--quiet", "--wheel", "--out-dir", str(project / "wheels")]
    subprocess.run([*words, str(REPOSITORY)], check=True)
    for command in (("lock", *lock_options), ("dockerfile",)):
        envbuild = [sys.executable, "-m", "envbuild", *command, "--quiet", str(project)]
        subprocess.run(envbuild, check=True)
    wheel = next((project / "wheels").glob("*.whl"))
    return f"envbuild @ {WHEEL}/{wheel.name}"


def build_words(project: Path, doctor: str, **arguments: str) -> list[str]:
    """Return the command that builds the image of a project."""
    arguments = {"UV_IMAGE": "localhost/uv", "ENVBUILD": doctor, **arguments}
    words = ["build", "--layers", "--file", str(project / DOCKERFILE), "--tag", "localhost/built"]
    words += ["--ignorefile", str(project / f"{DOCKERFILE}.dockerignore")]
    return [*words, *(f"--build-arg={name}={value}" for name, value in arguments.items())]


def build(buildah: Buildah, project: Path, doctor: str, **arguments: str) -> list[str]:
    """Build the image and return its steps, each with what was said of it."""
    started = time.monotonic()
    said = buildah.run(*build_words(project, doctor, **arguments), str(project))
    steps = [f"STEP {step}" for step in said.split("STEP ")[1:]]
    made = [step for step in steps if not is_kept(step)]
    say("".join(f"{line}\n" for step in made for line in words_of_doctor(step)))
    say(f"{time.monotonic() - started:.1f} s, {len(steps)} steps, {len(made)} of them made\n")
    return made


def words_of_doctor(step: str) -> list[str]:
    """Return what the doctor says in the step that runs it, and nothing for another step."""
    lines = step.splitlines() if "envbuild doctor" in step.partition("\n")[0] else []
    said = takewhile(lambda line: not line.startswith(("-->", "[")), lines[1:])
    return [line for line in said if not line.startswith("Installed ")]


def is_kept(step: str) -> bool:
    """Whether a step made nothing: it names an image, or its layer came from the cache."""
    return "Using cache" in step or ": FROM " in step.partition("\n")[0]


def run_image(buildah: Buildah) -> None:
    """Run what was built as the image's own user, who may change nothing of the environment."""
    container = buildah.run("from", "localhost/built").strip()
    try:
        said = buildah.run("run", container, "--", "python", "train.py")
        say(said)
        test = "test ! -w /opt/venv && test ! -e ~/.local && test ! -e ~/.cache"
        buildah.run("run", container, "--", "sh", "-c", test)
    finally:
        buildah.run("rm", container)
    if not said.startswith("user 10001, /opt/venv"):
        sys.exit(f"found `{said.strip()}`, wanted the user 10001 in /opt/venv")


def expect(made: list[str], wanted: tuple[str, ...]) -> None:
    """Stop where a build made other steps than those that begin so."""
    found = tuple(step.partition(": ")[2] for step in made)
    fits = len(found) == len(wanted) and all(map(str.startswith, found, wanted))
    if not fits:
        sys.exit(f"found the steps {found} made, wanted {wanted}")


def parsed(description: str | None) -> argparse.ArgumentParser:
    """Return the parser of what every session of images takes."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--folder", type=Path, default=Path("/var/tmp/envbuild-image"))  # noqa: S108
    parser.add_argument("--ca-file", type=Path, help="authorities that the steps shall trust")
    parser.add_argument("--driver", default="overlay", help="vfs copies all at each step")
    return parser


def main() -> None:
    """Build, run, and build again."""
    parser = parsed(__doc__)
    parser.add_argument("--project", type=Path, default=HERE / "project")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    buildah, project = Buildah(arguments.folder, arguments.driver), arguments.folder / "project"
    make_base(buildah, arguments.folder, arguments.ca_file)
    doctor = make_project(arguments.project, project)
    own = {"BASE_IMAGE": "localhost/base", "UV_PYTHON_PREFERENCE": "only-system"}
    build(buildah, project, doctor, **own)
    run_image(buildah)
    expect(build(buildah, project, doctor, **own), ())
    with (project / "train.py").open("a", encoding="utf-8") as file:
        file.write("# changed\n")
    changed = build(buildah, project, doctor, **own)
    expect(changed, ("COPY --chown=app:app . .", "USER", "ARG ENVBUILD", "RUN --mount=from=uv"))
    say(buildah.run("images"))


if __name__ == "__main__":
    main()
