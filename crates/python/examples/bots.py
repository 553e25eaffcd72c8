"""A load test: bots that play against a server which sends back what it gets, as an echo server does.

    bots.py [ADDRESS] [--bots 100] [--rate 20] [--seconds 10] [--secret HEX]

Without an address it also runs such a server, in the same process. Prints each second how many messages came back, and at the end the round
trips as a player feels them, from the call of `send` to the answer, and the loss. Make it yours: the channels of your game in `SESSION`, and
what a player does in `Bot.play`.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import random
import struct
import sys
import time

import whitewater as ww

ORDERS = ww.Channel.ordered(0)
INPUTS = ww.Channel.unreliable(1)
SESSION = ww.SessionConfig(7, [ORDERS, INPUTS])
STAMP = struct.Struct("<Id")


class Bot:
    """One player: sends an order with the time in it, and inputs that may be lost."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.round_trips: list[float] = []
        self.sent = self.inputs = self.inputs_back = 0
        self.packets_judged = self.packets_lost = 0

    async def run(self, address: str | ww.Address, config: ww.ClientConfig, rate: float, end: float) -> None:
        async with await ww.connect(address, config) as client:
            reading = [asyncio.create_task(self.read_orders(client)), asyncio.create_task(self.read_inputs(client))]
            await self.play(client, rate, end)
            await client.delivered(ORDERS)
            with contextlib.suppress(asyncio.TimeoutError):  # what is still on its way back
                await asyncio.wait_for(asyncio.wait(reading), 0.5)
            for task in reading:
                task.cancel()
            stats = client.stats()
            self.packets_judged, self.packets_lost = stats.packets_judged, stats.packets_lost

    async def play(self, client: ww.Client, rate: float, end: float) -> None:
        chance = random.Random(self.number)
        await asyncio.sleep(chance.random() / rate)  # not all at once
        while time.perf_counter() < end:
            await client.send(STAMP.pack(self.sent, time.perf_counter()), ORDERS)
            self.sent += 1
            self.inputs += client.try_send(bytes(12), INPUTS)
            await asyncio.sleep(1 / rate)

    async def read_orders(self, client: ww.Client) -> None:
        async for message in client.messages(ORDERS):
            number, sent = STAMP.unpack(message)
            assert number == len(self.round_trips), "each comes back once and in order"
            self.round_trips.append(time.perf_counter() - sent)

    async def read_inputs(self, client: ww.Client) -> None:
        async for _ in client.messages(INPUTS):
            self.inputs_back += 1


async def echo(session: ww.Session) -> None:
    """What the server does for each player."""

    async def send_back(channel: ww.Channel) -> None:
        async for message in session.messages(channel):
            try:
                await session.send(message, channel)
            except ww.Closed:
                return

    await asyncio.gather(send_back(ORDERS), send_back(INPUTS))


async def host(server: ww.Server) -> None:
    tasks = set()
    async for session in server:
        task = asyncio.create_task(echo(session))
        tasks.add(task)
        task.add_done_callback(tasks.discard)


def server_config(secret: bytes, bots: int) -> ww.ServerConfig:
    """All bots come from one address, at once."""
    most = min(max(bots, 16), 16_384)
    return ww.ServerConfig.secret(
        SESSION,
        secret,
        max_sessions=most,
        memory=max(most << 18, 1 << 28),
        sessions_per_address=most,
        half_open=most,
        half_open_per_address=most,
        accepts_per_second=1_000_000,
        accept_burst=1_000_000,
    )


async def report(bots: list[Bot]) -> None:
    before = 0
    while True:
        await asyncio.sleep(1)
        now = sum(len(bot.round_trips) for bot in bots)
        print(f"{now - before:>8} messages/s back")
        before = now


def share(values: list[float], percent: float) -> float:
    return sorted(values)[min(int(len(values) * percent / 100), len(values) - 1)] if values else float("nan")


async def run(args: argparse.Namespace) -> int:
    secret = bytes.fromhex(args.secret)
    address: str | ww.Address = args.address
    async with contextlib.AsyncExitStack() as stack:
        if not address:
            server = await stack.enter_async_context(ww.serve("127.0.0.1:0", server_config(secret, args.bots)))
            hosting = asyncio.create_task(host(server))
            stack.callback(hosting.cancel)
            address = server.local_address
        bots = [Bot(number) for number in range(args.bots)]
        config = ww.ClientConfig.secret(SESSION, secret)
        reporting = asyncio.create_task(report(bots))
        end = time.perf_counter() + args.seconds
        results = await asyncio.gather(*(bot.run(address, config, args.rate, end) for bot in bots), return_exceptions=True)
        reporting.cancel()
    failed = [result for result in results if isinstance(result, BaseException)]
    for error in failed[:5]:
        print(f"a bot failed: {error!r}", file=sys.stderr)
    trips = [trip for bot in bots for trip in bot.round_trips]
    sent = sum(bot.sent for bot in bots)
    judged, lost = sum(bot.packets_judged for bot in bots), sum(bot.packets_lost for bot in bots)
    inputs, inputs_back = sum(bot.inputs for bot in bots), sum(bot.inputs_back for bot in bots)
    print(f"bots       {args.bots}, of which {len(failed)} failed")
    print(f"messages   {sent} sent, {len(trips)} back, {len(trips) / args.seconds:.0f}/s")
    print(f"round trip p50 {1000 * share(trips, 50):.1f} ms, p99 {1000 * share(trips, 99):.1f} ms")
    print(f"loss       {lost} of {judged} packets, {inputs - inputs_back} of {inputs} inputs there and back")
    return 0 if not failed and len(trips) == sent > 0 else 1


def main() -> int:
    parser = argparse.ArgumentParser(description="Bots that play against an echo server.")
    parser.add_argument("address", nargs="?", default="", help="host:port of the server; without it, one runs in this process")
    parser.add_argument("--bots", type=int, default=100)
    parser.add_argument("--rate", type=float, default=20.0, help="messages a second of each bot")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--secret", default="07" * 32, help="64 hexadecimal digits that the server knows as well")
    return asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    sys.exit(main())
