"""Builds the site of the package: the user guide, the notebooks and the API reference, by pdoc.

usage: python build.py FOLDER     (the package and pdoc are installed)
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

import pdoc

ROOT = Path(__file__).resolve().parents[2]
#: The modules of the reference.
MODULES = ("anden", "!anden.bench.", "!anden.nx.[a-z]", "!anden.*_")
#: Where links to other files of the repository lead.
DOCUMENTS = re.compile(r"\]\((?!https?:|#)(?:\.\./)*([^)]+)\)")


def guide() -> str:
    """The guide as the docstring of a module. Links to files outside the site become plain names."""
    text = (ROOT / "docs/python.md").read_text()
    return DOCUMENTS.sub(r"] (`\1`)", text)


def notebook(path: Path) -> str:
    """A notebook as Markdown: its text, and its code in blocks."""
    lines: list[str] = []
    cells = re.split(r"^# %%", path.read_text(), flags=re.MULTILINE)[1:]
    for cell in cells:
        kind, _, body = cell.partition("\n")
        if "[markdown]" in kind:
            lines.append(re.sub(r"^# ?", "", body, flags=re.MULTILINE).strip())
        elif body.strip():
            lines.append(f"```python\n{body.strip()}\n```")
    return "\n\n".join(lines)


def write_module(folder: Path, name: str, text: str) -> Path:
    """A module whose docstring is the text, for pdoc."""
    path = folder / f"{name}.py"
    path.write_text(f"__doc__ = {text!r}\n__all__ = []\n")
    return path


def build(folder: Path) -> None:
    """Writes the site."""
    with tempfile.TemporaryDirectory() as pages:
        texts = {"anden_guide": guide()}
        texts |= {f"anden_{path.stem}": notebook(path) for path in sorted((ROOT / "python/notebooks").glob("*.py"))}
        files = [write_module(Path(pages), name, text) for name, text in texts.items()]
        pdoc.render.configure(docformat="numpy", show_source=False)
        pdoc.pdoc(*MODULES, *files, output_directory=folder)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    build(Path(sys.argv[1]))
