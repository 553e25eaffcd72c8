"""The programs of the document run, and print what it says they print."""

from __future__ import annotations

import subprocess
import sys

import pytest
from document import programs


@pytest.mark.parametrize("name", programs())
def test_a_program_of_the_document_runs_and_prints_what_it_says(name: str) -> None:
    code = programs()[name]
    printed = [line.rpartition("# prints ")[2] for line in code.splitlines() if "# prints " in line]
    run = subprocess.run([sys.executable, "-X", "dev", "-W", "error", "-c", code], capture_output=True, text=True, timeout=60)
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.splitlines() == printed


def test_the_document_has_the_programs_that_a_reader_starts_with() -> None:
    code = "".join(programs().values())
    assert len(programs()) >= 5
    for name in ("connect(", "serve(", "Kcp(", "Token", "requests()"):
        assert name in code, name
