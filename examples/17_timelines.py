"""Timelines of products and of a QR factorization
===============================================

One picture of several runs: what was predicted above what was measured, on one scale of time.

Run it with ``tilewave run -n 2 examples/17_timelines.py``.
"""
import numpy as np
import tilewave as tw

n = 400
A = tw.linalg.matrix((n, n), init=lambda i, j: np.cos(i + 2 * j))
B = tw.linalg.matrix((n, n), init=lambda i, j: np.sin(i - j), layout="columns", block=50)
ways = {
    "broadcast": {"algorithm": "broadcast"},
    "wavefront": {"algorithm": "wavefront", "pending": False},
    "wavefront, many pending": {"algorithm": "wavefront", "pending": True},
}
reports = {name: tw.linalg.matmul(A, B, panel=50, **how).report for name, how in ways.items()}
tw.save_timelines("demo/17_products.png", reports)                                    # side by side, one scale of time

factor = tw.linalg.qr(A, block=50)
factor.report.save_timeline("demo/17_qr.png")
Q, R = factor
a, product = A.gather(), tw.linalg.matmul(Q, R).gather()
if a is not None:
    print(f"QR: {factor.report.time_s:.4f} s, predicted {factor.report.prediction.time_s:.4f} s")
    assert np.allclose(product, a)
