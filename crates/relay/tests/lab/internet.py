"""An internet: takes IPv4 packets from TUN devices, and passes each on 20 ms later to the device behind which its destination is.

  internet.py NAME=ADDRESS,.. NAME=ADDRESS..

Makes a device of each name, and prints a line when all are there. It is a program because not every Linux has netem, which delays packets.
"""

import fcntl
import heapq
import os
import select
import socket
import struct
import sys
import time

DELAY = 0.02
TUNSETIFF = 0x400454CA
IFF_TUN, IFF_NO_PI = 0x0001, 0x1000


def main(links):
    devices, routes = [], {}
    for link in links:
        name, addresses = link.split("=")
        device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
        devices.append(device)
        routes.update((socket.inet_aton(address), device) for address in addresses.split(","))
    print("ready", flush=True)

    under_way, count = [], 0
    while True:
        wait = max(0, under_way[0][0] - time.monotonic()) if under_way else None
        for device in select.select(devices, [], [], wait)[0]:
            try:
                packet = os.read(device, 65536)
            except OSError:  # it is not up yet
                continue
            if packet[0] >> 4 == 4 and packet[16:20] in routes:
                count += 1
                heapq.heappush(under_way, (time.monotonic() + DELAY, count, routes[packet[16:20]], packet))
        while under_way and under_way[0][0] <= time.monotonic():
            _, _, device, packet = heapq.heappop(under_way)
            try:
                os.write(device, packet)
            except OSError:  # as above, or it is full
                pass


main(sys.argv[1:])
