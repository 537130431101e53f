"""The README's commands exist, and its links lead somewhere."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from envbuild.cli.arguments import parse_arguments

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
COMMANDS = sorted(
    {
        line.partition("#")[0].strip().removeprefix("$ ")
        for block in re.findall(r"```(?:sh|console)\n(.*?)```", README, re.DOTALL)
        for line in block.splitlines()
        if re.match(r"(\$ )?(scripts/dev|envbuild) ", line)
    }
)
LINKS = sorted(set(re.findall(r"\]\((?!https?:)([^)#]+)\)", README)))


def test_there_are_commands_and_links() -> None:
    assert any(command.startswith("scripts/dev lock") for command in COMMANDS)
    assert "scripts/dev test" in COMMANDS
    assert "docs/configuration.md" in LINKS


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_readme_is_understood(command: str) -> None:
    words = shlex.split(command)
    if words[:2] in (["scripts/dev", "test"], ["scripts/dev", "nox"]):
        assert (ROOT / "scripts" / "dev").read_text().count(f"\n{words[1]})") == 1
        return
    arguments = parse_arguments(words[1:])
    assert arguments.command == words[1]


@pytest.mark.parametrize("link", LINKS)
def test_a_link_of_the_readme_leads_to_a_file(link: str) -> None:
    assert (ROOT / link).exists()
