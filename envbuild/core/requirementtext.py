"""The text of one requirement (PEP 508), read so that its marker can be judged."""

from __future__ import annotations

from packaging.markers import UndefinedEnvironmentName
from packaging.requirements import InvalidRequirement, Requirement


def parse_requirement(text: str) -> Requirement:
    """Read a requirement; raises InvalidRequirement, also for a marker with no answer.

    Such are ``'a' in extras``, which only a lock file may ask, and ``python_version ~= 'x'``.
    """
    requirement = Requirement(text)
    if requirement.marker is not None:
        try:
            requirement.marker.evaluate({"extra": ""})
        except UndefinedEnvironmentName as error:
            reason = f"the marker `{requirement.marker}` asks for {error}, which is of lock files"
            raise InvalidRequirement(reason) from None
        except ValueError:  # UndefinedComparison, or a number of more digits than Python reads
            reason = f"the marker `{requirement.marker}` compares what has no order"
            raise InvalidRequirement(reason) from None
    return requirement
