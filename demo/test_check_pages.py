"""Tests of check_pages.py: which lines are commands, and which differences count."""

import unittest

from check_pages import Command, commands, difference

PAGE = """Text with `anden info demo.anden` in it.
```sh
anden info demo.anden       # a comment
make demo
echo 'p 7 name x' | anden apply demo.anden -
```
```rust
anden is no command here
```
```console
$ anden query demo.anden khop a 2 --count
3
$ anden run demo.anden wcc
wcc on 3 vertices and 2 edges, 2 threads
…
```
"""


class Commands(unittest.TestCase):
    def test_commands_and_their_output_are_found(self):
        found = [
            Command("page", 3, "anden info demo.anden       # a comment"),
            Command("page", 5, "echo 'p 7 name x' | anden apply demo.anden -"),
            Command("page", 11, "anden query demo.anden khop a 2 --count", ["3"]),
            Command("page", 13, "anden run demo.anden wcc", ["wcc on 3 vertices and 2 edges, 2 threads", "…"]),
        ]
        self.assertEqual(commands("page", PAGE), found)


class Differences(unittest.TestCase):
    def test_times_sizes_and_threads_do_not_count(self):
        self.assertIsNone(difference(["time  3.1 ms", "peak  1.2 MiB"], "time 910 µs\npeak    14 MiB\n"))
        self.assertIsNone(difference(["3 edges, 2 threads"], "3 edges, 1 thread\n"))
        self.assertIsNone(difference(["1 - 2026-01-01 10:00"], "1 - 2026-12-24 08:30\n"))

    def test_other_values_count(self):
        self.assertIsNotNone(difference(["components 2"], "components 3\n"))
        self.assertIsNotNone(difference(["a", "b"], "a\n"))
        self.assertIsNotNone(difference(["a"], "a\nb\n"))

    def test_shown_output_may_be_its_beginning(self):
        self.assertIsNone(difference(["a", "…"], "a\nb\n"))
        self.assertIsNotNone(difference(["a", "…"], "a\n"))
        self.assertIsNone(difference([], "a\n"))


if __name__ == "__main__":
    unittest.main()
