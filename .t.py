import numpy as np, time
import tilewave as tw
@tw.loops
def f(z, c, n):
    for i in range(n):
        a = 0j
        for k in range(20):
            if abs(a) > 2.0:
                break
            a = a * a + c[i]
        z[i] = abs(a)
z=np.zeros(5); f(z, np.ones(5)*(0.1+0.2j), 5); print(z)
@tw.loops
def g(z, n, x: complex):
    for i in range(n):
        z[i] = abs(x) + abs(complex(i, 1))
        x = x * 0.5j
g(z,5,1+2j); print(z)
