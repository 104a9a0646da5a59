"""Network cards of this host, and the settings by which UCX, below MPICH, spreads messages over several."""

import contextlib
import fcntl
import os
import socket
import struct
from pathlib import Path

DEVICES = Path("/sys/class/net")
REMOTE_MEMORY = Path("/sys/class/infiniband")  # cards with drivers of their own, which UCX prefers
KINDS = ("", "bond")  # DEVTYPE of a card, and of several that are one to programs; bridges, VLANs, tunnels have others
ETHERNET = "1"
SIOCGIFADDR = 0x8915
MOST = 4  # cards that one message is spread over
LEAST_PART = 1 / 4  # of the fastest card's speed; UCX leaves slower ones out (UCX_MULTI_LANE_MAX_RATIO)
#: What says which cards UCX takes, and how; a launch whose user has set one of them keeps all of them as they are.
GIVEN = (
    "UCX_NET_DEVICES",
    "UCX_TLS",
    "UCX_MAX_EAGER_RAILS",
    "UCX_MAX_RNDV_RAILS",
    "UCX_TCP_RX_SEG_SIZE",
    "UCX_MULTI_LANE_MAX_RATIO",
)


def cards():
    """Cards of this host that have an IPv4 address: {name: Mbit/s, 0 where the system does not say}."""
    found = {}
    with contextlib.suppress(OSError):
        for device in sorted(DEVICES.iterdir()):
            with contextlib.suppress(OSError):
                if _is_card(device):
                    found[device.name] = _speed(device)
    return found


def _is_card(device):
    facts = dict(line.split("=", 1) for line in (device / "uevent").read_text().split())
    up = (device / "operstate").read_text().strip() in ("up", "unknown")
    ethernet = (device / "type").read_text().strip() == ETHERNET
    if not (up and ethernet and facts.get("DEVTYPE", "") in KINDS) or (device / "master").exists():
        return False
    _address(device.name)  # OSError without
    return True


def _address(name):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        return fcntl.ioctl(any_socket, SIOCGIFADDR, struct.pack("256s", name.encode()))


def _speed(device):
    try:
        return max(int((device / "speed").read_text()), 0)
    except (OSError, ValueError):
        return 0


def rails(found, env=os.environ):
    """Variables by which messages are spread over the cards `found`; none where there is one card, or where the user,
    in `env`, has said which cards are to be taken.

    UCX spreads messages above 256 KB over two cards by itself; with these, from 16 KB on, over all cards.
    """
    fastest = max(found.values(), default=0)
    equal = [name for name, speed in found.items() if not speed or speed >= LEAST_PART * fastest]
    if len(equal) < 2 or any(name in env for name in GIVEN):
        return {}
    with contextlib.suppress(OSError):
        if any(REMOTE_MEMORY.iterdir()):
            return {}
    count = str(min(len(equal), MOST))
    # A message of one segment takes one card. All ranks must have the same size: a receiver has buffers as large.
    return {"UCX_MAX_EAGER_RAILS": count, "UCX_MAX_RNDV_RAILS": count, "UCX_TCP_RX_SEG_SIZE": "16k"}
