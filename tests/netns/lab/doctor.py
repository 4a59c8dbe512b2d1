"""What `adit doctor` says of a tunnel."""

from __future__ import annotations

import json
from typing import Any

from .process import LabError, wait_until
from .scenario import expect, progress
from .tunnel import Adit

ADVICE = "advice"


def doctor(tunnel: Adit, *args: str) -> dict[str, Any]:
    done = tunnel.cli("doctor", str(tunnel.file), "--json", *args, check=False)
    if done.code not in (0, 1) or not done.out:
        raise LabError(f"doctor cannot look: {done}")
    report: dict[str, Any] = json.loads(done.out)
    expect(done.code == (0 if report["healthy"] else 1), f"status and report agree: {done}")
    return report


def ids(report: dict[str, Any], *more: str) -> set[str]:
    """What was found; advice only where it is named."""
    severities = ("fault", "slow", *more)
    return {entry["id"] for entry in report["findings"] if entry["severity"] in severities}


def finds(tunnel: Adit, wanted: str, *args: str, seconds: float = 0) -> dict[str, str]:
    """The finding, which has to be there within so many seconds, and to be the first one."""
    last: dict[str, Any] = {}

    def look() -> dict[str, str] | None:
        last.update(doctor(tunnel, *args))
        return next((entry for entry in last["findings"] if entry["id"] == wanted), None)

    found = wait_until(look, seconds, f"{wanted} is found") if seconds else look()
    if found is None:
        raise LabError(f"{wanted} is not found: {json.dumps(last, indent=1)}")
    for part in ("sentence", "evidence", "remedy"):
        expect(found[part], f"there is a {part}: {found}")
    progress(f"{found['sentence']}\n    seen: {found['evidence']}\n    do: {found['remedy']}")
    return found
