"""How the ranks of a launch have ended, from their notes alone: no process is started, and the clock is made up."""

import itertools

import pytest

from tilewave.launch import endings, processes


class Job:
    """Notes of ranks, and which of their processes have ended."""

    def __init__(self, monkeypatch, path, ranks):
        self.path, self.now, self.ended, self.closed = path, 1000.0, set(), []
        path.write_text("")
        monkeypatch.setattr(endings.time, "monotonic", lambda: self.now)
        monkeypatch.setattr(endings.os, "close", self.closed.append)
        monkeypatch.setattr(processes, "handle_of", lambda pid: None if pid == 999 else pid)
        monkeypatch.setattr(processes, "has_ended", lambda handle: handle in self.ended)
        self.of = endings.Endings(open(path, "rb"), ranks)

    def note(self, *lines):
        with open(self.path, "a") as file:
            file.writelines(line + "\n" for line in lines)

    def begin(self, *ranks):
        """Rank r is process 100 + r."""
        self.note(*(f"{100 + r} {r} start" for r in ranks))
        assert not self.of.overdue()

    def late_after(self, seconds):
        """Whether the others are overdue so long from now, and not a little earlier."""
        assert not self.of.overdue()
        self.now += seconds - 0.01
        early = self.of.overdue()
        self.now += 0.02
        return not early and self.of.overdue()


@pytest.fixture
def job(monkeypatch, tmp_path):
    return Job(monkeypatch, tmp_path / "notes", 3)


def test_ranks_that_come_to_their_ends_are_never_late(job):
    job.begin(0, 1, 2)
    for rank in (2, 0, 1):
        job.note(f"1 {rank} over")
        assert not job.of.overdue()
        job.ended.add(100 + rank)
        job.now += 100
        assert not job.of.overdue()
    assert job.of.result(0) == 0 and sorted(job.closed) == [100, 101, 102]
    assert (job.of.failed, job.of.silent) == ([], [])


@pytest.mark.parametrize("how, seconds", [("gone", 2.0), ("exit", 10.0)])
def test_the_others_of_one_that_failed_have_some_time(job, how, seconds):
    job.begin(0, 1, 2)
    job.note(f"7 1 {how}")
    assert job.late_after(seconds)
    assert job.of.result(9) == 7  # Hydra's own code is that of the ranks that it killed


def test_one_that_ends_without_mpi_while_others_start_it_fails_the_job(job, capsys):
    job.begin(0, 1, 2)
    job.note("0 0 mpi")
    assert not job.of.overdue()
    job.note("1 2 over")  # it has had one
    assert not job.of.overdue()
    job.note("0 1 over")
    assert job.late_after(2.0) and job.of.result(137) == 1
    assert capsys.readouterr().err.startswith("tilewave: rank 1 came to the end of the script without calling Tilewave")


def test_ranks_without_mpi_may_end_when_they_like(job):
    job.begin(0, 1, 2)
    job.note("0 1 over")
    job.ended.add(101)
    assert not job.of.overdue()
    job.now += 100
    assert not job.of.overdue()


def test_one_that_ends_without_a_word_is_named_and_those_after_it_are_not(job, capsys):
    job.begin(0, 1, 2)
    job.ended.add(101)
    assert job.late_after(2.0) and job.of.silent == [1]
    job.ended |= {100, 102}
    job.of.overdue()
    assert job.of.silent == [1] and job.of.result(9) == 1
    assert capsys.readouterr().err.startswith("tilewave: rank 1 ended before the script was over, without an error")


def test_several_that_end_at_once_are_all_named(job, capsys):
    job.begin(0, 1, 2)
    job.ended |= {100, 102}
    assert job.late_after(2.0)
    assert job.of.result(0) == 1
    assert capsys.readouterr().err.startswith("tilewave: ranks 0 and 2 ended before")


@pytest.mark.parametrize(
    "code, shown, result", [(9, "SIGKILL", 9), (11, "SIGSEGV", 11), (1, "", 1), (200, "", 200), (0, "", 1)]
)
def test_a_code_of_mpiexec_that_may_be_a_signals(job, capsys, code, shown, result):
    job.begin(0, 1, 2)
    job.ended.add(100)
    job.of.overdue()  # seen, and mpiexec ends before it is late
    assert job.of.result(code) == result
    text = capsys.readouterr().err
    assert (f"exit code {code} may stand for {shown}" in text) == ("may stand for" in text) == bool(shown)


def test_what_this_process_has_not_seen_counts_once_all_have_ended(job, capsys):
    job.begin(0, 1, 2)
    job.note("0 0 over", "0 2 over")
    job.of.overdue()
    assert job.of.result(0) == 1 and "rank 1 ended before" in capsys.readouterr().err


def test_one_that_has_said_why_it_failed_is_believed_before_silence(job, capsys):
    job.begin(0, 1, 2)
    job.note("4 1 gone")
    job.ended |= {100, 101}
    job.of.overdue()
    assert job.of.silent == [] and job.of.result(9) == 4 and capsys.readouterr().err == ""


def test_a_job_that_waits_for_one_that_has_gone_to_its_end_is_told(job, capsys):
    job.begin(0, 1, 2)
    job.note("3 2 exit")
    assert job.late_after(10.0) and job.of.result(130) == 3
    assert "rank 2 ended with exit code 3; the job did not end within 10 s and was stopped" in capsys.readouterr().err


@pytest.mark.parametrize(
    "code, late, result", [(1, False, 3), (9, False, 3), (0, False, 0), (130, False, 130), (130, True, 3)]
)
def test_whose_code_it_is(job, code, late, result):
    job.begin(0, 1, 2)
    job.note("3 0 gone")
    job.of.overdue()
    job.now += 5 * late
    job.of.overdue()
    assert job.of.result(code) == result


def test_ranks_of_other_hosts_are_not_looked_at(job):
    """They write no start: only what they say counts; a process that has gone already has no handle."""
    job.note("999 0 start")
    assert not job.of.overdue() and not job.of._alive
    job.now += 1000
    assert not job.of.overdue()
    job.note("2 1 gone")
    assert job.late_after(2.0)


def test_after_ctrl_c_only_ranks_that_have_begun_get_time(job):
    assert job.of.patience_s() == 0.5
    job.begin(1)
    assert job.of.patience_s() == processes.PATIENCE_S


def test_what_is_open_is_given_back(job):
    job.begin(0, 1, 2)
    job.of._job = 55
    job.ended.add(101)
    job.of.overdue()
    assert job.closed == [101]
    job.of.close()
    assert sorted(job.closed) == [55, 100, 101, 102]


def test_the_order_of_the_notes_of_other_ranks_does_not_matter(monkeypatch, tmp_path):
    """Any order in which two ranks begin and a third fails gives the same end."""
    lines = ["100 0 start", "101 1 start", "6 2 gone"]
    for number, order in enumerate(itertools.permutations(lines)):
        job = Job(monkeypatch, tmp_path / f"notes {number}", 3)
        for line in order:
            job.note(line)
            job.of.overdue()
        job.now += 3
        assert job.of.overdue() and job.of.result(9) == 6, order
