"""What runs first in the box: it starts the agent, and brings its model requests to the gateway's socket.

    python -I inside.py PROMPT PORT SOCKET -- COMMAND...

The agent reads the file PROMPT as its standard input and reaches its model server at 127.0.0.1:PORT: what connects
there is piped to SOCKET (with PORT 0 nothing listens). The status is the agent's; 127 where it cannot be started.
Standard library alone: nothing else is at hand in there.
"""

import asyncio
import contextlib
import socket
import subprocess
import sys
from pathlib import Path

PIECE_BYTES = 64 * 1024
OUT_OF_MEMORY_FIRST = "1000"
CANNOT_START = 127


def main(arguments: list[str]) -> int:
    prompt, port, gateway, separator, *command = arguments
    assert separator == "--"
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(OUT_OF_MEMORY_FIRST)
    return asyncio.run(_run(Path(prompt), int(port), gateway, command))


async def _run(prompt: Path, port: int, gateway: str, command: list[str]) -> int:
    """Listen before the agent starts: one that finds nobody there may wait for long until it tries again."""
    server = await asyncio.start_server(lambda *ends: _pipe(gateway, *ends), "127.0.0.1", port) if port else None
    try:
        with prompt.open("rb") as stdin:
            process = subprocess.Popen(command, stdin=stdin)  # noqa: ASYNC220, S603  # the agent; no shell reads it
    except OSError as problem:
        sys.stderr.write(f"{command[0]} cannot be started: {problem.strerror}\n")
        return CANNOT_START
    loop = asyncio.get_running_loop()
    status = await loop.run_in_executor(None, process.wait)
    # Connections that are open now are cancelled. asyncio in Python 3.11 would print a traceback into the job's log for
    # each of them: https://github.com/python/cpython/issues/113538
    loop.set_exception_handler(lambda *_: None)
    if server is not None:
        server.close()
    return status if status >= 0 else 128 - status


async def _pipe(gateway: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        from_gateway, to_gateway = await asyncio.open_unix_connection(gateway)
        await asyncio.gather(_copy(reader, to_gateway), _copy(from_gateway, writer))
    writer.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One direction to its end, which is passed on, so that the other end learns of it."""
    try:
        while piece := await reader.read(PIECE_BYTES):
            writer.write(piece)
            await writer.drain()
    finally:
        with contextlib.suppress(OSError, RuntimeError):
            if writer.can_write_eof() and not writer.is_closing():
                writer.write_eof()


def free_port() -> int:
    """A port of this machine that nobody has now, for an agent without a box."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
