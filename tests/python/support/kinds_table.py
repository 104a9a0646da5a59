"""How each kind of nest runs: by each door (a row) and with each feature (a column).

`tests/python/nests/test_kinds.py` runs every cell, compares the results with plain loops bit for bit, and says what to
write here where one has changed. `tools/kinds.py` makes `docs/guide/kinds.md` of this file. A cell is one of these, and
the key of its reason:

y  in parallel
o  in the order of the loops
r  on one rank
a  each nest by itself, one after another
n  without a predicted time
-  refused
.  without meaning
x  no parameter of this door
?  not tested

The features: `back`: time backwards; `time`: it is predicted; `strides+` and `back+`: with `reduce=`.
"""

# What the page calls features, doors, and how a cell runs.
NAMES = {
    "ranks": "several ranks",
    "lanes": "several lanes",
    "steps": "`steps=`",
    "periodic": "`periodic=`",
    "strides": "strides in `over=`",
    "affine": "bounds of outer indices",
    "back": "time backwards",
    "history": "`u[t-1]`",
    "reduce": "`reduce=`",
    "points": "`inject=`, `record=`",
    "window": "rolling windows",
    "until": "`until=`",
    "time": "predicted time",
    "strides+": "`reduce=` and strides",
    "back+": "`reduce=` backwards",
}
DOORS = {
    "run": "`tw.run`",
    "bind": "`tw.bind`",
    "chain": "`tw.chain`",
    "several": "beside another nest",
    "plan": "`tw.plan`",
    "schedule": "`tw.schedule`",
    "measure": "`tw.measure(nest=)`",
    "dry run": "`tilewave plan`",
    "C++": "C++",
}
HOW = {
    "o": "in the order of the loops, on one lane",
    "a": "each nest by itself, one after another",
    "n": "without a predicted time",
    "-": "refused",
}

# fmt: off
KINDS = {
    "constant offsets": {
        "short": "constant",
        "example": "`u[i, j] = u[i-1, j] + u[i, j-1]`",
        "table": """
          ranks lanes steps periodic strides affine back history reduce points window until time strides+ back+
run       y     y     y     y        y       y      y    y       y      y      y      y     y    y        y
bind      y     y     y     y        y       y      y    y       y      y      y      x     y    y        y
chain     y     y     y     y        y       y      y    y       y      y      y      y     y    y        y
several   y     y     y     y        y       y      y    y       y      y      y      y     y    y        y
plan      y     y     y     y        y       y      y    y       y      x      y      x     y    y        y
schedule  y     y     y     y        y       y      y    y       x      x      y      x     y    x        x
measure   y     y     y     y        y       y      y    y       y      x      y      x     x    y        y
dry run   y     y     y     y        y       y      y    y       y      y      y      y     x    y        y
C++       y     y     y     y        y       y      y    y       y      y      y      y     y    y        y
""",
    },
    "factors of what is read": {
        "short": "reads 2i",
        "example": "`c[i, j] = u[2*i, j] + u[2*i+1, j]`",
        "table": """
          ranks lanes steps periodic strides affine back history reduce points window until time strides+ back+
run       y     y     y     y        y       y      y    y       y      y      y      y     y    y        y
bind      y     y     y     y        y       y      y    y       y      y      y      x     y    y        y
chain     y     y     y     y        y       y      y    y       y      y      y      y     y    y        y
several   y     y     y     y        y       y      y    y       y      y      y      y     y    y        y
plan      y     y     y     y        y       y      y    y       y      x      y      x     y    y        y
schedule  y     y     y     y        y       y      y    y       x      x      y      x     y    x        x
measure   y     y     y     y        y       y      y    y       y      x      y      x     x    y        y
dry run   y     y     y     y        y       y      y    y       y      y      y      y     x    y        y
C++       y     y     y     y        y       y      y    y       y      y      y      y     y    y        y
""",
    },
    "factors of what is written": {
        "short": "writes 2i",
        "example": "`u[2*i+1, j] = u[2*i, j] + u[2*i+2, j]`",
        "table": """
          ranks lanes steps periodic strides affine back history reduce points window until time strides+ back+
run       y     y     y     y        y       y      y    y       y      y      y      y     y    y        y
bind      y     y     y     y        y       y      y    y       y      y      y      x     y    y        y
chain     y     y     y     y        y       y      y    y       y      y      y      y     y    y        y
several   y     y     y     y        y       y      y    y       y      y      y      y     y    y        y
plan      y     y     y     y        y       y      y    y       y      x      y      x     y    y        y
schedule  y     y     y     y        y       y      y    y       x      x      y      x     y    x        x
measure   y     y     y     y        y       y      y    y       y      x      y      x     x    y        y
dry run   y     y     y     y        y       y      y    y       y      y      y      y     x    y        y
C++       y     y     y     y        y       y      y    y       y      y      y      y     y    y        y
""",
    },
    "look-up tables": {
        "short": "tables",
        "example": "`u[i, j] = u[i-1, j] + w[f[i, j]]`",
        "table": """
          ranks lanes steps periodic strides affine back history reduce points window until time strides+ back+
run       y     y     y     y        y       y      y    y       y      y      y      y     y    y        y
bind      y     y     y     y        y       y      y    y       y      y      y      x     y    y        y
chain     y     y     y     y        y       y      y    y       y      y      y      y     y    y        y
several   y     y     y     y        y       y      y    y       y      y      y      y     y    y        y
plan      y     y     y     y        y       y      y    y       y      x      y      x     y    y        y
schedule  y     y     y     y        y       y      y    y       x      x      y      x     y    x        x
measure   y     y     y     y        y       y      y    y       y      x      y      x     x    y        y
dry run   y     y     y     y        y       y      y    y       y      y      y      y     x    y        y
C++       y     y     y     y        y       y      y    y       y      y      y      y     y    y        y
""",
    },
    "updates in any order": {
        "short": "any order",
        "example": "`S[i] = S[i] + d` in loops over b, i and j, of integers",
        "table": """
          ranks lanes steps periodic strides affine back history reduce points window until time strides+ back+
run       y     y     y     y        y       y      y    y       y      y      y      y     y    y        y
bind      y     y     y     y        y       y      y    y       y      y      y      x     y    y        y
chain     y     y     y     y        y       y      y    y       y      y      y      y     y    y        y
several   y     y     y     y        y       y      y    y       y      y      y      y     y    y        y
plan      y     y     y     y        y       y      y    y       y      x      y      x     y    y        y
schedule  y     y     y     y        y       y      y    y       x      x      y      x     y    x        x
measure   y     y     y     y        y       y      y    y       y      x      y      x     x    y        y
dry run   y     y     y     y        y       y      y    y       y      y      y      y     x    y        y
C++       y     y     y     y        y       y      y    y       y      y      y      y     y    y        y
""",
    },
    "batches": {
        "short": "batches",
        "example": "`S[b] = D[b, i, j]`, where D depends on itself along i and j only",
        "table": """
          ranks lanes steps periodic strides affine back history reduce points window until time strides+ back+
run       y     y     y     -D       y       y      y    y       y      y      y      y     y    y        y
bind      y     y     y     -D       y       y      y    y       y      y      y      x     y    y        y
chain     y     y     y     -D       y       y      y    y       y      y      y      y     y    y        y
several   y     y     y     -D       y       y      y    y       y      y      y      y     y    y        y
plan      y     y     y     -D       y       y      y    y       y      x      y      x     y    y        y
schedule  y     y     y     -D       y       y      y    y       x      x      y      x     y    x        x
measure   y     y     y     -D       y       y      y    y       y      x      y      x     x    y        y
dry run   y     y     y     -D       y       y      y    y       y      y      y      y     x    y        y
C++       y     y     y     -D       y       y      y    y       y      y      y      y     y    y        y
""",
    },
    "loops in the body": {
        "short": "inner loops",
        "example": "`V[t, s] = max(V[t-1, q] + T[q, s] for q in range(n))`",
        "table": """
          ranks lanes steps periodic strides affine back history reduce points window until time strides+ back+
run       y     y     y     -D       y       y      y    y       y      y      y      y     y    y        y
bind      y     y     y     -D       y       y      y    y       y      y      y      x     y    y        y
chain     y     y     y     -D       y       y      y    y       y      y      y      y     y    y        y
several   y     y     y     -D       y       y      y    y       y      y      y      y     y    y        y
plan      y     y     y     -D       y       y      y    y       y      x      y      x     y    y        y
schedule  y     y     y     -D       y       y      y    y       x      x      y      x     y    x        x
measure   y     y     y     -D       y       y      y    y       y      x      y      x     x    y        y
dry run   y     y     y     -D       y       y      y    y       y      y      y      y     x    y        y
C++       y     y     y     -D       y       y      y    y       y      y      y      y     y    y        y
""",
    },
    "a pivot": {
        "short": "pivot",
        "example": "`D[i, j] = min(D[i, j], D[i, k] + D[k, j])`",
        "table": """
          ranks lanes steps periodic strides affine back history reduce points window until time strides+ back+
run       y     y     .     .        y       y      .    .       y      .      .      .     y    y        .
bind      y     y     .     .        y       y      .    .       y      .      .      x     y    y        .
chain     y     y     .     .        y       y      .    .       y      y      .      y     y    y        .
several   .     .     .     .        .       .      .    .       .      .      .      .     .    .        .
plan      y     y     .     .        y       y      .    .       y      x      .      x     y    y        .
schedule  y     y     .     .        y       y      .    .       x      x      .      x     y    x        x
measure   y     y     .     .        y       y      .    .       y      x      .      x     x    y        .
dry run   y     y     .     .        y       y      .    .       y      .      .      .     x    y        .
C++       y     y     .     .        y       y      .    .       y      .      .      .     y    y        .
""",
    },
    "step rows": {
        "short": "step rows",
        "example": "`w[t // 3, i, j] = u[t, i, j]` beside `u[t+1, i, j] = ...`",
        "table": """
          ranks lanes steps periodic strides affine back history reduce points window until time strides+ back+
run       y     y     y     y        y       y      y    y       y      y      y      y     y    y        y
bind      y     y     y     y        y       y      y    y       y      y      y      x     y    y        y
chain     y     y     y     y        y       y      y    y       y      y      y      y     y    y        y
several   y     y     y     y        y       y      y    y       y      y      y      y     y    y        y
plan      y     y     y     y        y       y      y    y       y      x      y      x     y    y        y
schedule  y     y     y     y        y       y      y    y       x      x      y      x     y    x        x
measure   y     y     y     y        y       y      y    y       y      x      y      x     x    y        y
dry run   y     y     y     y        y       y      y    y       y      y      y      y     x    y        y
C++       y     y     y     y        y       y      y    y       y      y      -T     y     y    y        y
""",
    },
    "several nests": {
        "short": "several",
        "example": "`tw.run((first, second), steps=...)`",
        "table": """
          ranks lanes steps periodic strides affine back history reduce points window until time strides+ back+
run       y     y     y     y        y       y      y    y       y      y      y      y     y    y        y
bind      y     y     y     y        y       y      y    y       y      y      y      x     y    y        y
chain     y     y     y     y        y       y      y    y       y      y      y      y     y    y        y
plan      y     y     y     y        y       y      y    y       y      x      y      x     y    y        y
schedule  y     y     y     y        y       y      y    y       x      x      y      x     y    x        x
measure   y     y     y     y        y       y      y    y       y      x      y      x     x    y        y
dry run   y     y     y     y        y       y      y    y       y      y      y      y     x    y        y
C++       y     y     y     y        y       y      y    y       y      y      y      y     y    y        y
""",
    },
}
# fmt: on

#: By key: how such cells run, what the program says (a regular expression), why, and what to write, if anything.
REASONS = {
    "D": (
        "-",
        "(vector|flow|output|along a loop).*points of one time step are independent",
        "A loop that wraps around has no first point: no point may depend on another of its time step.",
        "an array of its own for the new values, or the nest without `periodic=` and another one for the border",
    ),
    "T": (
        "-",
        "^C[+][+] windows$",
        "A `Window` of C++ has no time steps.",
        "a field",
    ),
}

MEANINGLESS = {
    "a pivot": "A step of a pivot changes rows that all later steps read: it has no time steps or wraps, and needs "
    "all rows.",
}

#: Tests of what C++ offers, by kind and feature.
CPP = {
    "constant offsets": {
        "ranks": "Sweeps.EqualPlainLoopsInEveryScheme",
        "lanes": "Sweeps.EqualPlainLoopsInEveryScheme",
        "steps": "Nests.StepsOfTime",
        "periodic": "Nests.PeriodicLoops",
        "strides": "Kinds.Strides",
        "affine": "Nests.BoundsOfOtherIndicesAndOfTime",
        "back": "Kinds.TimeThatRunsBackwards",
        "history": "Nests.EarlierTimeSteps",
        "reduce": "Nests.ReducedValues",
        "points": "Nests.SourcesAndReceivers",
        "window": "Kinds.Windows",
        "until": "SeveralNests.InATimeStep",
        "time": "ChooseTogether.AlternativesAreMeasuredUntilTheBestIs",
        "strides+": "Kinds.Strides",
        "back+": "Kinds.TimeThatRunsBackwards",
    },
    "factors of what is read": {
        "ranks": "Nests.PartsOfFieldsAndOtherExtents",
        "lanes": "Nests.PartsOfFieldsAndOtherExtents",
        "steps": "Nests.PartsThatTimeStepsRead",
        "periodic": "Kinds.PartsAroundPeriodicLoops",
        "strides": "Kinds.PartsWithAllElse",
        "affine": "Kinds.PartsWithAllElse",
        "back": "Kinds.PartsWithAllElse",
        "history": "Kinds.PartsWithAllElse",
        "reduce": "Kinds.PartsWithAllElse",
        "points": "Kinds.PartsWithAllElse",
        "window": "Kinds.Windows",
        "until": "Kinds.PartsWithAllElse",
        "time": "ChooseTogether.AlternativesAreMeasuredUntilTheBestIs",
        "strides+": "Kinds.PartsWithAllElse",
        "back+": "Kinds.PartsWithAllElse",
    },
    "factors of what is written": {
        "ranks": "Nests.PartsOfFieldsAndOtherExtents",
        "lanes": "Nests.PartsOfFieldsAndOtherExtents",
        "steps": "Kinds.PartsThatTimeStepsWrite",
        "periodic": "Kinds.PartsThatTimeStepsWrite",
        "strides": "Kinds.PartsWithAllElse",
        "affine": "Kinds.PartsWithAllElse",
        "back": "Kinds.PartsThatTimeStepsWrite",
        "history": "Kinds.PartsThatTimeStepsWrite",
        "reduce": "Kinds.PartsWithAllElse",
        "points": "Kinds.PartsWithAllElse",
        "window": "Kinds.Windows",
        "until": "Kinds.PartsWithAllElse",
        "time": "ChooseTogether.AlternativesAreMeasuredUntilTheBestIs",
        "strides+": "Kinds.PartsWithAllElse",
        "back+": "Kinds.PartsThatTimeStepsWrite",
    },
    "look-up tables": {
        "ranks": "SeveralNests.TablesByIndex",
        "lanes": "SeveralNests.TablesByIndex",
        "steps": "SeveralNests.TablesByIndex",
        "periodic": "SeveralNests.TablesByIndex",
        "strides": "SeveralNests.TablesByIndex",
        "affine": "SeveralNests.TablesByIndex",
        "back": "SeveralNests.TablesByIndex",
        "history": "SeveralNests.TablesByIndex",
        "reduce": "SeveralNests.TablesByIndex",
        "points": "SeveralNests.TablesByIndex",
        "window": "Kinds.Windows",
        "until": "SeveralNests.InATimeStep",
        "time": "ChooseTogether.AlternativesAreMeasuredUntilTheBestIs",
        "strides+": "SeveralNests.TablesByIndex",
        "back+": "SeveralNests.TablesByIndex",
    },
    "updates in any order": {
        "ranks": "Updates.InAnyOrder",
        "lanes": "Updates.InAnyOrder",
        "steps": "Updates.InTime",
        "periodic": "Updates.InTime",
        "strides": "Updates.InAnyOrder",
        "affine": "Updates.InAnyOrder",
        "back": "Updates.InTime",
        "history": "Updates.InTime",
        "reduce": "Updates.InAnyOrder",
        "points": "Updates.InTime",
        "window": "Updates.InAnyOrder",
        "until": "Updates.InChains",
        "time": "ChooseTogether.AlternativesAreMeasuredUntilTheBestIs",
        "strides+": "Updates.InAnyOrder",
        "back+": "Updates.InTime",
    },
    "batches": {
        "ranks": "Updates.Batches",
        "lanes": "Updates.Batches",
        "steps": "Updates.BatchesInTime",
        "strides": "Updates.Batches",
        "affine": "Updates.Batches",
        "back": "Updates.BatchesInTime",
        "history": "Updates.BatchesInTime",
        "reduce": "Updates.Batches",
        "points": "Updates.BatchesInTime",
        "window": "Updates.Batches",
        "until": "Updates.Batches",
        "time": "ChooseTogether.AlternativesAreMeasuredUntilTheBestIs",
        "strides+": "Updates.Batches",
        "back+": "Updates.BatchesInTime",
    },
    "loops in the body": {
        "ranks": "TaskNests.WholeAxes",
        "lanes": "TaskNests.WholeAxes",
        "steps": "TaskNests.WholeAxes",
        "strides": "TaskNests.WholeAxes",
        "affine": "TaskNests.WholeAxesBackwardsAndWithPoints",
        "back": "TaskNests.WholeAxesBackwardsAndWithPoints",
        "history": "TaskNests.WholeAxes",
        "reduce": "TaskNests.WholeAxes",
        "points": "TaskNests.WholeAxesBackwardsAndWithPoints",
        "window": "TaskNests.WholeAxesBackwardsAndWithPoints",
        "until": "TaskNests.WholeAxesBackwardsAndWithPoints",
        "time": "ChooseTogether.AlternativesAreMeasuredUntilTheBestIs",
        "strides+": "TaskNests.WholeAxesBackwardsAndWithPoints",
        "back+": "TaskNests.WholeAxesBackwardsAndWithPoints",
    },
    "a pivot": {
        "ranks": "TaskNests.Pivots",
        "lanes": "TaskNests.Pivots",
        "strides": "TaskNests.Pivots",
        "affine": "TaskNests.Pivots",
        "reduce": "TaskNests.Pivots",
        "time": "ChooseTogether.AlternativesAreMeasuredUntilTheBestIs",
        "strides+": "TaskNests.Pivots",
    },
    "step rows": {
        "ranks": "Kinds.StepRows",
        "lanes": "Kinds.StepRows",
        "steps": "Kinds.StepRows",
        "periodic": "Kinds.StepRowsInChains",
        "strides": "Kinds.StepRows",
        "affine": "Kinds.StepRows",
        "back": "Kinds.StepRows",
        "history": "Kinds.StepRows",
        "reduce": "Kinds.StepRows",
        "points": "Kinds.StepRowsInChains",
        "until": "Kinds.StepRowsInChains",
        "time": "ChooseTogether.AlternativesAreMeasuredUntilTheBestIs",
        "strides+": "Kinds.StepRows",
        "back+": "Kinds.StepRows",
    },
    "several nests": {
        "ranks": "SeveralNests.InATimeStep",
        "lanes": "SeveralNests.InATimeStep",
        "steps": "SeveralNests.InATimeStep",
        "periodic": "SeveralNests.InATimeStep",
        "strides": "SeveralNests.InATimeStep",
        "affine": "SeveralNests.InATimeStep",
        "back": "SeveralNests.Backwards",
        "history": "SeveralNests.InATimeStep",
        "reduce": "SeveralNests.InATimeStep",
        "points": "SeveralNests.InATimeStep",
        "window": "Kinds.Windows",
        "until": "SeveralNests.InATimeStep",
        "time": "ChooseTogether.AlternativesAreMeasuredUntilTheBestIs",
        "strides+": "SeveralNests.InATimeStep",
        "back+": "SeveralNests.Backwards",
    },
}
