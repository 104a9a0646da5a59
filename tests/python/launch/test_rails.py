"""Cards of a host as the system lists them, and what a launch sets for them; nothing is started."""

import pytest

from tilewave.launch import cards, launch

TWO = {"UCX_MAX_EAGER_RAILS": "2", "UCX_MAX_RNDV_RAILS": "2", "UCX_TCP_RX_SEG_SIZE": "16k"}


@pytest.fixture
def devices(tmp_path, monkeypatch):
    """Add a device to those of this host, which has none otherwise."""
    addresses = set()

    def address(name):
        if name not in addresses:
            raise OSError(99, "Cannot assign requested address")

    def add(name, speed="1000", kind=None, state="up", type_="1", master=False, address=True):
        folder = tmp_path / "net" / name
        folder.mkdir(parents=True)
        (folder / "uevent").write_text((f"DEVTYPE={kind}\n" if kind else "") + f"INTERFACE={name}\nIFINDEX=2\n")
        for file, text in (("operstate", state), ("type", type_), ("speed", speed)):
            (folder / file).write_text(text + "\n")
        if master:
            (folder / "master").mkdir()
        if address:
            addresses.add(name)

    monkeypatch.setattr(cards, "DEVICES", tmp_path / "net")
    monkeypatch.setattr(cards, "REMOTE_MEMORY", tmp_path / "infiniband")
    monkeypatch.setattr(cards, "_address", address)
    for name in cards.GIVEN:
        monkeypatch.delenv(name, raising=False)
    return add


def test_a_system_without_such_a_list_has_no_cards(devices):
    assert cards.cards() == {} and cards.rails({}) == {}


def test_cards_are_devices_that_reach_other_hosts(devices):
    devices("eth1", "25000")
    devices("eth0", "25000")
    devices("bond0", "-1", kind="bond")
    devices("docker0", kind="bridge")
    devices("eth0.5", kind="vlan")
    devices("eth2", state="down")
    devices("eth3", master=True)
    devices("eth4", address=False)
    devices("tun0", type_="65534")
    devices("lo", type_="772", state="unknown")
    assert cards.cards() == {"bond0": 0, "eth0": 25000, "eth1": 25000}


@pytest.mark.parametrize(
    "found, count",
    [
        ({"a": 1000}, 0),
        ({"a": 1000, "b": 1000}, 2),
        ({"a": 1000, "b": 4000}, 2),
        ({"a": 1000, "b": 10000}, 0),
        ({"a": 1000, "b": 10000, "c": 10000}, 2),
        ({"a": 0, "b": 0, "c": 0}, 3),
        (dict.fromkeys("abcdef", 100), 4),
    ],
)
def test_cards_that_are_about_equally_fast_share_messages(devices, found, count):
    settings = cards.rails(found, {})
    assert bool(settings) == (count > 0)
    if count:
        assert settings == {**TWO, "UCX_MAX_EAGER_RAILS": str(count), "UCX_MAX_RNDV_RAILS": str(count)}


@pytest.mark.parametrize("name", cards.GIVEN)
def test_settings_of_the_user_stay(devices, name):
    assert cards.rails({"a": 0, "b": 0}, {name: "x"}) == {}


def test_cards_with_drivers_of_their_own_are_left_to_ucx(devices, tmp_path):
    (tmp_path / "infiniband" / "mlx5_0").mkdir(parents=True)
    assert cards.rails({"a": 0, "b": 0}, {}) == {}


@pytest.mark.parametrize("hosts, given, settings", [("a,b", {}, TWO), (None, {}, {}), ("a,b", {"UCX_TLS": "tcp"}, {})])
def test_launches_on_several_hosts_have_the_settings(devices, monkeypatch, tmp_path, hosts, given, settings):
    for name in ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_URI"):
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    devices("eth0")
    devices("eth1")
    (script := tmp_path / "script.py").write_text("")
    command = launch.command_of(script, ranks=2, hosts=hosts)
    assert {name: value for name, value in command.env.items() if name.startswith("UCX_")} == {**given, **settings}
    assert all(f"{name}={value}" in command.shown() for name, value in settings.items())
