"""A Poisson problem by multigrid.    tilewave run -n 2 examples/16_multigrid.py"""
import numpy as np
import tilewave as tw

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
