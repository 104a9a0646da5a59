"""Kernels on disk: the right one or none, whatever is in the folder."""

import os
import random
import re
import resource
import shutil
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from launches import PYTHON, ended
from bodies import HEADER, load
from random_programs.draw import plain_program

import tilewave
from other_package import comes_first
from tilewave.kernel import compile as compiler
from tilewave.kernel import cache as kernel_cache
from tilewave.kernel import processor, toolchain
from tilewave.kernel.compile import makes_vectors
from tilewave.kernel.compile import compile_kernel as kernel_for
from tilewave.errors import ConfigError
from tilewave.nest.nest import nest


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache of its own."""
    where = tmp_path / "cache"
    monkeypatch.setenv("TILEWAVE_CACHE_DIR", str(where))
    return where


class Builder:
    """Makes one code and counts how often."""

    def __init__(self, code=b"object code"):
        self.code, self.calls = code, 0

    def __call__(self):
        self.calls += 1
        return self.code


def files(where):
    return sorted(where.iterdir()) if where.exists() else []


def test_what_was_built_is_found(cache):
    first, other = Builder(b"first"), Builder(b"other")
    for _ in range(3):
        assert kernel_cache.object_code("key", first) == b"first"
        assert kernel_cache.object_code("key ", other) == b"other"
    assert (first.calls, other.calls) == (1, 1)
    assert [path.suffix for path in files(cache)] == [".kernel"] * 2
    assert {path.stat().st_mode & 0o777 for path in files(cache)} == {0o600}
    assert cache.stat().st_mode & 0o777 == 0o700


def damaged(data):
    """(what was done, the file after it): cut at every length, changed in every byte."""
    for length in range(len(data)):
        yield f"cut to {length}", data[:length]
    for k in range(len(data)):
        for change in (1, 0x80, 0xFF):
            yield f"byte {k} ^ {change}", data[:k] + bytes([data[k] ^ change]) + data[k + 1 :]
    yield "longer", data + b"\0"
    for what, key, code in (("another's", "another key", b"another code"), ("swapped", "object code", b"the key")):
        kernel_cache.object_code(key, Builder(code))
        (path,) = (path for path in files(kernel_cache.folder()) if code in path.read_bytes()[-len(code) :])
        yield what, path.rename(path.with_suffix(".part")).read_bytes()
        path.with_suffix(".part").unlink()


def test_threads_that_want_one_kernel_build_it_once(cache):
    begun, builder, found = threading.Barrier(4), Builder(), []

    def slowly():
        time.sleep(0.1)
        return builder()

    def work():
        begun.wait()
        found.append(kernel_cache.object_code("key", slowly))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [builder.code] * 4 and builder.calls == 1


def test_a_damaged_file_is_built_and_written_again(cache):
    kernel_cache.object_code("the key", Builder())
    (path,) = files(cache)
    whole = path.read_bytes()
    for what, data in damaged(whole):
        path.write_bytes(data)
        builder = Builder()
        assert kernel_cache.object_code("the key", builder) == builder.code, what
        assert builder.calls == 1 and path.read_bytes() == whole, what
    assert files(cache) == [path]


SPOILT = {f"{mode:o}": lambda path, mode=mode: path.chmod(mode) for mode in (0o620, 0o602, 0o666)}
if os.geteuid() == 0:
    SPOILT["of another user"] = lambda path: os.chown(path, 65534, -1)


@pytest.mark.parametrize("how", SPOILT)
def test_a_file_that_others_can_write_is_not_run(cache, how):
    kernel_cache.object_code("key", Builder())
    (path,) = files(cache)
    SPOILT[how](path)
    builder = Builder()
    kernel_cache.object_code("key", builder)
    assert builder.calls == 1 and path.stat().st_mode & 0o777 == 0o600 and path.stat().st_uid == os.geteuid()


def test_a_folder_that_others_can_write_is_not_used(cache, monkeypatch):
    kernel_cache.object_code("key", Builder())
    cache.chmod(0o777)
    part = cache / f".tilewave-{'0' * 32}.part"  # as an unfinished file is called
    part.write_text("")
    os.utime(part, (0, 0))
    monkeypatch.setattr(kernel_cache, "FILES", 0)
    builder = Builder()
    for key in ("key", "new"):
        assert kernel_cache.object_code(key, builder) == builder.code
    assert builder.calls == 2 and len(files(cache)) == 2


@pytest.mark.parametrize(
    "make",
    [
        os.mkfifo, os.mkdir, lambda path: (path.touch(), os.truncate(path, 1 << 40)),
        lambda path: os.symlink("/dev/zero", path),
    ],
    ids=["fifo", "folder", "huge", "device"],
)
def test_what_is_no_kernel_file_is_not_waited_for(cache, make):
    build = Builder()
    kernel_cache.object_code("key", build)
    (path,) = files(cache)
    path.unlink()
    make(path)
    assert kernel_cache.object_code("key", build) == b"object code" and build.calls == 2


def test_a_folder_that_cannot_be_made_means_no_cache(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("not a folder")
    for where in (tmp_path / "file", tmp_path / "file" / "below", Path("/proc/none/of/it")):
        monkeypatch.setenv("TILEWAVE_CACHE_DIR", str(where))
        builder = Builder()
        for _ in range(2):
            assert kernel_cache.object_code("key", builder) == builder.code
        assert builder.calls == 2
    assert (tmp_path / "file").read_text() == "not a folder"


@pytest.mark.parametrize("most", [0, 10, 60])  # bytes of a file: a head has 40
def test_a_full_disk_means_no_cache(cache, most):
    kernel_cache.object_code("another", Builder())
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        builder = Builder(100 * b"object code")
        assert kernel_cache.object_code("key", builder) == builder.code
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert builder.calls == 1 and len(files(cache)) == 1


def test_where_the_cache_is(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("TILEWAVE_CACHE_DIR", str(tmp_path / "own"))
    assert kernel_cache.folder() == tmp_path / "own"
    monkeypatch.setenv("TILEWAVE_CACHE_DIR", "")
    assert kernel_cache.folder() is None
    builder = Builder()
    assert kernel_cache.object_code("key", builder) == kernel_cache.object_code("key", builder)
    assert builder.calls == 2 and not files(tmp_path)
    monkeypatch.delenv("TILEWAVE_CACHE_DIR")
    assert kernel_cache.folder() == tmp_path / "xdg" / "tilewave"
    for other in ("", "relative"):
        monkeypatch.setenv("XDG_CACHE_HOME", other)
        assert kernel_cache.folder() == tmp_path / ".cache" / "tilewave"
    monkeypatch.setenv("HOME", "relative")
    assert kernel_cache.folder() is None


def test_the_oldest_files_go(cache, monkeypatch):
    monkeypatch.setattr(kernel_cache, "FILES", 3)
    for k in range(3):
        kernel_cache.object_code(f"key {k}", Builder())
        for path in files(cache):
            os.utime(path, (path.stat().st_mtime - 10,) * 2)
    kernel_cache.object_code("key 0", Builder())  # used, so no longer the oldest
    others = [cache / name for name in ("notes.txt", "cuda.kernel", f"{'e' * 32}.kernel")]
    for path in others:
        path.write_text("somebody's")
        os.utime(path, (0, 0))
    kernel_cache.object_code("key 3", Builder())
    assert all(path.read_text() == "somebody's" for path in others)
    built = [Builder() for _ in range(4)]
    for k in (0, 2, 3, 1):
        kernel_cache.object_code(f"key {k}", built[k])
    assert [builder.calls for builder in built] == [0, 1, 0, 0]


def test_many_processes_at_once(cache):
    """Readers, writers and removers of the same files: each gets what belongs to its key."""
    script = textwrap.dedent("""
        import random, sys
        from tilewave.kernel import cache as kernel_cache
        kernel_cache.FILES = 3
        choose = random.Random(int(sys.argv[1]))
        for turn in range(300):
            number = choose.randrange(6)
            code = bytes([number]) * (20_000 + number)
            assert kernel_cache.object_code(f"key {number}", lambda: code) == code
    """)
    running = [subprocess.Popen([sys.executable, "-c", script, str(seed)]) for seed in range(4)]
    assert [process.wait(timeout=300) for process in running] == [0] * 4
    assert len(files(cache)) <= 3 + len(running)
    assert all(path.suffix == ".kernel" for path in files(cache))


# With the compiler.


def compile_kernel(*arguments, **choices):
    """A kernel with its code, which others lack until they run."""
    kernel = kernel_for(*arguments, **choices)
    assert kernel.address
    return kernel


def test_a_kernel_that_nobody_runs_is_not_compiled(cache, monkeypatch):
    compilations, optimised = [], processor.optimised
    monkeypatch.setattr(processor, "optimised", lambda *given: compilations.append(1) or optimised(*given))
    types = {"A": "f8", "B": "f8"}
    kernel = kernel_for(scaled, types)
    assert not kernel.vectors and compilations == [] == files(cache)
    assert kernel.address and len(compilations) == 1 and kernel.address == kernel.address
    assert not makes_vectors(scaled, types) and makes_vectors(added, types, independent=True)
    made = len(files(cache))
    assert makes_vectors(added, types, independent=True) and len(files(cache)) == made


def test_kernels_are_compiled_in_threads(cache, monkeypatch):
    """As many at once as there are CPUs, the same code as one by one; what is on disk is not compiled again."""
    types, contents = {"A": "f8", "B": "f8"}, []
    for folder, threads in (("one", False), ("several", True)):
        monkeypatch.setenv("TILEWAVE_CACHE_DIR", str(cache / folder))
        kernels = [kernel_for(scaled, types), kernel_for(added, types), kernel_for(added, types, independent=True)]
        for kernel in kernels * 2 if threads else ():
            kernel.start()
        assert all(kernel.address for kernel in kernels)
        contents.append([path.read_bytes() for path in files(cache / folder)])
    assert contents[0] == contents[1] and len(contents[0]) == 3
    again = kernel_for(scaled, types)
    again.start()
    assert again.stored and again._coming is None


def test_a_kernel_that_a_thread_cannot_compile_says_so(cache, monkeypatch):
    kernel = kernel_for(scaled, {"A": "f8", "B": "f8"})

    def fails(*given):
        raise MemoryError("no room")

    with monkeypatch.context() as changed:
        changed.setattr(processor, "optimised", fails)
        kernel.start()
        with pytest.raises(MemoryError, match="no room"):
            _ = kernel.address


@nest
def scaled(A, B, i, j, *, c=2.0):
    A[i, j] = A[i - 1, j] + np.exp(B[i, j]) * c


@nest
def added(A, B, i, j):
    A[i, j] = A[i - 1, j] + B[i, j]


@pytest.fixture
def compilations(monkeypatch):
    """The modules that were compiled, and not found."""
    compiled, made, optimised, build = [], [], processor.optimised, compiler.build_row

    def counted(text, machine):
        compiled.append(text)
        return optimised(text, machine)

    monkeypatch.setattr(processor, "optimised", counted)
    monkeypatch.setattr(compiler, "build_row", lambda *given: made.append(1) or build(*given))
    yield compiled
    assert len(made) == len(compiled)  # no module is made of a kernel that is found


def test_a_kernel_is_compiled_once(cache, compilations):
    types = {"A": "f8", "B": "f8"}
    for _ in range(2):
        compile_kernel(scaled, types)
    compile_kernel(scaled, types, {"c": 3.5})
    assert len(compilations) == len(files(cache)) == 1
    others = [({"A": "f8", "B": "f4"}, None, False), (types, {"c": 2}, False), (types, None, True)]  # True: fastmath
    for _ in range(2):
        for dtypes, scalars, fastmath in others:
            compile_kernel(scaled, dtypes, scalars, fastmath=fastmath)
    assert len(compilations) == len(files(cache)) == 4


def test_another_processor_or_version_has_kernels_of_its_own(cache, compilations, monkeypatch):
    types = {"A": "f8", "B": "f8"}
    changes = [
        (toolchain.llvm, "get_host_cpu_name", lambda: "generic"),
        (toolchain.np, "__version__", "9.9"),
        (toolchain.llvmlite, "__version__", "9.9"),
        (processor, "vector_bytes", lambda: 8),
        (processor, "lane_bytes", lambda: 8),
        (processor, "ahead_bytes", lambda: 64),
    ]
    compile_kernel(scaled, types)
    for k, (owner, name, other) in enumerate(changes):
        with monkeypatch.context() as changed:
            changed.setattr(owner, name, other)
            toolchain.toolchain.cache_clear()
            compile_kernel(scaled, types)
        assert len(compilations) == len(files(cache)) == k + 2
    toolchain.toolchain.cache_clear()
    compile_kernel(scaled, types)
    assert len(compilations) == len(changes) + 1


UPGRADED = """
import sys
import numpy as np
import tilewave as tw
@tw.nest
def largest(A, i):
    assert A[i] >= 0
    A[i] = max(A[i-1], 1.0) + 1.0
print("loaded", flush=True)
sys.stdin.readline()
A = np.zeros(4)
A[2] = float(sys.argv[1])
try:
    tw.run(largest, A=A)
    print(*A)
except tw.KernelError:
    print("raised")
"""


def test_what_is_in_memory_decides_and_not_what_is_on_disk(cache, tmp_path):
    """A process from before an upgrade keeps its kernels apart; so do those with and without asserts."""
    package = Path(tilewave.__file__).parent
    shutil.copytree(package, tmp_path / "tilewave", ignore=shutil.ignore_patterns("__pycache__", "_core"))
    for library in Path(tilewave._core.__file__).parent.glob("*.so"):  # elsewhere in an editable install
        shutil.copy(library, tmp_path / "tilewave")
    comes_first(tmp_path)
    script = tmp_path / "script.py"
    script.write_text(UPGRADED)

    def start(*options, value=0):
        return subprocess.Popen(
            [sys.executable, *options, str(script), str(value)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(tmp_path)},
        )

    def end(process):
        return process.communicate("\n", timeout=300)[0].splitlines()[-1]

    old = start()
    old.stdout.readline()
    functions = tmp_path / "tilewave" / "kernel" / "emit" / "functions.py"
    text = functions.read_text()
    assert text.count('"<" if name == "min" else ">"') == 1
    functions.write_text(text.replace('"<" if name == "min" else ">"', '">" if name == "min" else "<"'))
    assert end(old) == "0.0 2.0 3.0 4.0"
    new = [start(), start(value=-1), start("-O", value=-1), start(value=-1)]
    assert [end(process) for process in new] == ["0.0 1.0 2.0 2.0", "raised", "0.0 1.0 2.0 2.0", "raised"]


SEED = int(os.environ.get("TILEWAVE_SEED", 1))


@pytest.mark.parametrize("seed", range(SEED, SEED + 10))
@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_two_kernels_of_one_key_are_the_same(tmp_path, seed):
    """Bodies, captured values, types and choices that differ a little: the key differs where the module does."""
    equal, rng = 0, random.Random(seed)
    drawn = plain_program(seed).nests[0]
    text = drawn.helpers() + "@nest\n" + drawn.text().removeprefix(drawn.helpers()).replace(drawn.name, "body")
    text = text.replace("1.5", "WEIGHT").replace("0.25", "SINGLE")
    other = re.sub(r"^(WEIGHT|COUNT|SINGLE|BYTE|SHORT) = (.*)$", r"\1 = \2 + \2", HEADER, flags=re.MULTILINE)
    lines = text.splitlines()
    place = rng.randrange(2, len(lines) + 1)
    spread = "\n".join([*lines[:place], "    # a line more", *lines[place:]]) + "\n"
    variants = [
        HEADER + text, "\n\n" + HEADER + text, other + text, HEADER + spread,
        HEADER + text.replace("0.5", "0.25"), HEADER + text.replace("2.0", "2"),
        HEADER + text.replace("-0.0", "0.0"), HEADER + text.replace("np.pi", "np.e"),
    ]
    nests = [load(tmp_path, f"variant_{seed}_{k}", source).body for k, source in enumerate(variants)]
    found = {}
    for _ in range(3):
        step, dtype, value = rng.choice((None, 1)), rng.choice(("f8", "f4")), rng.choice((3, 300, 0.5))
        given = {"fastmath": rng.random() < 0.2, "independent": rng.random() < 0.5, "long_rows": rng.random() < 0.5}
        for nest in nests:  # noqa: F402
            types = {name: np.dtype(dtype if name == "A" else "f8") for name in nest.arrays}
            choices = compiler.Choices(steps=(step,) * len(nest.places), **given)
            try:
                slots = compiler._slots(nest, dict.fromkeys(nest.scalars, value))
                recipe = compiler._Recipe(nest, nest.signature(), nest.constants(), types, slots, choices)
                row = recipe.build()
            except ConfigError:
                continue  # types that this body cannot have
            kernel = str(row.module), [(name, message, line - nest.line) for name, message, line in row.sites]
            key = recipe.key()
            equal += key in found
            assert found.setdefault(key, kernel) == kernel, f"TILEWAVE_SEED={seed}\n{key}\n{text}"
    if not found:
        pytest.skip("this body cannot have the types drawn")
    assert equal > 0, "texts that differ in empty lines have one key"


def test_lines_of_messages_follow_the_body(cache, compilations, tmp_path):
    body = "import math\nimport tilewave as tw\n@tw.nest\ndef body(A, i):\n{}    A[i] = math.sqrt(A[i-1])\n"
    for k, between in enumerate(("", "    # a comment\n", "", "    # two\n\n")):
        nest = load(tmp_path, f"lines_{k}", body.format(between)).body
        assert {line for *_, line in compile_kernel(nest, {"A": "f8"}).sites} == {nest.line + 1 + between.count("\n")}
    assert len(compilations) == 3


def test_loops_of_another_numpy_on_this_processor(cache, compilations, monkeypatch):
    types = {"A": "f8", "B": "f8"}
    compile_kernel(scaled, types)
    with monkeypatch.context() as changed:
        changed.setattr(compiler.loops, "numpy_loop", lambda name, dtype: ("tilewave_np_other_float64", None))
        compile_kernel(scaled, types)
    assert len(compilations) == 2  # not that which is kept, whose loop is another
    compile_kernel(scaled, types)
    assert len(compilations) == 2


PROGRAM = '''
import math, sys
import numpy as np
from tilewave.kernel import processor, toolchain
from tilewave import nest
from kernel_helpers import compare

@nest
def called(A, B, i, j, *, c=2):
    """Calls of NumPy's loops, with data of their own and without, and of the C library."""
    if B[i, j] < -900:
        raise ValueError("too small")
    A[i, j] = np.exp(B[i, j]) + np.arcsinh(A[i-1, j]) + math.atan2(B[i, j], c) + B[i, j] % 0.7

optimised, compiled = processor.optimised, []
processor.optimised = lambda *given: compiled.append(1) or optimised(*given)
for dtype in ("f4", "f8"):
    kernel = compare(called, {"A": dtype, "B": dtype}, (6, 30), seed=3, special=0)
    assert ("ValueError", "too small", called.line + 3) in kernel.sites, kernel.sites
print(len(compiled))
'''


def test_a_new_process_finds_kernels_and_what_they_call(cache, tmp_path):
    program = tmp_path / "program.py"
    paths = [str(Path(__file__).resolve().parents[1] / "support"), *filter(None, [os.environ.get("PYTHONPATH")])]

    def run():
        done = ended(PYTHON, program, env={"PYTHONPATH": os.pathsep.join(paths)})
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    program.write_text(PROGRAM)
    assert (run(), run()) == ("2", "0")
    program.write_text("\n\n" + PROGRAM)  # lines of the messages are no part of the code
    assert run() == "0"
    for path in files(cache):
        data = path.read_bytes()
        path.write_bytes(data[: len(data) // 2] + b"?" + data[len(data) // 2 + 1 :])
    assert (run(), run()) == ("2", "0")
