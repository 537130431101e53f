"""`envbuild doctor`, `rules` and `explain` from outside, over files, fakes and the real uv."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import incident
import pytest
import uv
from diagnoses import BROKEN, CU12, CU13, INCIDENT, OWNERSHIP, finding
from index import LocalIndex, local_wheel
from jsonschema import Draft202012Validator

from envbuild.cli.doctorcommand import DoctorWorld
from envbuild.cli.main import main
from envbuild.core.cause import findings_to_mend, sort_findings
from envbuild.core.repair.plan import Ground, repair_plan
from envbuild.errors import InputError
from envbuild.model.diagnosis import DoctorReport, RuleText, Subject
from envbuild.model.finding import Severity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from envbuild.cli.doctorcommand import Where
    from envbuild.commands.doctor import DoctorOptions

RULE = RuleText(code="EB301", title="A symbol is missing", severity=Severity.ERROR, page="Page.")
HEALTHY = DoctorReport(subject=Subject(prefix="/v"), rules=(RULE,))


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture(name="call")
def a_call(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[..., Done]:
    """Run the command line in this process, in an empty folder and without an active venv."""
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX", "LD_LIBRARY_PATH", "PYTHONPATH", "NO_COLOR", "CI"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")

    def call(*words: object, world: DoctorWorld | None = None) -> Done:
        code = main([str(word) for word in words], doctor_world=world)
        return Done(code, *capsys.readouterr())

    return call


@dataclass
class FakeWorld:
    """Gives one report after the other; ``answer`` is what a person types."""

    reports: tuple[DoctorReport, ...] = (HEALTHY,)
    answer: bool | None = None
    status: int = 0
    stops: bool = False
    asked: list[str] = field(default_factory=list)
    ran: list[tuple[str, ...]] = field(default_factory=list)
    seen: list[tuple[DoctorOptions, Where]] = field(default_factory=list)

    def world(self) -> DoctorWorld:
        return DoctorWorld(
            examine=self.examine,
            rules=lambda: (RULE, replace(RULE, code="EB401")),
            runner=lambda: self,
            ask=None if self.answer is None else self.ask,
        )

    def examine(self, options: DoctorOptions, where: Where) -> DoctorReport:
        self.seen.append((options, where))
        return self.reports[min(len(self.seen), len(self.reports)) - 1]

    def ask(self, question: str) -> bool:
        self.asked.append(question)
        return bool(self.answer)

    def run(self, command: tuple[str, ...]) -> int:
        if self.stops:
            raise KeyboardInterrupt
        self.ran.append(command)
        return self.status


def sick() -> DoctorReport:
    problems = sort_findings(INCIDENT).problems
    ground = Ground(installed=BROKEN, ownership=OWNERSHIP)
    plan = repair_plan(findings_to_mend(problems), ground)
    return replace(HEALTHY, problems=problems, plan=plan)


def test_the_incident_on_disk(call: Callable[..., Done], tmp_path: Path) -> None:
    env = incident.broken(tmp_path)
    done = call("doctor", env.prefix)
    cause, _, effects = done.stdout.partition("\nexplains:\n")
    assert (done.returncode, done.stderr) == (1, "")
    assert cause.startswith("error EB")
    for words in (CU12, CU13, "libnccl.so.2"):
        assert words in cause
    effects, _, repair = effects.partition("\nrepair:\n")
    repair, _, others = repair.partition("\nother problems:\n")
    for name in incident.NEW:
        assert name in effects
    python = env.prefix / "bin" / "python"
    commands = [line.strip() for line in repair.splitlines() if line.startswith("  uv ")]
    assert commands[0] == f"uv pip uninstall --python {python} {CU12}"
    assert commands[-1] == (
        f"uv pip install --python {python} --reinstall-package {CU13} --no-deps {CU13}==2.28.9"
    )
    assert "torch==2.7.0" not in repair
    for words in ("torchvision==0.26.0", "torchaudio==2.11.0"):
        assert words in repair
    for words in ("torchvision 0.22.0", "torchaudio 2.7.0"):
        assert words in others


def test_the_healthy_twin_is_one_line(call: Callable[..., Done], tmp_path: Path) -> None:
    env = incident.healthy(tmp_path)
    done = call("doctor", env.prefix, "--fail-on", "note")
    assert done.returncode == 0
    assert done.stdout.startswith("healthy: 2 distributions, 3 shared objects, torch 2.11.0+cu130")
    assert done.stdout.count("\n") == 1


@pytest.mark.parametrize("name", [".", "bin/python", "lib/python3.11/site-packages"])
def test_every_name_of_it_will_do(name: str, call: Callable[..., Done], tmp_path: Path) -> None:
    env = incident.broken(tmp_path)
    assert call("doctor", env.prefix / name).returncode == 1
    assert call("doctor", "--python", env.prefix / name).returncode == 1


def test_the_json_of_a_real_examination(call: Callable[..., Done], tmp_path: Path) -> None:
    env = incident.broken(tmp_path)
    document = json.loads(call("doctor", env.prefix, "--format", "json").stdout)
    assert document["environment"]["distributions"] == 5
    assert document["exit_code"] == 1
    everything = [document["primary"], *document["consequences"]]
    assert {"EB201", "EB301"} <= {one["code"] for one in everything}
    sarif = json.loads(call("doctor", env.prefix, "--format", "sarif").stdout)
    schema = json.loads(
        (Path(__file__).parent / "data" / "sarif-2.1.0-part.schema.json").read_text("utf-8")
    )
    Draft202012Validator(schema).validate(sarif)
    github = call("doctor", env.prefix, "--format", "github").stdout
    assert github.startswith("::error title=")


LOCK = """\
version = 1
revision = 3
requires-python = ">=3.11"

[[package]]
name = "x"
version = "0"
source = { virtual = "." }
dependencies = [{ name = "torch" }, { name = "torchvision" }]

[[package]]
name = "torch"
version = "2.11.0"
source = { registry = "https://pypi.org/simple" }
dependencies = [{ name = "nvidia-nccl-cu13" }]

[[package]]
name = "torchvision"
version = "0.22.0"
source = { registry = "https://pypi.org/simple" }

[[package]]
name = "nvidia-nccl-cu13"
version = "2.28.9"
source = { registry = "https://pypi.org/simple" }
"""


@pytest.mark.parametrize(
    ("targets", "relock"),
    [
        ("", "uv lock --directory {} --upgrade-package torchvision==0.26.0"),
        ("[tool.envbuild.targets.a]\npython = '3.11'\n", "envbuild lock {}"),
    ],
)
def test_a_project_on_disk(
    targets: str, relock: str, call: Callable[..., Done], tmp_path: Path
) -> None:
    """The lock holds the old torchvision; what it does not hold goes with the sync."""
    env = incident.broken(tmp_path)
    manifest = (
        '[project]\nname = "x"\nversion = "0"\nrequires-python = ">=3.11"\n'
        'dependencies = ["torch", "torchvision"]\n[tool.envbuild.doctor]\n'
        f'ignore = {{ EB109 = "no real wheels", EB5 = "nor a real lock" }}\n{targets}'
    )
    (tmp_path / "pyproject.toml").write_text(manifest, "utf-8")
    (tmp_path / "uv.lock").write_text(LOCK, "utf-8")
    done = call("doctor", tmp_path)
    python = env.prefix / "bin" / "python"
    commands = [line.strip() for line in done.stdout.splitlines() if " --directory " in line]
    commands += [line.strip() for line in done.stdout.splitlines() if line.startswith("  envbuild")]
    assert relock.format(tmp_path) in commands
    assert (
        f"uv sync --directory {tmp_path} --python {python} --reinstall-package {CU13}"
        " --reinstall-package torchvision"
    ) in commands
    assert "EB109: ignored: no real wheels" in done.stdout


def test_redacted_it_names_no_folder(
    call: Callable[..., Done], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    env = incident.broken(tmp_path)
    done = call("doctor", env.prefix, "--redact", "--format", "json")
    assert str(tmp_path) not in done.stdout
    assert "~/.venv/bin/python" in done.stdout


def test_an_image_is_repaired_inside(call: Callable[..., Done], tmp_path: Path) -> None:
    incident.broken(tmp_path / "rootfs" / "app")
    done = call("doctor", "/app/.venv", "--root", tmp_path / "rootfs")
    assert done.returncode == 1
    assert "repair: (in a container of the image)" in done.stdout
    assert str(tmp_path) not in done.stdout.replace(str(tmp_path / "rootfs"), "")
    refused = call("doctor", "/app/.venv", "--root", tmp_path / "rootfs", "--fix", "--yes")
    assert refused.returncode == 2
    assert "`--fix` and `--root` exclude each other" in refused.stderr


def test_nothing_to_examine(call: Callable[..., Done], tmp_path: Path) -> None:
    done = call("doctor", tmp_path / "nowhere")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: found nothing at `")
    sarif = json.loads(call("doctor", tmp_path / "nowhere", "--format=sarif").stdout)
    assert sarif["runs"][0]["invocations"][0]["exitCode"] == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["x", "--python", "y"], "`PATH` and `--python` mean the same"),
        (["--gpu", "RTX 5900"], "--gpu: found `RTX 5900`"),
        (["--select", "301"], "found `301`, wanted the code of a rule"),
        (["--project", "nowhere"], "`--project nowhere` is no folder"),
        (["--fail-on", "never2"], "--fail-on is `never2`, wanted one of"),
        (["--fixx"], "unknown option `--fixx` of `envbuild doctor`"),
    ],
)
def test_usage_errors(words: list[str], message: str, call: Callable[..., Done]) -> None:
    done = call("doctor", *words, world=FakeWorld().world())
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {message}")


def test_options_reach_the_command(call: Callable[..., Done]) -> None:
    fake = FakeWorld()
    words = ("--gpu", "H100", "--select", "eb2,EB301", "--select", "EB2", "--ignore", "EB203")
    assert call("doctor", "/v", "--build", *words, world=fake.world()).returncode == 0
    ((options, where),) = fake.seen
    assert (options.select, options.ignore) == (("EB2", "EB301"), ("EB203",))
    assert (options.gpus[0].name, options.build, where.path) == ("H100", True, "/v")


def test_the_next_command_is_the_same_with_fix(call: Callable[..., Done]) -> None:
    fake = FakeWorld(reports=(sick(),))
    done = call("doctor", "a b", "--gpu", "RTX 5090", "--dry-run", "--fix", world=fake.world())
    assert done.stdout.endswith("next: envbuild doctor 'a b' --gpu 'RTX 5090' --fix\n")
    assert (done.returncode, fake.ran) == (1, [])


def test_a_fix_is_shown_asked_for_applied_and_checked(call: Callable[..., Done]) -> None:
    fake = FakeWorld(reports=(sick(), HEALTHY), answer=True)
    done = call("doctor", "--fix", world=fake.world())
    assert done.returncode == 0
    assert done.stdout.startswith("healthy: ")
    assert fake.asked == ["apply this repair? [y/N] "]
    assert [command[:3] for command in fake.ran] == [
        ("uv", "pip", "uninstall"),
        ("uv", "pip", "install"),
        ("uv", "pip", "install"),
    ]
    assert done.stderr.index("repair:") < done.stderr.index("$ uv pip uninstall")
    assert len(fake.seen) == 2


def test_no_is_an_answer(call: Callable[..., Done]) -> None:
    fake = FakeWorld(reports=(sick(),), answer=False)
    done = call("doctor", "--fix", world=fake.world())
    assert (done.returncode, fake.ran, len(fake.seen)) == (1, [], 1)
    assert done.stdout.startswith("error EB201: ")


def test_nobody_to_ask(call: Callable[..., Done]) -> None:
    done = call("doctor", "--fix", world=FakeWorld(reports=(sick(),)).world())
    assert done.returncode == 2
    assert "`--fix` has no terminal to ask on, wanted `--yes`" in done.stderr


def test_nothing_to_fix_asks_nobody(call: Callable[..., Done]) -> None:
    assert call("doctor", "--fix", world=FakeWorld().world()).returncode == 0
    alone = replace(HEALTHY, problems=sort_findings([finding("EB301")]).problems)
    assert call("doctor", "--fix", world=FakeWorld(reports=(alone,)).world()).returncode == 1


def test_a_failed_step_ends_the_repair(call: Callable[..., Done]) -> None:
    fake = FakeWorld(reports=(sick(),), status=2)
    done = call("doctor", "--fix", "--yes", "--format", "json", world=fake.world())
    assert (done.returncode, len(fake.ran)) == (3, 1)
    assert "error: the repair stopped at `uv pip uninstall" in done.stderr
    assert "# still to do: bring back every file of" in done.stderr
    document = json.loads(done.stdout)
    assert document["exit_code"] == 3
    assert document["repair"]["reason"] == "exit status 2"
    assert len(document["repair"]["rest"]) == 2


def test_an_interrupted_repair_says_so(call: Callable[..., Done]) -> None:
    fake = FakeWorld(reports=(sick(),), stops=True)
    done = call("doctor", "--fix", "--yes", world=fake.world())
    assert done.returncode == 130
    assert done.stderr.endswith(
        "interrupted: the repair is not complete; run `envbuild doctor` again\n"
    )


def test_rules_are_listed(call: Callable[..., Done]) -> None:
    everything = call("rules").stdout.splitlines()
    some = call("rules", "eb3").stdout.splitlines()
    assert {line.split()[0] for line in everything} >= {"EB101", "EB201", "EB301"}
    assert some
    assert all(line.split()[0].startswith("EB3") for line in some)
    assert len(some) < len(everything)
    document = json.loads(call("rules", "EB301", "--format", "json").stdout)
    assert [one["code"] for one in document["rules"]] == ["EB301"]
    assert call("rules", "EB98").returncode == 2


def test_every_rule_has_its_page(call: Callable[..., Done]) -> None:
    for line in call("rules").stdout.splitlines():
        code = line.split()[0]
        page = call("explain", code.lower()).stdout
        assert page.startswith(f"{code} ")
        assert len(page.splitlines()) > 3


@pytest.mark.parametrize("words", [["EB998"], ["ImportError:", "libnccl.so.2"], ["137"]])
def test_other_input_is_not_explained(words: list[str], call: Callable[..., Done]) -> None:
    done = call("explain", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"found `{' '.join(words)}`" in done.stderr


@pytest.mark.parametrize("command", ["doctor", "rules", "explain"])
def test_help(command: str, call: Callable[..., Done]) -> None:
    text = call(command, "--help").stdout
    for part in ("usage: envbuild", "\nexamples:\n  envbuild ", "\nexit codes:\n  0 ", "  130  "):
        assert part in text


def test_a_broken_world_is_told_as_ever(call: Callable[..., Done]) -> None:
    def examine(_options: DoctorOptions, _where: Where) -> DoctorReport:
        raise InputError("found nothing")

    world = replace(FakeWorld().world(), examine=examine)
    assert json.loads(call("doctor", "--format", "json", world=world).stdout)["error"] == {
        "kind": "input",
        "message": "found nothing",
        "hint": None,
        "exit_code": 2,
    }


@pytest.fixture(name="uv_index")
def an_index_for_uv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalIndex]:
    """Let uv find torch and both NCCL packages, over one path, on a local index alone."""
    new = incident.nccl_files(incident.NEW, "13")
    old = incident.nccl_files(incident.OLD, "12")
    with LocalIndex() as index:
        index.add_pypi(
            local_wheel("nvidia-nccl-cu13", "2.28.9", files=new),
            local_wheel("nvidia-nccl-cu12", "2.26.2", files=old),
            local_wheel("torch", "2.11.0", requires=["nvidia-nccl-cu13==2.28.9"]),
            local_wheel("xgboost", "3.2.0", requires=["nvidia-nccl-cu12"]),
        )
        for name, value in {
            "UV_DEFAULT_INDEX": f"{index.base}/pypi/simple",
            "UV_CACHE_DIR": str(tmp_path / "cache"),
            "UV_NO_CONFIG": "1",
            "UV_PYTHON": sys.executable,
            "UV_PYTHON_DOWNLOADS": "never",
        }.items():
            monkeypatch.setenv(name, value)
        yield index


@pytest.mark.usefixtures("uv_index")
def test_uv_repairs_what_was_found(call: Callable[..., Done], tmp_path: Path) -> None:
    """Two packages over one path, in a real venv: doctor finds it, uv repairs it, doctor agrees."""
    venv = tmp_path / "venv"
    run_uv("venv", venv)
    for wanted in ("torch==2.11.0", "nvidia-nccl-cu12==2.26.2"):
        run_uv("pip", "install", "--python", venv / "bin" / "python", wanted)
    library = library_of(venv)
    assert library.read_bytes() == incident.nccl(*incident.OLD)

    done = call("doctor", venv, "--select", "EB1,EB2", "--fix", "--yes")
    assert (done.returncode, done.stdout.split(":")[0]) == (0, "healthy"), done
    assert library.read_bytes() == incident.nccl(*incident.NEW)
    assert not list(venv.glob("lib/*/site-packages/nvidia_nccl_cu12*"))

    shutil.rmtree(library.parent)
    again = call("doctor", venv, "--select", "EB1,EB2", "--fix", "--yes")
    assert (again.returncode, library.is_file()) == (0, True), again


@pytest.mark.usefixtures("uv_index")
def test_two_commands_break_a_project_and_one_repairs_it(
    call: Callable[..., Done], tmp_path: Path
) -> None:
    """`uv add torch xgboost; uv remove xgboost` takes NCCL away, and uv calls it clean."""
    project = tmp_path / "project"
    project.mkdir()
    manifest = '[project]\nname = "x"\nversion = "0"\nrequires-python = ">=3.10"\n'
    (project / "pyproject.toml").write_text(manifest, "utf-8")
    run_uv("add", "--directory", project, "torch==2.11.0", "xgboost")
    run_uv("remove", "--directory", project, "xgboost")
    run_uv("sync", "--directory", project, "--check")
    library = library_of(project / ".venv")
    assert not library.exists()
    lock = (project / "uv.lock").read_bytes()

    found = call("doctor", project)
    assert found.returncode == 1
    assert "libnccl.so.2" in found.stdout.splitlines()[0] + found.stdout.splitlines()[1]
    python = project / ".venv" / "bin" / "python"
    sync = f"uv sync --directory {project} --python {python} --reinstall-package {CU13}"
    assert f"  {sync}\n" in found.stdout, found.stdout

    done = call("doctor", project, "--fix", "--yes")
    assert (done.returncode, done.stdout.split(":")[0]) == (0, "healthy"), done
    assert library.read_bytes() == incident.nccl(*incident.NEW)
    assert (project / "uv.lock").read_bytes() == lock


def library_of(venv: Path) -> Path:
    return next(venv.glob("lib/*/site-packages")) / incident.LIBRARY


def run_uv(*words: object) -> None:
    assert "UV_PROJECT_ENVIRONMENT" not in os.environ  # it would lead uv to another environment
    done = subprocess.run(
        [uv.find_uv_bin(), *map(str, words)], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
