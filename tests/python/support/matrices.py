"""Random matrices, layouts and products, for tests against NumPy."""

import numpy as np

DTYPES = ("float32", "float64", "complex64", "complex128")


def values(rng, shape, dtype):
    """Random numbers of a dtype; `rng` is a NumPy generator."""
    found = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        found = found + 1j * rng.standard_normal(shape)
    return found.astype(dtype)


def layout(rng, ranks, largest=5):
    """Keywords of a random layout."""
    name = str(rng.choice(["rows", "columns", "cyclic"]))
    given = {"layout": name}
    if name == "cyclic":
        grids = [(r, c) for r in range(1, ranks + 1) for c in range(1, ranks + 1) if r * c <= ranks]
        given["grid"] = grids[rng.integers(len(grids))]
        given["block"] = tuple(int(b) for b in rng.integers(1, largest + 1, 2))
    elif rng.random() < 0.6:
        given["block"] = int(rng.integers(1, largest + 1))
    if rng.random() < 0.4:
        given["weights"] = weights(rng, ranks)
    return given


def weights(rng, ranks):
    """Weights of ranks: small ones, and such that no period of blocks fits them."""
    return tuple(int(weight) for weight in rng.integers(1, [3, 6, 1000000][rng.integers(3)], ranks))


def applied(x, trans):
    """op(x)."""
    return {"N": lambda: x, "T": lambda: x.T, "C": lambda: x.conj().T}[trans]()


def close(found, wanted, dtype):
    """Whether products of so few terms are as near as their dtype allows."""
    limit = 2e-4 if np.dtype(dtype).itemsize // (2 if np.dtype(dtype).kind == "c" else 1) == 4 else 1e-11
    return found.shape == wanted.shape and np.allclose(found, wanted, atol=limit, rtol=limit)
