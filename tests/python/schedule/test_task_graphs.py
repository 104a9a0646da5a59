"""Random task graphs on ranks that are threads equal their sequential lists, and the checker names each mutant.

A failure prints its seed: `Graph(seed, ranks)`.
"""

import numpy as np
import pytest
from local_ranks import results_of
from task_graphs import Graph, run_on, schedule_of, wrong

import tilewave as tw


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 6])
def test_random_graphs_are_proved_and_run(ranks):
    run_seeds(ranks, range(40))


def run_seeds(ranks, seeds):
    graphs = [Graph(seed, ranks) for seed in seeds]
    schedules = [schedule_of(graph) for graph in graphs]
    for graph, schedule in zip(graphs, schedules, strict=True):
        assert tw.check(schedule) is None, f"{tw.check(schedule)}; {graph}\n{schedule.text()}"
        assert tw.predict(schedule).time_s > 0 or not sum(schedule.steps.values())

    def body(context):
        return [run_on(context, graph, s) for graph, s in zip(graphs, schedules, strict=True)]

    results = results_of(ranks, 1, body, timeout_s=300)
    for rank, mine in enumerate(results):
        for graph, arrays in zip(graphs, mine, strict=True):
            assert wrong(graph, rank, arrays) is None, f"{wrong(graph, rank, arrays)}; {graph}"


def test_the_part_of_one_rank_is_that_of_all():
    for seed in range(5):
        graph = Graph(seed, 3)
        whole = schedule_of(graph)
        for rank in range(3):
            part = schedule_of(graph, rank)
            assert part.rank == rank
            names = dict(enumerate(part.functions))
            assert part.steps[rank] == whole.steps[rank]
            tasks = [work.task for work in part._cores[rank].works]
            same = [work.task for work in whole._cores[rank].works]
            assert [names[t.operation] for t in tasks] == [whole.functions[t.operation] for t in same]


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_parts_run(ranks):
    """Where no rank makes the schedules of all: functions differ between the parts, and all runs."""
    graphs = [Graph(seed, ranks) for seed in range(50, 58)]
    parts = [[schedule_of(graph, rank) for graph in graphs] for rank in range(ranks)]

    def body(context):
        return [run_on(context, g, s) for g, s in zip(graphs, parts[context.rank], strict=True)]

    results = results_of(ranks, 1, body)
    for rank, mine in enumerate(results):
        for graph, arrays in zip(graphs, mine, strict=True):
            assert wrong(graph, rank, arrays) is None, f"{wrong(graph, rank, arrays)}; {graph}"


def test_files_bring_back_the_same(tmp_path):
    for seed in range(10):
        schedule = schedule_of(Graph(seed, 1 + seed % 4))
        schedule.save(tmp_path / "s.json")
        again = tw.Schedule.load(tmp_path / "s.json")
        assert again == schedule and again.text() == schedule.text()
        assert again.memory_bytes == schedule.memory_bytes and again.messages == schedule.messages
        assert again != schedule_of(Graph(seed + 100, 1 + seed % 4))


def test_numpy_alone_defines_a_graph():
    """The reference itself: by hand."""
    graph = Graph(0, 1, tasks=0)
    assert all(np.array_equal(a, b) for a, b in zip(graph.initial(), graph.sequential(), strict=True))
