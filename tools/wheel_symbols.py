"""Ends with an error where libraries want functions that glibc 2.28 has not: wheel_symbols.py LIBRARY.so...

The linker leaves such a function open, without a version, and auditwheel looks at versions alone. Python's functions
and MPI's have none either: other libraries of the process have them.
"""

import sys

from elftools.elf.elffile import ELFFile

ELSEWHERE = ("Py", "_Py", "MPI_", "PMPI_", "OMPI_", "ompi_")
NO_VERSION = ("VER_NDX_LOCAL", "VER_NDX_GLOBAL")


def unknown(path):
    """The names of what a library wants of others, but not by a version."""
    with open(path, "rb") as file:
        elf = ELFFile(file)
        versions = elf.get_section_by_name(".gnu.version")
        return [
            symbol.name
            for k, symbol in enumerate(elf.get_section_by_name(".dynsym").iter_symbols())
            if symbol.name
            and symbol["st_shndx"] == "SHN_UNDEF"
            and symbol["st_info"]["bind"] != "STB_WEAK"
            and versions.get_symbol(k)["ndx"] in NO_VERSION
            and not symbol.name.startswith(ELSEWHERE)
        ]


if __name__ == "__main__":
    for path in sys.argv[1:]:
        if names := unknown(path):
            sys.exit(f"wheel_symbols.py: glibc 2.28 has no {', '.join(names)}, which {path} wants; see cmake/manylinux")
