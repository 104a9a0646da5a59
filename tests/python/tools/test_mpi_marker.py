"""The mpi marker reports what happened: failures, crashes, hangs and skips of single ranks."""

import os
import subprocess
import sys
import textwrap
import xml.etree.ElementTree as xml
from pathlib import Path

import pytest

pytestmark = pytest.mark.one_draw
CONFTEST = Path(__file__).resolve().parents[2] / "conftest.py"


@pytest.fixture
def outcomes(tmp_path):
    """Run a generated test file in a pytest of its own: ({test: (outcome, text)}, exit code)."""
    (tmp_path / "conftest.py").write_text(
        textwrap.dedent(f"""
        import importlib.util, sys
        spec = importlib.util.spec_from_file_location("real_conftest", {str(CONFTEST)!r})
        module = importlib.util.module_from_spec(spec)
        sys.modules["real_conftest"] = module
        spec.loader.exec_module(module)
        globals().update({{k: v for k, v in vars(module).items() if not k.startswith("__")}})
        module.mpi_plugin.GRACE_S = 2.0  # not 10 s, in which the ranks that wait keep the cores busy
    """)
    )
    (tmp_path / "pytest.ini").write_text("[pytest]\n")

    def run(body, *options, other=""):
        """`other`: the text of a second file."""
        head = "import os, sys, time, pytest\nrank = int(os.environ.get('PMI_RANK', -1))\n"
        files = {"test_generated.py": body} | ({"test_other.py": other} if other else {})
        for name, text in files.items():
            (tmp_path / name).write_text(head + textwrap.dedent(text))
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "--junitxml=result.xml", *options, *files],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
            env={n: v for n, v in os.environ.items() if not n.startswith("PYTEST_")} | {"TILEWAVE_TEST_RUN": "0"},
        )
        found = {}
        for case in xml.parse(tmp_path / "result.xml").iter("testcase"):
            outcome, text = found.get(case.get("name"), ("passed", ""))
            for part in case:
                if part.tag in ("failure", "error", "skipped"):
                    outcome, text = part.tag, text + part.get("message", "") + (part.text or "")
            found[case.get("name")] = outcome, text
        return found, done.returncode, done.stdout + done.stderr

    return run


def test_failure_of_one_rank(outcomes):
    found, code, _ = outcomes("""
        @pytest.mark.mpi
        def test_before():
            pass

        @pytest.mark.mpi(ranks=[2, 3])
        def test_one():
            print("words of the failing rank" if rank == 1 else "other words")
            assert rank != 1

        @pytest.mark.mpi
        def test_after():
            pass
    """)
    assert code == 1
    for name, size in (("test_one[n2]", 2), ("test_one[n3]", 3)):
        outcome, text = found[name]
        assert outcome == "failure"
        assert f"rank 1 of {size}" in text and "assert 1 != 1" in text
        assert "rank 0 of" not in text and "rank 2 of" not in text
    assert found["test_before[n2]"] == found["test_after[n2]"] == ("passed", "")


def test_failure_while_others_wait(outcomes):
    pytest.importorskip("mpi4py")
    found, _, _ = outcomes("""
        @pytest.mark.mpi
        def test_waits():
            from mpi4py import MPI
            assert rank != 1, "no barrier here"
            MPI.COMM_WORLD.Barrier()

        @pytest.mark.mpi
        def test_after():
            pass
    """)
    outcome, text = found["test_waits[n2]"]
    assert outcome == "failure" and "no barrier here" in text and "rank 0: was in" in text
    assert found["test_after[n2]"][0] == "passed"


@pytest.mark.parametrize("with_mpi", [False, True])
def test_crash(outcomes, with_mpi):
    if with_mpi:
        pytest.importorskip("mpi4py")
    found, code, _ = outcomes(f"""
        @pytest.mark.mpi
        def test_crash():
            if {with_mpi}:
                from mpi4py import MPI
                MPI.COMM_WORLD.Barrier()
            if rank == 1:
                sys.modules["real_conftest"].processes.remove(  # as a context does: ranks that are killed leave none
                    sys.modules["real_conftest"].processes.mpi_files(os.getpid())[0])
                os.write(2, b"last words")
                os._exit(7)

        @pytest.mark.mpi
        def test_after():
            pass
    """)
    outcome, text = found["test_crash[n2]"]
    assert code == 1 and outcome == "error"
    assert "rank 1: was in" in text and "last words" in text
    assert found["test_after[n2]"][0] == "passed"


def test_hang(outcomes):
    found, code, output = outcomes("""
        @pytest.mark.mpi(timeout=5)
        def test_hang():
            while rank == 0:
                time.sleep(1)

        @pytest.mark.mpi(timeout=5)
        def test_after():
            pass
    """)
    outcome, text = found["test_hang[n2]"]
    assert code == 1 and outcome == "error"
    assert "timeout" in text and "rank 0: was in" in text and "rank 1: had finished" in text
    assert "in test_hang" in text, "the stack of the hanging rank is shown"
    assert found["test_after[n2]"][0] == "passed"
    assert "left over by tests" not in output


def test_skips(outcomes):
    found, code, _ = outcomes("""
        @pytest.mark.mpi
        def test_all_skip():
            pytest.skip("no such thing")

        @pytest.mark.mpi
        def test_one_skips():
            if rank == 1:
                pytest.skip("not here")

        @pytest.mark.mpi
        @pytest.mark.long
        def test_long():
            assert False

        @pytest.mark.mpi
        @pytest.mark.xfail(strict=True)
        def test_known():
            assert False
    """)
    assert code == 0
    assert found["test_all_skip[n2]"][0] == "skipped" and "no such" in found["test_all_skip[n2]"][1]
    assert found["test_one_skips[n2]"][0] == "passed"
    assert "test_long[n2]" not in found
    assert found["test_known[n2]"][0] == "skipped"  # JUnit's word for expected failures


def test_broken_file_and_fixtures(outcomes):
    found, code, _ = outcomes("""
        if rank == 1:
            raise ImportError("not importable on rank 1")

        @pytest.mark.mpi(timeout=120)
        def test_a():
            pass

        @pytest.mark.mpi(timeout=120)
        def test_b():
            pass
    """)
    assert code == 1
    outcome, text = found["test_a[n2]"]
    assert outcome == "error" and "not importable on rank 1" in text
    assert found["test_b[n2]"][0] == "error"


def test_files_that_share_their_ranks(outcomes):
    found, code, _ = outcomes(
        """
        if rank == 1:
            raise ImportError("not importable on rank 1")

        @pytest.mark.mpi(timeout=120)
        def test_broken():
            pass
    """,
        other="""
        @pytest.mark.mpi
        def test_pid():
            with open(f"pid-{rank}", "a") as file:
                file.write(f"{os.getpid()} ")

        @pytest.mark.mpi
        def test_fails():
            test_pid()
            assert rank != 0

        @pytest.mark.mpi
        def test_after():
            test_pid()
    """,
    )
    assert code == 1
    assert found["test_broken[n2]"][0] == "error" and "not importable on rank 1" in found["test_broken[n2]"][1]
    assert [found[f"test_{name}[n2]"][0] for name in ("pid", "fails", "after")] == ["passed", "failure", "passed"]


def test_order_of_fixtures_around_mpi_tests(outcomes):
    found, code, _ = outcomes("""
        @pytest.fixture(scope="module")
        def thing():
            yield 1

        def test_normal(thing):
            assert thing == 1

        @pytest.mark.mpi
        @pytest.mark.parametrize("value", [1, 2])
        def test_mpi(thing, value):
            assert thing == 1 and value in (1, 2)

        class TestMore:
            def test_method(self, thing):
                assert rank == -1
    """)
    assert code == 0
    assert len(found) == 4 and all(outcome == "passed" for outcome, _ in found.values())


def test_leftovers_are_found_and_removed(outcomes):
    found, code, output = outcomes("""
        import subprocess

        def test_leaves_a_process():
            subprocess.Popen(["sleep", "77"], start_new_session=True)
    """)
    assert found["test_leaves_a_process"][0] == "passed"
    assert code == 1 and "left over by tests" in output and "sleep 77" in output


def test_selection_and_stop(outcomes):
    found, code, _ = outcomes(
        """
        @pytest.mark.mpi(ranks=[1, 2])
        @pytest.mark.parametrize("value", [1, 2])
        def test_value(value):
            assert value == 1
    """,
        "-k",
        "1-n2 or n2-1",
    )
    assert code == 0
    assert list(found) in (["test_value[n2-1]"], ["test_value[1-n2]"])
