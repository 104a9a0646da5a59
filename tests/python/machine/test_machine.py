"""The machine as a value: saving, loading, bad files, and how contexts find it."""

import copy
import functools
import json
import operator
import os
import re
import time
import warnings

import numpy as np
import pytest
from launches import TILEWAVE, ended

from local_ranks import on_ranks, results_of

import tilewave as tw
from tilewave.machine import busy, known, machine, measure as measuring


def some():
    """A machine with all kinds of numbers."""
    link = machine.Link(
        latency_s=2e-6,
        send_s=3e-7,
        receive_s=2e-7,
        byte_s=1e-10,
        transfer_s=machine.Curve([1, 8192, 8300, 1 << 20], [2e-6, 4e-6, 9e-6, 2e-4]),
        busy_byte_s=1e-11,
        breaks_bytes=[8300],
        synchronous_s=machine.Curve([8], [3e-6]),
        overlap=[
            {
                "progress": "none", "poll_period_s": 0.0, "bytes": 1 << 20, "hidden": 0.1, "slowdown": 1.0,
                "busy_byte_s": 1e-11,
            }
        ],
    )
    other = copy.deepcopy(link)
    other.byte_s = 8.4e-9
    return machine.Machine(
        {"hosts": ["a", "b"], "ranks": 2, "threads": 1},
        latency_s=2e-6,
        byte_s=1e-10,
        chunk_s=3e-6,
        short_s=0,
        ranks_per_core=1,
        hand_over_s=1e-7,
        point_s=2e-9,
        poll_s=1e-7,
        step_s=2e-7,
        cache_bytes=1 << 19,
        copy_byte_s=machine.Curve([8, 64], [1e-9, 1e-10]),
        memory=[machine.Curve([1 << 14, 1 << 26], [3e-11, 1e-10]), machine.Curve([1 << 14, 1 << 26], [3e-11, 2e-10])],
        host_of=[0, 1],
        same_host=link,
        other_host=other,
        spread={"latency_s": 0.05},
    )


def test_saved_and_loaded_are_equal(tmp_path):
    path = tmp_path / "machine.json"
    some().save(path)
    assert tw.Machine.load(path) == some()
    text = json.loads(path.read_text())
    assert text["format"] == machine.FORMAT and text["units"]["*_s"] == "seconds"


def test_older_files_have_more_of_a_link(tmp_path):
    path = tmp_path / "machine.json"
    text = json.loads(some()._to_text())
    text["same_host"]["strided"] = [{"method": "packed", "stride": 2, "bytes": 4096, "byte_s": 1e-9}]
    path.write_text(json.dumps(text))
    assert tw.Machine.load(path) == some()


def test_the_core_has_the_same_numbers():
    core = some()._to_core()
    assert (core.latency_s, core.chunk_s, core.cache_bytes, core.poll_s) == (2e-6, 3e-6, 1 << 19, 1e-7)
    assert core.other_host.byte_s == 8.4e-9 and core.same_host.message_s(1 << 20) == pytest.approx(2e-4)
    assert core.same_host.transfer_s.at(4096.5) == pytest.approx(some().same_host.transfer_s.at(4096.5))
    assert core.memory[1].at(1 << 26) == 2e-10 and list(core.host_of) == [0, 1]
    assert (
        core.memory[1].at(1 << 40) == 2e-10 and core.memory[1].at(8) == 3e-11 and core.copy_byte_s.at(1 << 30) == 1e-10
    )
    alone = some()
    alone.same_host = None
    assert alone._to_core().same_host.byte_s == 8.4e-9  # as the kind that was met
    alone.other_host = None
    assert alone._to_core().same_host.byte_s == tw._core.Link().byte_s


def test_it_prints():
    text = str(some())
    for part in ("2 ranks × 1 threads", "latency", "8.11 KiB", "119", "not polled"):
        assert part in text, text


def test_it_draws(tmp_path):
    pytest.importorskip("matplotlib")
    from tilewave.machine import show as machine_show

    machine_show.picture(some(), tmp_path / "curves.png")
    assert (tmp_path / "curves.png").stat().st_size > 10000


RATE = {"point_s": 1e-9, "row_s": 0.0, "tile_s": 0.0}


def changed(where, to):
    """The text of a machine with another value at a place as errors name it; None: without it."""
    data = json.loads(some()._to_text())
    *folders, last = [int(number) if number else name for name, number in re.findall(r"(\w+)|\[(-?\d+)\]", where)]
    at = functools.reduce(operator.getitem, folders, data)
    if to is None:
        del at[last]
    else:
        at[last] = to
    return json.dumps(data)


NAN, INFINITE = float("nan"), float("inf")


def refused(tmp_path, text, *words):
    path = tmp_path / "bad.json"
    path.write_text(text)
    with pytest.raises(tw.ConfigError) as error:
        tw.Machine.load(path)
    assert all(word in str(error.value) for word in (str(path), *words)), error.value


@pytest.mark.parametrize("text", ["", "{", "[" * 100000, "long number"])
def test_files_without_json(tmp_path, text):
    if text == "long number":
        text = changed("latency_s", 7).replace('"latency_s": 7', f'"latency_s": {"9" * 5000}', 1)
    refused(tmp_path, text, "no JSON")


@pytest.mark.parametrize("text", ["[1]", "null"])
def test_files_without_a_format(tmp_path, text):
    refused(tmp_path, text, "field format")


# Where a file is changed, to what, and what is said of that place, or of another one.
@pytest.mark.parametrize(
    "where, to, words",
    [
        ("format", 0, "found 0; allowed: 3"),
        ("format", 1, "found 1; allowed: 3|measure anew"),
        ("format", "1", "found '1'"),
        ("format", True, "found True"),
        ("latency_s", -1e-6, "found -1e-06; allowed: a finite number > 0"),
        ("latency_s", 0, "found 0"),
        ("latency_s", NAN, "found nan"),
        ("latency_s", INFINITE, "found inf"),
        ("latency_s", "fast", "found 'fast'"),
        ("latency_s", True, "found True"),
        ("latency_s", None, "missing"),
        ("short_s", -1, "found -1; allowed: a finite number >= 0"),
        ("other_host.byte_s", 0.0, "found 0.0; allowed: a finite number > 0"),
        ("other_host.byte_s", None, "missing"),
        ("other_host", 3, "found 3; allowed: an object with"),
        ("same_host.hidden_polled", 1.5, "found 1.5; allowed: a number from 0 to 1"),
        ("same_host.transfer_s", [], "found []; allowed: an object with lists x and y"),
        ("same_host.transfer_s.x", [1, 2], "field same_host.transfer_s: found '2 x and 4 y'"),
        ("same_host.transfer_s.x[1]", 9000, "field same_host.transfer_s.x[2]: found 8300; allowed: more than x[1], "),
        ("same_host.transfer_s.y[0]", -1, "found -1"),
        ("same_host.breaks_bytes", [0], "field same_host.breaks_bytes[0]: found 0"),
        ("same_host.overlap[0].hidden", -0.1, "found -0.1"),
        ("memory[1].x", [8, 8], "field memory[1].x[1]: found 8; allowed: more than x[0], 8"),
        ("memory", 5, "found 5; allowed: a list"),
        ("host_of[0]", -1, "found -1"),
        ("host_of[0]", 1 << 64, "found 18446744073709551616; allowed: an integer from 0 to"),
        ("host_of", [0], "found '1 entries'; allowed: one for each of the 2 ranks"),
        ("latency_s", 10**400, "found 1000|; allowed: a finite number > 0, at least 1e-18, at most 1e+06"),
        ("step_s", 1e300, "found 1e+300; allowed"),
        ("cache_bytes", 1 << 64, "found 18446744073709551616; allowed"),
        ("byte_s", 1e-320, "found 1e-320"),
        ("other_host.byte_s", 2.0, "found 2.0; allowed: a finite number > 0, at least 1e-18, at most 1"),
        ("same_host.transfer_s.x[-1]", 10**30, "field same_host.transfer_s.x[3]: found 1000"),
        ("same_host.byte_s", -INFINITE, "found -inf"),
        ("same_host.overlap[0].slowdown", 10**400, "field same_host.overlap[0].slowdown"),
        ("conditions", None, "missing"),
        ("conditions.ranks", "2", "found '2'; allowed: an integer"),
        ("conditions.hosts", [3], "field conditions.hosts[0]: found 3; allowed: a text"),
        ("conditions.cpu_models", [["x"]], "field conditions.cpu_models[0]: found ['x']; allowed: a text"),
        ("conditions.ranks", 0, "found 0; allowed: an integer from 1 to"),
        ("conditions.settings", 3, "found 3; allowed: an object"),
        ("conditions.mpi", [], "found []; allowed: a text"),
        ("same_host.overlap[0].progress", None, "missing"),
        ("same_host.overlap[0].hidden", None, "missing"),
        ("kernels", {"f": RATE | {"tile": "4x4"}}, "field kernels.f.tile: found '4x4'; allowed: a list"),
        ("spread.latency_s", -1, "found -1"),
        ("kernels", [], "found []; allowed: an object"),
        ("network", 3, "found 3; allowed: an object with the fields topology"),
        ("network", {"topology": "ring"}, "field network.extents: missing"),
        ("network", {"topology": "ring", "extents": [4]}, "topology is 'ring'; allowed: hosts, switch, fat tree"),
        ("network", {"topology": "hosts", "extents": [4]}, "topology is 'hosts'; allowed with it: cards, nothing else"),
        ("network", {"topology": "hosts", "extents": [], "cards": 0}, "cards is 0; allowed: 1 to 64"),
        ("network", {"topology": "switch", "extents": ["4"]}, "extents: given ['4']; allowed: a list of integers"),
        ("network", {"topology": "torus", "extents": [4]}, "link_byte_s has 0 numbers; allowed: 1"),
        ("network", {"topology": "switch", "extents": [4], "nodes": 4}, "found 'nodes'; allowed: the fields topology"),
    ],
)
@pytest.mark.exhaustive
def test_bad_fields(tmp_path, where, to, words):
    words = words if words.startswith("field ") else f"field {where}: {words}"
    refused(tmp_path, changed(where, to), *words.split("|"))


@pytest.mark.parametrize("name", machine.named())
@pytest.mark.exhaustive
def test_machines_of_the_package_tell_where_each_number_is_from(name):
    found = tw.Machine.load(name)
    assert found.network is not None and found.conditions["sources"] and found.network.topology in str(found)
    with pytest.raises(tw.ConfigError, match=f"no-such-machine: no machine can be .*{name}"):
        tw.Machine.load("no-such-machine")
    ranks = len(found.host_of)
    assert tw.Machine._from_text(found._to_text(), "x") == found and max(found.host_of) < found.network.nodes
    assert found._to_core().network.nodes() == found.network.nodes and ranks == found.conditions["ranks"]


def test_files_that_are_none(tmp_path):
    with pytest.raises(tw.ConfigError, match="none.json: no machine can be read"):
        tw.Machine.load(tmp_path / "none.json")
    with pytest.raises(tw.ConfigError, match="no machine can be read"):
        tw.Machine.load(tmp_path)
    os.mkfifo(tmp_path / "fifo")
    with open(tmp_path / "huge", "wb") as file:
        file.truncate(1 << 40)
    for path, words in (
        (tmp_path / "fifo", "no regular file"),
        ("/dev/zero", "no regular file"),
        (tmp_path / "huge", "allowed: 33554432"),
    ):
        with pytest.raises(tw.ConfigError, match=f"no machine can be read there .it .*{words}"):
            tw.Machine.load(path)
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(tw.ConfigError, match="is no text"):
        tw.Machine.load(tmp_path / "bytes")


def test_numbers_at_their_limits_are_used():
    """What is accepted can be planned with: no number overflows on the way."""
    from tilewave.machine.check import LEAST, MAY_BE_ZERO, MOST, MOST_OF
    from tilewave.machine.numbers import FRACTIONS

    for least in (False, True):
        data = json.loads(some()._to_text())

        def limit(name):
            if name in FRACTIONS or name in MAY_BE_ZERO:
                return 0 if least else 1
            return LEAST if least else next((most for end, most in MOST_OF.items() if name.endswith(end)), MOST)

        for part in (data, data["same_host"], data["other_host"]):
            for name, value in part.items():
                if isinstance(value, (int, float)) and name != "format":
                    part[name] = limit(name)
        found = tw.Machine._from_text(json.dumps(data), "limits.json")

        @tw.nest
        def relax(A, i, j):
            A[i, j] = A[i-1, j] + A[i, j-1]

        context = tw.Context()
        known.use(context, found)
        A = np.ones((200, 200))
        tw.run(relax, A=A, context=context)
        assert "The machine's numbers" in tw.plan(relax, A=A, context=context).explain()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty folder, on a machine where nothing else runs."""
    monkeypatch.setenv("TILEWAVE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv(known.VARIABLE)
    monkeypatch.setattr(busy, "queued_s", lambda: 0.0)
    return tmp_path / "cache"


def kept_for(context):
    """A machine of this very launch, with a latency to know it by."""
    found = some()
    found.conditions = {**known.conditions(context), "date": "2026-11-22"}
    found.latency_s, found.host_of = 7.25e-6, [0] * context.size
    return found


def test_a_kept_machine_is_used_at_once(cache):
    first = tw.Context()
    assert first._machine is None and known.store(kept_for(first))
    second = tw.Context()
    assert second._machine.latency_s == second._core.machine().latency_s == 7.25e-6
    assert measuring.of(second) is second._machine
    assert second.solo()._machine is None and measuring.of(second.solo()).latency_s == 7.25e-6
    assert tw.Context(threads=second.threads + 1)._machine is None  # another launch shape
    assert known.startup_machine(second).latency_s != 7.25e-6


def test_a_given_machine_is_used(cache, tmp_path, monkeypatch):
    path = tmp_path / "given.json"
    kept_for(tw.Context(threads=1)).save(path)
    monkeypatch.setenv(known.VARIABLE, str(path))
    assert tw.Context(threads=1)._core.machine().latency_s == 7.25e-6
    context = tw.Context(threads=2)
    with pytest.raises(tw.ConfigError, match=r"given.json: field conditions.threads: found 1; allowed: 2"):
        measuring.of(context)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: text[:100],
        lambda text: text.replace('"format": 3', '"format": 0'),
        lambda text: text.replace("7.25e-06", "-1"),
        lambda text: text.replace("7.25e-06", "1" + "0" * 400),
        lambda text: text.replace('"host_of": [\n  0', f'"host_of": [\n  {1 << 64}'),
        lambda text: text.replace('"step_s": ', '"step_s": 1e300, "was": '),
        None,
    ],
)
def test_a_spoilt_kept_machine_is_measured_anew(cache, spoil):
    context = tw.Context()
    known.store(kept_for(context))
    (path,) = cache.glob("machine-*.json")
    if spoil:
        assert spoil(path.read_text()) != path.read_text()
        path.write_text(spoil(path.read_text()))
    else:  # nobody will ever write into it
        path.unlink()
        os.mkfifo(path)
    with pytest.warns(RuntimeWarning, match="the stored machine is not used: .*machine-"):
        context = tw.Context()
    assert context._machine is None
    from tilewave.machine.measure import measured

    found = measured(context, True, 0.2)
    assert measuring.of(context) is found and tw.Context()._machine == found


def test_what_is_measured_beside_other_work_is_used_and_not_kept(cache, monkeypatch):
    """The threads of both ranks wait for a CPU for a share of the time that the test says."""
    waiting = 0.0
    monkeypatch.setattr(busy, "queued_s", lambda: waiting * time.perf_counter())

    def body(context):
        return measuring.measured(context, True, 0.1)

    def measured():
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            results, errors = on_ranks(1, 1, body)
        assert errors == [None]
        return results[0], [str(one.message) for one in said if "had the CPUs" in str(one.message)]

    good, said = measured()
    assert said == [] and "busy" not in good.conditions and len(list(cache.glob("machine-*"))) == 1
    (path,) = cache.glob("machine-*")
    text, waiting = path.read_text(), 100.0  # by so many threads
    found, (said,) = measured()
    assert "used in this process and not stored (threads waited for" in said
    assert found.conditions["busy"] > busy.BUSY and "others had the CPUs" in str(found)
    assert path.read_text() == text and not known.store(found)  # what was kept before stays
    assert tw.Machine._from_text(found._to_text(), "it") == found


def test_the_default_neither_reads_nor_measures(cache, monkeypatch):
    context = tw.Context()
    known.store(kept_for(context))
    monkeypatch.setenv(known.VARIABLE, "default")
    context = tw.Context()
    assert measuring.of(context).latency_s == context._core.machine().latency_s != 7.25e-6
    assert measuring.of(context).memory == []


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TILEWAVE_CACHE_DIR", str(tmp_path / "file" / "below"))
    monkeypatch.delenv(known.VARIABLE)
    assert not known.store(kept_for(tw.Context()))
    monkeypatch.setenv("TILEWAVE_CACHE_DIR", "")
    assert not known.store(kept_for(tw.Context())) and tw.Context()._machine is None


def test_measure_refuses_nonsense():
    with pytest.raises(tw.ConfigError, match="quick: given 'yes'; allowed: True, False"):
        tw.measure(quick="yes")


def test_local_ranks_measure_each_other(cache):
    from tilewave.machine.measure import measured

    found = results_of(2, 1, lambda context: measured(context, True, 0.3))
    assert found[0] == found[1]
    assert found[0].same_host.byte_s > 0 and found[0].conditions["mpi"] == ""
    assert found[0].same_host.eager_bytes == 8  # sends of ranks as threads wait for their receivers


@pytest.mark.parametrize(
    "arguments, words",
    [
        (("--show", "-o", "bad.json"), "bad.json: is no JSON"),
        (("nowhere/curves.png",), "no folder for nowhere"),
        (("-n", "0"), "0 ranks"),
    ],
)
def test_the_command_refuses(tmp_path, monkeypatch, arguments, words):
    from typer.testing import CliRunner

    from tilewave.cli import commands as cli

    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.json").write_text("x")
    done = CliRunner().invoke(cli.app, ["measure", *arguments])
    assert done.exit_code == 2 and words in done.output


def test_the_command_measures_once_and_shows(tmp_path, cache):
    def run(*arguments):
        return ended(*TILEWAVE, "measure", *arguments, cwd=tmp_path)

    done = run("--quick", "-o", "machine.json")
    assert done.returncode == 0, done.stderr
    assert "step of a schedule" in done.stdout
    found = tw.Machine.load(tmp_path / "machine.json")
    beside_others = found.conditions.pop("busy", 0) > 0  # other tests, perhaps
    assert ("stored in" in done.stdout) != beside_others and ("had the CPUs" in done.stderr) == beside_others
    assert not beside_others or known.store(found)
    assert found.conditions["measured_s"] <= 3 and found.conditions["quick"]
    done = run("--show", "-o", "again.json")  # what was kept
    assert done.returncode == 0 and tw.Machine.load(tmp_path / "again.json") == found
    done = run("--show", "-o", "machine.json", "curves.png")  # what was given
    assert done.returncode == 0 and (tmp_path / "curves.png").stat().st_size > 10000
