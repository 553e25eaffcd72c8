"""The blocks of hex in docs/WIRE.md."""

from dataclasses import dataclass, field
from pathlib import Path

DOCUMENT = Path(__file__).parents[2] / "docs" / "WIRE.md"


@dataclass
class Group:
    """Consecutive lines of a block, not separated by an empty line or by a line with only a comment."""

    title: str
    lines: list[tuple[bytes, str]] = field(default_factory=list)  # bytes, comment

    @property
    def bytes(self) -> bytes:
        return b"".join(data for data, _ in self.lines)


def blocks() -> dict[str, list[Group]]:
    """All blocks of hex by name."""
    found: dict[str, list[Group]] = {}
    current = None
    for line in DOCUMENT.read_text().splitlines():
        if line.startswith("```hex "):
            current = found.setdefault(line.removeprefix("```hex "), [])
        elif line.startswith("```"):
            current = None
        elif current is not None:
            read_line(current, line)
    return {name: [group for group in groups if group.lines] for name, groups in found.items()}


def read_line(groups: list[Group], line: str) -> None:
    hex_digits, _, comment = (part.strip() for part in line.partition(";"))
    if not hex_digits:
        groups.append(Group(comment))
        return
    if not groups:
        groups.append(Group(""))
    groups[-1].lines.append((bytes.fromhex(hex_digits), comment))
