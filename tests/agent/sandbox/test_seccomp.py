"""Filter of system calls, interpreted for each architecture, and in a real sandbox."""

import errno
import platform
import struct

import pytest

from agent.sandbox import seccomp
from tests.agent.job_folder import Job

ALLOWED, KILLED = 0x7FFF0000, 0x80000000
NUMBERS = (
    {101, 248, 249, 250, 298, 310, 311, 319, 321, 323, 425, 426, 427, 447},
    {117, 217, 218, 219, 241, 270, 271, 279, 280, 282, 425, 426, 427, 447},
)
"""Calls in Linux's `syscall_64.tbl` and `asm-generic/unistd.h` from ptrace to memfd_secret, in their order."""
CALLS = """
import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
for name, number, argument in NUMBERS:
    result = libc.syscall(number, argument, 0, 0, 0, 0, 0)
    print(name, "worked" if result >= 0 else errno.errorcode[ctypes.get_errno()])
"""


def verdict(architecture: int, number: int, argument: int = 0) -> int:
    """Interpret the program for a call: https://docs.kernel.org/networking/filter.html."""
    program, position, loaded = list(struct.iter_unpack("=HBBI", seccomp.program())), 0, 0
    while True:
        code, if_true, if_false, value = program[position]
        position += 1
        if code == 0x06:
            return int(value)
        if code == 0x20:
            loaded = {0: number, 4: architecture, 16: argument}[value]
        else:
            assert code in (0x15, 0x35)
            holds = loaded == value if code == 0x15 else loaded >= value
            position += if_true if holds else if_false


@pytest.mark.parametrize(("machine", "denied"), [*enumerate(NUMBERS)], ids=["x86_64", "aarch64"])
def test_only_the_listed_calls_are_refused(machine: int, denied: set[int]) -> None:
    architecture = seccomp.ARCHITECTURES[machine]
    missing = 0x50000 | errno.ENOSYS
    assert {number for number in range(500) if verdict(architecture, number) == missing} == denied
    assert {verdict(architecture, number) for number in set(range(500)) - denied} == {ALLOWED}
    prctl = seccomp.PRCTL[machine]
    assert {argument for argument in range(70) if verdict(architecture, prctl, argument) != ALLOWED} == {4}


def test_calls_of_other_architectures_are_refused() -> None:
    x86_64, i386 = seccomp.ARCHITECTURES[0], 0x40000003
    assert {verdict(x86_64, 0x40000000 + number) for number in range(600)} == {0x50000 | errno.ENOSYS}
    assert {verdict(i386, number) for number in range(600)} == {KILLED}


@pytest.mark.long
@pytest.mark.skipif(platform.machine() not in ("x86_64", "aarch64"), reason="the filter has no other architecture")
def test_agent_cannot_use_the_refused_calls(job: Job) -> None:
    """Call each with arguments that the kernel itself would not refuse with ENOSYS."""
    machine = ("x86_64", "aarch64").index(platform.machine())
    calls = [(name, numbers[machine], 0) for name, numbers in seccomp.DENIED.items()]
    calls += [("dumpable", seccomp.PRCTL[machine], 4), ("uid", {"x86_64": 102, "aarch64": 174}[platform.machine()], 0)]
    printed = dict(line.split() for line in job.python(CALLS.replace("NUMBERS", repr(calls))).splitlines())
    assert printed.pop("dumpable") == "EPERM"
    assert printed.pop("uid") == "worked"
    assert printed == dict.fromkeys(seccomp.DENIED, "ENOSYS")
    assert "worked" in job.python(CALLS.replace("NUMBERS", repr(calls)), sandboxed=False)
