"""A schedule that is built step by step: values go from rank to rank."""


def add(before, value, out):
    out[...] = value + before.sum()


def ring(b, n=12, amount=1.0, task=add):
    """Each rank adds the last value of the rank before it to its own."""
    A = b.array("A", n, storage=slice(None))
    lane, mine = b.lane(), A.owned
    before = A[mine.lo[0] - 1 : mine.lo[0]] if b.rank else A[0:0]
    if b.rank:
        m = b.receive(b.rank - 1, before)
        lane.post_recv(m)
        lane.wait(m)
    lane.task(task, [before, mine], [mine], amount, number=b.rank)
    if b.rank + 1 < b.ranks:
        m = b.send(b.rank + 1, A[mine.hi[0] - 1 : mine.hi[0]])
        lane.post_send(m)
        lane.wait(m)
