"""From the text of a nest's body to machine code: what `nest` and `compile` are made of.

Reading: source, names, subscript, syntax. Meaning: typing (NumPy's promotion), values, casts,
arithmetic, division, python_math, functions, loops (NumPy's own inner loops). Code: emitter,
statements, kernel_code, scalars.
"""
