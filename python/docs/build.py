"""Builds the site of the package: the user guide, the notebooks and the API reference, by pdoc.

usage: python build.py FOLDER     (the package, Matplotlib and pdoc are installed)
"""

from __future__ import annotations

import base64
import contextlib
import os
import re
import sys
import tempfile
import warnings
from pathlib import Path

import pdoc

ROOT = Path(__file__).resolve().parents[2]
#: The modules of the reference.
MODULES = ("anden", r"!anden\.bench\.", r"!anden\.nx\.[a-z]", r"!anden\.(.+\.)?_")
#: The documents that are pages, with their names on the site. The first one opens it.
PAGES = {
    "python.md": "anden_guide",
    "guide.md": "anden_command",
    "inputs.md": "anden_inputs",
    "kernels.md": "anden_kernels",
    "larger-than-memory.md": "anden_memory",
}
#: A link to another file of the repository, with the part of the file that follows `#`.
LINK = re.compile(r"\[([^\]]+)\]\((?!https?:|#)(?:\.\./)*([^)#]+)(#[^)]*)?\)")
#: The example that saves a picture, up to the end of its block.
PICTURE = re.compile(r"^```python\n(.*?savefig\(\"graph\.png\"\).*?)^```$", re.MULTILINE | re.DOTALL)


def document(name: str) -> str:
    """A document with links to the pages of the site. Links to other files become their names."""
    return LINK.sub(_link, (ROOT / "docs" / name).read_text())


def _link(found: re.Match[str]) -> str:
    text, path, part = found[1], found[2], found[3] or ""
    page = "anden_fraud_ring" if path == "python/notebooks" else PAGES.get(path)
    return f"{text} (`{path}`)" if page is None else f"[{text}]({page}.html{part})"


def with_picture(text: str) -> str:
    """The guide with the picture that its first example saves."""
    example = PICTURE.search(text)
    assert example is not None, "no example of the guide saves graph.png"
    os.environ.setdefault("MPLBACKEND", "Agg")
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), open(os.devnull, "w") as output:
        with contextlib.redirect_stdout(output):
            exec(example[1], {"__name__": "guide"})
        data = base64.b64encode(Path("graph.png").read_bytes()).decode()
    return text[: example.end()] + f"\n\n![graph.png](data:image/png;base64,{data})\n" + text[example.end() :]


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
        texts = {page: document(name) for name, page in PAGES.items()}
        texts["anden_guide"] = with_picture(texts["anden_guide"])
        texts |= {f"anden_{path.stem}": notebook(path) for path in sorted((ROOT / "python/notebooks").glob("*.py"))}
        files = [write_module(Path(pages), name, text) for name, text in texts.items()]
        templates = Path(__file__).parent / "templates"
        # NetworkX's graph has type parameters for type checkers only.
        warnings.filterwarnings("ignore", "Error parsing type annotation networkx")
        pdoc.render.configure(docformat="numpy", show_source=False, template_directory=templates)
        pdoc.pdoc(*files, *MODULES, output_directory=folder)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    build(Path(sys.argv[1]))
