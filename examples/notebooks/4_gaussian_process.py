"""
A Gaussian process on distributed matrices
==========================================

Regression with uncertainty: a covariance matrix of all data, its Cholesky factor, two solutions. The matrices are
distributed; in a script on many ranks these lines stay the same.
"""
import numpy as np
import tilewave as tw
from matplotlib import pyplot as plt

# %%
# The data
# --------
# Noisy values of a curve, with a gap.

random = np.random.default_rng(3)
n, noise = 300, 0.15
x = np.sort(np.concatenate([random.uniform(0, 4, n // 2), random.uniform(6, 10, n - n // 2)]))
y = np.sin(2 * x) + 0.3 * x + noise * random.standard_normal(n)
y_mean = y.mean()

# %%
# The likelihood of a length
# --------------------------
# A matrix is made by a function of its indices: each rank computes its own part. The factor gives the logarithm of the
# determinant by its diagonal, and the solution for the data.


def covariance(a, b, length):
    """The matrix of exp(-(a_i - b_j)^2 / (2 length^2))."""
    return tw.linalg.matrix((a.size, b.size), init=lambda i, j: np.exp(-0.5 * ((a[i] - b[j]) / length) ** 2))


def fit(length):
    """The factor of the covariance of the data, the weights, and the logarithm of the likelihood."""
    K = tw.linalg.matrix((n, n), init=lambda i, j: (
        np.exp(-0.5 * ((x[i] - x[j]) / length) ** 2) + noise**2 * (i == j)))
    factor = tw.linalg.cholesky(K)
    weights = factor.solve(tw.linalg.matrix((n, 1), init=(y - y_mean)[:, None]))
    diagonal = np.diag(factor.gather())
    return factor, weights, (-0.5 * (y - y_mean) @ weights.gather()[:, 0] - np.log(diagonal).sum()
                             - 0.5 * n * np.log(2 * np.pi))


lengths = np.geomspace(0.1, 5, 15)
likelihoods = np.array([fit(length)[2] for length in lengths])
best = lengths[likelihoods.argmax()]
print(f"most likely length: {best:.2f}")

# %%
# The prediction
# --------------

factor, weights, _ = fit(best)
print(factor.report)
new = np.linspace(-0.5, 10.5, 200)
across = covariance(x, new, best)
mean = y_mean + tw.linalg.matmul(across, weights, trans_a="T").gather()[:, 0]
explained = (across.gather() * factor.solve(across).gather()).sum(axis=0)
deviation = np.sqrt(np.maximum(1 - explained, 0))

# %%
# Check
# -----
# NumPy on one process has the same.

K = np.exp(-0.5 * ((x[:, None] - x) / best) ** 2) + noise**2 * np.eye(n)
k = np.exp(-0.5 * ((x[:, None] - new) / best) ** 2)
assert np.allclose(mean, y_mean + k.T @ np.linalg.solve(K, y - y_mean), atol=1e-8)
assert np.allclose(explained, (k * np.linalg.solve(K, k)).sum(axis=0), atol=1e-8)

# %%
# The pictures
# ------------

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), width_ratios=(3, 2), layout="constrained")
left.plot(x, y, ".", color="0.5", markersize=3, label="data")
left.plot(new, mean, color="tab:blue", label="mean")
left.fill_between(new, mean - 2 * deviation, mean + 2 * deviation, color="tab:blue", alpha=0.2,
                  label="two standard deviations")
left.set(title=f"regression with length {best:.2f}", xlabel="x", ylabel="y")
left.legend(fontsize=8)
right.semilogx(lengths, likelihoods, "o-")
right.axvline(best, color="tab:red", linewidth=0.8)
right.set(title="which length is likely", xlabel="length", ylabel="logarithm of the likelihood")
right.set_ylim(likelihoods.max() - 200, likelihoods.max() + 15)
right.grid(alpha=0.3)
plt.show()
