"""Reads consecutive fields. Refuses bytes that are missing, left over or not allowed."""


class Refused(Exception):
    """Bytes that no implementation may accept. The argument is the name of the reason if the document has one."""


class Reader:
    def __init__(self, data: bytes, short: str = "Truncated"):
        self.data = bytes(data)
        self.short = short

    def take(self, count: int) -> bytes:
        if count > len(self.data):
            raise Refused(self.short)
        taken, self.data = self.data[:count], self.data[count:]
        return taken

    def uint(self, count: int) -> int:
        return int.from_bytes(self.take(count), "little")

    def rest(self) -> bytes:
        return self.take(len(self.data))

    def zeros(self, count: int) -> None:
        if any(self.take(count)):
            raise Refused("reserved bytes that are not 0")

    def end(self) -> None:
        if self.data:
            raise Refused("bytes left over")


def require(condition: bool, reason: str) -> None:
    if not condition:
        raise Refused(reason)


def le(value: int, count: int) -> bytes:
    return value.to_bytes(count, "little")
