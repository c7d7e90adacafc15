"""The examples of the documents, the docstrings and the notebooks run."""

from __future__ import annotations

import contextlib
import doctest
import importlib
import inspect
import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import anden

ROOT = Path(__file__).parents[2]
DOCUMENTS = ("docs/python.md", "python/README.md")
NOTEBOOKS = sorted((ROOT / "python/notebooks").glob("*.py"))
#: What the examples draw with and ask with.
EXTRAS = ("matplotlib", "duckdb", "networkx", "pandas")
MODULES = ("anden.plot", "anden.nx.graph", "anden.nx")


def _require_extras() -> None:
    for module in EXTRAS:
        pytest.importorskip(module)


def _blocks(text: str) -> list[tuple[int, str, str]]:
    """The line, the language and the text of each code block."""
    found = re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [(text.count("\n", 0, block.start()) + 2, block[1], block[2]) for block in found]


def _matches(printed: str, expected: str) -> bool:
    """Whether the output is as expected; `…` stands for any text of a line."""
    pattern = re.escape(expected.strip()).replace("…", "[^\n]*")
    return re.fullmatch(pattern, printed.strip()) is not None


@pytest.mark.parametrize("name", DOCUMENTS)
def test_blocks_of_documents_print_what_they_say(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _require_extras()
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": name}
    blocks = _blocks((ROOT / name).read_text())
    assert any(language == "python" for _, language, _ in blocks)
    printed = ""
    for line, language, text in blocks:
        if language == "python":
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                # Blank lines before the code make the line numbers of errors those of the document.
                exec(compile("\n" * (line - 1) + text, str(ROOT / name), "exec"), names)
            printed = output.getvalue()
        elif language == "text":
            assert _matches(printed, text), f"{name}:{line}: printed\n{printed}"


def _examples() -> list[doctest.DocTest]:
    """The examples in the docstrings of the package, those of the native classes included."""
    parser, tests = doctest.DocTestParser(), []
    modules = [anden, *map(importlib.import_module, MODULES)]
    for module in modules:
        named = [(module.__name__, module)]
        for name, member in inspect.getmembers(module):
            is_ours = str(getattr(member, "__module__", "")).startswith("anden")
            if not name.startswith("_") and is_ours and callable(member):
                named.append((f"{module.__name__}.{name}", member))
                if inspect.isclass(member):
                    named += [(f"{module.__name__}.{name}.{part}", value) for part, value in vars(member).items()]
        for name, member in named:
            text = getattr(member, "__doc__", None)
            if isinstance(text, str) and ">>>" in text:
                tests.append(parser.get_doctest(text, {}, name, None, 0))
    return tests


def test_examples_of_docstrings_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _require_extras()
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.chdir(tmp_path)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    output = io.StringIO()
    examples = _examples()
    for example in examples:
        runner.run(example, out=output.write)
    assert runner.failures == 0, output.getvalue()
    assert len({example.name for example in examples}) >= 5


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run(path: Path) -> None:
    """A notebook is a program, so that it needs no kernel, and no conversion as nbmake does."""
    _require_extras()
    environment = os.environ | {"MPLBACKEND": "Agg"}
    done = subprocess.run(
        [sys.executable, str(path)], env=environment, capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]


def test_notebooks_are_text_in_cells() -> None:
    assert len(NOTEBOOKS) >= 4
    for path in NOTEBOOKS:
        text = path.read_text()
        assert "format_name: percent" in text
        assert text.count("\n# %%") >= 8, path


def test_stubs_fit_the_module(tmp_path: Path) -> None:
    pytest.importorskip("mypy", reason="mypy is not installed")
    # Not all packages that the optional parts import have types.
    config = tmp_path / "mypy.ini"
    config.write_text("[mypy]\nignore_missing_imports = True\n")
    command = [sys.executable, "-m", "mypy.stubtest", "--mypy-config-file", str(config), "anden._anden"]
    # In a folder of its own, so that the installed package is checked.
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


def test_public_types_are_complete(tmp_path: Path) -> None:
    # pyright asks the first `python` of the path where packages are.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    pyright = shutil.which("pyright", path=path)
    if pyright is None or subprocess.run([pyright, "--version"], capture_output=True, check=False).returncode != 0:
        pytest.skip("pyright is not installed, or lacks Node.js")
    options = ["--verifytypes", "anden", "--ignoreexternal", "--outputjson"]
    environment = os.environ | {"PATH": path}
    done = subprocess.run(
        [pyright, *options], capture_output=True, text=True, check=False, cwd=tmp_path, env=environment
    )
    symbols = json.loads(done.stdout)["typeCompleteness"]["symbols"]
    # The modules below the package are not public, but for their names that the package exports.
    public = [symbol for symbol in symbols if re.match(r"anden\.(_anden\.\w+|\w+)(\.\w+)?$", symbol["name"])]
    public = [symbol for symbol in public if symbol["name"].split(".")[1] in ("_anden", *anden.__all__)]
    assert len(public) > 150
    unknown = [(symbol["name"], symbol["diagnostics"]) for symbol in public if not symbol["isTypeKnown"]]
    assert not unknown


def test_site_has_guide_notebooks_and_reference(tmp_path: Path) -> None:
    pytest.importorskip("pdoc")
    _require_extras()
    command = [sys.executable, "-W", "error::UserWarning:pdoc", str(ROOT / "python/docs/build.py"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "anden_guide.html" in (tmp_path / "index.html").read_text(), "the site opens with the guide"
    guide = (tmp_path / "anden_guide.html").read_text()
    assert "Five minutes to a plot" in guide and '<img src="data:image/png;base64,' in guide
    assert 'href="anden_inputs.html#formats"' in guide
    assert 'id="formats"' in (tmp_path / "anden_inputs.html").read_text()
    assert "Time travel over Debian" in (tmp_path / "anden_time_travel.html").read_text()
    reference = (tmp_path / "anden.html").read_text()
    assert all(f'id="{name}' in reference for name in ("Database.view", "View.pagerank", "load"))
