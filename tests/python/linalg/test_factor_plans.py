"""Plans of factors: what is compared, memory that is capped, and the same refusal on every rank."""

import numpy as np
import pytest
import tilewave as tw
from local_ranks import on_ranks

pytestmark = pytest.mark.filterwarnings("ignore:.*more than the.*CPUs")
KINDS = ("cholesky", "lu", "qr")


def dominant(i, j):
    return np.cos(np.minimum(i, j) * 3.0 + np.maximum(i, j)) + 100.0 * (i == j)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_plans_compare_ways_depths_and_blocks(kind, ranks):
    def body(context):
        a = tw.linalg.matrix((150, 150), init=dominant, context=context)
        return getattr(tw.linalg, kind)(a, context=context).report.plan

    results, errors = on_ranks(ranks, 1, body)
    assert not any(errors), errors
    plan = results[0]
    assert all(other == plan for other in results)
    texts = [text for _, _, text in plan.compared]
    assert [time for time, _, _ in plan.compared][0] == plan.predicted_s > 0
    assert len(set(texts)) == len(texts) and texts[0] in plan.explain() and texts[0] == str(plan).split(";")[0]
    if ranks > 1:
        assert {text.split()[0].strip(",") for text in texts} == {"broadcast", "wavefront"}
        assert {text.split(", ")[-1] for text in texts} == {"1 ahead", "2 ahead", "3 ahead"}
    assert any("least_rounds" in text for text in texts) == (ranks > 2)


@pytest.mark.parametrize("shape", [(1, 30), (1, 1), (3, 40), (30, 1), (0, 5), (5, 0)])
def test_plans_of_flat_matrices(shape):
    """Panels of fewer rows than columns are timed and played, too."""

    def body(context):
        a = tw.linalg.matrix(shape, init=dominant, context=context)
        return tw.linalg.qr(a, context=context).report.plan

    results, errors = on_ranks(2, 1, body)
    assert not any(errors), errors
    assert results[0] == results[1] and all(time >= 0 for time, _, _ in results[0].compared)


@pytest.mark.parametrize("kind", KINDS)
def test_memory_is_capped_before_it_is_allocated(kind):
    """The least that is named is enough, one byte less is not; what a run uses is what the plan says."""

    def body(context):
        a = tw.linalg.matrix((90, 90), init=dominant, context=context)
        call = getattr(tw.linalg, kind)
        with pytest.raises(tw.ConfigError, match=r"memory: given 0 bytes; allowed: at least \d+, what") as refused:
            call(a, memory=0, context=context)
        least = int(str(refused.value).split("at least ")[1].split(",")[0])
        with pytest.raises(tw.ConfigError, match=f"{kind}: memory: given {least - 1} bytes"):
            call(a, memory=least - 1, context=context)
        report = call(a, memory=least, context=context).report
        free = call(a, context=context).report
        assert report.memory_bytes == report.plan.memory_bytes == least <= free.memory_bytes == free.plan.memory_bytes
        return str(refused.value)

    results, errors = on_ranks(3, 1, body)
    assert not any(errors), errors
    assert len(set(results)) == 1


@pytest.mark.parametrize(
    "keywords, text",
    [
        ({"algorithm": "star"}, "lu: algorithm: given 'star'; allowed: auto, broadcast, wavefront"),
        ({"algorithm": None}, "lu: algorithm: given 'None'; allowed: auto, broadcast, wavefront"),
        ({"algorithm": "wavefront", "tree": "least_rounds"}, "lu: tree 'least_rounds' was given with algorithm"),
        ({"memory": -1}, "lu: memory: given -1; allowed: an integer >= 0"),
    ],
)
def test_bad_choices_on_one_rank_are_errors_on_all(keywords, text):
    def body(context):
        a = tw.linalg.matrix((9, 9), init=dominant, context=context)
        tw.linalg.lu(a, context=context, **(keywords if context.rank == 1 else {}))

    _, errors = on_ranks(2, 1, body)
    assert all(isinstance(error, tw.ConfigError) and text in str(error) for error in errors), errors
