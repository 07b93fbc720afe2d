"""First program in the sandbox: starts the agent and forwards its model requests to the gateway.

    python -I -S init.py PROMPT PORT SOCKET -- COMMAND...

The file PROMPT is the agent's standard input. The agent's model server is 127.0.0.1:PORT: each connection is piped to
the Unix socket SOCKET. With PORT 0 the program does not listen. The exit status is the agent's, or 127 if the agent
cannot be started. The program imports only the standard library, because no other package is visible in the sandbox.
"""

import asyncio
import contextlib
import socket
import subprocess
import sys
from pathlib import Path

CHUNK_BYTES = 64 * 1024
OOM_SCORE_ADJ = "1000"
"""Highest value: if the machine runs out of memory, the kernel kills the agent first."""
CANNOT_START = 127


def main(arguments: list[str]) -> int:
    """Run the agent. Return its exit status."""
    prompt, port, gateway, separator, *command = arguments
    assert separator == "--"
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(OOM_SCORE_ADJ)
    return asyncio.run(_run(Path(prompt), int(port), gateway, command))


async def _run(prompt: Path, port: int, gateway: str, command: list[str]) -> int:
    """Listen before the agent starts: an agent whose first connection is refused may wait long before it retries."""
    server = await asyncio.start_server(lambda *ends: _pipe(gateway, *ends), "127.0.0.1", port) if port else None
    try:
        with prompt.open("rb") as stdin:
            process = subprocess.Popen(command, stdin=stdin)  # noqa: ASYNC220, S603  # the agent; no shell reads it
    except OSError as problem:
        sys.stderr.write(f"{command[0]} cannot be started: {problem.strerror}\n")
        return CANNOT_START
    loop = asyncio.get_running_loop()
    status = await loop.run_in_executor(None, process.wait)
    # Open connections are cancelled now, and asyncio of Python 3.11 prints a traceback into the job's log for each:
    # https://github.com/python/cpython/issues/113538
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
    """Copy one direction of a connection to its end, and then close that direction of the other connection."""
    try:
        while chunk := await reader.read(CHUNK_BYTES):
            writer.write(chunk)
            await writer.drain()
    finally:
        with contextlib.suppress(OSError, RuntimeError):
            if writer.can_write_eof() and not writer.is_closing():
                writer.write_eof()


def free_port() -> int:
    """Return a port of this machine that is free now, for an agent that runs without a sandbox."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
