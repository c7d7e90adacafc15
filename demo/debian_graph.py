#!/usr/bin/env python3
"""Turn Debian package indexes into the demo's graph: package -> package.

An edge (source, target) says that *source* asks for *target*. Its kinds are a bit set, because one
package may both depend on another and recommend it:

    1  Depends        2  Pre-Depends        4  Recommends        8  Suggests

Choices, and why:

* Conflicts, Breaks, Replaces and Enhances are left out. They do not say that the source needs the target,
  so a path through one of them would not be a dependency path.
* `a | b` gives an edge to each alternative: which one gets installed depends on the machine, and the graph
  is about what may be asked for.
* Versions, architecture qualifiers (`:any`) and build profiles are dropped: the graph has one vertex a name.
* A name that no package bears is virtual: it gives an edge to every package that provides it. A name that a
  package does bear means that package, even if others provide it too.
* A name that nobody bears or provides gives no edge (suggestions often name what another archive holds).
* A package that meets its own request gives no edge: the graph has no loops.
* A name that occurs again, in the same index or in a later one, replaces the earlier entry, so give the
  updates after the release.

With --since, the edges are only those that an earlier file of edges has not, or has with other kinds, and
--gone takes those that it has and this graph has not: the two are what turns the one graph into the other.
With --packages-since, the packages are likewise only those that are new, or of another section or size.

The output is sorted by bytes and depends on nothing but the input, so it can be rebuilt and compared.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import lzma
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO, TextIO

KINDS = {"Depends": 1, "Pre-Depends": 2, "Recommends": 4, "Suggests": 8}

EDGE_HEADER = ("source", "target", "kinds")
PACKAGE_HEADER = ("name", "section", "installed_size")

# A name, and whatever may follow it: `:any`, ` (>= 1.0)`, ` [amd64]`, ` <!nocheck>`.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9+.\-]*")
AFTER_NAME = re.compile(r"(:[A-Za-z0-9\-]+)?\s*(\([^()]*\))?\s*(\[[^\[\]]*\])?\s*(<[^<>]*>\s*)*")


class BadIndex(Exception):
    """The input is no package index; the text names the file, the line and what was found."""


@dataclass
class Package:
    """One stanza of an index: what the graph keeps of it."""

    name: str
    section: str = ""
    installed_size: int = 0  # KiB, as the archive states it
    requests: list[tuple[str, int]] = field(default_factory=list)  # (name asked for, kind)
    provides: list[str] = field(default_factory=list)


@dataclass
class Graph:
    """The packages by name, the edges' kinds by (source, target), and how many requests nobody meets."""

    packages: dict[str, Package]
    edges: dict[tuple[str, str], int]
    unmet: int


def names_in(relation: str, where: str) -> Iterator[str]:
    """Yields the names in a relation field, alternatives one after another: `a (>= 1) | b, c:any` -> a, b, c."""
    for clause in relation.split(","):
        for alternative in clause.split("|"):
            text = alternative.strip()
            if not text:
                if clause.strip():
                    raise BadIndex(f"{where}: an empty alternative in {clause.strip()!r}")
                continue  # a trailing comma is allowed
            name = NAME.match(text)
            if name is None or AFTER_NAME.fullmatch(text, name.end()) is None:
                raise BadIndex(f"{where}: expected a package name, found {text!r}")
            yield name.group()


def stanzas(lines: Iterable[str], path: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Yields (number of the first line, fields) for each stanza; folded lines are joined by a space."""
    fields: dict[str, str] = {}
    first, last = 0, ""
    for number, line in enumerate(lines, start=1):
        line = line.rstrip("\n")
        if not line.strip():
            if fields:
                yield first, fields
            fields, last = {}, ""
        elif line[0] in " \t":
            if not last:
                raise BadIndex(f"{path}:{number}: a continuation line without a field before it")
            fields[last] += " " + line.strip()
        else:
            name, colon, value = line.partition(":")
            if not colon or not name or " " in name:
                raise BadIndex(f"{path}:{number}: expected 'Field: value', found {line[:60]!r}")
            if not fields:
                first = number
            fields[name] = value.strip()
            last = name
    if fields:
        yield first, fields


def read_packages(lines: Iterable[str], path: str) -> Iterator[Package]:
    """Yields the packages of one index, in its order."""
    for number, fields in stanzas(lines, path):
        where = f"{path}:{number}"
        name = fields.get("Package", "")
        if NAME.fullmatch(name) is None:
            raise BadIndex(f"{where}: expected a stanza with a package name, found {name!r}")
        size = fields.get("Installed-Size", "0")
        if re.fullmatch(r"[0-9]{1,15}", size) is None:
            raise BadIndex(f"{where}: Installed-Size of {name} is {size!r}, expected a number of KiB")
        package = Package(name, fields.get("Section", ""), int(size))
        package.provides = list(names_in(fields.get("Provides", ""), f"{where}: Provides of {name}"))
        for relation, kind in KINDS.items():
            targets = names_in(fields.get(relation, ""), f"{where}: {relation} of {name}")
            package.requests.extend((target, kind) for target in targets)
        yield package


def build_graph(packages: Iterable[Package]) -> Graph:
    """Resolves every request to packages that exist and merges repeated edges by OR-ing their kinds."""
    by_name = {package.name: package for package in packages}
    providers: dict[str, list[str]] = {}
    for package in by_name.values():
        for name in package.provides:
            providers.setdefault(name, []).append(package.name)

    edges: dict[tuple[str, str], int] = {}
    unmet = 0
    for package in by_name.values():
        for name, kind in package.requests:
            targets = [name] if name in by_name else providers.get(name, [])
            unmet += not targets
            for target in targets:
                if target != package.name:
                    edge = (package.name, target)
                    edges[edge] = edges.get(edge, 0) | kind
    return Graph(by_name, edges, unmet)


def edge_rows(graph: Graph) -> Iterator[tuple[str, str, int]]:
    """The edges in the order of the file. Names are ASCII, so comparing strings compares bytes."""
    for (source, target), kinds in sorted(graph.edges.items()):
        yield source, target, kinds


def read_edges(lines: Iterable[str], path: str) -> dict[tuple[str, str], int]:
    """The edges of a file that this program wrote."""
    rows = csv.reader(lines)
    if tuple(next(rows, ())) != EDGE_HEADER:
        raise BadIndex(f"{path}:1: expected the header {','.join(EDGE_HEADER)}")
    edges: dict[tuple[str, str], int] = {}
    for row in rows:
        if len(row) != len(EDGE_HEADER) or not row[2].isdecimal():
            raise BadIndex(f"{path}:{rows.line_num}: expected source,target,kinds, found {','.join(row)[:60]!r}")
        edges[row[0], row[1]] = int(row[2])
    return edges


def read_package_rows(lines: Iterable[str], path: str) -> set[tuple[str, str, int]]:
    """The packages of a file that this program wrote."""
    rows = csv.reader(lines)
    if tuple(next(rows, ())) != PACKAGE_HEADER:
        raise BadIndex(f"{path}:1: expected the header {','.join(PACKAGE_HEADER)}")
    packages = set()
    for row in rows:
        if len(row) != len(PACKAGE_HEADER) or not row[2].isdecimal():
            expected = ",".join(PACKAGE_HEADER)
            raise BadIndex(f"{path}:{rows.line_num}: expected {expected}, found {','.join(row)[:60]!r}")
        packages.add((row[0], row[1], int(row[2])))
    return packages


def gone_rows(graph: Graph, before: dict[tuple[str, str], int]) -> Iterator[tuple[str, str]]:
    """The edges of an earlier graph that this one has not, in the order of the file."""
    yield from sorted(edge for edge in before if edge not in graph.edges)


def package_rows(graph: Graph) -> Iterator[tuple[str, str, int]]:
    """The vertices in the order of the file."""
    for name, package in sorted(graph.packages.items()):
        yield name, package.section, package.installed_size


@contextmanager
def open_index(path: str) -> Iterator[TextIO]:
    """Opens an index as text, through gzip, xz or the lz4 command if its name ends so."""
    if path.endswith(".lz4"):
        with subprocess.Popen(["lz4", "-dc", "--", path], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            yield io.TextIOWrapper(process.stdout, encoding="utf-8", newline="\n")
        if process.returncode != 0:
            raise BadIndex(f"{path}: lz4 ended with status {process.returncode}")
        return
    opener = {".gz": gzip.open, ".xz": lzma.open}.get(os.path.splitext(path)[1], open)
    with opener(path, "rt", encoding="utf-8", newline="\n") as text:
        yield text


def compress(data: bytes, path: str) -> bytes:
    """Compresses as the name asks; no time or name goes into the gzip header, so equal input gives equal files."""
    if path.endswith(".xz"):
        return lzma.compress(data, preset=9 | lzma.PRESET_EXTREME)
    if path.endswith(".gz"):
        return gzip.compress(data, compresslevel=9, mtime=0)
    return data


def write_csv(path: str, header: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> None:
    """Writes a CSV file whole or not at all."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    write_whole(path, text.getvalue())


def write_whole(path: str, text: str) -> None:
    """Writes a file whole or not at all: under a temporary name beside it, then renamed."""
    temporary = path + ".part"
    try:
        with open(temporary, "wb") as file:
            file.write(compress(text.encode("utf-8"), path))
        os.replace(temporary, path)
    except BaseException:
        if os.path.exists(temporary):
            os.remove(temporary)
        raise


def main(arguments: list[str] | None = None, errors: IO[str] = sys.stderr) -> int:
    parser = argparse.ArgumentParser(
        description="Make the graph of package dependencies from Debian package indexes.",
        epilog="Outputs are compressed if their name ends in .xz or .gz; .lz4 inputs need the lz4 command.",
    )
    parser.add_argument("indexes", nargs="+", metavar="INDEX", help="a Packages file: plain, .gz, .xz or .lz4")
    parser.add_argument("--edges", required=True, metavar="FILE", help="the edges: source,target,kinds")
    parser.add_argument("--packages", metavar="FILE", help="the vertices: name,section,installed_size (KiB)")
    parser.add_argument("--since", metavar="FILE", help="write only what this file of edges has not")
    parser.add_argument("--gone", metavar="FILE", help="with --since: the edges that only that file has, two names a line")
    parser.add_argument("--packages-since", metavar="FILE", help="with --packages: only what this file of them has not")
    options = parser.parse_args(arguments)
    if options.packages_since and not options.packages:
        parser.error("--packages-since goes with --packages")
    if options.gone and not options.since:
        parser.error("--gone goes with --since")

    packages: list[Package] = []
    before: dict[tuple[str, str], int] = {}
    packages_before: set[tuple[str, str, int]] = set()
    earlier = [path for path in (options.since, options.packages_since) if path]
    for path in [*options.indexes, *earlier]:
        try:
            with open_index(path) as lines:
                if path is options.since:
                    before = read_edges(lines, path)
                elif path is options.packages_since:
                    packages_before = read_package_rows(lines, path)
                else:
                    packages.extend(read_packages(lines, path))
        except BadIndex as error:
            print(f"debian_graph: {error}", file=errors)
            return 1
        except (OSError, EOFError, UnicodeDecodeError, lzma.LZMAError) as error:
            print(f"debian_graph: {path}: {error}", file=errors)
            return 1

    graph = build_graph(packages)
    try:
        write_csv(options.edges, EDGE_HEADER, (row for row in edge_rows(graph) if before.get(row[:2]) != row[2]))
        if options.gone:
            write_whole(options.gone, "".join(f"{source} {target}\n" for source, target in gone_rows(graph, before)))
        if options.packages:
            rows = (row for row in package_rows(graph) if row not in packages_before)
            write_csv(options.packages, PACKAGE_HEADER, rows)
    except OSError as error:
        print(f"debian_graph: {error}", file=errors)
        return 1
    print(
        f"{len(graph.packages)} packages, {len(graph.edges)} edges, {graph.unmet} requests that no package meets",
        file=errors,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
