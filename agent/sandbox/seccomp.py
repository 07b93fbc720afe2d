"""Filter of system calls (seccomp) in the sandbox, as the BPF program that `bwrap --seccomp` reads.

Parts of the kernel that coding agents do not need, and that had many of the errors by which programs left a sandbox, do
not exist inside: the calls fail with ENOSYS, as on an older kernel. https://docs.kernel.org/userspace-api/seccomp_filter.html
"""

import errno
import struct

DENIED = {
    # name: number on x86_64 and on aarch64
    "bpf": (321, 280),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "userfaultfd": (323, 282),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "perf_event_open": (298, 241),
    "memfd_create": (319, 279),  # files in memory that belong to no process and no folder
    "memfd_secret": (447, 447),
}
PRCTL, SET_DUMPABLE = (157, 167), 4
"""With `prctl(PR_SET_DUMPABLE, 0)` a process could hide its open files from the watchdog."""
ARCHITECTURES = (0xC000003E, 0xC00000B7)
"""AUDIT_ARCH_X86_64 and AUDIT_ARCH_AARCH64: https://github.com/torvalds/linux/blob/master/include/uapi/linux/audit.h"""
X32_BIT = 0x40000000
"""First number of the x32 calls, which x86_64 kernels may accept beside their own."""
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06  # BPF_LD|W|ABS, BPF_JMP|JEQ|K, BPF_JMP|JGE|K, BPF_RET|K
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16  # offsets in struct seccomp_data
_ALLOW, _KILL, _REFUSE = 0x7FFF0000, 0x80000000, 0x00050000


def program() -> bytes:
    """Return the filter. A call of another architecture, such as i386, kills the process."""
    blocks = [_block(machine) for machine in range(len(ARCHITECTURES))]
    first = _op(_LOAD, _ARCHITECTURE)
    checks = [_op(_EQUAL, ARCHITECTURES[n], 0, len(block)) + b"".join(block) for n, block in enumerate(blocks)]
    return first + b"".join(checks) + _op(_RETURN, _KILL)


def _block(machine: int) -> list[bytes]:
    """Return the instructions for one architecture; each path through them returns."""
    numbers = [each[machine] for each in DENIED.values()]
    jumps = [_op(_EQUAL, number, len(numbers) - n + 4, 0) for n, number in enumerate(numbers)]
    return [
        _op(_LOAD, _NUMBER),
        _op(_AT_LEAST, X32_BIT, len(jumps) + 5, 0),
        *jumps,
        _op(_EQUAL, PRCTL[machine], 0, 2),
        _op(_LOAD, _FIRST_ARGUMENT),
        _op(_EQUAL, SET_DUMPABLE, 1, 0),
        _op(_RETURN, _ALLOW),
        _op(_RETURN, _REFUSE | errno.EPERM),
        _op(_RETURN, _REFUSE | errno.ENOSYS),
    ]


def _op(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    """Return a struct sock_filter. A jump skips the next `if_true` or `if_false` instructions."""
    return struct.pack("=HBBI", code, if_true, if_false, value)
