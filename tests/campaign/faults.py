"""Run on every rank: random collective calls, and at a random moment a fault on one rank: ``faults.py KIND SEED``."""

import os
import random
import resource
import signal
import sys
import threading
import time

kind, seed = sys.argv[1], int(sys.argv[2])
rng = random.Random(seed)  # the same on every rank
if kind.startswith("before") and int(os.environ["PMI_RANK"]) == rng.randrange(int(os.environ["PMI_SIZE"])):
    sys.exit(int(kind.split()[1]))  # before it has called anything

import numpy as np

import tilewave as tw
from tilewave.context import interrupts


def in_a_call(number, frame):
    """Ctrl-C between calls is the program's: this one goes on."""
    if interrupts._inside(frame):
        raise KeyboardInterrupt


signal.signal(signal.SIGINT, in_a_call)


@tw.nest
def relax(A, i, j, *, at=-1):
    if i == at:
        raise ValueError("asked for")
    A[i, j] = 0.5 * (A[i-1, j] + A[i, j-1])


@tw.nest
def sweeps(u, t, i, j):
    u[t+1, i, j] = u[t, i, j] - u[t+1, i-1, j] + u[t, i, j+1]


A = tw.field((300, 400), "f8", init=1.0)
u = tw.field((300, 400), "i8", init=1)
matrix = np.ones((3000, 20))  # made now: what the program itself lacks memory for is no fault of a call
rank, size = A.context.rank, A.context.size
victim, delay_s = rng.randrange(size), rng.random()
# Calls that compare nothing before they begin: none is left half done where ranks end, and only then they are drawn.
ends = kind in ("exit 0", "exit 3", "os._exit 0", "kill")
halos = tw.field((40, 40), init=1.0, halo=1, periodic=(0, 1), grid=(size, 1))
exchange = tw.exchange(halos, start=False)
spread = tw.patterns.spread(np.ones((30, 30)), start=False)
solver = tw.multigrid.Poisson((20, 20))
square = tw.linalg.matrix(np.eye(60) + 1.0)


def pass_around():
    tw.patterns.send(np.ones((9, 9)), (rank + 1) % size)
    tw.patterns.receive(np.empty((9, 9)), source=(rank - 1) % size)


def of_parts(choice):
    """Calls of several collective ones."""
    if choice == 0:
        solver.solve(np.ones((20, 20)), method=rng.choice(["cycles", "cg"]))
    elif choice == 1:
        tw.patterns.allreduce(matrix)
    elif choice == 2:
        tw.linalg.lu(square).solve(square)
    else:
        tw.exchange(halos)


def random_call(at=-1):
    choice = rng.randrange(10 if ends else 9 if kind == "interrupt" else 6)
    if choice == 0:
        tw.run(relax, A=A, at=at)
    elif choice == 1:
        tw.run(sweeps, u=u, steps=rng.randrange(1, 60))
    elif choice == 2:
        A.gather()
    elif choice == 3:
        tw.patterns.broadcast(matrix[: rng.randrange(1, 3000)])
    elif choice == 4:
        tw.max(A)
    elif choice == 6:
        exchange.run()
    elif choice == 7:
        spread.run()
    elif choice == 8:
        tw.patterns.broadcast(matrix, wait=False).wait()
    elif choice == 9:
        pass_around()
    elif kind == "interrupt":
        of_parts(rng.randrange(4))
    else:
        tw.run(relax, A=A, over={"i": (1, rng.randrange(2, 300))}, at=at)


def leave(code):
    """After some calls that all ranks make."""
    for _ in range(rng.randrange(8)):
        random_call()
    if rank == victim:
        {"exit": sys.exit, "os._exit": os._exit}[kind.split()[0]](code)


def end_by(number):
    threading.Timer(delay_s, os.kill, (os.getpid(), number)).start()


def no_memory():
    now = int(open("/proc/self/statm").read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (now + (rng.randrange(1, 40) << 20), -1))


if kind in ("exit 0", "exit 3", "os._exit 0"):
    leave(int(kind.split()[1]))
elif kind in ("kill", "interrupt"):
    if rank == victim:
        end_by({"kill": signal.SIGKILL, "interrupt": signal.SIGINT}[kind])
elif kind == "memory":
    rng.random()
    if rank == victim:
        no_memory()
    else:
        rng.randrange(1, 40)

begin, told = time.time(), 0


def over():
    """Whether the ranks have gone on for long enough: the same on all."""
    return np.max(tw.patterns.spread(np.full((1, 1), time.time() - begin))) > 2


while time.time() - begin < 8:
    try:
        at = rng.randrange(1, 300) if rng.random() < 0.3 else -1
        if kind == "memory" and rng.random() < 0.3:
            tw.field((rng.randrange(1, 9) * 1000, 1000), "f8", init=1.0).gather()
        random_call(at if kind == "body" else -1)
        if kind in ("body", "memory", "interrupt") and over():
            break
    except (tw.KernelError, tw.ConfigError, tw.InternalError, MemoryError, KeyboardInterrupt) as error:
        if kind not in ("body", "memory", "interrupt"):
            raise
        told += 1
        if kind != "interrupt" and not getattr(error, "agreed", False):
            raise
resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
print(f"rank {rank}: {kind}, {told} errors, all told on every rank", flush=True)
