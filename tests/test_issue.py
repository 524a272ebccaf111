"""The issue's own script must say that nothing is lost."""

from __future__ import annotations

import subprocess
import sys
import types
from pathlib import Path

SCRIPT = Path(__file__).parent.parent / "examples" / "issue_17069.py"


def test_issue_17069(keras_under_test: types.ModuleType) -> None:
    done = subprocess.run(
        [sys.executable, SCRIPT, keras_under_test.__name__],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith("SAVED: ")
