"""The system call filter of confined programs, as a classic BPF program (seccomp(2), mode filter).

Most calls are allowed. Refused are those that leave the sandbox or that it cannot account for: new processes, sockets
(Landlock knows TCP only), signals to and memory of other processes, mounts and namespaces, memory outside the limits
(`memfd_create`, System V shared memory), `io_uring` (it does all of this behind the filter), and rare kernel entry
points. A refused call fails with EPERM, so a program that only probes for a feature goes on.
"""

from __future__ import annotations

import errno
import platform
import struct

_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

# Numbers by architecture: (x86_64, aarch64); None where the call does not exist.
_REFUSED: dict[str, tuple[int | None, int | None]] = {
    "fork": (57, None),
    "vfork": (58, None),
    "socket": (41, 198),
    "kill": (62, 129),
    "tkill": (200, 130),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_open": (434, 434),
    "pidfd_getfd": (438, 438),
    "pidfd_send_signal": (424, 424),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "kcmp": (312, 272),
    "truncate": (76, 45),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "shmat": (30, 196),
    "msgget": (68, 186),
    "semget": (64, 190),
    "mq_open": (240, 180),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "userfaultfd": (323, 282),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "fanotify_init": (300, 262),
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "move_mount": (429, 429),
    "open_tree": (428, 428),
    "fsopen": (430, 430),
    "fsmount": (432, 432),
    "mount_setattr": (442, 442),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "adjtimex": (159, 171),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "syslog": (103, 116),
    "lookup_dcookie": (212, 18),
    "iopl": (172, None),
    "ioperm": (173, None),
}
_CLONE = (56, 220)
_CLONE3 = (435, 435)
_TGKILL = (234, 131)
_CLONE_THREAD = 0x00010000
_X32_BIT = 0x40000000

_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _JUMP_ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _ARGUMENT_0 = 0, 4, 16  # offsets in struct seccomp_data; both machines are little-endian
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000


def _instruction(code: int, k: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, k)


def _refuse(number: int, error: int = errno.EPERM) -> bytes:
    return _instruction(_JUMP_EQUAL, number, 0, 1) + _instruction(_RETURN, _ERRNO | error)


def program(own_pid: int | None = None, machine: str | None = None) -> bytes:
    """The filter as an array of `struct sock_filter`.

    `own_pid`: the only process that may be signalled with `tgkill`, which is how a C library aborts; None where the
    process has a pid namespace of its own and sees nobody else.

    Raises:
        NotImplementedError: no filter is written for this machine's architecture.
    """
    machine = machine or platform.machine()
    if machine not in _ARCHITECTURES:
        raise NotImplementedError(f"no system call filter for {machine}")
    column = 0 if machine == "x86_64" else 1
    code = _instruction(_LOAD, _ARCHITECTURE)
    code += _instruction(_JUMP_EQUAL, _ARCHITECTURES[machine], 1, 0) + _instruction(_RETURN, _KILL)
    code += _instruction(_LOAD, _NUMBER)
    if machine == "x86_64":
        code += _instruction(_JUMP_AT_LEAST, _X32_BIT, 0, 1) + _instruction(_RETURN, _KILL)
    for numbers in _REFUSED.values():
        if (number := numbers[column]) is not None:
            code += _refuse(number)
    # The flags of clone3 lie in memory, where a filter cannot look: ENOSYS makes the C library fall back to clone.
    code += _refuse(_CLONE3[column], errno.ENOSYS)
    code += (
        _instruction(_JUMP_EQUAL, _CLONE[column], 0, 4)
        + _instruction(_LOAD, _ARGUMENT_0)
        + _instruction(_JUMP_ANY_BIT, _CLONE_THREAD, 1, 0)
        + _instruction(_RETURN, _ERRNO | errno.EPERM)
        + _instruction(_RETURN, _ALLOW)
    )
    if own_pid is not None:
        code += (
            _instruction(_JUMP_EQUAL, _TGKILL[column], 0, 4)
            + _instruction(_LOAD, _ARGUMENT_0)
            + _instruction(_JUMP_EQUAL, own_pid, 1, 0)
            + _instruction(_RETURN, _ERRNO | errno.EPERM)
            + _instruction(_RETURN, _ALLOW)
        )
    return code + _instruction(_RETURN, _ALLOW)
