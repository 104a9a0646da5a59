"""A failing case as a program that can be run by itself."""

from random_programs.runs import keywords, together
from random_programs.whole import Whole

MOST_ELEMENTS = 400


def script(case, outcome, seed):
    """The text of a program that shows what is wrong."""
    program, setting = case.program, case.setting
    header = [f"# seed {seed}: {outcome.said}", *(f"# {line}" for line in outcome.detail[:800].splitlines())]
    options = f"-n {setting.ranks} --threads {setting.lanes}"
    without = f"TILEWAVE_WITHOUT={setting.without} " if setting.without else ""
    header.append(f"# {without}tilewave run {options} this.py")
    lines = [*header, "import numpy as np", "from numpy import inf, nan", "", "import tilewave as tw", ""]
    for nest in {nest.name: nest for nest in program.nests}.values():
        helpers = nest.helpers()
        lines += [helpers, "@tw.nest", nest.text().removeprefix(helpers)]
    for name, values in setting.values.items():
        lines.append(f"{name} = {_array(program, setting, name, values)}")
    for name, plan in setting.moved.items():
        at = ", ".join("ijklmp"[: setting.values[name].ndim])
        text = f"def stays(A, {at}): A[{at}] = A[{at}]"
        lines.append(f"tw.run(tw.nest_from({text!r}), A={name}, plan={plan})")
    lines += _door(program, setting)
    written = dict.fromkeys(name for nest in program.nests for name in nest.written() if name not in setting.windows)
    lines += [f"print({name}{'' if name in setting.layouts else '.gather()'})" for name in written]
    lines += ["print(report.results)"] * any(setting.reduce.values())
    lines += ["", "# The definition:", *(f"# {line}" for line in case.definition().splitlines())]
    return "\n".join(lines) + "\n"


def _door(program, setting):
    if setting.door == "loops":
        whole = Whole(program, setting)
        call = f"print(whole({', '.join(_given(setting, whole))}))"
        decorated = f"@tw.loops(order={whole.how['order']!r})\ndef whole"
        return [*whole.text.replace("def whole", decorated).splitlines(), *[call] * setting.times]
    if setting.door == "several":
        names = f"({', '.join(nest.name for nest in program.nests)},)"
        more = together(program, setting, program.nests)
        until = {name: more.pop(name) for name in ("until", "every") if name in more} if setting.bound else {}
        given = _arguments(setting, program.nests, program.arrays, more)
        if setting.bound:
            until = ", ".join(f"{name}={value!r}" for name, value in until.items())
            return [f"bound = tw.bind({names}, {given})", _runs(setting), f"    report = bound.run(**more, {until})"]
        return [_runs(setting), f"    report = tw.run({names}, **dict({given}) | more)"]
    calls = [
        (f"({', '.join(nest.name for nest in nests)})", _arguments(setting, nests, arrays, more))
        for nests in program.stages()
        for arrays in [dict.fromkeys(name for nest in nests for name in nest.arrays())]
        for more in [together(program, setting, nests) if len(nests) > 1 else keywords(program, setting, *nests)]
    ]
    if setting.door == "chain":
        until = f", until={dict([setting.until])}, every={setting.every}" if setting.until else ""
        bound = "".join(f"    tw.bind({names}, {given}),\n" for names, given in calls)
        again = [] if setting.again is None else [f"report = chain.run(scalars={setting.again})"]
        return [f"chain = tw.chain([\n{bound}])", f"report = chain.run(times={setting.times}{until})", *again]
    if setting.door == "bind":
        lines = [f"bound{number} = tw.bind({names}, {given})" for number, (names, given) in enumerate(calls)]
        runs = [f"    report = bound{number}.run(**more)" for number in range(len(calls))]
    else:
        lines, runs = [], [f"    report = tw.run({names}, **dict({given}) | more)" for names, given in calls]
        if setting.door == "plan":
            lines = ["# with the plan that tw.plan gives"]
    return [*lines, _runs(setting), *runs]


def _runs(setting):
    others = [] if setting.other is None else [setting.other]
    return f"for more in {[*others, *[{}] * setting.times, *others]}:"


def _given(setting, whole):
    return [repr(setting.scalars[name]) if name in setting.scalars else name for name in whole.names]


def _arguments(setting, nests, arrays, more):
    loops = [setting.loops[nest.name] for nest in nests]
    more = {name: _literal(setting, loops, name, value) for name, value in more.items()}
    call = {name: name for name in arrays} | more
    plans = [setting.plans.get(nest.name, setting.plan) for nest in nests]
    plan = plans if setting.door == "several" and setting.plans else plans[0]
    return ", ".join(f"{name}={value}" for name, value in {**call, "plan": plan}.items())


def _literal(setting, loops, name, value):
    if name == "over":
        texts = [each.over_text() for each in loops]
        return f"[{', '.join(texts)}]" if isinstance(value, list) else texts[0]
    if name in ("inject", "record"):
        return "{" + ", ".join(f"{key!r}: {points.text()}" for key, points in getattr(setting, name).items()) + "}"
    if name == "reduce":
        texts = [", ".join(f"{key!r}: tw.{r}" for key, r in (each or {}).items()) for each in _listed(value)]
        return "[{" + "}, {".join(texts) + "}]" if isinstance(value, list) else "{" + texts[0] + "}"
    return repr(value)


def _listed(value):
    return value if isinstance(value, list) else [value]


def _array(program, setting, name, values):
    dtype = values.dtype
    if values.size > MOST_ELEMENTS:
        text = f"np.zeros({values.shape}, {dtype.str!r})"
    else:
        text = f"np.array({values.tolist()}, {dtype.str!r})"
        if 0 in values.shape:
            text += f".reshape({values.shape})"
    if name in setting.windows:
        how = setting.windows[name]
        first = values.flat[0] if how in ("scratch", "number") and values.size else text
        return f"tw.scratch({dtype.str!r}, {first})" if how == "scratch" else (
            f"tw.field({values.shape}, {dtype.str!r}, init={first}, keep='window')  # by {how}")
    if name in setting.layouts:
        beside = f", a row behind {setting.overlaps[name]}" if name in setting.overlaps else ""
        return f"{text}  # in memory: {setting.layouts[name]}{beside}"
    if name in setting.aliases:
        return setting.aliases[name]
    levels = [f"np.array({level.tolist()}, {dtype.str!r})" for level in setting.history.get(name, ())]
    more = f", history=[{', '.join(levels)}]" if levels else ""
    more += f", halo={setting.halos[name]}" if name in setting.halos else ""
    return f"tw.field({text}{more})" if values.size <= MOST_ELEMENTS else f"tw.field({values.shape}, {dtype.str!r})"


def shown(case, outcome, seed):
    """The program of a case."""
    return case.script(outcome, seed) if hasattr(case, "script") else script(case, outcome, seed)
