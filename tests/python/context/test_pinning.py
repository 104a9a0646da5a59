"""Lanes are pinned to CPUs where a launcher started several; what nobody launched leaves the CPUs to the system."""

import os
import re

import numpy as np
import pytest
from launches import PYTHON, ended

import tilewave as tw

ALLOWED = sorted(os.sched_getaffinity(0))
several = pytest.mark.skipif(len(ALLOWED) < 2, reason="one CPU")


@tw.nest
def relax(A, i, j, *, fail=0):
    A[i, j] = A[i-1, j] + A[i, j-1]
    if fail:
        raise ValueError


@pytest.mark.parametrize(
    "pin, one_lane, two_lanes",
    [
        (None, [], []),
        ("auto", [], []),
        ("off", [], []),
        ("on", ALLOWED[:1], ALLOWED[:2] if len(ALLOWED) > 1 else []),
    ],
)
def test_alone(monkeypatch, pin, one_lane, two_lanes):
    monkeypatch.delenv("TILEWAVE_PIN", raising=False)
    if pin is not None:
        monkeypatch.setenv("TILEWAVE_PIN", pin)
    assert tw.Context(threads=1).cpus == one_lane and tw.Context(threads=2).cpus == two_lanes
    context = tw.Context()
    assert len(context.cpus) == (context.threads if pin == "on" else 0) and set(context.cpus) <= set(ALLOWED)


def test_a_plan_says_where_its_lanes_are(monkeypatch):
    for pin, lanes in (("on", f"pinned to CPUs {ALLOWED[0]}, in order"), ("off", "not pinned")):
        monkeypatch.setenv("TILEWAVE_PIN", pin)
        plan = tw.plan(relax, A=np.ones((40, 40)), context=tw.Context(threads=1))
        text = plan.explain()
        assert f"lanes are                          {lanes}\n" in text
        assert re.search(rf"CPUs allowed here +{len(ALLOWED)} CPUs? on \d+ cores?, .* NUMA nodes? \(.*\)", text)


@several
def test_the_allowed_cpus_alone_are_used():
    code = """if True:
        import os
        os.sched_setaffinity(0, {%d})
        import tilewave as tw
        from tilewave import _core
        one, two = tw.Context(), tw.Context(threads=2)
        print(one.threads, one.cpus, two.cpus, _core.topology())
        """
    done = ended(PYTHON, "-c", code % ALLOWED[1], env={"TILEWAVE_PIN": "on", "PYTHONWARNINGS": "ignore"})
    assert done.stdout.startswith(f"1 [{ALLOWED[1]}] [] 1 CPU on 1 core, "), done


@pytest.mark.parametrize("pin", ["", "yes", "ON"])
def test_another_switch_is_refused(monkeypatch, pin):
    monkeypatch.setenv("TILEWAVE_PIN", pin)
    with pytest.raises(tw.ConfigError, match=f"TILEWAVE_PIN is '{pin}'; allowed: on, off, auto"):
        tw.Context()


@several
@pytest.mark.parametrize("pin", ["auto", "on"])
def test_the_callers_thread_is_as_it_was_after_a_run(monkeypatch, pin):
    monkeypatch.setenv("TILEWAVE_PIN", pin)
    context = tw.Context(threads=2)
    for fail in (0, 1):
        try:
            tw.run(relax, A=np.ones((40, 40)), fail=fail, context=context)
        except tw.KernelError:
            assert fail
        assert sorted(os.sched_getaffinity(0)) == ALLOWED
