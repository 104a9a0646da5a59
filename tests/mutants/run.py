"""Small faults put into the source, one at a time: does the suite catch each?

    python tests/mutants/run.py                     # all
    python tests/mutants/run.py src/core tags-meet  # those of folders, files or names
    python tests/mutants/run.py --part 2/4          # the second, sixth, ... of them
    python tests/mutants/run.py --unchanged nest    # their tests on the source as it is, which must pass

`tests/mutants/*.toml` have the mutants. Each is applied to a copy of this checkout in build/mutants, which has an
environment and builds for itself; what has changed is built, and the mutant's tests run, all cases of them. A test that
fails, an error and a hang catch the mutant. The exit status is 1 if one survives, or cannot be tried.
"""

import argparse
import collections
import importlib.util
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10, where pytest brings it
    import tomli as tomllib

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TIMEOUT_S = 300.0  # of a mutant's tests: a hang
BUILD_TIMEOUT_S = 3600.0
PYTEST = (".venv/bin/python", "-m", "pytest", "-q", "-x", "-rfE", "-p", "no:cacheprovider")
CPP_TESTS = ("build/cpp/tests/cpp/tilewave_tests", "--gtest_brief=1")
GTEST = "gtest "
STOPPED = [128 + number for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
NO_TESTS = (4, 5)  # pytest's exit status for a selection that is wrong or empty


@dataclass(frozen=True)
class Mutant:
    """A fault in one place of the source, and the tests that must catch it."""

    name: str
    file: str
    old: str  # occurs once in the file
    new: str
    wrong: str  # what is wrong, in a line
    tests: list  # arguments of pytest, or "gtest FILTER" for the C++ tests: a run each
    sampled: bool = False  # the tests that catch it are cases of a long list: in a part of the runs only

    @property
    def compiled(self):
        return self.file.endswith((".cpp", ".hpp"))

    @property
    def needs(self):
        """What its tests need built: (Python's package, the C++ tests)."""
        of_cpp = [selection.startswith(GTEST) for selection in self.tests]
        return not all(of_cpp), any(of_cpp)

    def text(self, root=ROOT):
        """The file's text with the fault in it."""
        text = (root / self.file).read_text()
        if text.count(self.old) != 1:
            raise ValueError(f"the old text occurs {text.count(self.old)} times in {self.file}; allowed: once")
        return text.replace(self.old, self.new)

    def belongs_to(self, names):
        return not names or any(
            name in (self.name, self.file) or f"/{self.file}".find(f"/{name.strip('/')}/") >= 0 for name in names
        )


def mutants():
    """All mutants, those of compiled files first."""
    found = []
    for path in sorted(HERE.glob("*.toml")):
        found += [Mutant(**entry) for entry in tomllib.loads(path.read_text())["mutant"]]
    return sorted(found, key=lambda mutant: (not mutant.compiled, mutant.file))


def _processes():
    spec = importlib.util.spec_from_file_location("processes", ROOT / "python/tilewave/launch/processes.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Copy:
    """A copy of the checkout."""

    def __init__(self, folder):
        self.root, self.processes, self.environment = folder / "tree", _processes(), dict(os.environ)
        self.stale = False  # whether what is built is not of the source as it is
        self.root.mkdir(parents=True, exist_ok=True)
        self.environment.setdefault("TILEWAVE_TEST_RUN", "0")  # all cases
        for name in ("VIRTUAL_ENV", "PYTHONPATH", "MAKEFLAGS", "MAKELEVEL", "MFLAGS"):
            self.environment.pop(name, None)

    def bring_up_to_date(self):
        """The files of the checkout, as they are now."""
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT, check=True, capture_output=True, text=True,
        )  # fmt: skip
        wanted = {name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()}
        known = self.root.parent / "files"
        for name in set(known.read_text().split("\n") if known.exists() else ()) - wanted:
            (self.root / name).unlink(missing_ok=True)
        for name in wanted:
            self.write(name, (ROOT / name).read_bytes())
            if os.access(ROOT / name, os.X_OK):
                (self.root / name).chmod(0o755)
        known.write_text("\n".join(sorted(wanted)))

    def write(self, name, content):
        path = self.root / name
        if not path.exists() or path.read_bytes() != content:  # a new time of change has it built again
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)

    def run(self, command, timeout_s):
        """(exit status, output) of a command in the copy; 137 after a timeout, when all of it has been killed."""
        end = time.monotonic() + timeout_s
        with tempfile.TemporaryFile() as output:
            status = self.processes.supervise(
                command, self.environment, watch=lambda: time.monotonic() > end,
                cwd=self.root, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
            )  # fmt: skip
            if status in STOPPED:  # by a signal to this process
                raise KeyboardInterrupt
            output.seek(0)
            return status, output.read().decode(errors="replace")

    def build(self, python=True, cpp_tests=False):
        """(exit status, output) of building what has changed: for Python, for the C++ tests."""
        if python or not (library := next(self.root.glob("build/cp*/libtilewave.a"), None)):
            status, output = self.run(["make", "dev"], BUILD_TIMEOUT_S)
            library = next(self.root.glob("build/cp*/libtilewave.a"), None)
        else:
            status, output = self._cmake("--build", str(library.parent), "--target", "tilewave")
        return self._build_cpp_tests(library) if cpp_tests and not status else (status, output)

    def _build_cpp_tests(self, library):
        python = self.root / ".venv/bin/python"
        if "TILEWAVE_BLAS" not in self.environment:
            code = "from tilewave.linalg.blas import blas; print(blas().path)"
            self.environment["TILEWAVE_BLAS"] = self.run([str(python), "-c", code], TIMEOUT_S)[1].strip()
            options = ["-DTILEWAVE_TESTS=ON", "-DCMAKE_BUILD_TYPE=None", "-DCMAKE_CXX_FLAGS=-O1"]
            options += [f"-DPython_EXECUTABLE={python}", f"-DTILEWAVE_BUILT={library}"]
            options += shlex.split(os.environ.get("CMAKE_ARGS", ""))
            status, output = self._cmake("-S", ".", "-B", "build/cpp", "-G", "Ninja", *options)
            if status:
                return status, output
        return self._cmake("--build", "build/cpp", "--target", "tilewave_tests")

    def _cmake(self, *arguments):
        self.environment["PATH"] = f"{self.root / '.venv/bin'}:{os.environ['PATH']}"
        return self.run([str(self.root / ".venv/bin/cmake"), *arguments], BUILD_TIMEOUT_S)


def outcome_of(copy, mutant):
    """(what became of a mutant that has been built, the test that caught it or what is wrong)."""
    runs = [
        [*CPP_TESTS, f"--gtest_filter={selection.removeprefix(GTEST)}"]
        if selection.startswith(GTEST)
        else [*PYTEST, *shlex.split(selection)]
        for selection in mutant.tests
    ]
    for command in runs:
        status, output = copy.run(command, TIMEOUT_S)
        if status in NO_TESTS and "pytest" in command or "Running 0 tests" in output:
            return "no tests", " ".join(command)
        if status:
            test = re.search(r"^(?:FAILED|ERROR) (\S+)|^\[  FAILED  \] (\S+)", output, re.MULTILINE)
            if test is None and os.environ.get("TILEWAVE_SHOW"):
                print(output[-3000:])
            return "caught", next(filter(None, test.groups())) if test else f"exit status {status}"
    return "NOT CAUGHT", mutant.wrong


def tried(copy, mutant, unchanged):
    """(what became of a mutant, why); the copy has the source as it is again afterwards, and may have to be built."""
    status, output = 0, ""
    original = (copy.root / mutant.file).read_bytes()
    try:
        changed = mutant.text(copy.root).encode()
        if not unchanged:
            copy.write(mutant.file, changed)
            if mutant.compiled or copy.stale:
                copy.stale = mutant.compiled
                status, output = copy.build(*mutant.needs)
        return ("does not build", output[-2000:]) if status else outcome_of(copy, mutant)
    except ValueError as error:
        return "does not apply", str(error)
    finally:
        copy.write(mutant.file, original)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", help="of mutants, files or folders; all without them")
    parser.add_argument("--part", default="1/1", help="k/n: every n-th, from the k-th on")
    parser.add_argument("--unchanged", action="store_true", help="run the tests on the source as it is")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "mutants", help="where the copy is")
    given = parser.parse_args()
    k, n = map(int, given.part.split("/"))
    chosen = [mutant for mutant in mutants() if mutant.belongs_to(given.names)][k - 1 :: n]
    if not chosen:
        parser.error(f"no mutant of {' '.join(given.names)}, part {given.part}")
    copy = Copy(given.folder)
    copy.bring_up_to_date()
    print("building the copy, minutes the first time", flush=True)
    status, output = copy.build(True, any(cpp for _, cpp in (mutant.needs for mutant in chosen)))
    if status:
        sys.exit(f"{output[-3000:]}\nthe copy does not build")
    counts = collections.Counter()
    for mutant in chosen:
        begin = time.monotonic()
        outcome, why = tried(copy, mutant, given.unchanged)
        counts[outcome] += 1
        print(f"{outcome:14} {mutant.name:34} {time.monotonic() - begin:4.0f} s  {mutant.file}: {why}", flush=True)
    print(", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items())), f"of {len(chosen)}")
    sys.exit(set(counts) != {"NOT CAUGHT" if given.unchanged else "caught"})


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
