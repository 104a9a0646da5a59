"""Contexts as values: threads, the default one, what ranks compare and are told; which MPI library a process gets."""

import os
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from local_ranks import on_ranks, results_of

import tilewave as tw
from tilewave import _core
from tilewave.context import collective, context as contexts, mpi_library
from tilewave.errors import ConfigError, InternalError, KernelError, LONGEST_VALUE, MpiError, shown

MOST = _core.limits["lanes"]

@pytest.mark.parametrize("given, threads", [(1, 1), (np.int8(3), 3), ("2", 2), (MOST, MOST)])
def test_threads(given, threads):
    assert contexts._threads(given) == threads


@pytest.mark.parametrize(
    "given", [0, -1, MOST + 1, 2.0, np.float32(2), True, "two", "", [], 1j, float("nan"), 10**30, np.ones(2)]
)
def test_threads_that_are_none(given):
    with pytest.raises(tw.ConfigError, match=f"^threads: given .*; allowed: an integer from 1 to {MOST}$"):
        tw.Context(threads=given)


def test_threads_of_the_environment(monkeypatch):
    monkeypatch.setenv("TILEWAVE_THREADS", "3")
    assert contexts._threads(None) == 3 and contexts._threads(1) == 1
    monkeypatch.setenv("TILEWAVE_THREADS", "many")
    with pytest.raises(tw.ConfigError, match="TILEWAVE_THREADS: given 'many'"):
        tw.Context()


@pytest.mark.parametrize(
    "name, given, words",
    [
        ("TILEWAVE_WAIT_S", "x", "seconds above 0"),
        ("TILEWAVE_WAIT_S", "0", "seconds above 0"),
        ("TILEWAVE_WAIT_S", "nan", "seconds above 0"),
        ("TILEWAVE_WAIT_S", "1e400", "seconds above 0"),
        ("TILEWAVE_PROGRESS", "loud", "0, 1, line"),
        ("TILEWAVE_TRACEBACKS", "some", "all"),
    ],
)
def test_variables_that_say_nothing(monkeypatch, name, given, words):
    monkeypatch.setenv(name, given)
    with pytest.raises(tw.ConfigError, match=f"{name} is '{given}'; allowed: {words}"):
        tw.Context()
    monkeypatch.setenv(name, "")
    tw.Context()


@pytest.mark.parametrize("given", [3, "world", [], tw])
def test_what_is_no_communicator(given):
    with pytest.raises(tw.ConfigError, match="comm: given .*; allowed: an mpi4py communicator or None"):
        tw.Context(given)


def test_the_default_context(monkeypatch):
    monkeypatch.setattr(contexts._default, "context", None)
    mine = tw.Context(threads=1)
    assert tw.set_default(mine) is mine and tw.field((2,)).context is mine
    assert tw.set_default(threads=1) is not mine and tw.field((2,)).context is not mine
    with pytest.raises(tw.ConfigError, match="set_default: context: given int; allowed: tilewave.Context"):
        tw.set_default(3)
    with pytest.raises(tw.ConfigError, match="a context and comm or threads were given; allowed: one of them"):
        tw.set_default(mine, threads=1)


@pytest.mark.parametrize("given", [3, "context", tw, []])
def test_another_thing_as_context_is_an_error_of_all(given):
    for call in (
        lambda: tw.field((2,), context=given),
        lambda: tw.patterns.broadcast(np.zeros(3), context=given),
        lambda: tw.patterns.send(np.zeros(3), 0, context=given),
        lambda: tw.barrier(context=given),
    ):
        with pytest.raises(tw.ConfigError, match=f"context: given {type(given).__name__}; allowed: tilewave.Context"):
            call()


@pytest.mark.parametrize(
    "error, kind, text",
    [
        (None, "fine", ""),
        (ConfigError("no α"), "config", "no α"),
        (KernelError("it"), "kernel", "it"),
        (MpiError("it"), "mpi", "it"),
        (InternalError("it"), "internal", "on rank 0: InternalError: it"),
        (TypeError("it"), "config", "on rank 0: TypeError: it"),
        (MemoryError(), "resources", "on rank 0: MemoryError: "),
        (OSError(2, "no file"), "internal", "on rank 0: FileNotFoundError: [Errno 2] no file"),
        (KeyboardInterrupt(), "interrupt", "rank 0 was interrupted"),
    ],
)
def test_what_a_rank_says_of_an_error(error, kind, text):
    assert contexts._statement(error, SimpleNamespace(rank=0)) == (kind, text)


def test_an_error_whose_text_fails_has_none():
    class Silent(Exception):
        def __str__(self):
            raise ValueError

    assert collective.text_of(Silent()) == "(it has no text)"
    assert collective.plain("a\udc80\0b") == "a\\udc80\\0b"
    assert collective.text_of(ValueError("x\udcff")) == "x\\udcff"


def test_the_callers_line_is_the_innermost_of_the_program():
    assert collective.where() == f"test_context_values.py:{sys._getframe().f_lineno}"


def test_arguments_that_a_function_does_not_take_are_pythons_error_on_every_rank():
    def body(context):
        with pytest.raises(TypeError, match="unexpected keyword argument 'colour'") as caught:
            tw.field((2,), colour=3, context=context)
        assert caught.value.agreed and caught.value.quiet == (context.rank > 0)

    results_of(2, 1, body)


# --- what launched it ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "variables, size", [({}, 1), ({"PMI_SIZE": "4"}, 4), ({"PMI_SIZE": "x", "OMPI_COMM_WORLD_SIZE": "3"}, 3)]
)
def test_the_size_that_the_launcher_tells(monkeypatch, variables, size):
    for name in mpi_library.SIZE_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert mpi_library.launch_size() == size


def test_a_launch_of_several_that_sees_a_world_of_one(monkeypatch):
    world = {"size": 1, "path": "/lib/libmpi.so"}
    monkeypatch.setattr(mpi_library._core, "mpi_info", lambda: world)
    monkeypatch.setenv("PMI_SIZE", "4")
    with pytest.raises(tw.ConfigError, match=r"4 \(PMI_SIZE\), .* /lib/libmpi.so sees a world of 1.*TILEWAVE_LIBMPI="):
        mpi_library.check_launch_size(None)
    mpi_library.check_launch_size(object())  # a communicator may have one rank
    world["size"] = 4
    mpi_library.check_launch_size(None)
    assert os.environ["PMI_SIZE"] == "4"


@pytest.mark.parametrize("ranks", [1, 2, 3, 5, 6])
def test_the_least_of_all_ranks_is_known_to_all(ranks):
    """Whichever rank has it."""

    def on_rank(context):
        values = [0 if context.rank == k else 1 for k in range(ranks)]
        return context._core.allreduce_min([*values, -context.rank])

    results, errors = on_ranks(ranks, 1, on_rank)
    assert not any(errors) and results == [[0] * ranks + [1 - ranks]] * ranks


def test_arrays_by_shape_others_in_one_short_line():
    assert shown(np.ones((3, 400), "f4")) == "ndarray of shape (3, 400), float32"
    assert shown(2) == "2" and shown("ring") == "'ring'"
    for value in ("x" * 1000, list(range(1000)), dict.fromkeys(range(100), "y" * 100), "a\nb" * 200):
        assert len(shown(value)) <= LONGEST_VALUE and "\n" not in shown(value)


def test_a_matrix_in_place_of_a_root():
    with pytest.raises(ConfigError, match=r"root ndarray of shape \(1, 64\), float64 was given"):
        tw.patterns.reduce(np.ones((1, 64)), np.ones((1, 64)))
