"""EB2: files with two owners, files that are gone, files that were changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from checkvalues import FACTS, SITE, at, dist, env, found, imports, one, owned
from elfmaker import make_elf
from envmaker import EnvMaker

from envbuild.checks.changedfiles import changed_files, unowned_files
from envbuild.checks.files import RULES, missing_files, two_owners
from envbuild.checks.sharedfiles import is_code
from envbuild.checks.twins import cuda_twins
from envbuild.core.cause import sort_findings
from envbuild.model.finding import Severity
from envbuild.model.fix import Manual, Reinstall, Remove
from envbuild.model.links import Links

if TYPE_CHECKING:
    from pathlib import Path

    from envmaker import MadeEnv

    from envbuild.model.finding import Finding

NCCL = "nvidia/nccl/lib/libnccl.so.2"


@pytest.fixture(name="made")
def a_venv(tmp_path: Path) -> MadeEnv:
    """Return a venv with a torch that needs NCCL for CUDA 13."""
    made = EnvMaker(tmp_path).venv()
    made.torch("2.11.0+cu130", metadata="2.11.0", requires=["nvidia-nccl-cu13==2.28.9"])
    return made.install("nvidia-nccl-cu13", "2.28.9", files={NCCL: b"thirteen"})


def two(made: MadeEnv) -> Finding:
    return one(two_owners, made.read(), made.ownership())


# EB201


def test_the_winner_is_told_by_its_hash_and_the_loser_by_who_needs_it(made: MadeEnv) -> None:
    made.install("nvidia-nccl-cu12", "2.26.2", files={NCCL: b"twelve.."})
    finding = two(made)
    assert finding.severity is Severity.ERROR
    assert finding.subject == "nvidia-nccl-cu13 2.28.9"
    assert finding.message.endswith("on disk is nvidia-nccl-cu12 2.26.2's")
    assert "torch 2.11.0 requires nvidia-nccl-cu13" in finding.evidence
    assert f"file:{made.site}/{NCCL}" in finding.brings
    assert finding.fixes == (
        Remove(names=("nvidia-nccl-cu12",)),
        Reinstall(names=("nvidia-nccl-cu13",)),
    )


def test_a_loser_that_nobody_needs_is_a_warning(made: MadeEnv) -> None:
    made.install("nvidia-nccl-cu12", "2.26.2", files={NCCL: b"twelve"})
    made.install("nvidia-nccl-cu13", "2.28.9", files={NCCL: b"thirteen"})
    finding = two(made)
    assert finding.severity is Severity.WARNING
    assert finding.subject == "nvidia-nccl-cu12 2.26.2"


def test_bytes_of_neither_owner(made: MadeEnv) -> None:
    made.install("nvidia-nccl-cu12", "2.26.2", files={NCCL: b"twelve"}).write(NCCL, b"another one")
    assert two(made).message.endswith("on disk is neither's")


def test_two_packages_that_both_were_asked_for_are_a_persons_choice(made: MadeEnv) -> None:
    files = {f"tool/m{n}.py": f"# a{n}" for n in range(30)}
    made.install("tool-a", "1.0", files=files, requested=True)
    made.install(
        "tool-b", "1.0", files={path: text + "b" for path, text in files.items()}, requested=True
    )
    finding = two(made)
    assert "tool/m0.py and 29 more" in finding.message
    assert isinstance(finding.fixes[0], Manual)
    assert "import:tool" in finding.brings


def test_what_nothing_loads_is_one_note(made: MadeEnv) -> None:
    for name in ("one", "two", "three"):
        files = {
            "tests/test_a.py": name,
            "nvidia/__init__.py": name,
            "LICENSE": name,
            f"{name}/__init__.py": "",
            "docs/conf.py": name,
        }
        made.install(name, "1.0", files=files)
    finding = two(made)
    assert finding.severity is Severity.NOTE
    assert finding.message == "4 files that nothing loads have more than one owner"


def test_equal_bytes_and_two_versions_of_one_package_are_no_conflict(made: MadeEnv) -> None:
    made.install("one", "1.0", files={"shared/a.py": "x"})
    made.install("two", "1.0", files={"shared/a.py": "x"})
    made.install("twice", "1.0", files={"twice/a.py": "x"})
    made.install("twice", "2.0", files={"twice/a.py": "y"})
    assert found(two_owners, made.read(), made.ownership()) == []


@pytest.mark.parametrize(("torch", "keep"), [(None, "12x"), ("2.1.0+cu118", "11x")])
def test_of_builds_for_two_cudas_the_one_of_torch_stays(
    tmp_path: Path, torch: str | None, keep: str
) -> None:
    made = EnvMaker(tmp_path).venv()
    if torch:
        made.torch(torch)
    for major in ("12x", "11x"):
        files = {"cupy/_core/core.so": major.encode()}
        made.install(f"cupy-cuda{major}", "13.6.0", files=files, requested=True)
    drop = {"12x": "11x", "11x": "12x"}[keep]
    assert two(made).fixes == (
        Remove(names=(f"cupy-cuda{drop}",)),
        Reinstall(names=(f"cupy-cuda{keep}",)),
    )


# EB202


def test_the_removed_twin_explains_the_missing_file(made: MadeEnv) -> None:
    made.install("nvidia-nccl-cu12", "2.26.2", files={NCCL: b"twelve"})
    made.uninstall("nvidia-nccl-cu12", "2.26.2")
    finding = one(missing_files, made.read(), made.ownership())
    assert finding.severity is Severity.ERROR
    assert finding.message == (
        f"nvidia-nccl-cu13 2.28.9: {NCCL} is gone, as nvidia-nccl-cu12 was removed"
    )
    assert finding.fixes == (Reinstall(names=("nvidia-nccl-cu13",)),)
    assert "library:libnccl.so.2" in finding.brings
    assert f"file:{made.site}/{NCCL}" in finding.brings


def test_a_twin_that_was_removed_takes_every_shared_library_along(made: MadeEnv) -> None:
    parts = [f"nvidia/cudnn/lib/libcudnn_{part}.so.9" for part in ("cnn", "ops")]
    made.install("nvidia-cudnn-cu12", "9.10.2.21", files=dict.fromkeys(parts, b"twelve"))
    made.remove(parts[1])
    finding = one(missing_files, made.read(), made.ownership())
    assert finding.message == f"nvidia-cudnn-cu12 9.10.2.21: {parts[1]} is gone"
    made.remove(parts[0])
    finding = one(missing_files, made.read(), made.ownership())
    assert finding.message.endswith(", as nvidia-cudnn-cu13 was removed")


def test_a_package_of_which_only_metadata_is_left(made: MadeEnv) -> None:
    made.install(
        "gone", "1.0", files={"gone/__init__.py": "", "gone/a.py": "", "gone/b/c/d.py": ""}
    )
    made.remove("gone")
    finding = one(missing_files, made.read(), made.ownership())
    assert finding.message.startswith("gone 1.0: ")
    assert "import:gone" in finding.brings


def test_what_images_leave_out_is_not_missed(made: MadeEnv) -> None:
    files = {
        "slim/__init__.py": "",
        "slim/tests/test_a.py": "",
        "slim/include/a.h": "",
        "slim/core.pyi": "",
        "slim/LICENSE": "",
        "../../../bin/slim": "",
        "slim/__pycache__/a.pyc": "",
    }
    made.install("slim", "1.0", files=files)
    made.remove("slim/tests", "slim/include", "slim/core.pyi", "slim/LICENSE", "slim/__pycache__")
    (made.prefix / "bin" / "slim").unlink()
    assert found(missing_files, made.read(), made.ownership()) == []


def test_an_empty_marker_that_went_with_another_package_is_not_missed(made: MadeEnv) -> None:
    """`uv pip uninstall nvidia-cublas-cu12` takes the marker that all of them record."""
    for name in ("nvidia-cublas-cu12", "nvidia-curand-cu12"):
        made.install(name, "12.8", files={"nvidia/__init__.py": "", f"nvidia/{name}.so": b"x"})
    made.uninstall("nvidia-cublas-cu12", "12.8")
    assert found(missing_files, made.read(), made.ownership()) == []


def test_missing_data_is_a_note(made: MadeEnv) -> None:
    made.install("model", "1.0", files={"model/__init__.py": "", "model/weights.json": "{}"})
    made.remove("model/weights.json")
    finding = one(missing_files, made.read(), made.ownership())
    assert finding.severity is Severity.NOTE
    assert finding.brings == ()


# EB203


def test_a_shared_object_that_was_cut_short(made: MadeEnv) -> None:
    made.write(NCCL, b"thir")
    finding = one(changed_files, made.read(), made.ownership())
    assert finding.severity is Severity.ERROR
    assert finding.evidence == (f"{made.site}/{NCCL}: 8 bytes in RECORD",)
    assert finding.brings == (f"file:{made.site}/{NCCL}",)


def test_a_library_that_is_whole_was_changed_by_the_maker_of_its_wheel(made: MadeEnv) -> None:
    """PyNvVideoCodec 2.0.4: patchelf made its modules larger after RECORD was written."""
    library = make_elf(soname="libnccl.so.2", sections={".text": b"x" * 5000})
    made.write(NCCL, library)
    finding = one(changed_files, made.read(), made.ownership())
    assert finding.severity is Severity.NOTE
    assert (finding.fixes, finding.brings) == ((), ())
    made.write(NCCL, library[:-1])
    assert one(changed_files, made.read(), made.ownership()).severity is Severity.ERROR


def test_an_edited_module_is_a_warning_and_an_edited_file_of_data_nothing(made: MadeEnv) -> None:
    made.install("certifi", "1.0", files={"certifi/core.py": "a", "certifi/cacert.pem": "a"})
    made.write("certifi/cacert.pem", "the site's own")
    assert found(changed_files, made.read(), made.ownership()) == []
    made.write("certifi/core.py", "edited by hand")
    assert one(changed_files, made.read(), made.ownership()).severity is Severity.WARNING


@pytest.mark.parametrize(
    ("text", "severity"),
    [
        ("", Severity.ERROR),
        ("def compute(a,\n", Severity.ERROR),
        ("a = 1\n", Severity.WARNING),
        ("(" * 20, Severity.ERROR),
        ("x = 1 is 2\nimport os  # and a comment that makes it longer", Severity.WARNING),
    ],
)
def test_a_module_that_breaks_off_was_cut_short(
    made: MadeEnv, text: str, severity: Severity
) -> None:
    made.install("net", "1.0", files={"net/core.py": "def compute(a,\n            b): ...\n"})
    made.write("net/core.py", text)
    finding = one(changed_files, made.read(), made.ownership())
    assert finding.severity is severity
    assert finding.fixes == (Reinstall(names=("net",)),)
    assert ("import:net" in finding.brings) is (severity is Severity.ERROR)


def test_a_stripped_image_is_one_note(made: MadeEnv) -> None:
    for number in range(5):
        made.install(f"lib{number}", "1.0", files={f"lib{number}/a.so": b"with symbols"})
        made.write(f"lib{number}/a.so", b"stripped")
    finding = one(changed_files, made.read(), made.ownership())
    assert finding.severity is Severity.NOTE


def test_what_debian_stripped_and_left_out_is_as_debian_meant_it(tmp_path: Path) -> None:
    image = EnvMaker(tmp_path, image=True).debian()
    system = image.at(tmp_path / "usr" / "lib" / "python3" / "dist-packages")
    files = {"yaml/_yaml.so": b"with symbols", "yaml/a.py": "", "scripts-3.10/distro": "#!"}
    for owner, installer in ((system, ""), (image, "pip")):
        owner.install("pyyaml", "6.0", files=files, installer=installer)
        owner.write("yaml/_yaml.so", b"stripped").remove("scripts-3.10", "yaml/a.py")
    facts = image.read(), image.ownership()
    assert one(changed_files, *facts).evidence[0].startswith("/usr/local/lib/python3.11/dist-")
    assert found(missing_files, *facts)
    for path in ("yaml/_yaml.so", "pyyaml-6.0.dist-info"):
        image.remove(path)
    facts = image.read(), image.ownership()
    assert found(changed_files, *facts) == found(missing_files, *facts) == []


def test_the_bytes_of_another_owner_are_no_change(made: MadeEnv) -> None:
    made.install("nvidia-nccl-cu12", "2.26.2", files={NCCL: b"twelve"})
    assert found(changed_files, made.read(), made.ownership()) == []


# EB204


def test_shared_objects_without_an_owner_count_only_where_they_use_torch() -> None:
    paths = "pointops.egg/pointops_cuda.so", "other.so", "src/mine.so"
    editable = dist("mine 0.1", "mine.pth", editable=True, origin=f"file://{SITE}/src")
    ownership = owned(unowned=tuple(map(at, paths)))
    links = Links(torch_users=(imports(paths[0], "a"), imports(paths[2], "a")))
    finding = one(unowned_files, env(editable), ownership, links)
    assert finding.severity is Severity.NOTE
    assert finding.evidence == (at(paths[0]),)
    assert found(unowned_files, env(editable), ownership, Links()) == []


# all together


def test_a_clobbered_library_is_a_consequence_of_its_twins(made: MadeEnv) -> None:
    made.install("nvidia-nccl-cu12", "2.26.2", files={NCCL: b"twelve"})
    facts = made.read(), made.ownership()
    findings = [finding for rule in (cuda_twins, *RULES) for finding in found(rule, *facts)]
    (problem,) = sort_findings(findings).problems
    assert [one_.code for one_ in problem.findings] == ["EB101", "EB201"]


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("torch/lib/libtorch.so", True),
        ("nvidia/nccl/lib/libnccl.so.2", True),
        ("torch/nn/functional.py", True),
        ("six.py", True),
        ("build_backend.py", False),  # of flashinfer-python and torch-c-dlpack-ext, by mistake
        ("pkg/setup.py", True),
        ("nvidia/__init__.py", False),
        ("tests/test_a.py", False),
        ("pkg/tests/test_a.py", False),
        ("torch/include/a.h", False),
        ("/app/bin/tool.py", False),
    ],
)
def test_what_counts_as_code(path: str, code: bool) -> None:  # noqa: FBT001
    assert is_code(path) is code


def test_every_rule_has_a_page_with_the_four_parts() -> None:
    assert FACTS.date
    for rule in RULES:
        for part in ("**What it finds.**", "**Why it matters.**", "**Example.**", "**Fix.**"):
            assert part in rule.page, rule.code
