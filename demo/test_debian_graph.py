"""Tests of the demo's graph: the rules of debian_graph.py on small indexes, and the facts stated of the shipped data."""

import csv
import gzip
import hashlib
import heapq
import io
import lzma
import re
import shutil
import subprocess
import tempfile
import unittest
from collections import Counter, defaultdict
from pathlib import Path

import debian_graph
from debian_graph import BadIndex, build_graph, names_in, read_packages

HERE = Path(__file__).resolve().parent

SMALL = """\
Package: editor
Version: 2.0-1
Installed-Size: 120
Architecture: amd64
Depends: libc6 (>= 2.34), libgui0 (>= 1:1.0~rc1) | libtui0, python3:any,
 perl <!nocheck>
Pre-Depends: libc6
Recommends: mail-agent, dictionary
Suggests: editor-doc, no-such-package
Conflicts: otheredit
Breaks: oldedit (<< 1)
Section: editors

Package: libc6
Installed-Size: 10
Section: libs

Package: libgui0
Depends: libc6 (>= 2.34)
Section: libs

Package: libtui0
Section: libs

Package: python3
Section: python

Package: perl
Section: perl

Package: postman
Provides: mail-agent (= 3)
Recommends: mail-agent
Section: mail

Package: courier
Provides: mail-agent, dictionary
Section: mail

Package: dictionary
Section: text

Package: otheredit
Section: editors

Package: oldedit
Section: oldlibs
"""


def edges_of(text: str) -> dict[tuple[str, str], int]:
    return build_graph(read_packages(text.splitlines(), "small")).edges


class Rules(unittest.TestCase):
    def setUp(self) -> None:
        self.edges = edges_of(SMALL)

    def test_the_whole_small_graph(self) -> None:
        expected = {
            ("editor", "libc6"): 1 | 2,
            ("editor", "libgui0"): 1,
            ("editor", "libtui0"): 1,
            ("editor", "python3"): 1,
            ("editor", "perl"): 1,
            ("editor", "postman"): 4,
            ("editor", "courier"): 4,
            ("editor", "dictionary"): 4,
            ("libgui0", "libc6"): 1,
            ("postman", "courier"): 4,
        }
        self.assertEqual(self.edges, expected)

    def test_a_real_package_hides_its_providers(self) -> None:
        self.assertIn(("editor", "dictionary"), self.edges)
        self.assertEqual(self.edges["editor", "courier"], 4, "courier is asked for as a mail agent")
        without = edges_of(SMALL.replace("Recommends: mail-agent, dictionary", "Recommends: dictionary"))
        self.assertNotIn(("editor", "courier"), without)

    def test_a_package_that_meets_its_own_request_has_no_loop(self) -> None:
        self.assertNotIn(("postman", "postman"), self.edges)

    def test_conflicts_are_no_dependencies(self) -> None:
        targets = {target for _, target in self.edges}
        self.assertTrue(targets.isdisjoint({"otheredit", "oldedit"}))

    def test_requests_that_nobody_meets_are_counted(self) -> None:
        graph = build_graph(read_packages(SMALL.splitlines(), "small"))
        self.assertEqual(graph.unmet, 2, "editor-doc and no-such-package")

    def test_a_later_entry_replaces_an_earlier_one(self) -> None:
        edges = edges_of(SMALL + "\nPackage: editor\nDepends: perl\nInstalled-Size: 7\nSection: editors\n")
        self.assertEqual({edge for edge in edges if edge[0] == "editor"}, {("editor", "perl")})

    def test_names_drop_versions_architectures_and_profiles(self) -> None:
        text = "a (>= 1:2.0~rc1-1+b2), b:any | c [amd64 !i386], g++-12 <!nocheck> <cross>, libx1:amd64 (= 1) ,"
        self.assertEqual(list(names_in(text, "here")), ["a", "b", "c", "g++-12", "libx1"])


class BadInput(unittest.TestCase):
    def assert_refused(self, text: str, pattern: str) -> None:
        with self.assertRaisesRegex(BadIndex, pattern):
            list(read_packages(text.splitlines(), "bad"))

    def test_each_fault_names_file_and_line(self) -> None:
        self.assert_refused("Package: a\n\nfoo\n", r"^bad:3: expected 'Field: value', found 'foo'")
        self.assert_refused(" continued\n", r"^bad:1: a continuation line")
        self.assert_refused("Version: 1\n", r"^bad:1: expected a stanza with a package name")
        self.assert_refused("Package: a b\n", r"^bad:1: .*found 'a b'")
        self.assert_refused("Package: a\nDepends: b (>= 1\n", r"^bad:1: Depends of a: .*found 'b \(>= 1'")
        self.assert_refused("Package: a\nDepends: b | \n", r"^bad:1: Depends of a: an empty alternative")
        self.assert_refused("Package: a\nInstalled-Size: -1\n", r"^bad:1: Installed-Size of a is '-1'")

    def test_an_empty_index_is_an_empty_graph(self) -> None:
        self.assertEqual(edges_of(""), {})
        self.assertEqual(edges_of("\n\n"), {})


class CommandLine(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def run_main(self, *indexes: Path, edges: str = "edges.csv") -> tuple[int, str]:
        errors = io.StringIO()
        arguments = [str(index) for index in indexes]
        arguments += ["--edges", str(self.folder / edges), "--packages", str(self.folder / "packages.csv")]
        return debian_graph.main(arguments, errors), errors.getvalue()

    def index(self, name: str, data: bytes) -> Path:
        path = self.folder / name
        path.write_bytes(data)
        return path

    def test_output_is_sorted_and_has_headers(self) -> None:
        status, said = self.run_main(self.index("Packages", SMALL.encode()))
        self.assertEqual((status, said), (0, "11 packages, 10 edges, 2 requests that no package meets\n"))
        edges = (self.folder / "edges.csv").read_text().splitlines()
        self.assertEqual(edges[0], "source,target,kinds")
        self.assertEqual(edges[1:], sorted(edges[1:]))
        self.assertIn("editor,libc6,3", edges)
        packages = (self.folder / "packages.csv").read_text().splitlines()
        self.assertEqual(packages[:3], ["name,section,installed_size", "courier,mail,0", "dictionary,text,0"])
        self.assertIn("editor,editors,120", packages)

    def test_every_compression_gives_the_same_graph(self) -> None:
        inputs = [
            self.index("p", SMALL.encode()),
            self.index("p.gz", gzip.compress(SMALL.encode())),
            self.index("p.xz", lzma.compress(SMALL.encode())),
        ]
        if shutil.which("lz4"):
            packed = subprocess.run(["lz4", "-c", str(inputs[0])], capture_output=True, check=True).stdout
            inputs.append(self.index("p.lz4", packed))
        else:
            print("skipped: reading .lz4, the lz4 command is not here")
        texts = set()
        for path in inputs:
            self.assertEqual(self.run_main(path)[0], 0)
            texts.add((self.folder / "edges.csv").read_text())
        self.assertEqual(len(texts), 1)

    def test_compressed_output_is_reproducible(self) -> None:
        path = self.index("Packages", SMALL.encode())
        for name, unpack in [("e.csv.xz", lzma.decompress), ("e.csv.gz", gzip.decompress)]:
            self.run_main(path, edges=name)
            first = (self.folder / name).read_bytes()
            self.run_main(path, edges=name)
            self.assertEqual(first, (self.folder / name).read_bytes())
            self.assertTrue(unpack(first).startswith(b"source,target,kinds\n"))

    def test_later_indexes_update_earlier_ones(self) -> None:
        update = self.index("update", b"Package: libgui0\nDepends: libtui0\n")
        self.run_main(self.index("Packages", SMALL.encode()), update)
        edges = (self.folder / "edges.csv").read_text().splitlines()
        self.assertIn("libgui0,libtui0,1", edges)
        self.assertNotIn("libgui0,libc6,1", edges)

    def test_changes_lead_from_one_graph_to_the_other(self) -> None:
        first = self.index("Packages", SMALL.encode())
        update = self.index("update", b"Package: libgui0\nDepends: libtui0\n\nPackage: new\nDepends: libc6\n")
        self.run_main(first, edges="before.csv")
        self.run_main(first, update, edges="after.csv")
        for name in ["before.csv", "before.csv.xz"]:
            if name.endswith(".xz"):
                self.index(name, lzma.compress((self.folder / "before.csv").read_bytes()))
            since = ["--since", str(self.folder / name), "--gone", str(self.folder / "gone.txt")]
            self.assertEqual(self.run_main(first, update, *since, edges="changes.csv")[0], 0)
            self.assertEqual((self.folder / "gone.txt").read_text(), "libgui0 libc6\n")
            added = (self.folder / "changes.csv").read_text().splitlines()
            self.assertEqual(added, ["source,target,kinds", "libgui0,libtui0,1", "new,libc6,1"])
        self.index("bad.csv", b"source,target\n")
        status, said = self.run_main(first, "--since", str(self.folder / "bad.csv"))
        self.assertEqual(status, 1)
        self.assertIn("bad.csv:1", said)

    def test_changed_packages_are_those_with_other_facts(self) -> None:
        first = self.index("Packages", SMALL.encode())
        update = b"Package: libc6\nInstalled-Size: 10\nSection: libs\n\nPackage: perl\nSection: oldlibs\n\nPackage: new\n"
        update = self.index("update", update)
        self.assertEqual(self.run_main(first)[0], 0)
        changed = self.folder / "packages.csv"
        before = changed.rename(self.folder / "before.csv")
        self.assertEqual(self.run_main(first, update, "--packages-since", str(before))[0], 0)
        expected = ["name,section,installed_size", "new,,0", "perl,oldlibs,0"]
        self.assertEqual(changed.read_text().splitlines(), expected)
        self.index("bad.csv", b"name,section\n")
        status, said = self.run_main(first, "--packages-since", str(self.folder / "bad.csv"))
        self.assertEqual(status, 1)
        self.assertIn("bad.csv:1", said)

    def test_a_bad_index_leaves_nothing_behind(self) -> None:
        damaged = lzma.compress(SMALL.encode() * 50)
        bad = {"missing": None, "text": b"no index\n", "cut.xz": damaged[: len(damaged) // 2], "lie.gz": b"plain"}
        for name, data in bad.items():
            path = self.folder / name if data is None else self.index(name, data)
            status, said = self.run_main(path)
            self.assertEqual(status, 1, name)
            self.assertRegex(said, rf"\Adebian_graph: .*{re.escape(name)}.*\n\Z")
            self.assertEqual(list(self.folder.glob("*.csv*")), [], name)


class ShippedData(unittest.TestCase):
    """The facts in README.md, found again by code that shares nothing with the script or the engine."""

    @classmethod
    def setUpClass(cls) -> None:
        with lzma.open(HERE / "debian-bookworm.csv.xz", "rt", encoding="ascii") as file:
            cls.header, *cls.rows = csv.reader(file)
        with lzma.open(HERE / "debian-bookworm-packages.csv.xz", "rt", encoding="ascii") as file:
            cls.package_header, *cls.packages = csv.reader(file)
        with lzma.open(HERE / "debian-bookworm-updates.csv.xz", "rt", encoding="ascii") as file:
            cls.update_header, *cls.updates = csv.reader(file)
        with lzma.open(HERE / "debian-bookworm-updates-packages.csv.xz", "rt", encoding="ascii") as file:
            cls.changed_header, *cls.changed = csv.reader(file)
        with lzma.open(HERE / "debian-bookworm-updates-gone.txt.xz", "rt", encoding="ascii") as file:
            cls.gone = [tuple(line.split()) for line in file]
        cls.facts = dict(re.findall(r"^\| ([^|]+?) \| `?([^|`]+?)`? \|$", (HERE / "README.md").read_text(), re.M))

    def fact(self, name: str) -> int:
        return int(self.facts[name].replace(",", ""))

    def test_checksums(self) -> None:
        endings = [".csv.xz", "-packages.csv.xz", "-updates.csv.xz", "-updates-packages.csv.xz", "-updates-gone.txt.xz"]
        for name in [f"debian-bookworm{ending}" for ending in endings]:
            packed = (HERE / name).read_bytes()
            self.assertEqual(hashlib.sha256(packed).hexdigest(), self.facts[f"sha256 of {name}"])

    def test_shape(self) -> None:
        self.assertEqual(self.header, ["source", "target", "kinds"])
        self.assertEqual(self.package_header, ["name", "section", "installed_size"])
        pairs = [(source, target) for source, target, _ in self.rows]
        self.assertEqual(pairs, sorted(set(pairs)), "sorted, no pair twice")
        self.assertTrue(all(source != target for source, target in pairs), "no loops")
        names = [name for name, _, _ in self.packages]
        self.assertEqual(names, sorted(set(names)))
        self.assertLessEqual({name for pair in pairs for name in pair}, set(names))
        self.assertTrue(all(size.isdigit() for _, _, size in self.packages))

    def test_counts(self) -> None:
        self.assertEqual(len(self.packages), self.fact("packages"))
        self.assertEqual(len(self.rows), self.fact("edges"))
        vertices = {name for source, target, _ in self.rows for name in (source, target)}
        self.assertEqual(len(vertices), self.fact("packages with an edge"))
        kinds = Counter()
        for _, _, text in self.rows:
            self.assertIn(int(text), range(1, 16))
            kinds.update(bit for bit in (1, 2, 4, 8) if int(text) & bit)
        for bit, name in [(1, "Depends"), (2, "Pre-Depends"), (4, "Recommends"), (8, "Suggests")]:
            self.assertEqual(kinds[bit], self.fact(f"edges with {name}"))
        ends = ["libreoffice-common", "libreoffice-style-colibre"]
        both = [int(row[2]) for row in self.rows if row[:2] == ends]
        self.assertEqual(both, [self.fact("kinds of {} to {}".format(*ends))])
        sections = {name: section for name, section, _ in self.packages}
        self.assertEqual(sections["gimp"], self.facts["section of gimp"])

    def test_updates(self) -> None:
        before = {(source, target) for source, target, _ in self.rows}
        added = {(source, target) for source, target, _ in self.updates}
        self.assertEqual(self.update_header, self.header)
        self.assertEqual((len(added), len(set(self.gone))), (len(self.updates), len(self.gone)))
        self.assertFalse(added & before, "what is added was not there")
        self.assertLessEqual(set(self.gone), before, "what goes was there")
        self.assertEqual(len(added), self.fact("edges that the updates add"))
        ends = {name for pair in added for name in pair}
        self.assertEqual(len(ends), self.fact("packages with an edge that the updates add"))
        self.assertEqual(len(self.gone), self.fact("edges that the updates remove"))
        after = before - set(self.gone) | added
        self.assertEqual(len(after), self.fact("edges after the updates"))
        vertices = {name for pair in before | after for name in pair}
        self.assertEqual(len(vertices), self.fact("packages with an edge, before or after"))
        packages = {name: (section, size) for name, section, size in self.packages}
        self.assertEqual(self.changed_header, self.package_header)
        self.assertTrue(all(packages.get(name) != (section, size) for name, section, size in self.changed))
        vertices |= packages.keys() | {name for name, _, _ in self.changed}
        self.assertEqual(len(vertices), self.fact("packages, before or after"))
        changed = [name for name, _, _ in self.changed if name in packages]
        self.assertEqual(len(changed), self.fact("packages of another size or section after the updates"))
        sizes = {name: size for name, _, size in self.changed}
        self.assertEqual(int(packages["libc6"][1]), self.fact("installed size of libc6, KiB"))
        self.assertEqual(int(sizes["chromium"]), self.fact("installed size of chromium after the updates, KiB"))
        vertex, degree = Counter(target for _, target in after).most_common(1)[0]
        self.assertEqual(f"{vertex}, {degree:,}", self.facts["largest in-degree after the updates"])

    def test_degrees(self) -> None:
        asked_for = Counter(target for _, target, _ in self.rows)
        asking = Counter(source for source, _, _ in self.rows)
        for counts, name in [(asked_for, "largest in-degree"), (asking, "largest out-degree")]:
            vertex, degree = counts.most_common(1)[0]
            self.assertEqual(f"{vertex}, {degree:,}", self.facts[name])

    def test_components(self) -> None:
        parent: dict[str, str] = {}

        def root(vertex: str) -> str:
            while parent.setdefault(vertex, vertex) != vertex:
                parent[vertex] = parent[parent[vertex]]
                vertex = parent[vertex]
            return vertex

        for source, target, _ in self.rows:
            parent[root(source)] = root(target)
        sizes = Counter(root(vertex) for vertex in list(parent))
        self.assertEqual(len(sizes), self.fact("weak components"))
        num_alone = len(self.packages) - sum(sizes.values())
        self.assertEqual(len(sizes) + num_alone, self.fact("weak components, with packages that stand alone"))
        self.assertEqual(max(sizes.values()), self.fact("vertices of the largest"))

    def test_strong_components(self) -> None:
        asks_for, asked_for = defaultdict(list), defaultdict(list)
        for source, target, _ in self.rows:
            asks_for[source].append(target)
            asked_for[target].append(source)
        # Kosaraju's two searches: who is done last goes first against the edges.
        finished: list[str] = []
        seen: set[str] = set()
        for root in list(asks_for):
            path = [] if root in seen else [(root, iter(asks_for[root]))]
            seen.add(root)
            while path:
                vertex, targets = path[-1]
                target = next((target for target in targets if target not in seen), None)
                if target is None:
                    finished.append(vertex)
                    path.pop()
                else:
                    seen.add(target)
                    path.append((target, iter(asks_for.get(target, []))))
        sizes = []
        for root in reversed(finished):
            waiting = [root] if root in seen else []
            seen.discard(root)
            for vertex in waiting:
                sources = seen.intersection(asked_for.get(vertex, []))
                seen -= sources
                waiting.extend(sources)
            if waiting:
                sizes.append(len(waiting))
        self.assertEqual(len(sizes), self.fact("strong components"))
        self.assertEqual(max(sizes), self.fact("vertices of the largest strong one"))

    def test_distances(self) -> None:
        asks_for = defaultdict(list)
        for source, target, _ in self.rows:
            asks_for[source].append(target)

        def distances(start: str) -> dict[str, int]:
            reached, frontier, hops = {start: 0}, {start}, 0
            while frontier:
                hops += 1
                frontier = {target for vertex in frontier for target in asks_for[vertex]} - reached.keys()
                reached |= dict.fromkeys(frontier, hops)
            return reached

        self.assertEqual(distances("gimp")["libc6"], self.fact("steps from gimp to libc6"))
        from_libc = distances("libc6")
        self.assertEqual(from_libc["gimp"], self.fact("steps from libc6 to gimp"))
        self.assertEqual(len(from_libc), self.fact("packages that libc6 reaches, itself included"))
        self.assertEqual(max(from_libc.values()), self.fact("steps to the farthest of them"))

    def test_sums_of_kinds(self) -> None:
        asks_for = defaultdict(list)
        for source, target, kinds in self.rows:
            asks_for[source].append((target, int(kinds)))
        settled: dict[str, int] = {}
        waiting = [(0, "libc6")]
        while waiting:
            total, vertex = heapq.heappop(waiting)
            if vertex not in settled:
                settled[vertex] = total
                for target, kinds in asks_for[vertex]:
                    heapq.heappush(waiting, (total + kinds, target))
        self.assertEqual(settled["gimp"], self.fact("least sum of kinds from libc6 to gimp"))


if __name__ == "__main__":
    unittest.main()
