"""A failing case as a program that can be run by itself."""

import textwrap

from random_programs.runs import keywords

MOST_ELEMENTS = 400


def script(case, outcome, seed):
    """The text of a program that shows what is wrong."""
    program, setting = case.program, case.setting
    header = [f"# seed {seed}: {outcome.said}", *(f"# {line}" for line in outcome.detail[:800].splitlines())]
    options = f"-n {setting.ranks} --threads {setting.lanes}"
    without = f"TILEWAVE_WITHOUT={setting.without} " if setting.without else ""
    header.append(f"# {without}tilewave run {options} this.py")
    lines = [*header, "import numpy as np", "from numpy import inf, nan", "", "import tilewave as tw", ""]
    for nest in program.nests:
        lines += ["@tw.nest", nest.text()]
    for name, values in setting.values.items():
        lines.append(f"{name} = {_array(program, setting, name, values)}")
    call = {name: name for name in setting.values}
    call |= {name: _literal(name, value) for name, value in keywords(program, setting).items()}
    call["plan"] = repr(setting.plan)
    arguments = ", ".join([program.nests[0].name, *(f"{name}={value}" for name, value in call.items())])
    lines += _door(setting, arguments)
    lines += [f"print({name}{'' if name in setting.layouts else '.gather()'})" for name in program.nests[0].written()]
    lines += ["", "# The definition:", *(f"# {line}" for line in case.definition().splitlines())]
    return "\n".join(lines) + "\n"


def _door(setting, arguments):
    if setting.door == "bind":
        return [f"bound = tw.bind({arguments})", *["report = bound.run()"] * setting.times]
    return [f"report = tw.run({arguments})"] * setting.times + (["# by the plan of tw.plan"] * (setting.door == "plan"))


def _literal(name, value):
    if name == "reduce":
        return "{" + ", ".join(f"{key!r}: tw.{each}" for key, each in value.items()) + "}"
    return repr(value)


def _array(program, setting, name, values):
    dtype = program.arrays[name].dtype
    if values.size > MOST_ELEMENTS:
        text = f"np.zeros({values.shape}, {dtype.str!r})  # the values of the seed"
    else:
        text = f"np.array({values.tolist()}, {dtype.str!r})"
        if 0 in values.shape:
            text += f".reshape({values.shape})"
    if name in setting.layouts:
        return f"{text}  # in memory: {setting.layouts[name]}"
    levels = [f"np.array({level.tolist()}, {dtype.str!r})" for level in setting.history.get(name, ())]
    more = f", history=[{', '.join(levels)}]" if levels else ""
    return f"tw.field({text}{more})" if values.size <= MOST_ELEMENTS else f"tw.field({values.shape}, {dtype.str!r})"


def shown(case, outcome, seed):
    """The script with its choices, from which the case can be made again."""
    return textwrap.dedent(script(case, outcome, seed)) + f"# choices: {case.choices}\n"
