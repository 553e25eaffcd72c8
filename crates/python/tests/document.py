"""The code of the document: each block is a program. `document.py PAGE FOLDER` writes them to a folder, for mypy."""

from __future__ import annotations

import re
import sys
from pathlib import Path

PAGE = Path(__file__).resolve().parents[3] / "docs" / "engines" / "PYTHON.md"


def programs(page: Path = PAGE) -> dict[str, str]:
    """The blocks of Python on a page, each by the number of its line."""
    text = page.read_text()
    blocks = re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return {f"line_{text[: block.start()].count(chr(10)) + 2}": block[1] for block in blocks}


if __name__ == "__main__":
    folder = Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    for name, code in programs(Path(sys.argv[1])).items():
        (folder / f"{name}.py").write_text(code)
