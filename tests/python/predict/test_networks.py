"""Messages that share the links of a network, against a plain simulation of flows with max-min fair shares."""

import random

import pytest

import tilewave as tw
from tilewave import _core
from small_schedules import COMPUTE, RECEIVE, SECOND, SEND, WAIT, ends, machine, predict, schedule

LATENCY = 2.0


def random_network(rng):
    speed = lambda: rng.choice((0.25, 0.5, 1.0))  # seconds a byte
    kind = rng.choice(("switch", "fat tree", "torus", "dragonfly"))
    more = {"card_byte_s": rng.choice((0, 0.25, 1.0)), "hop_s": rng.choice((0.0, 0.125))}
    if kind == "switch":
        return tw.Network(kind, extents=[8], link_byte_s=[0.125] * rng.randint(0, 1), **more)
    if kind == "fat tree":
        return tw.Network(kind, extents=[2, 2, 2], up=[rng.randint(1, 2), 1], link_byte_s=[speed(), speed()], **more)
    if kind == "torus":
        extents = rng.choice(([8], [4, 2], [2, 2, 2], [3, 3]))
        return tw.Network(kind, extents=extents, link_byte_s=[speed()], one_way=rng.random() < 0.5, **more)
    return tw.Network(kind, extents=[4, 2, 1], link_byte_s=[speed(), speed()], **more)


def rates(flows, capacity):
    """Max-min fair: all flows grow evenly until a link is full, then the others, and so on."""
    found, growing, left = dict.fromkeys(flows, 0.0), set(flows), dict(capacity)
    while growing:
        on = {link: sum(link in flows[f] for f in growing) for link in left}
        more = min(left[link] / n for link, n in on.items() if n)
        for f in growing:
            found[f] += more
        left = {link: rest - more * on[link] for link, rest in left.items()}
        growing = {f for f in growing if all(left[link] > 1e-9 for link in flows[f])}
    return found


def played(messages, network, stream_byte_s):
    """When each message (from, to, bytes, start) has arrived."""
    core = network._to_core()
    links, capacity = {}, {}
    for i, (source, target, *_) in enumerate(messages):
        route = [*core.route(source, target, stream_byte_s), (("alone", i), stream_byte_s)]
        links[i] = [key for key, _ in route]
        capacity.update({key: 1 / byte_s for key, byte_s in route})
    now, left, arrivals = 0.0, {}, {}
    starts = sorted((start, i) for i, (*_, start) in enumerate(messages))
    while left or starts:
        speed = rates({i: links[i] for i in left}, capacity)
        next_end = min((now + rest / speed[i] for i, rest in left.items()), default=1e300)
        then = min(next_end, starts[0][0] if starts else 1e300)
        left = {i: rest - speed[i] * (then - now) for i, rest in left.items()}
        now = then
        for i in [i for i, rest in left.items() if rest < 1e-6]:
            del left[i]
            arrivals[i] = now + LATENCY + (len(links[i]) - 3) * network.hop_s
        while starts and starts[0][0] <= now:
            i = starts.pop(0)[1]
            left[i] = messages[i][2]
    return arrivals


@pytest.mark.parametrize("seed", range(40))
def test_messages_arrive_as_max_min_fair_shares_say(seed):
    rng = random.Random(seed)
    network = random_network(rng)
    nodes = 8
    place = rng.sample(range(network.nodes), nodes)
    m = machine(place, latency_s=LATENCY, send_s=0, receive_s=0, byte_s=0.25)
    m.network = network._to_core()
    messages, at_rank = [], {r: [] for r in range(nodes)}
    for tag in range(rng.randint(1, 14)):
        source, target = rng.sample(range(nodes), 2)
        messages.append((source, target, rng.randint(1, 60), 0))
        at_rank[source].append(tag)
        at_rank[target].append(tag)
    begins, schedules = {}, []
    for r, tags in at_rank.items():
        sends = [tag for tag in tags if messages[tag][0] == r]
        waits = [i for i, tag in enumerate(tags) if messages[tag][1] == r]
        lane, now, tiles = [("post_recv", i) for i in waits], 0, []
        for tag in sends:
            tiles.append(rng.randint(1, 9))
            now += tiles[-1]
            begins[tag] = now
            lane += [("compute", len(tiles) - 1), ("post_send", tags.index(tag))]
        lanes = [lane, *([("wait", i)] for i in waits)]
        described = [(tag in sends, messages[tag][tag in sends], tag, messages[tag][2], False) for tag in tags]
        schedules.append(schedule(r, nodes, lanes, described, tiles))
    messages = [(place[a], place[b], size, begins[tag]) for tag, (a, b, size, _) in enumerate(messages)]
    expected = played(messages, network, 0.25)
    found = ends(predict(schedules, m))
    for r, tags in at_rank.items():
        for lane, tag in enumerate((tag for tag in tags if tag not in begins or messages[tag][0] != place[r]), 1):
            assert found[r, lane][0] == pytest.approx(expected[tag], rel=1e-3), (seed, str(network), tag)


def test_a_machine_may_know_more_ranks_than_there_are():
    m = machine([r % 7 for r in range(4000)])
    m.network = tw.Network("switch", extents=[7])._to_core()
    pair = [
        schedule(0, 2, [[SEND, WAIT]], [(True, 1, 7, 40, False)]),
        schedule(1, 2, [[RECEIVE, WAIT]], [(False, 0, 7, 40, False)]),
    ]
    assert _core.predict(pair, m, SECOND).time_s == pytest.approx(22)


@pytest.mark.parametrize("size, eager", [(40, 100), (40, 0)])
def test_a_message_alone_takes_as_long_as_without_a_network(size, eager):
    pair = [
        schedule(0, 2, [[SEND, WAIT]], [(True, 1, 7, size, False)]),
        schedule(1, 2, [[RECEIVE, COMPUTE, WAIT]], [(False, 0, 7, size, False)], [3]),
    ]
    m = machine([0, 1], eager_bytes=eager)
    alone = ends(predict(pair, m))
    m.network = tw.Network("switch", extents=[2])._to_core()
    assert ends(predict(pair, m)) == alone


@pytest.mark.parametrize("synchronous", [False, True])
def test_two_large_messages_share_a_card(synchronous):
    """Both are asked for at once; each then has half of rank 2's card. Half a second a byte."""
    m = machine([0, 1, 2], eager_bytes=0, send_s=0, receive_s=0)
    m.network = tw.Network("switch", extents=[3])._to_core()
    sender = [[SEND, WAIT]]
    ranks = [schedule(r, 3, sender, [(True, 2, r, 10, synchronous)]) for r in (0, 1)]
    both = [(False, 0, 0, 10, False), (False, 1, 1, 10, False)]
    ranks.append(schedule(2, 3, [[RECEIVE, ("post_recv", 1), WAIT, ("wait", 1)]], both))
    found = ends(predict(ranks, m))
    assert found[2, 0][2:] == [pytest.approx(12), pytest.approx(12)]
    assert found[0, 0][1] == found[1, 0][1] == pytest.approx(10)


@pytest.mark.parametrize("cards, last_s", [(1, 32), (2, 17), (3, 17)])
def test_ranks_of_a_host_share_its_cards(cards, last_s):
    """Two ranks send 30 bytes each to two of another host: 15 s a message on a card; latency 2 s."""
    m = machine([0, 1, 0, 1], send_s=0, receive_s=0)
    m.network = tw.Network("hosts", cards=cards)._to_core()
    ranks = []
    for r in range(4):
        sends = r % 2 == 0
        message = (sends, r + 1 if sends else r - 1, r // 2, 30, False)
        ranks.append(schedule(r, 4, [[SEND if sends else RECEIVE, WAIT]], [message]))
    found = ends(predict(ranks, m))
    assert sorted(found[r, 0][1] for r in (1, 3)) == [17, last_s]


def test_both_ways_of_a_card_and_messages_of_one_rank():
    """Two messages of a rank take one card, and two ranks' messages into one rank its card."""
    m = machine([0, 1, 0], send_s=0, receive_s=0)
    m.network = tw.Network("hosts", cards=2)._to_core()
    two = [("post_recv", 0), ("post_recv", 1), ("wait", 0), ("wait", 1)]
    ranks = [schedule(r, 3, [[SEND, WAIT]], [(True, 1, r, 30, False)]) for r in (0, 2)]
    ranks.insert(1, schedule(1, 3, [two], [(False, 0, 0, 30, False), (False, 2, 2, 30, False)]))
    assert ends(predict(ranks, m))[1, 0][3] == 32
    out = [("post_send", 0), ("post_send", 1), ("wait", 0), ("wait", 1)]
    pair = [
        schedule(0, 2, [out], [(True, 1, tag, 30, False) for tag in (0, 1)]),
        schedule(1, 2, [two], [(False, 0, tag, 30, False) for tag in (0, 1)]),
    ]
    m.host_of = [0, 1]
    assert ends(predict(pair, m))[1, 0][3] == 32


@pytest.mark.parametrize(
    "network, hosts, words",
    [
        (tw.Network("switch", extents=[2]), [0, 2], "host_of has 2, and the network has nodes 0 to 1"),
        (tw.Network("torus", extents=[2, 2], link_byte_s=[1.0]), [0, 4], "nodes 0 to 3"),
    ],
)
def test_hosts_must_be_nodes(network, hosts, words):
    m = machine(hosts)
    m.network = network._to_core()
    pair = [schedule(r, 2, [[]], []) for r in range(2)]
    with pytest.raises(tw.ConfigError, match=words):
        _core.predict(pair, m, SECOND)


def swept(grid, network, tiles=100):
    """A sweep over a process grid and its plan, on a machine with a node for each rank."""
    shape = (grid[0] * 16 + 1, tiles * 4 + 1, grid[1] * 16 + 1)
    unit = [(0, (-1, 0, 0)), (0, (0, -1, 0)), (0, (0, 0, -1))]
    problem = _core.SweepProblem(shape, ((1, 1, 1), shape), [(8, False)], unit)
    plan = _core.Plan()
    plan.grid, plan.tile, plan.factors, plan.mapping_dim = (grid[0], 1, grid[1]), (16, 4, 16), (1, 1, 1), 1
    plan.schedule = "overlapping"
    m = tw.Machine.load("fat-tree")._to_core()
    m.host_of = list(range(grid[0] * grid[1]))
    m.network = network._to_core() if network else _core.Network()
    return problem, plan, m


def test_all_ranks_of_a_plan_meet_on_the_links():
    """On a ring that goes one way, what is sent to the rank before goes round by all others."""
    rate, times = _core.KernelRate(2e-9, 2e-8, 2e-7), {}
    for name in ("none", "ring"):
        ring = tw.Network("torus", extents=[24], link_byte_s=[2e-8], one_way=True)
        problem, plan, m = swept((6, 4), ring if name == "ring" else None)
        found = _core.evaluate(problem, plan, m, rate, all_ranks=True)
        schedules = [_core.nest_schedule(problem, plan, rank) for rank in range(24)]
        assert found.time_s == _core.predict(schedules, m, rate, plan.poll_period_s, record=False).time_s
        assert found.sample == "all ranks"
        times[name] = found.time_s
    assert times["ring"] > 1.3 * times["none"]


@pytest.mark.long
def test_1024_ranks_go_on_in_a_straight_line():
    """Of 1,024 ranks of a sweep 8 and 12 of 900 tiles are simulated: as all tiles of them say, within 5 %."""
    network = tw.Network("fat tree", extents=[16, 16, 16], up=[16, 16], link_byte_s=[2e-11])
    rate = _core.KernelRate(2e-9, 2e-8, 2e-7)
    problem, plan, m = swept((32, 32), network, 900)
    found = _core.evaluate(problem, plan, m, rate, all_ranks=True)
    assert found.sample == "all ranks, 8 and 12 of 900 tiles along loop 2", found.sample
    schedules = [_core.nest_schedule(problem, plan, rank) for rank in range(1024)]
    whole = _core.predict(schedules, m, rate, plan.poll_period_s, record=False).time_s
    assert found.time_s == pytest.approx(whole, rel=0.05)
