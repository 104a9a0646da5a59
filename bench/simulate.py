"""Predictions on networks beside SimGrid's SMPI, which plays the same steps on an equal platform.

``tilewave bench simulate [--ranks 64,256] [--json FILE] [--quick]`` needs ``smpicc`` and ``smpirun`` (Debian:
``apt install libsimgrid-dev``). Platforms are SimGrid's own fat tree, torus, dragonfly and single switch, so that its
routes are its own, too; its network model is CM02 with factors of 1: max-min fair shares. All messages are short ones:
they leave with their post on both sides. Steps themselves take no time, but for computing.
"""

import itertools
import shutil
import statistics
import subprocess
import tempfile
from pathlib import Path

import tilewave as tw
from tilewave import _core

from bench.runner import benchmark, compared, missing, row

BYTE_S, HOP_S = 1e-9, 1e-6
CONFIG = (
    "network/model:CM02 network/TCP-gamma:0 network/crosstraffic:0 smpi/async-small-thresh:1000000000 "
    "smpi/send-is-detached-thresh:1000000000 smpi/host-speed:1f smpi/simulate-computation:no smpi/privatization:no "
    "smpi/wtime:0 smpi/iprobe:0 smpi/test:0 surf/precision:1e-9"
).split()


@benchmark(
    "simulate", __doc__, options={"--ranks": {"default": "64,256,1024", "help": "several with commas: 64, 256, 1024"}}
)
def simulate(options):
    if not shutil.which("smpicc") or not shutil.which("smpirun"):
        yield missing("all", "no smpicc, no smpirun: apt install libsimgrid-dev")
        return
    apart = []
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "replay"
        source = Path(__file__).with_name("simgrid_replay.c")
        subprocess.run(["smpicc", "-O1", source, "-o", program], check=True, capture_output=True)
        for ranks in [64] if options.quick else map(int, options.ranks.split(",")):
            for (network, platform), (name, schedules, rate) in itertools.product(networks(ranks), cases(ranks)):
                ours = predicted(schedules, network, rate)
                theirs = replayed(schedules, platform, rate, program, Path(folder))
                apart.append(100 * abs(ours / theirs - 1))
                case = f"{name}, {ranks} ranks, {network.topology}"
                yield from compared(case, {"tilewave": [ours], "SimGrid": [theirs]}, "s")
    yield row(f"difference, {len(apart)} cases", "median", [statistics.median(apart)], "%")
    yield row(f"difference, {len(apart)} cases", "largest", [max(apart)], "%")


def networks(ranks):
    """(network, the same as a cluster of SimGrid) of each kind, for 64, 256 or 1024 nodes."""
    side, switches, groups = {
        64: ((4, 4, 4), (8, 8), (4, 4, 4)),
        256: ((8, 8, 4), (16, 16), (4, 8, 8)),
        1024: ((16, 8, 8), (32, 32), (8, 16, 8)),
    }[ranks]
    card, few = {"card_byte_s": BYTE_S, "hop_s": HOP_S}, switches[0] // 2  # links up: half of those down
    one, text = {**card, "link_byte_s": [BYTE_S]}, 'topology="{}" topo_parameters="{}"'
    yield tw.Network("switch", extents=[ranks], **card), ""
    down = ",".join(map(str, switches))
    yield (
        tw.Network("fat tree", extents=list(switches), up=[few], **one),
        text.format("FAT_TREE", f"2;{down};1,{few};1,1"),
    )
    torus = {**one, "card_byte_s": BYTE_S / 64}  # SimGrid's torus has no cards
    yield tw.Network("torus", extents=list(side), **torus), text.format("TORUS", ",".join(map(str, side[::-1])))
    dragonfly = tw.Network("dragonfly", extents=list(groups), link_byte_s=[BYTE_S] * 2, **card)
    yield dragonfly, text.format("DRAGONFLY", f"{groups[0]},1;1,1;{groups[1]},1;{groups[2]}")


def cases(ranks):
    """(name, schedules of all ranks, rate of the kernel)."""
    for kind, algorithm, rows, columns in (
        ("spread", "ring", 64, 128),
        ("broadcast", "tree", 256, 4096 * 64 // ranks),
        ("broadcast", "ring", 256, 4096 * 64 // ranks),
        ("multi_reduce", "direct", 8, 64),
    ):
        wide = kind in ("spread", "multi_reduce")
        # Direct messages of 256 ranks are 65,000 flows at once, of which SimGrid shares all anew as each one ends; a
        # ring of parts has ranks^2 messages.
        if (algorithm == "direct" and ranks > 64) or (kind == "spread" and ranks > 256):
            continue
        dealt = [columns] * ranks if wide else [columns]
        problem = _core.PatternProblem(kind, ranks, rows, dealt, 8)
        plan = _core.PatternPlan(algorithm, 64 << 10, 4)
        whole = columns * 8 * (ranks if wide else 1)
        schedules = [_core.pattern_schedule(problem, plan, rank, whole, whole) for rank in range(ranks)]
        yield f"{kind} by {algorithm}", schedules, _core.KernelRate(0, 0, 0)
    grid = {64: (8, 8), 256: (16, 16), 1024: (32, 32)}[ranks]
    for name, block in (("sweep", 64), ("sweep, large faces", 512)):
        tiles = 32
        shape = (grid[0] * block + 1, tiles * 8 + 1, grid[1] * block + 1)
        unit = [(0, (-1, 0, 0)), (0, (0, -1, 0)), (0, (0, 0, -1))]
        problem = _core.SweepProblem(shape, ((1, 1, 1), shape), [(8, False)], unit)
        plan = _core.Plan()
        plan.grid, plan.tile, plan.factors, plan.mapping_dim = (grid[0], 1, grid[1]), (block, 8, block), (1, 1, 1), 1
        plan.schedule = "overlapping"
        schedules = [_core.nest_schedule(problem, plan, rank) for rank in range(ranks)]
        yield name, schedules, _core.KernelRate(1e-9, 0, 0)


def machine(ranks, network):
    """One on which only messages and computing take time."""
    link = _core.Link()
    for name in ("send_s", "receive_s", "busy_byte_s"):
        setattr(link, name, 0.0)
    # Of a node's two links, which a torus has none of.
    link.latency_s, link.byte_s, link.eager_bytes = 0.0 if network.topology == "torus" else 2 * HOP_S, BYTE_S, 1e15
    found = _core.Machine()
    found.hand_over_s = found.poll_s = found.step_s = 0.0
    found.copy_byte_s, found.same_host, found.other_host = _core.Curve(), link, link
    found.host_of, found.network = list(range(ranks)), network._to_core()
    return found


def predicted(schedules, network, rate):
    """Seconds by Tilewave."""
    return _core.predict(schedules, machine(len(schedules), network), rate, 0.0, record=False).time_s


def steps(schedule, rate):
    """The lines of a rank's only lane: computing, posts and waits by message."""
    work = _core.tile_work(schedule) if schedule.tiles and rate.point_s else []
    (lane,) = schedule.lanes
    for step in lane:
        m = schedule.messages[step.item] if step.op in ("post_send", "post_recv") else None
        if step.op == "compute" and work:
            rows, points = work[step.item]
            yield f"c {rate.tile_s + rows * rate.row_s + points * rate.point_s:.12g}"
        elif m is not None:
            yield f"{'s' if m.send else 'r'} {step.item} {m.peer} {m.tag} {m.bytes}"
        elif step.op == "wait":
            yield f"w {step.item}"


def replayed(schedules, topology, rate, program, folder):
    """Seconds by SimGrid's SMPI."""
    ranks = len(schedules)
    files = folder / "steps"
    files.mkdir(exist_ok=True)
    for s in schedules:
        most = max([1, *(m.bytes for m in s.messages)])
        (files / str(s.rank)).write_text("\n".join([f"{len(s.messages)} {most}", *steps(s, rate)]) + "\n")
    bandwidth = f"{1 / BYTE_S:.0f}Bps"
    (folder / "platform.xml").write_text(
        '<?xml version="1.0"?><!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd"><platform version="4.1">'
        f'<cluster id="c" prefix="n" suffix="" radical="0-{ranks - 1}" speed="1f" bw="{bandwidth}" lat="{HOP_S}s" '
        f'{topology} sharing_policy="SPLITDUPLEX"/></platform>'
    )
    (folder / "hosts").write_text("".join(f"n{node}\n" for node in range(ranks)))
    command = ["smpirun", "-np", str(ranks), "-platform", folder / "platform.xml", "-hostfile", folder / "hosts"]
    command += [*(f"--cfg={value}" for value in CONFIG), program, files]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    for line in done.stdout.splitlines():
        if line.startswith("seconds "):
            return float(line.split()[1])
    raise SystemExit(f"bench simulate: smpirun ended with {done.returncode}:\n{done.stderr[-2000:]}")
