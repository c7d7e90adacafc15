"""Checks wheels: the size, that the native module is stripped, and that it runs where the tag says.

usage: python python/check_wheel.py WHEEL...
A tag `manylinux_X_Y` promises a glibc of X.Y and no other libraries than those of every distribution (PEP 600).
"""

from __future__ import annotations

import re
import struct
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

#: Bytes of a wheel at most: 13.1 MB before Arrow IPC, GraphAr, repair and metrics, 15.3 MB with them.
LARGEST = 16_000_000
#: Libraries of glibc and gcc, which PEP 600 lets a module need.
LIBRARIES = re.compile(r"lib(c|m|dl|rt|pthread|gcc_s)\.so\.\d+|ld-linux[\w-]*\.so\.\d+")
#: Names of the tags before PEP 600, and the glibc that they stand for.
OLD_TAGS = {"manylinux1": (2, 5), "manylinux2010": (2, 12), "manylinux2014": (2, 17)}
#: Kinds of section headers, and of entries of the dynamic section.
SYMBOLS, DYNAMIC, NEEDED = 2, 6, 1


class Module:
    """A native module: an ELF file of 64 bits, little-endian."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        assert data[:6] == b"\x7fELF\x02\x01", "the module is no ELF file of 64 bits"
        (start,) = struct.unpack_from("<Q", data, 40)
        size, number = struct.unpack_from("<HH", data, 58)
        #: Kind, offset, size and linked section of each section.
        self.sections = [
            (header[1], header[4], header[5], header[6])
            for header in (struct.unpack_from("<IIQQQQI", data, start + size * place) for place in range(number))
        ]

    def is_stripped(self) -> bool:
        """Whether there is no symbol table beside that of the dynamic linker."""
        return all(kind != SYMBOLS for kind, *_ in self.sections)

    def libraries(self) -> Iterator[str]:
        """The libraries that the module needs."""
        for kind, offset, size, link in self.sections:
            if kind == DYNAMIC:
                texts = self.sections[link][1]
                for tag, value in struct.iter_unpack("<QQ", self.data[offset : offset + size]):
                    if tag == NEEDED:
                        end = self.data.index(b"\0", texts + value)
                        yield self.data[texts + value : end].decode()

    def glibc(self) -> tuple[int, ...]:
        """The oldest glibc that has all symbols."""
        # Versions are texts of the dynamic linker; a stripped module has them nowhere else.
        found = re.findall(rb"\0GLIBC_(\d+)\.(\d+)(?:\.\d+)?(?=\0)", self.data.replace(b"\0", b"\0\0"))
        return max((int(major), int(minor)) for major, minor in found)


def promised(wheel: Path) -> tuple[int, ...] | None:
    """The glibc that the tag of a wheel promises; none for a tag that promises none."""
    tag = wheel.stem.rsplit("-", 1)[-1]
    versions = [(int(major), int(minor)) for major, minor in re.findall(r"manylinux_(\d+)_(\d+)", tag)]
    versions += [version for name, version in OLD_TAGS.items() if name in tag]
    return min(versions, default=None)


def faults(wheel: Path) -> Iterator[str]:
    """What is wrong with a wheel."""
    if wheel.stat().st_size > LARGEST:
        yield f"{wheel.stat().st_size:,} bytes, more than {LARGEST:,}"
    tag = promised(wheel)
    if tag is None:
        yield "the tag is not one of manylinux"
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name.endswith(".so")]
        modules = [Module(archive.read(name)) for name in names]
    if not modules:
        yield "there is no native module"
    for module in modules:
        if not module.is_stripped():
            yield "the module is not stripped"
        yield from (f"the module needs {name}" for name in module.libraries() if not LIBRARIES.fullmatch(name))
        if tag is not None and module.glibc() > tag:
            yield f"the module needs glibc {module.glibc()}, and the tag promises {tag}"


def main(arguments: list[str]) -> int:
    """Prints each wheel and its faults. Returns 1 if there is a fault."""
    is_faulty = False
    for wheel in map(Path, arguments):
        found = list(faults(wheel))
        is_faulty |= bool(found)
        glibc = ".".join(map(str, promised(wheel) or ("none",)))
        print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB, glibc {glibc} or newer")
        for fault in found:
            print(f"  fault: {fault}", file=sys.stderr)
    return 1 if is_faulty or not arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
