"""The logger `tilewave`: what goes there, and that nothing is shown, or imported, without a program's asking."""

import logging
import subprocess
import sys

import numpy as np
import pytest
from local_ranks import results_of

import tilewave as tw


@tw.nest
def total(A, i, *, c):
    A[i] = A[i-1] * c + 1.0


def test_plans_are_logged(caplog):
    with caplog.at_level(logging.DEBUG, logger="tilewave"):
        tw.run(total, A=np.ones(60), c=0.25, context=tw.Context(threads=1))
    (plan,) = (record for record in caplog.records if record.levelno == logging.INFO and "total" in record.message)
    assert plan.name == "tilewave" and plan.message.startswith("total runs on 1 rank: ")
    assert "Planning took " in plan.message
    kernels = [record.message for record in caplog.records if record.levelno == logging.DEBUG]
    assert kernels and all(text.startswith("kernel of total: ") for text in kernels)


def test_several_ranks_log_a_plan_once(caplog):
    def body(context):
        tw.run(total, A=tw.field((60,), init=1.0, context=context), c=0.75, context=context)

    with caplog.at_level(logging.INFO, logger="tilewave"):
        results_of(2, 1, body)
    assert len([record for record in caplog.records if record.message.startswith("total runs on ")]) == 1


def test_an_equal_call_logs_nothing(caplog):
    context, A = tw.Context(threads=1), np.ones(60)
    tw.run(total, A=A, c=0.5, context=context, planning="quick")
    with caplog.at_level(logging.DEBUG, logger="tilewave"):
        tw.run(total, A=A, c=0.5, context=context, planning="quick")
    assert not caplog.records


@pytest.mark.parametrize("level, shown", [(logging.INFO, 1), (logging.WARNING, 0)])
def test_levels(caplog, level, shown):
    with caplog.at_level(level, logger="tilewave"):
        tw.run(total, A=np.ones(70), c=0.125, context=tw.Context(threads=1))
    assert len(caplog.records) == shown


SILENT = """
import sys, numpy as np, tilewave as tw
from pathlib import Path
Path("body.py").write_text("import tilewave as tw\\n@tw.nest\\ndef f(A, i):\\n    A[i] = A[i-1] + 1\\n")
sys.path.insert(0, ".")
import body
tw.run(body.f, A=np.zeros(9))
print("logging" in sys.modules)
"""


def test_nothing_is_shown_or_imported_without_asking(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", SILENT], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=True
    )
    assert done.stderr == "" and done.stdout.split() in (["False"], ["True"])  # llvmlite may import it
