"""[tool.envbuild]: what each key means, and what is said when it is wrong."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet

from envbuild.core.project.checks import may_agree
from envbuild.core.project.manifest import KEYS, MINIMAL, parse_project, requirement_files_named
from envbuild.errors import InputError
from envbuild.model.project import BuildSpec, IndexUrls, Layer, Prefer, Project
from envbuild.model.target import Platform, Target

DOCS = Path(__file__).resolve().parent.parent / "docs" / "configuration.md"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
PROJECT = (
    '[project]\nname = "demo"\nrequires-python = ">=3.10"\ndependencies = ["torch", "numpy"]\n'
)
FULL = (
    PROJECT
    + '[dependency-groups]\ndev = ["pytest"]\n[project.optional-dependencies]\nViz = ["open3d"]\n'
    '[tool.envbuild]\nexclude-newer = "2026-11-01T02:00:00+02:00"\ndefault-target = "b"\n'
    '[tool.envbuild.targets.a]\npython = "3.10"\n'
    '[tool.envbuild.targets.b]\npython = "3.11"\nplatform = "linux-aarch64"\n'
    'gpus = ["GB200", "12.0"]\ncuda = "12.8"\ntorch = "2.7.*"\ndriver = "570"\n'
    'extras = ["viz"]\ngroups = ["dev"]\n'
    '[tool.envbuild.build]\nPoint_Ops = { path = "libs/pointops/", requires = ["ninja"] }\n'
    f'gs = {{ git = "git+https://example.org/gs.git@{COMMIT}" }}\nflash-attn = "wheel"\n'
    '[tool.envbuild.indexes]\npyg = "https://mirror.example/pyg/"\n'
)


def with_target(keys: str, *, before: str = "") -> str:
    """Give a project whose only target ``t`` has these keys, Python 3.11 unless they say so."""
    python = "" if "python" in keys else 'python = "3.11"\n'
    return f"{PROJECT}[tool.envbuild]\n{before}\n[tool.envbuild.targets.t]\n{python}{keys}\n"


def target(keys: str) -> Target:
    return parse_project(with_target(keys)).targets[0]


def complaint(text: str, **options: dict[str, str]) -> InputError:
    with pytest.raises(InputError) as caught:
        parse_project(text, **options)  # type: ignore[arg-type]
    return caught.value


def test_a_full_file() -> None:
    project = parse_project(FULL)
    assert (project.name, project.requires_python, project.layer) == (
        "demo",
        ">=3.10",
        Layer.PROJECT,
    )
    assert project.default_target == "b"
    assert project.exclude_newer == "2026-11-01T00:00:00Z"
    assert [t.name for t in project.targets] == ["a", "b"]
    b = project.targets[1]
    assert (b.python, b.platform) == ("3.11", Platform.LINUX_AARCH64)
    assert [(g.name, str(g.capability)) for g in b.gpus] == [("GB200", "10.0"), ("12.0", "12.0")]
    assert (str(b.cuda), str(b.torch), str(b.driver)) == ("==12.8.*", "==2.7.*", ">=570")
    assert (b.extras, b.groups) == (("viz",), ("dev",))
    assert project.builds == (
        BuildSpec(name="point-ops", path="libs/pointops", requires=("ninja",)),
        BuildSpec(name="gs", git=f"https://example.org/gs.git@{COMMIT}"),
        BuildSpec(name="flash-attn", prefer=Prefer.WHEEL),
    )
    assert project.indexes == IndexUrls(pyg="https://mirror.example/pyg")
    assert project.text == FULL


def test_the_defaults() -> None:
    project = parse_project(PROJECT + '[tool.envbuild.targets.one]\npython = "3.12"\n')
    assert (project.layer, project.default_target, project.builds) == (Layer.PROJECT, "one", ())
    assert project.targets == (Target(name="one", python="3.12", platform=Platform.LINUX_X86_64),)
    assert project.notes == (
        "target `one` names neither `gpus` nor `cuda`, so it gets the CPU build of torch",
    )


def test_pypis_torch_is_not_called_the_cpu_build() -> None:
    table = '[tool.envbuild.indexes]\npytorch = "pypi"\n'
    text = f'{PROJECT}{table}[tool.envbuild.targets.one]\npython = "3.12"\n'
    assert parse_project(text, environ={}).notes == ()


def test_the_table_that_the_hint_shows_is_valid() -> None:
    error = complaint(PROJECT)
    assert error.message.startswith("found no `[tool.envbuild]` in `pyproject.toml`")
    assert MINIMAL in (error.hint or "")
    assert parse_project(PROJECT + MINIMAL).targets[0].gpus


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        ('cuda = "12.8"', "==12.8.*"),
        ('cuda = "cu128"', "==12.8.*"),
        ('cuda = "12.8.1"', "==12.8.*"),
        ('cuda = "13"', "==13.*"),
        ('cuda = ">=12.6,<13"', "<13,>=12.6"),
        ('torch = "2.7"', "==2.7.*"),
        ('torch = "2.7.*"', "==2.7.*"),
        ('torch = "2"', "==2.*"),
        ('torch = "2.7.0"', "==2.7.0"),
        ('torch = "2.7.0+cu128"', "==2.7.0+cu128"),
        ('torch = ">=2.6,<2.9"', "<2.9,>=2.6"),
        ('torch = "2.7.0+custom"', "==2.7.0+custom"),
        ('driver = "570"', ">=570"),
        ('driver = "570.26"', ">=570.26"),
        ('driver = ">=570"', ">=570"),
    ],
)
def test_versions(written: str, wanted: str) -> None:
    found = target(f'gpus = ["B200"]\n{written}')
    assert getattr(found, written.split(maxsplit=1)[0]) == SpecifierSet(wanted)


def test_the_word_cpu_asks_for_the_cpu_build() -> None:
    project = parse_project(with_target('cuda = "cpu"'))
    assert project.targets[0].is_cpu
    assert project.notes == ()


@pytest.mark.parametrize("python", ["3.10", "3.11", "3.12", "3.13", "3.14"])
def test_pythons(python: str) -> None:
    assert target(f'python = "{python}"').python_tag == "cp" + python.replace(".", "")


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        ('"2026-11-01"', "2026-11-02T00:00:00Z"),
        ("2026-11-01", "2026-11-02T00:00:00Z"),
        ('"2026-11-01T00:00:00Z"', "2026-11-01T00:00:00Z"),
        ("2026-11-01T00:00:00Z", "2026-11-01T00:00:00Z"),
        ("2026-11-01 00:00:00-01:30", "2026-11-01T01:30:00Z"),
        ('"2026-11-01T00:00:00.1234567z"', "2026-11-01T00:00:00Z"),
    ],
)
def test_exclude_newer(written: str, wanted: str) -> None:
    text = with_target("", before=f"exclude-newer = {written}")
    assert parse_project(text).exclude_newer == wanted


@pytest.mark.parametrize(
    "written",
    [
        '"soon"',
        '"2026-13-01"',
        '"20261101T000000Z"',
        '"9999-12-31"',
        "9999-12-31T23:00:00-05:00",
        "3",
        "07:32:00",
        '"2026-11-01T00:00:00"',
        '""',
    ],
)
def test_exclude_newer_that_is_no_moment(written: str) -> None:
    error = complaint(with_target("", before=f"exclude-newer = {written}"))
    assert "pyproject.toml:6: tool.envbuild.exclude-newer: found" in error.message
    assert error.hint == 'exclude-newer = "2026-11-01T00:00:00Z"'


@pytest.mark.parametrize(
    ("keys", "message", "hint"),
    [
        ('python = "3.11.7"', "t.python: found `3.11.7`, wanted `3.10`", 'python = "3.11"'),
        ('python = "3.9"', "t.python: found `3.9`, wanted `3.10`", None),
        ("python = 3.11", "t.python: found the number `3.11`", 'python = "3.11"'),
        ('gpu = ["B200"]', "t.gpu: found the unknown key `gpu`; did you mean `gpus`?", None),
        ('gpus = "B200"', "t.gpus: found `B200`, wanted a list of texts", 'gpus = ["B200"]'),
        ("gpus = [12.0]", "t.gpus[0]: found the number `12.0`", 'put the number in quotes: "12.0"'),
        (
            'gpus = ["B200", "RTX PRO 200 Blackwell"]',
            "or a compute capability like `12.0`; did you mean `RTX PRO 2000 Blackwell`, ",
            None,
        ),
        ('gpus = ["RTX 4000"]', "t.gpus[0]: found `RTX 4000`, wanted the full name", None),
        ('gpus = ["9.0a"]', "t.gpus[0]: found `9.0a`, wanted the compute capability", None),
        (
            'gpus = ["GH200"]',
            "t.gpus[0]: found `GH200` with platform `linux-x86_64`",
            'platform = "linux-aarch64"',
        ),
        ('platform = "windows"', "t.platform: found `windows`, but only linux is locked", None),
        ('platform = "macos-arm64"', "found `macos-arm64`, but only linux is locked", None),
        ('platform = "linux-arm64"', "found `linux-arm64`", 'platform = "linux-aarch64"'),
        ('platform = "linux-x86_46"', "did you mean `linux-x86_64`?", None),
        ('cuda = "twelve"', "t.cuda: found `twelve`, wanted a version specifier", None),
        ('cuda = ""', "t.cuda: found an empty text, wanted a text", None),
        ("cuda = 12.8", "t.cuda: found the number `12.8`, wanted a text", 'cuda = "12.8"'),
        ("cuda = true", "t.cuda: found `true`, wanted a text", None),
        (
            'cuda = "cpu"\ngpus = ["B200"]',
            "t.cuda: found `cpu`, which means the CPU build, together with `gpus`",
            "remove either `cuda` or `gpus`",
        ),
        ('torch = "newest"', "t.torch: found `newest`, wanted a version specifier", None),
        (
            'gpus = ["B200"]\ncuda = "12.8"\ntorch = "2.7.0+cu126"',
            "t.torch: found a `+cu126` build, wanted a build for CUDA `==12.8.*`",
            None,
        ),
        ('gpus = ["B200"]\ntorch = "2.7.0+cpu"', "t.torch: found a `+cpu` build", None),
        ('torch = "2.7.0+cu128"', "found a `+cu128` build, wanted the CPU build", None),
        ('driver = "<525"', "t.driver: found `<525`, which names no oldest driver", None),
        ('driver = "new"', "t.driver: found `new`, wanted a version specifier", None),
        ('extras = ["viz"]', "t.extras[0]: found the unknown extra `viz`", None),
        ('groups = ["dev"]', "t.groups[0]: found the unknown dependency group `dev`", None),
    ],
)
def test_problems_of_a_target(keys: str, message: str, hint: str | None) -> None:
    error = complaint(with_target(keys))
    assert message in error.message
    assert re.match(r"pyproject\.toml:\d+: tool\.envbuild\.targets\.t\.", error.message)
    assert error.hint == hint


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        ("", "tool.envbuild: found no target, wanted at least one"),
        ("targets = 3", "tool.envbuild.targets: found the number `3`, wanted a table"),
        ('[tool.envbuild.targets."cu12.8"]\npython = "3.11"', "found the target name `cu12.8`"),
        ("[tool.envbuild.targets.a]", "tool.envbuild.targets.a: found no `python`"),
        (
            '[tool.envbuild.targets]\na-b = { python = "3.11" }\na_b = { python = "3.11" }',
            "tool.envbuild.targets.a_b: found the same target twice, also as `a-b`",
        ),
        (
            'default-target = "cu12"\n[tool.envbuild.targets.cu128]\npython = "3.11"',
            "toml:6: tool.envbuild.default-target: found `cu12`, wanted `cu128`; did you mean",
        ),
        (
            'layr = "pip"\n[tool.envbuild.targets.a]\npython = "3.11"',
            "toml:6: tool.envbuild.layr: found the unknown key `layr`; did you mean `layer`?",
        ),
        (
            'layer = "pipp"\n[tool.envbuild.targets.a]\npython = "3.11"',
            "tool.envbuild.layer: found `pipp`, wanted `project` or `pip`; did you mean `pip`?",
        ),
        (
            'requirements = ["r.txt"]\n[tool.envbuild.targets.a]\npython = "3.11"',
            "found requirements files in layer `project`, wanted layer `pip`",
        ),
    ],
)
def test_problems_of_the_table(rest: str, message: str) -> None:
    assert message in complaint(f"{PROJECT}[tool.envbuild]\n{rest}\n").message


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('x = { pth = "a" }', "build.x.pth: found the unknown key `pth`; did you mean `path`?"),
        ('x = "wheal"', "build.x: found `wheal`, wanted `wheel`, `source` or `wheel-or-source`"),
        ('x = { prefer = "src" }', "build.x.prefer: found `src`"),
        ("x = 1", "build.x: found the number `1`, wanted a table"),
        ('x = { path = "/opt/x" }', "build.x.path: found `/opt/x`, wanted a folder relative"),
        ('x = { git = "https://h/x@main" }', "build.x.git: found `https://h/x@main`"),
        ('x = { path = "x", prefer = "wheel" }', "build.x.prefer: found `wheel` for a package"),
        (
            f'x = {{ path = "x", git = "https://h/x@{COMMIT}" }}',
            "build.x.git: found both `path` and `git`",
        ),
        ('x = { requires = ["a b"] }', "build.x.requires[0]: found `a b`, wanted a requirement"),
        ('"a b" = "wheel"', 'build."a b": found `a b`, wanted the name of a package'),
        ('a-b = "wheel"\na_b = "wheel"', "build.a_b: found the same package twice"),
        (
            'NumPy = { path = "np" }',
            "build.NumPy: found `numpy` also in [project] dependencies (pyproject.toml:4)",
        ),
    ],
)
def test_problems_of_builds(line: str, message: str) -> None:
    assert message in complaint(with_target(f"[tool.envbuild.build]\n{line}")).message


def test_a_package_of_an_index_may_be_built_and_required() -> None:
    text = with_target('[tool.envbuild.build]\nnumpy = "source"')
    assert parse_project(text).builds == (BuildSpec(name="numpy", prefer=Prefer.SOURCE),)


def test_credentials_never_stand_in_a_message() -> None:
    text = PROJECT.replace('"numpy"', '"x @ https://user:secret@host/x ! y"') + (
        '[tool.envbuild.targets.t]\npython = "3.11"\n'
        '[tool.envbuild.build]\ny = "https://user:secret@host/y"\n'
        'x = { git = "https://user:secret@host/x", path = "ssh://u:secret@h" }\n'
    )
    error = complaint(text)
    assert error.message.count("https://host/x") == 2
    assert "secret" not in error.message + (error.hint or "")


def indexes(lines: str, environ: dict[str, str] | None = None) -> IndexUrls:
    text = with_target(f"[tool.envbuild.indexes]\n{lines}")
    return parse_project(text, environ=environ or {}).indexes


def test_indexes() -> None:
    assert indexes('pytorch = "pypi"').pytorch is None
    assert indexes('pypi = "file:///srv/simple/"').pypi == "file:///srv/simple"
    assert indexes('flash-attn = "http://m/fa"').flash_attn == "http://m/fa"


def test_the_environment_goes_before_the_file() -> None:
    environ = {"ENVBUILD_INDEX_PYTORCH": "pypi", "ENVBUILD_INDEX_FLASH_ATTN": "https://e/fa/"}
    found = indexes('pytorch = "https://file/whl"\nflash-attn = "https://file/fa"', environ)
    assert (found.pytorch, found.flash_attn) == (None, "https://e/fa")
    assert indexes("", {"ENVBUILD_INDEX_PYG": " "}) == IndexUrls()


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("ftp://user:secret@mirror/whl", "wanted an address with `https://`"),
        ("user:secret@mirror/whl", "wanted an address with `https://`"),
        ("https://", "wanted an address with `https://`"),
        ("http://[user:secret@mirror", "wanted a valid address"),
        ("https://user:secret@mirror/whl/cu128", "wanted the folder above"),
    ],
)
def test_a_wrong_index_is_named_without_its_credentials(address: str, message: str) -> None:
    text = with_target(f'[tool.envbuild.indexes]\npytorch = "{address}"')
    error = complaint(text)
    assert "pyproject.toml:10: tool.envbuild.indexes.pytorch: found `" in error.message
    assert message in error.message
    assert "secret" not in error.message
    environ = {"ENVBUILD_INDEX_PYTORCH": address}
    error = complaint(with_target(""), environ=environ)
    assert error.message.startswith("environment: ENVBUILD_INDEX_PYTORCH: found `")
    assert "secret" not in error.message


def test_python_must_satisfy_requires_python() -> None:
    text = with_target("").replace(">=3.10", ">=3.12,<3.13")
    message = complaint(text).message
    assert "t.python: found `3.11`, wanted one that `requires-python" in message
    assert "(line 3)" in message
    assert parse_project(with_target("").replace(">=3.10", ">=3.11.4")).targets
    assert (
        "project.requires-python: found `new`"
        in complaint(with_target("").replace(">=3.10", "new")).message
    )


def torch_in_dependencies(torch: str, keys: str) -> str:
    return with_target(keys).replace('"torch", ', f"'''{torch}''', ")


def test_contradicting_pins_are_shown_with_both_places() -> None:
    text = torch_in_dependencies("torch==2.8.0", 'torch = "2.7.0"')
    message = complaint(text).message
    assert message.startswith("pyproject.toml:9: tool.envbuild.targets.t.torch: found `==2.7.0`")
    assert "`torch==2.8.0` (pyproject.toml:4, [project] dependencies)" in message


@pytest.mark.parametrize(
    "torch", ["torch>=2.6", 'torch==2.8.0; sys_platform == "darwin"', "torch==2.7.*", "torch"]
)
def test_pins_that_agree(torch: str) -> None:
    assert parse_project(torch_in_dependencies(torch, 'torch = "2.7.0"')).targets


def test_a_pin_of_an_extra_counts_where_the_extra_is_chosen() -> None:
    extra = '[project.optional-dependencies]\nnew = ["torch==2.8.0"]\n'
    assert parse_project(extra + with_target('torch = "2.7.0"')).targets
    text = extra + with_target('torch = "2.7.0"\nextras = ["new"]')
    assert "no version has in common" in complaint(text).message


@pytest.mark.parametrize(
    ("first", "second", "agree"),
    [
        ("==2.7.0", "==2.8.0", False),
        ("==2.7.0+cu128", "==2.7.0", True),
        ("==2.7.0+cu128", ">=2.8", False),
        ("==2.7.*", "==2.8.*", False),
        ("==2.*", "==2.8.*", True),
        ("==2.7.*", "==2.7.1", True),
        ("==2.7.*", "==2.8.1", False),
        (">=2.8", "<2.8", True),
        ("", "==2.8.0", True),
    ],
)
def test_what_can_be_seen_of_two_specifiers(first: str, second: str, *, agree: bool) -> None:
    assert may_agree(SpecifierSet(first), SpecifierSet(second)) is agree
    assert may_agree(SpecifierSet(second), SpecifierSet(first)) is agree


PIP = (
    '[tool.envbuild]\nlayer = "pip"\nrequirements = ["./requirements.txt", "reqs/a.txt"]\n'
    '[tool.envbuild.targets.t]\npython = "3.11"\ntorch = "2.7.0"\n'
)


def test_requirements_files_are_named_step_by_step() -> None:
    assert requirement_files_named(PROJECT) == ()
    first = requirement_files_named(PIP)
    assert first == ("requirements.txt", "reqs/a.txt")
    texts = {"requirements.txt": "torch==2.7.0\n", "reqs/a.txt": "-r b.txt\n"}
    assert requirement_files_named(PIP, requirement_files=texts) == (*first, "reqs/b.txt")


def test_the_pip_layer_reads_files_and_needs_no_project() -> None:
    texts = {"requirements.txt": "torch==2.7.0\n-f x\n", "reqs/a.txt": "\nnumpy\n"}
    project = parse_project(PIP, requirement_files=texts)
    assert (project.layer, project.name) == (Layer.PIP, None)
    assert project.requirement_files == ("requirements.txt", "reqs/a.txt")
    assert [(str(d.requirement), d.where, d.line, d.group) for d in project.requirements] == [
        ("torch==2.7.0", "requirements.txt", 1, ""),
        ("numpy", "reqs/a.txt", 2, ""),
    ]
    assert project.notes[0].startswith("requirements.txt:2: `--find-links` is not used")


def test_problems_of_requirements_files_come_with_those_of_the_table() -> None:
    message = complaint(PIP, requirement_files={"requirements.txt": "torch==2.8.0\n!\n"}).message
    assert message.splitlines()[0] == "3 problems in `pyproject.toml`"
    assert "pyproject.toml:3: tool.envbuild.requirements[1]: found no file `reqs/a.txt`" in message
    assert "`torch==2.8.0` (requirements.txt:1, requirements.txt)" in message
    assert "requirements.txt:2: found `!`, wanted a requirement (PEP 508)" in message


def test_a_layer_needs_its_source_of_requirements() -> None:
    bare = '[tool.envbuild.targets.t]\npython = "3.11"\n'
    assert "found no `[project]` table" in complaint(bare).message
    pip = '[tool.envbuild]\nlayer = "pip"\n' + bare
    assert "found neither `requirements` nor a `[project]` table" in complaint(pip).message


def test_dynamic_dependencies_need_a_file() -> None:
    dynamic = '[project]\nname = "x"\ndynamic = ["dependencies"]\n'
    error = complaint(dynamic + MINIMAL)
    assert "project.dynamic: found dynamic `dependencies`" in error.message
    assert 'requirements = ["requirements.txt"]' in (error.hint or "")
    texts = {"requirements.txt": "", "reqs/a.txt": ""}
    assert parse_project(dynamic + PIP, requirement_files=texts).targets


def test_every_problem_is_reported_at_once_with_its_line() -> None:
    text = (
        PROJECT + "[tool.envbuild]\nlayr = 1\n[tool.envbuild.targets.t]\n"
        'gpus = [\n  "B200",\n  "B201",\n]\n[tool.envbuild.indexes]\npypi = "x"\n'
    )
    error = complaint(text)
    assert error.exit_code == 2
    lines = error.message.splitlines()
    assert lines[0] == "4 problems in `pyproject.toml`"
    assert [line.split(": ")[0] for line in lines[1:]] == [
        f"pyproject.toml:{number}" for number in (6, 7, 10, 13)
    ]
    assert (error.hint or "").splitlines()[0] == 'pyproject.toml:7: python = "3.11"'


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("a = 1\nb = [\n", "pyproject.toml:2: found invalid TOML: "),
        ("a = 1\na = 2\n", "pyproject.toml:2: found invalid TOML: "),
        ("", "found no `[tool.envbuild]`"),
        ("a = " + "[" * 5000, "pyproject.toml:1: found "),
    ],
)
def test_invalid_toml(text: str, start: str) -> None:
    assert complaint(text).message.startswith(start)


LINES = st.sampled_from(
    [
        *(line for line in FULL.splitlines()),
        "[tool.envbuild.targets]",
        "[project]",
        "[tool]",
        "tool.envbuild = 1",
        "build = 1",
        "dependencies = 7",
        'dynamic = "dependencies"',
        "optional-dependencies = 1",
        "name = 1",
        "requires-python = []",
        'requirements = ["a.txt", 1]',
        "indexes = []",
        'layer = "pip"',
    ]
)


@given(st.lists(LINES, max_size=12).map("\n".join))
def test_any_file_is_a_project_or_an_input_error(text: str) -> None:
    try:
        project = parse_project(text, requirement_files={"a.txt": text})
    except InputError:
        return
    assert project.default_target in {t.name for t in project.targets}


@given(st.text())
def test_any_text_is_a_project_or_an_input_error(text: str) -> None:
    with pytest.raises(InputError):
        parse_project(text)


def test_the_documentation_has_every_key() -> None:
    documented: dict[str, list[str]] = {}
    section = ""
    for line in DOCS.read_text(encoding="utf-8").splitlines():
        if heading := re.match(r"## `(\[tool\.envbuild.*\])`", line):
            section = heading[1]
        elif section and (row := re.match(r"\| `([a-z-]+)`", line)):
            documented.setdefault(section, []).append(row[1])
        elif line.startswith("## "):
            section = ""
    assert documented == {table: list(keys) for table, keys in KEYS.items()}


def test_the_examples_of_the_documentation_are_valid() -> None:
    blocks = re.findall(r"```toml\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) >= 2
    for block in blocks:
        names = requirement_files_named(block)
        parsed = parse_project(block, requirement_files=dict.fromkeys(names, ""))
        assert isinstance(parsed, Project)
