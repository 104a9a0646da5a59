"""A program in a setting: by its seed, or by the choices that it follows from; and made smaller where it fails."""

from __future__ import annotations

import dataclasses

from random_programs.choices import Choices, shrunk
from random_programs.draw import program
from random_programs.field_lines import FieldLines
from random_programs.plain import Definition
from random_programs.outcomes import Outcome
from random_programs.runs import outcome
from random_programs.settings import setting
from tilewave import _core

SETTINGS_OF_A_PROGRAM = 5  # ways to run it: most of their time is that of one kernel


@dataclasses.dataclass
class Case:
    """What is run: a program, its setting, and the choices of both."""

    program: object
    setting: object
    choices: tuple

    def outcome(self):
        return outcome(self.program, self.setting)

    def kinds(self):
        return self.program.kinds | self.setting.kinds

    def definition(self):
        return Definition(self.program, self.setting).text


def drawn(seed):
    """The case of a seed."""
    number, way = divmod(seed, SETTINGS_OF_A_PROGRAM)
    return _case(Choices(f"program {number}"), Choices(f"setting {number} {way}"))


def again(choices):
    """The case of some choices."""
    return _case(*(Choices(given=list(given)) for given in choices))


def _case(of_program, of_setting):
    if of_program.chance(0.05):
        return FieldLines(of_program, of_setting)
    made = program(of_program)
    return Case(made, setting(of_setting, made, _core.fast_paths), (of_program.made, of_setting.made))


def kind_of_failure(found):
    """Failures of one kind are equal: while a case is made smaller, it stays of its kind."""
    return found.said.partition(":")[0] if found.kind == "wrong" else ""


def smaller(case, failure, begins=lambda: None, tries=150):
    """(case, outcome) of the smallest case found that fails alike; `begins` is called before each that is tried."""
    best = {"case": case, "outcome": failure}
    for _ in range(2):
        for side in (1, 0):

            def fails(numbers):
                choices = list(best["case"].choices)
                choices[side] = numbers
                try:
                    made = again(choices)
                    begins()
                    found = made.outcome()
                except Exception:  # choices of which nothing can be drawn
                    return None
                if kind_of_failure(found) != kind_of_failure(failure):
                    return None
                if len(str(made.choices)) > len(str(best["case"].choices)):
                    return None
                best["case"], best["outcome"] = made, found
                return made.choices[side]

            shrunk(best["case"].choices[side], fails, tries // 4)
    return best["case"], best["outcome"]


def failing(text):
    """An outcome of a run that ended its process."""
    return Outcome("wrong", text)
