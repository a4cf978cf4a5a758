"""A hostile program, run confined by the tests: `hostile_child.py ATTACK [argument...]`, one JSON object on stdout.

Standard library only: the sandbox shows it nothing else.
"""

import ctypes
import json
import os
import signal
import socket
import sys
import threading
import time


def attempt(action):
    try:
        return {"done": True, "result": str(action())}
    except (OSError, MemoryError, RuntimeError) as error:
        return {"done": False, "error": f"{type(error).__name__}: {error}"}


def read_files(*paths):
    return {path: attempt(lambda path=path: open(path, "rb").read(200)) for path in paths}


def write_files(*paths):
    return {path: attempt(lambda path=path: open(path, "wb").write(b"planted")) for path in paths}


def connect(port):
    def tcp():
        with socket.create_connection(("127.0.0.1", int(port)), timeout=2) as stream:
            stream.sendall(b"stolen")

    def udp():
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stream:
            stream.sendto(b"stolen", ("127.0.0.1", int(port)))

    def listen():
        with socket.socket() as stream:
            stream.bind(("127.0.0.1", 0))
            stream.listen()

    return {"tcp": attempt(tcp), "udp": attempt(udp), "listen": attempt(listen)}


def fork(count):
    children, errors = 0, set()
    for _ in range(int(count)):
        try:
            if os.fork() == 0:
                time.sleep(60)
                os._exit(0)
            children += 1
        except OSError as error:
            errors.add(str(error))
    return {"children": children, "errors": sorted(errors)}


def threads():
    done = []
    worker = threading.Thread(target=lambda: done.append(1))
    worker.start()
    worker.join()
    return {"ran": len(done)}


def fill_memory(mebibytes):
    held = []
    try:
        while len(held) < int(mebibytes):
            held.append(bytearray(os.urandom(1) * (1 << 20)))
    except MemoryError:
        count = len(held)
        held.clear()
        return {"mebibytes": count, "stopped": True}
    return {"mebibytes": len(held), "stopped": False}


def fill_disk(folder, mebibytes):
    written, error = 0, None
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        for number in range(int(mebibytes) // 16):
            with open(f"{folder}/{number}", "wb") as file:
                for _ in range(16):
                    file.write(b"x" * (1 << 20))
                    written += 1
    except OSError as failure:
        error = str(failure)
    return {"mebibytes": written, "error": error}


def one_big_file(folder, mebibytes):
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    def write():
        with open(f"{folder}/big", "wb") as file:
            for _ in range(int(mebibytes)):
                file.write(b"x" * (1 << 20))

    return attempt(write)


def burn():
    while True:
        pass


def signal_process(pid):
    return {"kill": attempt(lambda: os.kill(int(pid), signal.SIGTERM))}


def see():
    return {
        "environment": dict(os.environ),
        "processes": attempt(lambda: sorted(int(name) for name in os.listdir("/proc") if name.isdigit())),
        "folder": os.getcwd(),
    }


def raw_calls():
    """Calls that the C library has no function for here, by their x86_64 numbers."""
    libc = ctypes.CDLL(None, use_errno=True)
    numbers = {"io_uring_setup": 425, "memfd_create": 319, "ptrace": 101, "unshare": 272, "bpf": 321, "clone3": 435}
    results = {}
    for name, number in numbers.items():
        result = libc.syscall(number, 0, 0, 0, 0)
        results[name] = [result, os.strerror(ctypes.get_errno()) if result < 0 else ""]
    return results


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]](*sys.argv[2:])), flush=True)
