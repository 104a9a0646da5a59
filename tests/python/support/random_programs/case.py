"""A program in a setting, of a seed."""

from __future__ import annotations

import dataclasses

from random_paths import paths_to_leave_out
from random_programs.choices import Choices
from random_programs.draw import program
from random_programs.field_lines import FieldLines
from random_programs.plain import Definition
from random_programs.runs import outcome
from random_programs.settings import setting
from random_programs.smaller import simpler
from random_programs.whole import Whole

SETTINGS_OF_A_PROGRAM = 5  # ways to run it, on kernels that are compiled once where they can be


@dataclasses.dataclass
class Case:
    """What is run: a program in a setting."""

    program: object
    setting: object

    def simpler(self):
        """Cases with less in them."""
        return (Case(*pair) for pair in simpler(self.program, self.setting))

    def written(self):
        """Names of arrays that are written, or may be."""
        own = self.setting.values.keys() - self.program.arrays.keys()
        return {name for nest in self.program.nests for name in nest.written()} | own

    def outcome(self):
        return outcome(self.program, self.setting)

    def kinds(self):
        return self.program.kinds | self.setting.kinds

    def definition(self):
        return (Whole if self.setting.door == "loops" else Definition)(self.program, self.setting).text


def drawn(seed):
    """The case of a seed."""
    number, way = divmod(seed, SETTINGS_OF_A_PROGRAM)
    of_program, of_setting = Choices(f"program {number}"), Choices(f"setting {number} {way}")
    if of_program.chance(0.08):
        return FieldLines(of_program, of_setting)
    made = program(of_program)
    of_paths = Choices(f"fast paths {number}")  # of all settings: kernels depend on them
    off = of_paths.some(paths_to_leave_out(), of_paths.pick(0, 0.2, 0.5, 0.9))
    if "clean batch" in made.kinds and of_paths.chance(0.8):
        off = [name for name in off if name != "batches"]
    return Case(made, setting(of_setting, made, ",".join(off)))
