"""Time is a loop whose index writes at t+1.    tilewave run -n 2 examples/02_time_steps.py"""
import numpy as np
import tilewave as tw


@tw.nest
def heat(u, t, i, j, *, c):
    u[t+1, i, j] = u[t, i, j] + c * (u[t, i-1, j] + u[t, i+1, j] + u[t, i, j-1] + u[t, i, j+1] - 4 * u[t, i, j])


n, steps = 100, 50
u = tw.field((n, n), "f8", init=lambda i, j: np.sin(np.pi * i / (n - 1)) * np.sin(np.pi * j / (n - 1)))
start = u.gather()
tw.run(heat, u=u, c=0.2, steps=steps)  # u has no dimension for time: it ends as time step 50
whole = u.gather()
if whole is not None:  # this wave is an eigenvector of the step
    factor = 1 - 4 * 0.2 * (1 - np.cos(np.pi / (n - 1)))
    assert np.allclose(whole, factor**steps * start)
tw.print(f"after {steps} steps the largest value is {tw.max(u):.4f}")
