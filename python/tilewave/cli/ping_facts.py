"""This file has what two ranks of `tilewave doctor` find: one value, which a process prints and another one reads."""

from __future__ import annotations

import dataclasses
import json

#: What begins the line; everything else on the output of the ranks is somebody else's.
BEGINNING = "ping "


@dataclasses.dataclass
class PingFacts:
    """Facts about MPI and the lanes of a rank.

    Attributes
    ----------
    size : int
        Ranks that MPI sees: 2, unless mpiexec and the MPI library do not belong together.
    latency_s : float
        Seconds that a message of 8 bytes takes one way.
    cpus : list of int
        CPUs that rank 0 pins its lanes to; empty where nothing is pinned.
    threads, threads_of_one_rank : int
        Lanes of each of two ranks, and of one rank that has the host to itself.
    quota : float or None
        CPUs whose time a control group allows, where that is fewer than there are.
    library, standard, path, thread_level : str
        The MPI library: its own version text, the MPI standard, its file, the level of thread support.
    network : list of str
        Files of the libraries below it, libfabric and UCX.
    """

    size: int
    latency_s: float
    cpus: list
    threads: int
    threads_of_one_rank: int
    quota: float | None
    library: str = "?"
    standard: str = "?"
    path: str = "?"
    thread_level: str = "?"
    network: list = dataclasses.field(default_factory=list)

    def line(self):
        """One line of text, from which `of_output` makes an equal value."""
        return BEGINNING + json.dumps(dataclasses.asdict(self))

    @classmethod
    def of_output(cls, text):
        """The facts in the output of the ranks; None where no line of it has them all."""
        for line in text.splitlines():
            if line.startswith(BEGINNING):
                try:
                    return cls(**json.loads(line.removeprefix(BEGINNING)))
                except (TypeError, ValueError):
                    continue
        return None
