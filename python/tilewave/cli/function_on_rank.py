"""This file has what each rank of `tilewave.launch` runs: a function that a file has, and what becomes of it goes into
another."""

import linecache
import os
import pickle
import sys
import traceback
from pathlib import Path

from tilewave.errors import ConfigError, MpiError, shown
from tilewave.launch.function import CALL, ENDED, Ended
from tilewave.launch.launch import rank
from tilewave.nest import source


class Reported(BaseException):
    """Ends a rank whose error is in its file: nothing more is said of it."""

    agreed = quiet = True

    def __init__(self, partial):
        super().__init__("reported")
        self.partial = partial


def main(folder):
    """Call the function of a folder, and write its result or what it raised."""
    function = None
    try:
        paths, texts, call = pickle.loads((folder / CALL).read_bytes())
        sys.path[:] = paths
        source.take_texts(texts)
        for file, text in texts.items():  # of no file: for tracebacks
            if not os.path.exists(file):
                linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
        function, arguments = pickle.loads(call)
        data = _pickled(function, function(*arguments))
    except BaseException as error:
        if isinstance(error, SystemExit) and not error.code:
            data = _pickled(function, None)
        else:
            _write(folder, _failed(error))
            # Of an error that all ranks raise, all come to their ends in order.
            raise Reported(not getattr(error, "agreed", False) or getattr(error, "partial", False)) from None
    _write(folder, Ended(data))


def _pickled(function, result):
    import cloudpickle

    try:
        return cloudpickle.dumps(result)
    except Exception as error:
        raise ConfigError(
            f"launch: the result of {shown(function)}, {shown(result)}, cannot be sent back: {type(error).__name__}: "
            f"{error}; allowed: what pickle or cloudpickle takes; of a field its gather()"
        ) from error


def _failed(error):
    step = error.__traceback__
    while step is not None and step.tb_frame.f_code.co_filename == __file__:
        step = step.tb_next
    try:
        import cloudpickle

        data = cloudpickle.dumps(error)
        pickle.loads(data)  # of some the arguments are not those of their classes
    except Exception:
        data = b""
    text = "".join(traceback.format_exception_only(type(error), error)).strip()
    follows = isinstance(error, MpiError) and "has ended" in str(error)
    return Ended(data, text, "".join(traceback.format_exception(type(error), error, step)), follows)


def _write(folder, ended):
    path = folder / ENDED.format(rank() or 0)
    path.with_suffix(".part").write_bytes(pickle.dumps(tuple(ended)))
    os.replace(path.with_suffix(".part"), path)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
