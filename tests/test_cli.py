"""The command line from outside: what is printed where, and with which exit code."""

from __future__ import annotations

import json
import os
import re
import resource
import shlex
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from reports import ERROR, REPORT, unhashed, with_finding

from envbuild import __version__
from envbuild.cli.main import main
from envbuild.errors import InputError, RefusedError, WorldError
from envbuild.model.report import LockReport, Outcome

if TYPE_CHECKING:
    from collections.abc import Callable

    from envbuild.cli.main import LockCommand
    from envbuild.commands.lockrun import LockOptions
    from envbuild.errors import EnvbuildError
    from envbuild.ports import Reporter

PROJECT = """\
[project]
name = "x"

[tool.envbuild.targets.cu128]
python = "3.11"
platform = "linux-x86_64"
"""

# Runs the real command line, with a lock that a test wrote instead of the real one.
FAKED = """\
import sys, time
from dataclasses import replace
sys.path.insert(0, {tests!r})
from envbuild.cli.main import main
from envbuild.errors import *
from envbuild.model.report import Outcome
from reports import *

def lock_report(options, source, reporter):
{body}

sys.exit(main(lock_report=lock_report))
"""


@pytest.fixture(name="project")
def a_project(tmp_path: Path) -> Path:
    folder = tmp_path / "app"
    folder.mkdir()
    (folder / "pyproject.toml").write_text(PROJECT, encoding="utf-8")
    return folder


def run(
    *arguments: str, cwd: Path | None = None, lock: str | None = None, **environ: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*command(lock), *arguments],
        cwd=cwd,
        env=environment(**environ),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture(name="call")
def a_call(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, project: Path
) -> Callable[..., Done]:
    """Run the command line in this process, in the project's folder and with a lock of the test."""
    for name in ("NO_COLOR", "FORCE_COLOR", "CI"):
        monkeypatch.delenv(name, raising=False)

    def call(*words: str, lock: LockReport | Exception | LockCommand, cwd: Path = project) -> Done:
        def lock_report(options: LockOptions, source: str, reporter: Reporter) -> LockReport:
            if isinstance(lock, Exception):
                raise lock
            return lock if isinstance(lock, LockReport) else lock(options, source, reporter)

        monkeypatch.chdir(cwd)
        code = main(words, lock_report=lock_report)
        return Done(code, *capsys.readouterr())

    return call


def command(lock: str | None) -> list[str]:
    if lock is None:
        return [sys.executable, "-m", "envbuild"]
    body = textwrap.indent(textwrap.dedent(lock), "    ")
    return [sys.executable, "-c", FAKED.format(tests=str(Path(__file__).parent), body=body)]


def environment(**more: str) -> dict[str, str]:
    dropped = {"NO_COLOR", "FORCE_COLOR", "CI", "COLUMNS"}
    return {name: value for name, value in os.environ.items() if name not in dropped} | more


def test_version() -> None:
    done = run("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"envbuild {__version__}\n", "")


def test_the_installed_command_is_the_same() -> None:
    script = Path(sys.executable).with_name("envbuild")
    done = subprocess.run([script, "--version"], capture_output=True, text=True, check=False)
    assert done.stdout == f"envbuild {__version__}\n"


@pytest.mark.parametrize("words", [["--help"], ["lock", "--help"], ["gpus", "--help"]])
def test_help_has_a_description_examples_and_exit_codes(words: list[str]) -> None:
    done = run(*words)
    assert (done.returncode, done.stderr) == (0, "")
    for part in ("usage: envbuild", "\nexamples:\n  envbuild ", "\nexit codes:\n  0 ", "  130  "):
        assert part in done.stdout


@pytest.mark.parametrize("words", [["--version"], ["--help"], ["lock", "--help"]])
def test_help_and_version_are_quick(words: list[str]) -> None:
    """The budget is 100 ms; here a loaded machine must not fail, only a heavy import."""
    times = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        run(*words)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
    assert min(times) < 0.15


def test_nothing_heavy_is_imported_for_the_version() -> None:
    code = "import sys, envbuild.cli.main; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"requests", "rich", "packaging", "tomlkit", "dataclasses", "subprocess", "json"}
    assert heavy & {name.partition(".")[0] for name in done.stdout.split()} == set()


def test_what_uv_need_not_wait_for_is_not_imported_before_it_starts() -> None:
    code = "import sys, envbuild.cli.lockwiring, envbuild.cli.invocation; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    late = {
        "envbuild.model.installed",
        "envbuild.render.answer",
        "envbuild.world.environment",
        "http.client",
        "importlib.resources",
        "pkgutil",
        "requests",
        "rich",
        "urllib3",
        "zipfile",
    }
    assert late & {*done.stdout.split()} == set()


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (
            [],
            (
                "no command was given, wanted one of `lock`, `sync`, `script`, "
                "`dockerfile`, `doctor`, `rules`, `explain`, `gpus`"
            ),
            "`envbuild --help` shows",
        ),
        (
            ["lok"],
            (
                "unknown command `lok`, wanted one of `lock`, `sync`, `script`, "
                "`dockerfile`, `doctor`, `rules`, `explain`, `gpus`"
            ),
            "did you mean `lock`?",
        ),
        (
            ["lock", "--chek"],
            "unknown option `--chek` of `envbuild lock`",
            "did you mean `--check`",
        ),
        (["lock", "--targ", "x"], "unknown option `--targ`", "did you mean `--target`?"),
        (["--verison", "lock"], "unknown option `--verison` of `envbuild`", "mean `--version`?"),
        (["lock", "--zzz=1"], "unknown option `--zzz`", "`envbuild lock --help` lists all"),
        (["lock", "a", "b"], "`b` is one argument too many", "`envbuild lock --help` shows"),
        (["lock", "--format", "jsn"], "--format is `jsn`, wanted one of `text`", "mean `json`?"),
        (
            ["lock", "--target"],
            "argument --target: expected one argument",
            "`envbuild lock --help`",
        ),
        (["lock", "--check", "--dry-run"], "`--check` and `--dry-run` exclude", "leave one of"),
        (["lock", "--check", "-U"], "`--check` and `--upgrade` exclude", "leave one of them out"),
        (["lock", "--offline", "--source", "live"], "`--offline` and `--source live`", "leave"),
        (["lock", "-U", "a b"], "`--upgrade` was followed by `a b`", "`envbuild lock 'a b' --up"),
        (["lock", "-U", "."], "`--upgrade` was followed by `.`", "`envbuild lock . --upgrade`"),
        (["gpus", "RTX", "5900"], "found `RTX 5900`", "did you mean"),
    ],
)
def test_usage_errors(words: list[str], message: str, hint: str, call: Callable[..., Done]) -> None:
    done = call(*words, lock=REPORT)
    error, empty, advice = done.stderr.splitlines()
    assert (done.returncode, done.stdout, empty) == (2, "", "")
    assert error.startswith("error: ")
    assert message in error
    assert advice.startswith("hint: ")
    assert hint in advice


@pytest.mark.parametrize(
    ("path", "message", "hint"),
    [
        ("missing", "`missing` does not exist", "the folder that holds the pyproject.toml"),
        ("notes.txt", "`notes.txt` is a file", "`envbuild lock .` takes the folder of the file"),
        ("src", "`src` has no pyproject.toml", "takes the folder above that has one"),
        ("missing/pyproject.toml", "does not exist", "the folder that holds"),
    ],
)
def test_a_path_that_is_no_project(
    path: str, message: str, hint: str, project: Path, call: Callable[..., Done]
) -> None:
    (project / "src").mkdir()
    (project / "notes.txt").touch()
    done = call("lock", path, lock=REPORT)
    assert done.returncode == 2
    assert message in done.stderr
    assert hint in done.stderr


@pytest.mark.parametrize(
    ("words", "directory", "source", "given"),
    [
        ([], ".", "auto", {}),
        (
            ["sub/pyproject.toml", "--target", "a", "--target", "b", "--target", "a"],
            "sub",
            "auto",
            {"targets": ("a", "b")},
        ),
        (
            ["sub", "-U", "Peft", "--upgrade=torch_geometric", "-U", "peft", "--dry-run"],
            "sub",
            "auto",
            {"dry_run": True, "upgrade_packages": ("peft", "torch-geometric")},
        ),
        (
            ["--offline", "--allow-unhashed", "--source", "catalog", "-U"],
            ".",
            "catalog",
            {"upgrade": True, "offline": True, "allow_unhashed": True},
        ),
        (["--check"], ".", "auto", {"check": True}),
    ],
)
def test_options_reach_the_command(
    words: list[str],
    directory: str,
    source: str,
    given: dict[str, object],
    project: Path,
    call: Callable[..., Done],
) -> None:
    (project / "sub").mkdir()
    (project / "sub" / "pyproject.toml").touch()
    heard: list[object] = []

    def lock(options: LockOptions, source: str, _reporter: Reporter) -> LockReport:
        heard.extend((str(options.directory), source))
        names = ("targets", "check", "dry_run", "upgrade", "upgrade_packages", "offline")
        values = {name: getattr(options, name) for name in (*names, "allow_unhashed")}
        heard.append({name: value for name, value in values.items() if value})
        return REPORT

    assert call("lock", *words, lock=lock).returncode == 0
    assert heard == [directory, source, given]


def test_a_folder_after_upgrade_is_no_package(project: Path, call: Callable[..., Done]) -> None:
    done = call("lock", "-U", "app", cwd=project.parent, lock=REPORT)
    assert done.returncode == 2
    assert "hint: put PATH first: `envbuild lock app --upgrade`" in done.stderr


@pytest.mark.parametrize(
    ("report", "words", "code"),
    [
        (REPORT, [], 0),
        (replace(REPORT, outcome=Outcome.FRESH), ["--check"], 0),
        (replace(REPORT, outcome=Outcome.STALE), ["--check"], 1),
        (unhashed(replace(REPORT, outcome=Outcome.FRESH)), ["--check"], 1),
        (unhashed(), ["--allow-unhashed"], 0),
        (with_finding(ERROR), [], 1),
    ],
)
def test_exit_codes_of_answers(
    report: LockReport, words: list[str], code: int, call: Callable[..., Done]
) -> None:
    done = call("lock", *words, lock=report)
    assert (done.returncode, done.stderr) == (code, "")
    assert re.fullmatch(r"next: (envbuild lock|(\S*/)?uv ).*", done.stdout.splitlines()[-1])
    document = json.loads(call("lock", *words, "--format=json", lock=report).stdout)
    assert document["exit_code"] == code


@pytest.mark.parametrize(
    ("error", "kind", "code"),
    [(RefusedError, "refused", 1), (InputError, "input", 2), (WorldError, "world", 3)],
)
def test_exit_codes_of_errors(
    error: type[EnvbuildError], kind: str, code: int, call: Callable[..., Done]
) -> None:
    wrong = error("nothing fits", hint="ask for less")
    assert call("lock", lock=wrong) == (
        code,
        "",
        "error: nothing fits\n\nhint: ask for less\n",
    )
    done = call("lock", "--format", "json", lock=wrong)
    assert done.returncode == code
    assert json.loads(done.stdout) == {
        "version": 1,
        "error": {
            "kind": kind,
            "message": "nothing fits",
            "hint": "ask for less",
            "exit_code": code,
        },
    }


def test_usage_errors_are_json_as_well() -> None:
    done = run("lock", "--chek", "--format=json")
    assert json.loads(done.stdout)["error"]["exit_code"] == done.returncode == 2


def test_github_annotates_errors(project: Path, call: Callable[..., Done]) -> None:
    wrong = InputError("pyproject.toml:4: found `x`, wanted `y`")
    done = call("lock", "app", "--format", "github", cwd=project.parent, lock=wrong)
    assert done.stdout == "::error file=app/pyproject.toml,line=4::found `x`, wanted `y`\n"
    assert done.returncode == 2


def test_github_finds_the_line_of_the_target(call: Callable[..., Done]) -> None:
    done = call("lock", "--format", "github", lock=with_finding(ERROR))
    assert done.stdout.startswith("::error file=pyproject.toml,line=4,title=EB101 cu128::nvidia")


def test_a_bug_leaves_a_file(project: Path, tmp_path: Path) -> None:
    body = "raise ValueError('of https://me:secret@host.example/')"
    done = run("lock", "--target", "a b", cwd=project, lock=body, TMPDIR=str(tmp_path))
    assert done.returncode == 70
    error, empty, hint = done.stderr.splitlines()
    assert error == "error: a bug in envbuild: ValueError: of https://host.example/"
    assert empty == ""
    path = Path(hint.removeprefix("hint: report it with this file: "))
    assert path.parent == tmp_path
    text = path.read_text(encoding="utf-8")
    assert f"envbuild {__version__}\n" in text
    assert "envbuild lock --target 'a b'\n" in text
    assert "Traceback (most recent call last):" in text
    assert "secret" not in text


def test_a_bug_without_a_temp_folder_is_printed(project: Path) -> None:
    body = "import tempfile; tempfile.tempdir = '/nowhere'; raise ValueError"
    done = run("lock", cwd=project, lock=body)
    assert done.returncode == 70
    assert "Traceback (most recent call last):" in done.stderr
    assert done.stderr.endswith("hint: report it with this file: the text above\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted(number: signal.Signals, project: Path) -> None:
    body = "print('ready', flush=True); time.sleep(60)"
    with subprocess.Popen(
        [*command(body), "lock"],
        cwd=project,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        out, err = process.communicate(timeout=20)
    assert (process.returncode, out, err) == (130, "", "interrupted: nothing was written\n")


def test_interrupted_after_the_files_were_written(project: Path) -> None:
    """The reader of a full pipe keeps the answer waiting, and Ctrl-C ends that."""
    body = "print('ready', flush=True); return replace(REPORT, source='x' * 1_000_000)"
    with subprocess.Popen(
        [*command(body), "lock"],
        cwd=project,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.5)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 130
        assert process.stderr.read() == "interrupted: every file was written\n"


@pytest.mark.parametrize("words", [["--help"], ["gpus"], ["lock"], ["lock", "--format=json"]])
def test_a_reader_that_went_away_is_no_error(words: list[str], project: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [*command("return REPORT"), *words],
        cwd=project,
        stdout=write,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_an_answer_that_cannot_be_written(project: Path) -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        done = subprocess.run(
            [*command("return REPORT"), "lock"],
            cwd=project,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 3
    assert done.stderr == "error: the answer cannot be written: No space left on device\n"


def test_names_in_another_script_need_no_utf8(project: Path) -> None:
    body = "return replace(REPORT, source='index pages: \\u6587')"
    done = run("lock", cwd=project, lock=body, PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert "index pages: \\u6587\n" in done.stdout


@pytest.mark.parametrize(
    ("words", "environ", "coloured"),
    [
        ([], {}, False),
        (["--color", "always"], {}, True),
        (["--color=always"], {"NO_COLOR": "1"}, True),
        ([], {"FORCE_COLOR": "1"}, True),
        ([], {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        (["--color", "never"], {"FORCE_COLOR": "1"}, False),
    ],
)
def test_colour(
    words: list[str],
    environ: dict[str, str],
    coloured: bool,  # noqa: FBT001
    call: Callable[..., Done],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert ("\033[" in call("lock", *words, lock=REPORT).stdout) is coloured
    assert ("\033[" in call("lock", *words, lock=WorldError("x")).stderr) is coloured


def test_nothing_is_wrapped_in_a_pipe(project: Path) -> None:
    done = run("lock", cwd=project, lock="return REPORT", COLUMNS="40")
    assert done.stdout.startswith("cu128: torch 2.7.0+cu128, CUDA 12.8, Python 3.11, linux-x86_64,")
    assert len(done.stdout.splitlines()[0]) > 100


def test_notes_go_to_stderr_and_quiet_silences_them(call: Callable[..., Done]) -> None:
    def lock(_options: LockOptions, _source: str, reporter: Reporter) -> LockReport:
        reporter.phase("solve")
        reporter.note("a note")
        return REPORT

    assert call("lock", lock=lock).stderr == "a note\n"
    assert call("lock", "-q", lock=lock).stderr == ""


def test_what_to_type_next_repeats_the_arguments(project: Path, call: Callable[..., Done]) -> None:
    words = ("lock", "app", "--check", "--target", "cu128", "--source", "catalog", "--offline")
    done = call(*words, cwd=project.parent, lock=replace(REPORT, outcome=Outcome.STALE))
    assert done.stdout.endswith(
        "\nnext: envbuild lock app --target cu128 --offline --source catalog\n"
    )


def test_an_incomplete_lock_is_completed_online(call: Callable[..., Done]) -> None:
    words = ("lock", "--allow-unhashed", "--source", "catalog", "--offline")
    assert call(*words, lock=unhashed()).stdout.endswith("\nnext: envbuild lock --source live\n")


def test_explain(call: Callable[..., Done]) -> None:
    assert "  5 candidates, 4 rejected:\n" in call("lock", "--explain", lock=REPORT).stdout


@pytest.mark.parametrize(
    ("words", "row"),
    [
        (["RTX", "PRO", "2000", "Blackwell"], "RTX PRO 2000 Blackwell  12.0"),
        (["h100"], "H100  9.0"),
        (["10.0"], "B200"),
        (["GB10"], "GB10  12.1  platform linux-aarch64 only"),
        ([], "GeForce RTX 4090"),
    ],
)
def test_gpus(words: list[str], row: str, call: Callable[..., Done]) -> None:
    done = call("gpus", *words, lock=REPORT)
    assert (done.returncode, done.stderr) == (0, "")
    assert any(line.strip().startswith(row) for line in done.stdout.splitlines())


def test_gpus_of_a_capability_share_it() -> None:
    document = json.loads(run("gpus", "9.0", "--format", "json").stdout)
    assert {gpu["capability"] for gpu in document["gpus"]} == {"9.0"}
    assert len(document["gpus"]) > 1


def test_explain_shows_every_candidate_where_none_is_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "p"\nversion = "1"\nrequires-python = "==3.11.*"\n'
        'dependencies = ["torch", "spconv"]\n[tool.envbuild.targets.t]\npython = "3.11"\n'
        'gpus = ["B200"]\ncuda = "13.0"\n'
    )
    code = main(["lock", str(tmp_path), "--source", "catalog", "--explain"])
    out, err = capsys.readouterr()
    assert code == 1
    assert "candidates, all rejected:" in out
    assert "spconv has no wheel for CUDA 13" in out
    assert err.startswith("error: no build of torch fits target `t`")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_no_error(closed: str, project: Path) -> None:
    shell = shlex.join([*command("return REPORT"), "lock"])
    done = subprocess.run(["/bin/sh", "-c", f"{shell} {closed}"], cwd=project, check=False)
    assert done.returncode == 0


def test_a_uv_that_is_not_on_path_is_named_by_where_it_lies(project: Path) -> None:
    beside = Path(sys.executable).with_name("uv")
    done = subprocess.run(
        [*command("return REPORT"), "lock"],
        cwd=project,
        env=environment(PATH=str(project)),
        capture_output=True,
        text=True,
        check=False,
    )
    word = str(beside) if beside.is_file() else "uv"
    assert done.stdout.splitlines()[-1] == f"next: {word} sync"
