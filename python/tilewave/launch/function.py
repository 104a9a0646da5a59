"""`tilewave.launch`: a function on ranks of its own, whose results come back to the caller."""

from __future__ import annotations

import contextlib
import importlib.machinery
import io
import linecache
import numbers
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tilewave.errors import ConfigError, RankError, is_integer, shown

#: Files in the folder of a launch: what is called, and what became of it on a rank.
CALL, ENDED = "call", "rank-{}"
JOB = "job"  # for hosts: those of the job that this process is in


class Ended(NamedTuple):
    """Hold what became of the call on one rank.

    Attributes
    ----------
    data : bytes
        The pickled result, or exception; empty where that cannot be pickled.
    error : str
        Type and text of what was raised; empty where the function has returned.
    trace : str
        Its traceback.
    follows : bool
        Whether it says only that another rank has ended.
    """

    data: bytes
    error: str = ""
    trace: str = ""
    follows: bool = False


def launch(
    function: Callable[..., Any],
    ranks: int = 2,
    *arguments: Any,
    threads: int | None = None,
    hosts: str | Sequence[str] | None = None,
    timeout_s: float | None = None,
) -> list[Any]:
    """Call a function on new ranks, and return what it returns on each: from a notebook, a test, or a task.

    Parameters
    ----------
    function : function
        Of a module, or written in a notebook, a script or another function: then it goes to the ranks with the values
        of its names. What it prints is shown here. Keyword arguments: ``functools.partial``.
    ranks : int
        Number of ranks; each is a process of its own, also a single one.
    *arguments
        Of the function, the same on every rank.
    threads : int, optional
        Lanes of each rank. Default: the CPUs here, shared by the ranks.
    hosts : str or list of str, optional
        "a:2,b:2", reached with ssh; "job": those of the job of SLURM, PBS, LSF or Flux that this process is in. The
        current folder must then be on a disk that they share. Default: this host.
    timeout_s : float, optional
        Seconds after which all ranks are killed. Default: never.

    Returns
    -------
    list
        The result of each rank, by its number. Results and arguments are what pickle or cloudpickle takes; of a field
        its ``gather()``.

    Raises
    ------
    ConfigError
        For wrong arguments, and for a function or arguments that cannot be sent.
    RankError
        When the function raised on some rank, or a rank ended without a result: with its number and traceback.
        What was raised is the ``__cause__``, where it can be pickled. The other ranks have been ended.
    TimeoutError
        After `timeout_s`.
    KeyboardInterrupt
        After Ctrl-C, once all ranks have ended.

    Notes
    -----
    Not collective: the caller is no rank, and may use MPI itself or none. Costs the start of Python on each rank, about
    0.3 s. No process is left, whatever happens.

    Examples
    --------
    >>> def work(n):
    ...     A = tw.field((n, n), init=1.0)
    ...     return tw.rank, tw.sum(A)
    >>> tw.launch(work, 2, 100)
    [(0, 10000.0), (1, 10000.0)]
    """
    from tilewave.launch import launch as launching
    from tilewave.launch.variables import LaunchError

    _check(function, ranks, threads, timeout_s)
    data = _sent(function, arguments)
    folder = Path(
        tempfile.mkdtemp(prefix=".tilewave-launch-" if hosts else "tilewave-launch-", dir="." if hosts else None)
    )
    try:
        (folder / CALL).write_bytes(data)
        script = Path(__file__).parents[1] / "cli" / "function_on_rank.py"
        here, named = hosts is None, None if hosts == JOB else hosts
        try:
            command = launching.command_of(script, [str(folder.absolute())], ranks, threads, named, here)
        except LaunchError as error:
            raise ConfigError(f"launch: {error}") from None
        code = launching.run_command(command, ranks, timeout_s, stdin=subprocess.DEVNULL)
        return _results(folder, ranks, code, timeout_s)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _check(function, ranks, threads, timeout_s):
    if not callable(function):
        raise ConfigError(f"launch: function: given {shown(function)}; allowed: a function")
    for name, value in (("ranks", ranks), ("threads", threads)):
        if not (value is None and name == "threads") and not is_integer(value, 1):
            raise ConfigError(f"launch: {name}: given {shown(value)}; allowed: an integer >= 1")
    right = isinstance(timeout_s, numbers.Real) and not isinstance(timeout_s, bool)
    if timeout_s is not None and not (right and timeout_s > 0):
        raise ConfigError(f"launch: timeout_s: given {shown(timeout_s)}; allowed: a number of seconds > 0")


def _sent(function, arguments):
    """The call as bytes: what ranks import from, the texts of functions that are in no file, the call itself."""
    import cloudpickle

    registered = _not_importable(function)
    try:
        if registered is not None:
            cloudpickle.register_pickle_by_value(registered)
        call = _by_value((function, arguments))
    except Exception as error:
        raise ConfigError(
            f"launch: {shown(function)} or its arguments cannot be sent to ranks: {type(error).__name__}: {error}; "
            "allowed: functions and values that pickle or cloudpickle takes; make fields inside the function"
        ) from error
    finally:
        if registered is not None:
            cloudpickle.unregister_pickle_by_value(registered)
    return pickle.dumps((sys.path, texts_of_no_file(), call))


def _by_value(value):
    """A value as bytes, with functions that no other process can import."""
    import cloudpickle

    class Pickler(cloudpickle.Pickler):
        """Leaves codes the names of their files, by which nests and tracebacks find their texts."""

        def reducer_override(self, obj):
            if isinstance(obj, types.CodeType):
                make, given = cloudpickle.Pickler.dispatch_table[types.CodeType](obj)
                return _code, (make, given, obj.co_filename)
            return super().reducer_override(obj)

    with io.BytesIO() as file:
        Pickler(file).dump(value)
        return file.getvalue()


def _code(make, given, file):
    return make(*given).replace(co_filename=file)


def _not_importable(function):
    """The module of a function, where other processes do not find it by `sys.path`, as those that pytest imports."""
    name = getattr(function, "__module__", None)
    module = sys.modules.get(name) if name and name != "__main__" else None
    if module is None or "." in name or getattr(module, "__file__", None) is None:
        return None
    with contextlib.suppress(Exception):
        found = importlib.machinery.PathFinder.find_spec(name)
        if found is None or found.origin != module.__file__:
            return module
    return None


def texts_of_no_file():
    """The texts of notebook cells and prompts by their file names: nests are read from them on the ranks."""
    from tilewave.nest import source

    cells = {
        name: "".join(entry[2])
        for name, entry in list(linecache.cache.items())
        if len(entry) == 4 and entry[2] and not os.path.exists(name)
    }
    return {**source.known_texts(), **cells}


def _results(folder, ranks, code, timeout_s):
    """The results of all ranks, or the error of the launch."""
    ended = {rank: found for rank in range(ranks) if (found := _read(folder / ENDED.format(rank))) is not None}
    failed = [rank for rank, found in ended.items() if found.error]
    if code == 130 and (failed or len(ended) < ranks):  # ranks have it from here
        raise KeyboardInterrupt
    if failed:
        rank = min(failed, key=lambda rank: (ended[rank].follows, rank))
        raise _rank_error(rank, failed, ranks, ended[rank])
    missing = [rank for rank in range(ranks) if rank not in ended]
    named = f"rank{'s' * (len(missing) > 1)} {', '.join(map(str, missing[:8]))}{', ...' if len(missing) > 8 else ''}"
    if code is None and missing:
        raise TimeoutError(
            f"launch: {named} of {ranks} had no result after timeout_s={timeout_s:g} s; all have been ended"
        )
    if missing:
        error = RankError(
            f"launch: {named} of {ranks} ended without a result (exit code {code}): killed by a signal, for lack of "
            "memory say, or by os._exit or MPI_Abort; what the ranks have printed may say more"
        )
        error.rank, error.ranks = missing[0], tuple(missing)
        raise error
    return [pickle.loads(ended[rank].data) for rank in range(ranks)]


def _read(path):
    try:
        with open(path, "rb") as file:
            return Ended(*pickle.load(file))
    except FileNotFoundError:
        return None


def _rank_error(rank, failed, ranks, found):
    others = [str(each) for each in failed if each != rank]
    more = f" (and so on rank {', '.join(others[:8])}{', ...' if len(others) > 8 else ''})" if others else ""
    error = RankError(f"rank {rank} of {ranks} raised {found.error}{more}\n\n{found.trace}")
    error.rank, error.ranks, error.traceback = rank, tuple(failed), found.trace
    with contextlib.suppress(Exception):
        cause = pickle.loads(found.data) if found.data else None
        error.__cause__ = cause if isinstance(cause, BaseException) else None
    return error
