"""A scripted stand-in for the Lean REPL, named so: it speaks the protocol and misbehaves on command.

It knows no Lean. A program's `theorem NAME : TYPE` is taken at its word; `-- fault: NAME ARGUMENT` in it makes the
script do what a real REPL does rarely. A file `mode` beside it makes it fail from the start.
"""

import hashlib
import json
import mmap
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

FOLDER = Path(sys.argv[0]).resolve().parents[3]
MODE = (FOLDER / "mode").read_text().strip() if (FOLDER / "mode").exists() else ""
LEFT_BEHIND = []
GROWN = []


class Die(Exception):
    pass


def message(line, data, severity="info"):
    return {"pos": {"line": line, "column": 0}, "endPos": None, "severity": severity, "data": data}


def theorems(text):
    return dict(re.findall(r"^theorem\s+(\S+)\s*:\s*(.*?)(?:\s*:=|$)", text, re.MULTILINE))


def ask(line_number, line, known):
    """The answer to one line of a command, as Lean would give it."""
    if found := re.fullmatch(r'set_option (\S+) "\?"', line):
        known_option = found[1] in ("pp.all", "pp.proofs", "pp.fullNames")
        return message(line_number, "type mismatch" if known_option else f"Unknown option `{found[1]}`", "error")
    if found := re.search(r'#check (".*")', line):
        return message(line_number, f"{found[1]} : String")
    if found := re.search(r"#print axioms (?:_root_\.)?(\S+)", line):
        return message(line_number, f"'{found[1]}' does not depend on any axioms")
    if found := re.search(r"#print (?:_root_\.)?(\S+)", line):
        if found[1] in known:
            return message(line_number, f"theorem {found[1]} : {known[found[1]]} :=\n⋯")
        return message(line_number, f"Unknown constant `{found[1]}`", "error")
    if found := re.search(r"#check @?(?:_root_\.)?(\S+)", line):
        return message(line_number, f"{found[1]} : Type")
    return None


def fault(name, argument, env):
    if name == "die":
        sys.stdout.write('{"env": ')
        sys.stdout.flush()
        sys.stderr.write(argument or "something went wrong\n")
        sys.stderr.flush()
        os._exit(3)
    if name == "hang":
        time.sleep(600)
    if name == "slow":
        time.sleep(float(argument))
    if name == "malformed":
        sys.stdout.write('{"env": 1, "messages": [}\n\n')
        return True
    if name == "twice":
        sys.stdout.write(json.dumps({"env": env}) + "\n\n")
    if name == "shape":
        sys.stdout.write('{"env": "one"}\n\n')
        return True
    if name == "stderr":
        sys.stderr.write("x" * int(argument) + "\n")
        sys.stderr.flush()
    if name == "grow":
        while True:
            GROWN.append(bytearray(os.urandom(1) * (4 << 20)))
            time.sleep(0.002)
    if name == "share":  # shared memory, which the kernel's limit does not count
        shared = mmap.mmap(-1, 1 << 30)
        for page in range(0, 1 << 30, 4096):
            shared[page] = 1
        time.sleep(600)
    if name == "burn":
        for _ in range(3):
            threading.Thread(target=lambda: [hashlib.sha256(bytes(1 << 24)) for _ in range(10**6)]).start()
        time.sleep(600)
    if name == "child":
        child = subprocess.Popen(["sleep", "300"])
        Path(argument).write_text(str(child.pid))
    if name == "disk":
        Path(os.environ["TMPDIR"], "filled").write_bytes(b"x" * (int(argument) << 20))
        time.sleep(600)
    return False


def main():
    if MODE == "exit":
        sys.stderr.write("error: unknown package\n")
        sys.exit(1)
    if MODE == "silent":
        time.sleep(600)
    environments = []
    pickles = {}
    for raw in iter(sys.stdin.readline, ""):
        if not raw.strip():
            continue
        query = json.loads(raw)
        if "pickleTo" in query:
            pickles[query["pickleTo"]] = query["env"]
            reply = {"env": query["env"]}
        elif "unpickleEnvFrom" in query:
            known = dict(environments[pickles[query["unpickleEnvFrom"]]])
            if "= 2" in known.get("repl_selftest", "") or any("-- kernel" in kind for kind in known.values()):
                sys.stderr.write("uncaught exception: (kernel) declaration type mismatch, 'bad'\n")
                sys.exit(1)
            environments.append(known)
            reply = {"env": len(environments) - 1}
        elif query.get("env") is None:
            reply = {"env": len(environments)}
            if "Nope" in query["cmd"]:
                reply["messages"] = [message(1, "unknown module prefix 'Nope'", "error")]
            environments.append({})
        elif query["env"] >= len(environments):
            reply = {"message": "Unknown environment."}
        else:
            text = query["cmd"]
            known = {**environments[query["env"]], **theorems(text)}
            answers = (ask(number, line, known) for number, line in enumerate(text.split("\n"), 1))
            messages = [one for one in answers if one]
            if ":= by sorry" in text:
                messages.append(message(1, "declaration uses 'sorry'", "warning"))
            environments.append(known)
            reply = {"env": len(environments) - 1, "messages": messages}
            answered = False
            for name, argument in re.findall(r"-- fault: (\w+) ?(.*)", text):
                if name == "big":
                    messages.append(message(1, "y" * int(argument)))
                answered = fault(name, argument, len(environments) - 1) or answered
            if answered:
                sys.stdout.flush()
                continue
        sys.stdout.write(json.dumps(reply, indent=1) + "\n\n")
        sys.stdout.flush()


try:
    main()
except MemoryError:
    sys.stderr.write("INTERNAL PANIC: out of memory\n")
    os._exit(1)
