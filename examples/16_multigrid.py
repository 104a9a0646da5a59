"""A Poisson problem by multigrid
==============================

The residual falls by about a factor of ten a cycle, whatever the size of the grid.

Run it with ``tilewave run -n 2 examples/16_multigrid.py``.
"""
from pathlib import Path

import numpy as np
import tilewave as tw
from matplotlib import pyplot as plt

n = 32
x, y, z = np.meshgrid(*[(np.arange(n) + 0.5) / n] * 3, indexing="ij")
exact = np.sin(np.pi * x) * np.sin(np.pi * y) * np.sin(np.pi * z)

solver = tw.multigrid.Poisson((n, n, n))  # -div grad u = f in the unit cube, u = 0 on its faces
u = solver.solve(3 * np.pi**2 * exact, tol=1e-8)
whole = u.gather()
if tw.rank == 0:
    print(solver.levels)
    print(solver.history)
    assert solver.history.converged and abs(whole - exact).max() < 1e-3
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.8), layout="constrained")
    left.semilogy(solver.history.norms, "o-")
    left.set(title="residual", xlabel="cycles", ylabel="2-norm over all cells")
    left.grid(alpha=0.3)
    image = right.imshow(whole[:, :, n // 2].T, origin="lower", extent=(0, 1, 0, 1))
    figure.colorbar(image, ax=right, label="u")
    right.set(title="solution at z = 1/2", xlabel="x", ylabel="y")
    Path("demo").mkdir(exist_ok=True)
    figure.savefig("demo/16_multigrid.png")
