"""Reductions of what a nest writes, and of whole fields.    tilewave run -n 2 examples/05_reductions.py"""
import numpy as np
import tilewave as tw


@tw.nest
def align(H, a, b, i, j, *, gap=2):
    H[i, j] = max(0, H[i-1, j-1] + (3 if a[i-1] == b[j-1] else -3), H[i-1, j] - gap, H[i, j-1] - gap)


a, b = (np.frombuffer(text, "u1") for text in (b"TGTTACGG" * 20, b"GGTTGACTA" * 20))
H = tw.field((len(a) + 1, len(b) + 1), "i4")
report = tw.run(align, H=H, a=a, b=b, reduce={"best": tw.argmax("H"), "sum": tw.sum("H")})
i, j = report.results["best"]  # the first place of the largest value
tw.print(f"best score {H[i, j]} at {(i, j)}")
assert H[i, j] == tw.max(H)  # of the field, after the run
whole = H.gather()
if whole is not None:
    assert report.results["sum"] == whole.sum()
