"""Draws calls of functions: NumPy's, math's, Python's, and functions of the program that a body calls."""

import numpy as np

from random_programs.model import FLOAT, INT

#: Of one real number.
UNARY = (
    "sqrt exp exp2 expm1 log log2 log10 log1p cbrt sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh "
    "arctanh fabs floor ceil trunc rint sign square"
).split()
BINARY = "arctan2 hypot fmin fmax remainder fmod".split()
WHOLE = "abs({}) np.square({}) ({}**2) pow({},3) (~{}) ({}>>1) ({}<<2) np.sign({}) np.clip({},0,3)".split()


def of_float(c, a, made):
    """A call with a NumPy float."""
    form = c.often(unary=6, power=2, rounded=1, typed=1, math=1, helper=1)
    if form == "power":
        return made(a.dtype, "(", a, c.pick(*(f" ** {n})" for n in "2 2.0 3 4 0.5 -1 -2 1.5".split())))
    if form == "rounded":
        return made(a.dtype, *c.pick(("np.round(", a, ", 1)"), ("round(", a, ", 1)"), ("np.clip(", a, ", -0.5, 0.75)")))
    if form == "typed":
        dtype = c.pick("float64", "float32")
        return made(np.dtype(dtype), f"np.{dtype}(", a, ")")
    if form == "math":
        return made(FLOAT, f"{c.pick('math.atan', 'math.tanh', 'math.fabs', 'float')}(", a, ")")
    if form == "helper":
        return made(a.dtype, f"{c.pick('folded', 'scaled')}(", a, ")")
    return made(a.dtype, f"{c.pick('abs', *(f'np.{name}' for name in UNARY))}(", a, ")")


def of_int(c, a, made):
    """A call with a NumPy integer."""
    if c.chance(0.15):
        return made(INT, "(int(", a, ") % 5)")
    if c.chance(0.15):
        dtype = c.pick("int64", "float64", "int16", "uint8")
        return made(np.dtype(dtype), f"np.{dtype}(", a, ")")
    before, after = c.pick(*WHOLE).split("{}")
    return made(a.dtype, before, a, after)
