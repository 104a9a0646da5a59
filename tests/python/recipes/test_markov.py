"""Hidden Markov models, against all paths and plain loops."""

import itertools

import numpy as np
import pytest
from local_ranks import results_of

import tilewave as tw
from tilewave import recipes


def model(rng, batch, times, states):
    def logs(*shape):
        chances = rng.random(shape)
        chances[rng.random(shape) < 0.2] = 0
        with np.errstate(divide="ignore"):
            return np.log(chances)

    return logs(*batch, times, states), logs(states, states), logs(states)


def paths_of(E, T, S):
    """The chance of each path, in the order of the paths."""
    for path in itertools.product(range(E.shape[1]), repeat=len(E)):
        value = S[path[0]] + E[0, path[0]]
        for t in range(1, len(path)):
            value = value + T[path[t-1], path[t]] + E[t, path[t]]
        yield path, value


def plain_best(E, T, S):
    V, P = S + E[0], []
    for t in range(1, len(E)):
        terms = V[:, None] + T
        P.append(terms.argmax(axis=0))
        V = terms.max(axis=0) + E[t]
    path = [int(V.argmax())]
    for pointers in P[::-1]:
        path.append(int(pointers[path[-1]]))
    return path[::-1], V.max()


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("batch", [(), (5,)])
def test_models_are_those_of_all_paths(ranks, batch, seed):
    rng = np.random.default_rng(seed)
    times, states = int(rng.integers(1, 6)), int(rng.integers(1, 5))
    E, T, S = model(rng, batch, times, states)

    def body(context):
        fields = [tw.field(each, context=context) for each in (E, T, S)]
        path, best = recipes.viterbi(*fields)
        assert np.array_equal(recipes.viterbi(E, T, S, context=context)[0], path)
        return path, best, recipes.forward(E, T, S, context=context), recipes.backward(E, T, context=context)

    for path, best, forward, backward in results_of(ranks, 2, body):
        for b in np.ndindex(batch):
            what = f"seed {seed}, {E.shape}, {b}"
            assert (path[b].tolist(), np.asarray(best)[b]) == plain_best(E[b], T, S), what
            values = [value for _, value in paths_of(E[b], T, S)]
            assert np.isclose(best if not batch else best[b], max(values)), what
            total = np.logaddexp.reduce(values)
            for t in range(times):
                there = np.logaddexp.reduce(forward[b][t] + backward[b][t])
                np.testing.assert_allclose(there, total, 1e-12, err_msg=what)
            assert (backward[b][-1] == 0).all() and np.array_equal(forward[b][0], S + E[b][0])


def test_probabilities_that_no_double_holds():
    """Each observation has a chance of exp(-1000)."""
    E, T = np.full((400, 3), -1000.0), np.log(np.full((3, 3), 1 / 3))
    found = recipes.forward(E, T, T[0])
    np.testing.assert_allclose(np.logaddexp.reduce(found[-1]), -400_000.0)


def test_what_models_refuse():
    E, T = np.zeros((4, 3)), np.zeros((3, 3))
    for call in (recipes.viterbi, recipes.forward, recipes.backward):
        with pytest.raises(tw.ConfigError, match=f"{call.__name__}: given log_likelihood of shape"):
            call(E, T[:2])
        with pytest.raises(tw.ConfigError, match="log_likelihood: given shape"):
            call(E[0], T)
    with pytest.raises(tw.ConfigError, match="viterbi: log_start: given shape"):
        recipes.viterbi(E, T, np.zeros(2))
