"""Programs that are killed at any moment, and go on from their checkpoints with the same bits."""

import random
import re
import shutil

import waves
from launches import PYTHON, TILEWAVE, ended
from local_ranks import results_of

#: Kills itself at the n-th event of Python's audit (each file opened, folder made or renamed, ...), for n = first,
#: first + step, ..., in children; another child looks at what is there. No context is made before a fork.
AT_EVENTS = """
import os, shutil, signal, sys
import tilewave as tw
from tilewave.field import zarr3

first, step = map(int, sys.argv[1:])
zarr3.CHUNK_BYTES = 100
EVENTS = {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.scandir", "os.listdir", "shutil.rmtree"}

def save(number):
    u = tw.field((40,), init=float(number), history=1)
    return tw.checkpoint("c", number, u=u, k=number)

def in_child(work):
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1]
    code = 1
    try:
        work()
        code = 0
    finally:
        os._exit(code)

def saved_until(number):
    tw.field((1,))  # all that is loaded late
    seen = 0
    def hook(event, arguments):
        nonlocal seen
        if event in EVENTS:
            seen += 1
            if seen == number:
                os.kill(os.getpid(), signal.SIGKILL)
    sys.addaudithook(hook)
    save(3)

def look():
    state = tw.resume("c")
    assert state["step"] == state["k"] and state["step"] in (2, 3), state
    assert tw.max(state["u"]) == tw.min(state["u"]) == state["step"]
    assert state["u"].history == 1
    save(4)
    assert tw.resume("c")["step"] == 4 and len(os.listdir("c")) == 2, os.listdir("c")
    os._exit(10 + state["step"])

assert in_child(lambda: [save(1), save(2)]) == 0
shutil.copytree("c", "base")
found = {2: 0, 3: 0}
while True:
    shutil.rmtree("c")
    shutil.copytree("base", "c")
    status = in_child(lambda: saved_until(first))
    if status == 0:
        break
    assert status == signal.SIGKILL, status
    code = os.waitstatus_to_exitcode(in_child(look))
    assert code in (12, 13), (first, code)
    found[code - 10] += 1
    first += step
print("kills", sum(found.values()), "before and after the end", found[2], found[3])
"""


def test_killed_at_each_event(tmp_path, request):
    step = 1 if request.config.getoption("--long") else 15
    first = random.randint(1, step)
    done = ended(PYTHON, "-c", AT_EVENTS, first, step, cwd=tmp_path, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    print(f"first event {first}, each {step}: {done.stdout}")
    kills, before, after = map(int, re.findall(r"\d+", done.stdout))
    assert kills * step > 60 and before and (after or step > 1)


#: Kills children that run on one rank; no context is made before a fork.
CHILDREN = """
import os, random, signal, sys, time
from waves import *
path, kills, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
pick = random.Random(seed)
for number in range(kills):
    begun, tell = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            steps(tw.resume(path) or begin(), 10**9, path, lambda: os.write(tell, b"x"))
        finally:
            os._exit(1)
    os.read(begun, 1)
    since = time.monotonic()
    os.read(begun, 1)
    time.sleep(pick.uniform(0.0, 2 * (time.monotonic() - since)))  # of the next two checkpoints
    os.kill(child, signal.SIGKILL)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
"""
#: A rank of several kills itself, or all do.
PROGRAM = """
import os, signal, sys, threading
from waves import *
path, after, who = sys.argv[1], float(sys.argv[2]), sys.argv[3]
if who == "nobody":
    state = tw.resume(path)
    tw.print(state["step"] + 3, steps(state, state["step"] + 3, path))
    sys.exit()
steps(begin(), 1)  # compiled
if who in ("all", str(tw.rank)):
    kill = threading.Timer(after, lambda: os.kill(os.getpid(), signal.SIGKILL))
    kill.daemon = True
    kill.start()
steps(tw.resume(path) or begin(), 10**9, path)
"""


def test_killed_at_random_moments(tmp_path, request):
    """While steps and checkpoints go on, on one rank and on several; the last launch is on another number of ranks."""
    kills, launches = (200, 20) if request.config.getoption("--long") else (8, 1)
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    pick = random.Random(seed)
    path = tmp_path / "c"
    shutil.copy(waves.__file__, tmp_path)
    for name, text in {"children": CHILDREN, "program": PROGRAM}.items():
        (tmp_path / f"{name}.py").write_text(text)

    def launched(ranks, *arguments):
        program = tmp_path / "program.py", path, *arguments
        return ended(*TILEWAVE, "run", "-n", ranks, *program, env={"TILEWAVE_THREADS": "1"})

    for _ in range(launches):
        done = ended(PYTHON, tmp_path / "children.py", path, kills // launches, pick.randrange(10**6), timeout=600)
        assert done.returncode == 0 and "damaged" not in done.stderr, done.stderr
        ranks = pick.choice((2, 3))
        done = launched(ranks, pick.uniform(0.0, 0.4), pick.choice(("all", *range(ranks))))
        assert done.returncode != 0 and "Traceback" not in done.stderr and "damaged" not in done.stderr, done.stderr
    done = launched(pick.choice((1, 2, 3)), 0, "nobody")
    assert done.returncode == 0 and "damaged" not in done.stderr, done.stderr
    step, bits = done.stdout.split()
    print(f"{kills + launches} kills, {step} steps")
    assert results_of(1, 1, lambda context: waves.steps(waves.begin(context), int(step)))[0] == bits
