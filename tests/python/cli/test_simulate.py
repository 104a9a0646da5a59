"""``tilewave simulate``: what it says of one number of ranks, and of several."""

import pytest
from typer.testing import CliRunner

import tilewave as tw

from tilewave.cli import commands, plan_script


def test_a_simulation_says_what_it_has(script):
    given = tw.Machine.load("fat-tree")
    given.network = tw.Network("torus", extents=[48], link_byte_s=[1e-6], one_way=True)
    plan = plan_script.plan_script
    found = {each: plan(script, ["4000"], 48, 1, given, all_ranks=each) for each in (False, True)}
    assert found[True].calls.samples == {"nest relax": "all ranks"} and not found[False].calls.samples
    text = plan_script.text(found[True])
    assert "Its network: torus 48: 48 nodes, links of 1 MB/s." in text
    assert "Simulated:\n  nest relax: all ranks." in text


def test_simulate_is_a_command(script):
    words = ["simulate", "-n", "40", "--threads", "1", "--machine", "t3e-torus", str(script), "300"]
    done = CliRunner().invoke(commands.app, words)
    assert done.exit_code == 0, done.output
    assert "40 ranks on 40 hosts" in done.output and "nest relax: all ranks." in done.output
    words[2] = "41"
    done = CliRunner().invoke(commands.app, words)
    assert done.exit_code == 2 and "allowed: at most 40, as the network has 40 nodes" in done.output


def test_simulate_shows_how_predictions_scale(script, tmp_path):
    """A table by ranks; efficiencies are against the least number, by ranks x time (strong) or time (weak)."""
    picture = tmp_path / "strong.png"
    words = ["simulate", "-n", "8,2,4", "--threads", "1", "--machine", "t3e-torus", str(script), "3000"]
    done = CliRunner().invoke(commands.app, [*words[:1], "-o", str(picture), *words[1:]])
    assert done.exit_code == 0, done.output
    assert done.output.startswith("Predicted strong scaling; nothing was run.") and picture.stat().st_size > 10000
    rows = [line.split() for line in done.output.splitlines()[2:6]]
    assert [row[0] for row in rows] == ["ranks", "2", "4", "8"]
    time, share = ([float(row[k]) for row in rows[1:]] for k in (2, 3))
    assert share[0] == 100 and share[2] == pytest.approx(100 * 2 * time[0] / (8 * time[2]), rel=0.02)
    done = CliRunner().invoke(commands.app, [*words[:1], "--scaling", "weak", *words[1:]])
    rows = [line.split() for line in done.output.splitlines()[3:6]]
    time, share = ([float(row[k]) for row in rows] for k in (2, 3))
    assert done.output.startswith("Predicted weak") and share[2] == pytest.approx(100 * time[0] / time[2], rel=0.02)


@pytest.mark.parametrize(
    "options, message",
    [
        (["-n", "4,x"], "ranks 4,x were given; allowed: 1 and more, or several with commas"),
        (["-n", "4,4"], "ranks 4,4 were given"),
        (["-n", "0"], "ranks 0 were given"),
        (["-n", "2,4", "--scaling", "odd"], "--scaling: given 'odd'; allowed: strong, weak"),
        (["-n", "2,4", "-o", "scaling.txt"], "allowed: a file in a folder that is there, which ends with .png"),
        (["-n", "2", "-o", "scaling.png"], "of one number of ranks there is no picture; allowed: several"),
    ],
)
def test_wrong_scalings_are_refused_before_anything_is_simulated(script, options, message):
    done = CliRunner().invoke(commands.app, ["simulate", *options, str(script), "300"])
    assert done.exit_code == 2 and message in done.output
