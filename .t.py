import numpy as np, tilewave as tw
@tw.loops
def sums(u, x):
    for i in range(len(x)):
        x[i] = u[i, :].sum()
sums(np.ones((3, 4)), np.zeros(3)); print(sums.explain())
