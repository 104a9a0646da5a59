"""Communication patterns against NumPy: random calls, several in flight, handles that go again."""

import itertools
import random

import numpy as np
import pytest
from pattern_cases import Case, Guarded, reduced, same_bits, values

import tilewave as tw

pytestmark = pytest.mark.ranks([1, 2, 3, 4, 6])
patterns = tw.patterns
CASES = 120


class Call:
    """One random case: arrays, the handle or result, and the check at the end."""

    def __init__(self, case, context):
        self.case, self.context = case, context
        self.function = getattr(patterns, case.kind)
        getattr(self, "_" + case.kind)()
        self.given = self.M.matrix.copy()

    def _broadcast(self):
        c = self.case
        self.expected = values(c.rng, (c.rows, c.cols), c.dtype)
        start = self.expected if c.rank == c.root else np.zeros_like(self.expected)
        self.M = self.out = Guarded(start, c.gaps[0])
        self.arguments = (self.M.matrix,)

    def _parts(self, cols):
        c = self.case
        op = "sum" if c.algorithm == "mpi" else c.op  # MPI promises nothing of NaN
        return [values(c.rng, (c.rows, cols), c.dtype, op) for _ in range(c.ranks)]

    def _reduce(self):
        c = self.case
        self.parts = self._parts(c.cols)
        self.M = Guarded(self.parts[c.rank], c.gaps[0])
        self.expected = None
        self.out = self.M if c.out == "in place" else Guarded(np.zeros_like(self.parts[0]), c.gaps[1])
        self.arguments = (self.M.matrix,) if c.out == "made" else (self.M.matrix, c.root, c.op, self.out.matrix)

    def _spread(self):
        c = self.case
        total = c.cols if c.block else sum(c.counts)
        own = c.own_columns(total, c.rank)
        self.expected = values(c.rng, (c.rows, total), c.dtype)
        self.out = Guarded(np.zeros_like(self.expected), c.gaps[1])
        self.M = Guarded(self.expected[:, own], c.gaps[0])
        if c.out == "in place" and c.block is None:
            self.out.matrix[:, own] = self.expected[:, own]
            first = own[0] if own else 0
            self.M.matrix = self.out.matrix[:, first : first+len(own)]
        self.arguments = (self.M.matrix,) if c.out == "made" else (self.M.matrix, self.out.matrix)

    def _multi_reduce(self):
        c = self.case
        total = c.cols if c.block or c.out == "made" else sum(c.counts)
        own = c.own_columns(total, c.rank) if c.out != "made" or c.block else self._even(total)
        self.own = own
        self.parts = self._parts(total)
        self.expected = None
        self.M = Guarded(self.parts[c.rank], c.gaps[0])
        self.out = Guarded(np.zeros((c.rows, len(own)), c.dtype), c.gaps[1])
        if c.out == "in place" and c.block is None:
            first = own[0] if own else 0
            self.out.matrix = self.M.matrix[:, first : first+len(own)]
        self.arguments = (self.M.matrix,) if c.out == "made" else (self.M.matrix, self.out.matrix)

    def _even(self, total):
        p = self.case.ranks
        first = sum(total // p + (r < total % p) for r in range(self.case.rank))
        return list(range(first, first + total // p + (self.case.rank < total % p)))

    def start(self, **more):
        keywords = self.case.keywords()
        if len(self.arguments) == 4:  # root and op by position
            del keywords["root"]
            keywords.pop("op")
            self.arguments = (*self.arguments[:2], self.case.keywords()["op"], self.arguments[3])
        return self.function(*self.arguments, context=self.context, **keywords, **more)

    def reset(self):
        """What a run has overwritten, for another run."""
        self.M.matrix[...] = self.given

    def check(self, result, algorithm):
        c = self.case
        if c.kind == "reduce" and c.rank != c.root:
            assert result is None
            assert same_bits(self.M.matrix, self.given), "a rank that only gives was written to"
        else:
            assert c.out == "made" and c.kind != "broadcast" or result is self.out.matrix
            self.check_values(result, algorithm)
        read_only = c.kind != "broadcast" and not (c.out == "in place" and c.block is None)
        assert not read_only or same_bits(self.M.matrix, self.given), "what is only read has changed"
        assert self._intact(), "bytes outside the matrix were written to"

    def check_values(self, result, algorithm):
        c, expected = self.case, self.expected
        if c.kind == "reduce":
            expected = reduced(self.parts, c.op, c.root, algorithm)
        elif c.kind == "multi_reduce":
            expected = reduced([part[:, self.own] for part in self.parts], c.op, c.rank, "ring")
        if algorithm == "mpi" and self.expected is None and np.dtype(c.dtype).kind in "fc":
            assert result.dtype == expected.dtype and np.allclose(
                result, expected, 1e-3, 1e-3 * np.abs(expected).max(initial=0)
            )
        else:
            assert same_bits(result, expected), (algorithm, result, expected)

    def _intact(self):
        for guarded, whole in ((self.M, self.case.kind != "spread"), (self.out, self.case.kind != "multi_reduce")):
            checked = whole or not (self.case.out == "in place" and self.case.block is None)
            if checked and not guarded.intact():
                return False
        return True


def finish(call, handle):
    if call.case.way == "poll":
        while not handle.test():
            pass
    result = handle.wait()
    call.check(result, handle.algorithm)


def run(call):
    way = call.case.way
    if way == "call":
        algorithm = call.start(start=False).algorithm  # what the same call picks
        call.check(call.start(), algorithm)
    elif way == "kept":
        handle = call.start(start=False)
        for _ in range(3):
            call.reset()
            call.check(handle.run(), handle.algorithm)
    else:
        finish(call, call.start(wait=False))


@pytest.mark.ranks([1, 2, 3, 4, 6])
@pytest.mark.mpi(ranks=[3])
@pytest.mark.parametrize("first", range(0, CASES, 40))
def test_random_calls(context, first):
    for seed in range(first, first + 40):
        case = Case(seed, context.size, context.rank)
        try:
            run(Call(case, context))
        except Exception as error:
            raise AssertionError(str(case)) from error


@pytest.mark.ranks([2, 3, 4, 6])
@pytest.mark.mpi(ranks=[2])
@pytest.mark.parametrize("seed", range(6))
def test_several_in_flight_waited_for_in_another_order_on_each_rank(context, seed):
    cases = [Case(1000 * seed + k, context.size, context.rank) for k in range(10)]
    for case in cases:
        case.way = random.Random(f"{case.seed}, {context.rank}").choice(("wait", "poll"))
    calls = [Call(case, context) for case in cases]
    going = [(call, call.start(wait=False)) for call in calls]
    random.Random(f"{seed}, {context.rank}").shuffle(going)
    for call, handle in going:
        try:
            finish(call, handle)
        except Exception as error:
            raise AssertionError(f"seed {seed}, {call.case}") from error


@pytest.mark.ranks([1, 2, 3, 4, 6])
@pytest.mark.mpi(ranks=[2, 3])
def test_two_contexts_started_and_waited_for_in_different_orders(context):
    other = tw.Context()
    for seed in range(5):
        calls = {c: [Call(Case(7000 + 100 * seed + k, c.size, c.rank), c) for k in range(6)] for c in (context, other)}
        pick = random.Random(f"{seed}, {context.rank}")
        going = []
        queues = [list(calls[context]), list(calls[other])]
        while any(queues):  # each context's own in order, the two mixed as this rank likes
            queue = pick.choice([q for q in queues if q])
            call = queue.pop(0)
            call.case.way = "wait"
            going.append((call, call.start(wait=False)))
        pick.shuffle(going)
        for call, handle in going:
            try:
                finish(call, handle)
            except Exception as error:
                raise AssertionError(f"seed {seed}, {call.case}") from error
    other.close()


def test_the_same_bits_whatever_the_chunks_and_strides(context):
    p, r = context.size, context.rank
    parts = [values(np.random.default_rng(q), (23, 19), "f4") for q in range(p)]
    for algorithm in ("tree", "ring"):
        expected = reduced(parts, "sum", p - 1, algorithm)
        for chunk_bytes, buffers, gap in ((1, 2, 0), (24, 3, r), (76, 2, 2), (500, 5, 0), (1 << 20, 2, 1)):
            out = Guarded(np.zeros((23, 19), "f4"), gap)
            M = Guarded(parts[r], (gap + r) % 3)
            got = patterns.reduce(
                M.matrix, p - 1, "sum", out.matrix, algorithm=algorithm, chunk_bytes=chunk_bytes, buffers=buffers
            )
            assert got is None or same_bits(got, expected), (algorithm, chunk_bytes, buffers)


def test_min_and_max_treat_nan_and_zeros_as_numpy(context):
    p, r = context.size, context.rank
    special = np.array([np.nan, 0.0, -0.0, np.inf, -np.inf, 1.0, -1.0])
    for dtype in ("f4", "f8"):
        parts = [np.stack([special.astype(dtype)[(np.arange(49) // (1 + 6 * (q % 2)) + q)%7]] * 2) for q in range(p)]
        for op in ("min", "max"):
            for algorithm in ("tree", "ring"):
                got = patterns.reduce(parts[r], 0, op, algorithm=algorithm)
                assert got is None or same_bits(got, reduced(parts, op, 0, algorithm)), (dtype, op, algorithm)


def test_a_moving_root_with_one_handle_each_all_in_flight(context):
    p, r = context.size, context.rank
    rooms = [np.zeros((6, 5)) for _ in range(p)]
    handles = [
        patterns.broadcast(room, root, algorithm=("auto", "ring", "rounds")[root%3], chunk_bytes=48, start=False)
        for root, room in enumerate(rooms)
    ]
    for turn in range(12):
        for root, room in enumerate(rooms):
            room[...] = 100 * turn + root if root == r else -1
        for handle in handles:
            assert handle.start() is handle
        for handle in handles[:: -1 if r%2 else 1]:
            handle.wait()
        for root, room in enumerate(rooms):
            assert (room == 100 * turn + root).all(), (turn, root)


@pytest.mark.mpi(ranks=[2, 4])
def test_library_calls_keep_one_order_on_all_ranks(context):
    """A handle that starts overtakes a pattern that must first agree."""
    p, r = context.size, context.rank
    a, b = np.zeros((2, 3)), np.zeros((2, 3))
    kept = patterns.broadcast(b, 0, algorithm="mpi", start=False)
    for turn in range(20):
        a[...], b[...] = (1.0, 2.0) if r == 0 else (-1.0, -2.0)
        first = patterns.broadcast(a, 0, algorithm="mpi", wait=False)
        for _ in range(20 if turn % p == r else 0):
            first.test()
        kept.start()
        for handle in (kept, first) if turn % 2 else (first, kept):
            handle.wait()
        assert (a == 1).all() and (b == 2).all(), turn


@pytest.mark.mpi(ranks=[2, 3])
def test_blocking_on_one_rank_and_not_on_another(context):
    r = context.rank
    for turn in range(12):
        M = np.full((3, 4), float(turn if r == 0 else -1))
        algorithm = "mpi" if turn < 6 else "auto"
        if (r + turn) % 2:
            patterns.broadcast(M, 0, algorithm=algorithm)
        else:
            patterns.broadcast(M, 0, algorithm=algorithm, wait=False).wait()
        assert (M == turn).all()


@pytest.mark.mpi(ranks=[2, 3])
def test_while_a_buffered_send_is_in_flight_on_one_rank(context):
    big = np.ones((200, 300))
    if context.rank == 0:
        patterns.send(big, context.size - 1)
    M = np.full((3, 4), float(context.rank == 0))
    assert (patterns.broadcast(M, 0, algorithm="mpi") == 1).all()
    if context.rank == context.size - 1:
        assert (patterns.receive(np.zeros((200, 300)), 0) == 1).all()


@tw.nest
def good(A, i, j, *, c=1.0):
    A[i, j] = c * A[i-1, j] + A[i, j-1]


@pytest.mark.ranks([1, 2, 3, 4, 6])
@pytest.mark.mpi(ranks=[2])
def test_runs_and_gathers_while_patterns_are_in_flight(context):
    A = tw.field((12, 12), "f8", init=lambda i, j: 1.0 + i + 0 * j)
    plain = np.repeat(1.0 + np.arange(12.0)[:, None], 12, 1)
    for seed in range(3):
        calls = [Call(Case(9000 + 10 * seed + k, context.size, context.rank), context) for k in range(5)]
        for call in calls:
            call.case.way = "wait"
        handles = [call.start(wait=False) for call in calls]
        if (context.rank + seed) % 2:
            handles[0].test()
        tw.run(good, A=A)
        good.reference(good.iteration_box((12, 12)), {"A": plain})
        if (context.rank + seed) % 2:
            finish(calls[1], handles[1])
        whole = A.gather()
        assert whole is None or np.array_equal(whole, plain)
        for call, handle in zip(calls, handles):
            finish(call, handle)


def test_a_first_pattern_does_not_meet_other_collectives(context):
    fresh = tw.Context()
    M = np.full((3, 4), float(fresh.rank == 0))
    handle = patterns.broadcast(M, 0, algorithm="tree", wait=False, context=fresh)
    if fresh.rank % 2:
        fresh.agree()
        handle.wait()
    else:
        handle.wait()
        fresh.agree()
    assert (M == 1).all()


def test_parts_of_fields(context):
    A = tw.field((12, 12), "f8", init=lambda i, j: 100.0 * i + j)
    tw.run(good, A=A, plan={"grid": (1, context.size), "mapping_dim": 0})  # gives it ghosts: rows with gaps
    plain = 100.0 * np.arange(12.0)[:, None] + np.arange(12.0)
    good.reference(good.iteration_box((12, 12)), {"A": plain})
    rows, columns = A.owned
    assert np.array_equal(A.local, plain[rows, columns])
    whole = patterns.spread(A.local.copy())
    assert np.array_equal(whole, patterns.spread(A.local, algorithm="ring"))
    total = patterns.reduce(A.local, 0)
    blocks = np.split(whole, context.size, axis=1)
    assert total is None or np.allclose(total, sum(blocks))
    patterns.broadcast(A.local, context.size - 1)
    assert np.array_equal(A.local, blocks[-1])


@pytest.mark.mpi(ranks=[2])
def test_more_calls_than_tags(context):
    M = np.zeros((1, 1), "i8")
    for turn in range(3000):
        M[0, 0] = turn if context.rank == turn % context.size else -1
        patterns.broadcast(M, turn % context.size, algorithm="tree" if turn % 3 else "auto")
        assert M[0, 0] == turn


@pytest.mark.mpi(ranks=[1, 2])
def test_more_in_flight_than_tags(context):
    matrices = [np.full((1, 2), k if context.rank == 0 else -1) for k in range(2100)]
    handles = [patterns.broadcast(M, 0, algorithm="tree", wait=False) for M in matrices]
    for handle in reversed(handles):
        handle.wait()
    assert all((M == k).all() for k, M in enumerate(matrices))


def test_a_handle_that_is_dropped_goes_on_until_the_context_is_closed():
    with tw.Context() as context:
        p, r = context.size, context.rank
        M = np.full((50, 60), float(r == 0))
        for _ in range(3):
            patterns.broadcast(M, 0, chunk_bytes=100, wait=False, context=context)
        total = np.zeros((50, 60), int)
        patterns.reduce(np.full((50, 60), r), p - 1, "sum", total, wait=False, context=context)
        patterns.spread(np.full((4, 2), r), wait=False, context=context)
    assert (M == 1).all()
    assert r != p - 1 or (total == p * (p - 1) // 2).all()
    context.close()  # once more does nothing


@pytest.mark.mpi(ranks=[1, 3])
def test_what_a_handle_says(context, capsys):
    M = np.zeros((300, 400))
    handle = patterns.broadcast(M, 0, chunk_bytes=5000, buffers=3, algorithm="ring", start=False, explain=True)
    assert (handle.algorithm, handle.chunk_bytes, handle.buffers, handle.why) == ("ring", 5000, 3, "asked for")
    shown = capsys.readouterr().out
    ways = f" over {context.size} ranks goes around a ring in chunks of 4.88 KiB, 3 staged at a time, as asked for."
    sentence = "The broadcast of 938 KiB" + (ways if context.size > 1 else " needs no message: there is one rank.")
    assert shown == ("" if context.rank else sentence + "\n")
    handle.run()
    assert handle.time_s > 0 and handle.buffer_bytes == 0  # contiguous: straight from and to the matrix
    wide = np.zeros((300, 500))[:, :400]
    handle = patterns.broadcast(wide, 0, chunk_bytes=6400, buffers=3, algorithm="ring", wait=False)
    handle.wait()
    assert handle.buffer_bytes <= 3 * 6400
    assert handle.test() and handle.wait() is wide
    patterns.broadcast(M, 0, explain=True)
    shown = capsys.readouterr().out
    words = "because this is predicted to be the fastest of" if context.size > 1 else "there is one rank"
    assert (shown == "") == (context.rank != 0) and (context.rank or words in shown.split("\n")[0])
    patterns.broadcast(M[:1, :2].copy(), 0, explain=True)
    shown = capsys.readouterr().out
    words = "goes with the comparison of the arguments" if context.size > 1 else "there is one rank"
    assert context.rank or shown.startswith("The broadcast of 16 bytes ") and words in shown and shown.count("\n") == 1


def test_calls_that_are_alike_in_other_places(context):
    """They share plan, schedule and buffers one after another, and have their own side by side."""
    p, rank = context.size, context.rank

    def matrix(value, cols=5):
        return np.full((40, 2 * cols), value)[:, :cols]

    for turn in range(4):
        whole = [matrix(float(10 * turn + k) if rank == 0 else -1.0) for k in range(3)]
        handles = [patterns.broadcast(M, chunk_bytes=300, wait=False) for M in whole]
        sums = [
            patterns.reduce(matrix(float(k)), 0, function, wait=False)
            for k, function in enumerate((lambda a, b: a + b, lambda a, b: a + b + 1, np.maximum))
        ]
        made = [patterns.spread(matrix(float(turn + k)), wait=False) for k in range(2)]
        assert all((h.wait() == 10 * turn + k).all() for k, h in enumerate(handles))
        results = [s.wait() for s in sums]
        if rank == 0:
            assert all((r == e).all() for r, e in zip(results, (0, p + p - 1, 2), strict=True))
        assert all(h.wait().shape == (40, 5 * p) and (h.wait() == turn + k).all() for k, h in enumerate(made))
        assert (patterns.broadcast(matrix(float(turn))) == turn).all()
        out = matrix(0.0, 5 * p)
        assert patterns.spread(matrix(float(rank)), out) is out
        assert (out == np.repeat(np.arange(p), 5)).all()
        part = out[:, 5*rank : 5*rank+5]  # in its own place
        part[...] = rank + turn
        assert (patterns.spread(part, out) == np.repeat(np.arange(p), 5) + turn).all()
        whole, part = matrix(1.0, 3 * p), matrix(0.0, 3)
        assert patterns.multi_reduce(whole, part) is part and (part == p).all()
        total = patterns.reduce(whole, p - 1, out=matrix(0.0, 3 * p))
        assert total is None if rank < p - 1 else (total == p).all()


@pytest.mark.ranks([2, 3, 4, 6])
@pytest.mark.mpi(ranks=[3])
def test_parts_that_change_places(context, seed):
    """Parts of the same columns in another order of ranks: the least and the most of them are as before, and some ranks
    give what they gave.
    """
    dice = random.Random(int(patterns.broadcast(float(seed))))
    columns = [dice.choice([0, 1, 5, 700]) for _ in range(context.size)]
    going = []
    for call in range(24):
        a, b = dice.randrange(context.size), dice.randrange(context.size)
        columns[a], columns[b] = columns[b], columns[a]
        part = np.full((2, columns[context.rank]), 100.0 * call + context.rank)
        whole = [100.0 * call + r for r, n in enumerate(columns) for _ in range(n)]
        place = [*itertools.accumulate(columns, initial=0)][context.rank]
        if inside := dice.random() < 0.3:
            out = np.zeros((2, len(whole)))
            out[:, place : place + part.shape[1]] = part
            part = out[:, place : place + part.shape[1]]
        handle = patterns.spread(part, out if inside else None, wait=False)
        if dice.random() < 0.5:
            assert np.array_equal(handle.wait(), [whole] * 2)
        else:
            going.append((handle, whole))
        sums = patterns.multi_reduce(np.array([whole] * 2), out=np.zeros((2, columns[context.rank])))
        assert np.array_equal(sums, context.size * np.full_like(sums, 100.0 * call + context.rank))
    for handle, whole in going:
        assert np.array_equal(handle.wait(), [whole] * 2)
