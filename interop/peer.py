"""The package kcp at the other end of tests/python_kcp.rs: an echo server, or a client that checks what comes back.

peer.py server CONV           prints "listening on PORT"
peer.py client CONV PORT N    sends N messages; ends with 0 when they have come back as they were
"""

import asyncio
import os
import socket
import sys
import threading

import kcp

INTERVAL_MS = 10
WINDOWS = {"send_window_size": 48, "receive_window_size": 256}
PATIENCE = 30.0  # seconds


def main() -> None:
    role, conv, *rest = sys.argv[1:]
    conv = int(conv)
    conv -= (conv >> 31) << 32  # the package wants it signed
    watch = threading.Timer(2 * PATIENCE, os._exit, [3])  # whoever started this is gone
    watch.daemon = True
    watch.start()
    if role == "server":
        serve(conv)
    else:
        ask(conv, int(rest[0]), messages(int(rest[1])))


def messages(count: int) -> list[bytes]:
    """As src/messages.rs makes them."""
    lengths = [60_000 if number % 100 == 50 else 1 + number * 397 % 4000 for number in range(count)]
    return [
        bytes((number * 31 + at * 7 + at // 251) % 256 for at in range(length)) for number, length in enumerate(lengths)
    ]


def serve(conv: int) -> None:
    asyncio.set_event_loop(asyncio.new_event_loop())
    server = kcp.KCPServerAsync(
        "127.0.0.1", 0, conv, delay=INTERVAL_MS, no_delay=True, no_congestion_control=True, **WINDOWS
    )

    @server.on_start
    async def on_start() -> None:
        print("listening on", server._transport.get_extra_info("sockname")[1], flush=True)

    @server.on_data
    async def on_data(connection: kcp.Connection, message: bytes) -> None:
        connection.enqueue(bytes(message))

    server.start()


def ask(conv: int, port: int, sent: list[bytes]) -> None:
    """By the control block alone: two threads of KCPClientSync are in it at a time, and corrupt it now and then."""
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.connect(("127.0.0.1", port))
    udp.settimeout(INTERVAL_MS / 2 / 1000)
    control = kcp.KCP(
        conv, no_delay=True, update_interval=INTERVAL_MS, resend_count=2, no_congestion_control=True, **WINDOWS
    )
    control.include_outbound_handler(lambda _, datagram: udp.send(datagram))
    for message in sent:
        control.enqueue(message)
    back = []
    while len(back) < len(sent):
        control.update()
        try:
            control.receive(udp.recv(2048))
        except (TimeoutError, ConnectionRefusedError):
            pass
        back += [bytes(message) for message in control.get_all_received()]
    sys.exit(0 if back == sent else "something else came back")


main()
