"""Join the fragments of changelog.d into a section of CHANGELOG.md and set the version: `python tools/release.py 0.2.0`."""

import re
import sys
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KINDS = {"added": "Added", "changed": "Changed", "fixed": "Fixed", "removed": "Removed"}
HEADING = "## Unreleased\n\nSee the fragments.\n"


def fragments(kind: str) -> list[Path]:
    """The fragments of a kind, by name."""
    return sorted((ROOT / "changelog.d").glob(f"*.{kind}.md"))


def item(path: Path) -> str:
    """A fragment as one or more items of a list."""
    text = path.read_text(encoding="utf-8").strip()
    return text if text.startswith("- ") else "- " + text.replace("\n", "\n  ")


def section(version: str) -> str:
    """All fragments under the heading of the version."""
    parts = [f"## {version} ({datetime.now(UTC).date()})"]
    for kind, title in KINDS.items():
        if found := fragments(kind):
            parts += [f"### {title}", "\n".join(item(path) for path in found)]
    return "\n\n".join(parts) + "\n"


def main(arguments: list[str]) -> int:
    """Write the section, set the version, delete the fragments."""
    if len(arguments) != 1 or not re.fullmatch(r"\d+\.\d+\.\d+", arguments[0]):
        print(__doc__, file=sys.stderr)
        return 2
    changelog, package = ROOT / "CHANGELOG.md", ROOT / "src" / "joiner" / "__init__.py"
    text = changelog.read_text(encoding="utf-8")
    if HEADING not in text or f"## {arguments[0]} " in text:
        print(f"CHANGELOG.md has no section Unreleased, or {arguments[0]} already", file=sys.stderr)
        return 1
    changelog.write_text(text.replace(HEADING, f"{HEADING}\n{section(arguments[0])}"), encoding="utf-8")
    source = package.read_text(encoding="utf-8")
    package.write_text(re.sub(r'__version__ = ".*"', f'__version__ = "{arguments[0]}"', source), encoding="utf-8")
    for kind in KINDS:
        for path in fragments(kind):
            path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
