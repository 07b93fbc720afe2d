"""Heads and fields after a body, larger than any honest client's, on one connection without a key."""

import time

from tests.attacks.target import attacked, connect, received, resident_mib, send
from tests.processes.running import PROJECT, Running

MEBIBYTES = 30
PIECE = b"x" * (1 << 20)
BEACON = b'{"url":"https://example.com/a"}'
POST = (
    b"POST /v1/analytics/%s/hits HTTP/1.1\r\nHost: x\r\nUser-Agent: Mozilla/5.0 Firefox/145.0\r\n"
    b"Content-Type: text/plain\r\n" % PROJECT.encode()
)


def status_of(answer: bytes) -> int:
    """Return the status of the last response; 0 if there is none."""
    return int(answer.rpartition(b"HTTP/1.1 ")[2][:3] or 0)


def large_field(running: Running) -> tuple[int, float]:
    """Send one field of MEBIBYTES. Return the status, and the MiB by which the memory of the service grew."""
    return _sent(running, POST + b"Cookie: ", PIECE)


def many_fields(running: Running) -> tuple[int, float]:
    """Send MEBIBYTES of short fields, and return the same."""
    return _sent(running, POST, b"a: b\r\n" * (len(PIECE) // 6))


def large_trailer(running: Running) -> tuple[int, float]:
    """Send MEBIBYTES in one field after a body, and return the same."""
    return _sent(running, POST + b"Transfer-Encoding: chunked\r\n\r\n" + _chunk() + b"0\r\nCookie: ", PIECE)


def _sent(running: Running, start: bytes, piece: bytes) -> tuple[int, float]:
    before = resident_mib(running)
    with connect(running) as connection:
        send(connection, start)
        if send(connection, piece, MEBIBYTES) == MEBIBYTES * len(piece):
            send(connection, b"\r\n\r\n")
        status = status_of(received(connection))
    return status, resident_mib(running, "VmHWM") - before


def _chunk() -> bytes:
    return b"%x\r\n%s\r\n" % (len(BEACON), BEACON)


def beacons(running: Running, count: int) -> int:
    """Send beacons, each with another client's address in a field after its body; return how many were accepted."""
    accepted = 0
    with connect(running) as connection:
        for number in range(count):
            trailer = b"X-Forwarded-For: 203.0.%d.%d\r\n" % divmod(number, 256)
            connection.sendall(POST + b"Transfer-Encoding: chunked\r\n\r\n" + _chunk() + b"0\r\n%s\r\n" % trailer)
            answer = connection.recv(1 << 16)
            while not answer.endswith(b"}"):
                answer += connection.recv(1 << 16)
            accepted += answer.startswith(b"HTTP/1.1 202 ")
    return accepted


def main() -> None:
    for attack in (large_field, many_fields, large_trailer):
        with attacked() as running:
            began = time.perf_counter()
            status, mib = attack(running)
            print(f"{attack.__name__}: status {status or 'none'}, +{mib:.0f} MiB, {time.perf_counter() - began:.1f} s")
    with attacked({"READERSHIP_TRUSTED_PROXIES": "127.0.0.1"}) as running:
        print(f"beacons with a client's address after the body: {beacons(running, 700)} of 700 accepted, limit 600")


if __name__ == "__main__":
    main()
