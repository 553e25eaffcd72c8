"""Finds out what a NAT does.

  probe.py answer ADDRESS ADDRESS   answers each datagram with the port that it came from; from each address, and once from a port of the second one
                                    that nobody has sent to
  probe.py ask PORT ADDRESS..       sends to ports of these addresses from one socket, and prints the ports from which that arrived, one for each
                                    destination, and whether a datagram of a stranger came
"""

import select
import socket
import sys
import time

PORTS = [5001, 5002]


def opened(address):
    it = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    it.bind(address)
    return it


def answer(addresses):
    asked = [opened((address, port)) for address in addresses for port in PORTS]
    stranger = opened((addresses[-1], 0))
    print("ready", flush=True)
    while True:
        for it in select.select(asked, [], [])[0]:
            _, asker = it.recvfrom(100)
            stranger.sendto(b"stranger", asker)
            it.sendto(str(asker[1]).encode(), asker)


def ask(port, addresses):
    it = opened(("0.0.0.0", port))
    it.settimeout(0.1)
    targets = [(address, port) for address in addresses for port in PORTS]
    seen, heard_stranger, quiet_at = {}, False, time.monotonic() + 60
    while time.monotonic() < quiet_at:
        for target in targets:
            if target not in seen:
                it.sendto(b"?", target)
        try:
            text, source = it.recvfrom(100)
        except TimeoutError:
            continue
        if text == b"stranger":
            heard_stranger = True
        else:
            seen[source] = text.decode()
        if len(seen) == len(targets):
            quiet_at = min(quiet_at, time.monotonic() + 0.3)  # the stranger's answers left before
    print(*[seen[target] for target in targets], "heard" if heard_stranger else "not")


if sys.argv[1] == "answer":
    answer(sys.argv[2:])
else:
    ask(int(sys.argv[2]), sys.argv[3:])
