"""The null Lean: speaks the Lean REPL's protocol, waits a set time for each command, and knows no Lean.

Every theorem that a program names is proved and says `True`, and questions about it are answered, so that servers
which ask go all their way. A command with `null: error` in it gets one
error. The delay in seconds stands in the file `delay` of its folder. Never use its verdicts.
"""

import json
import re
import sys
import time
from pathlib import Path

FOLDER = Path(sys.argv[0]).resolve().parents[3]
DELAY_S = float((FOLDER / "delay").read_text())
KEPT = 4096  # environments; those that were not used for longest are forgotten

THEOREM = re.compile(r"^(?:theorem|lemma)\s+(\S+)", re.MULTILINE)
QUESTION = re.compile(r'^(#check "[^"]*"|#print axioms \S+|#print \S+|#check @?\S+|set_option \S+ "\?")$', re.MULTILINE)
OPTIONS = ("pp.all", "pp.proofs", "pp.fullNames")


def message(line, data, severity="info"):
    return {"pos": {"line": line, "column": 0}, "endPos": None, "severity": severity, "data": data}


def answer(line, question, known):
    subject = question.rsplit(" ", 1)[-1].removeprefix("@").removeprefix("_root_.")
    if question.startswith("set_option"):
        name = question.split(" ")[1]
        return message(line, "type mismatch" if name in OPTIONS else f"Unknown option `{name}`", "error")
    if question.startswith('#check "'):
        return message(line, f"{question[7:]} : String")
    if question.startswith("#print axioms"):
        return message(line, f"'{subject}' does not depend on any axioms")
    if question.startswith("#check"):
        return message(line, f"{subject} : Type")
    if subject in known:
        return message(line, f"theorem {subject} : True :=\n⋯")
    return message(line, f"Unknown constant `{subject}`", "error")


def run(text, known):
    """The messages of one command, and what is known after it."""
    if "theorem" in text or "lemma" in text:
        known = known | set(THEOREM.findall(text))
    questions = QUESTION.finditer(text) if "#" in text or "set_option" in text else ()
    messages = [answer(text.count("\n", 0, match.start()) + 1, match[0], known) for match in questions]
    if "null: error" in text:
        messages.append(message(1, "unsolved goals", "error"))
    if ":= by sorry" in text:
        messages.append(message(1, "declaration uses `sorry`", "warning"))
    return messages, known


def main():
    environments = {}
    pickles = {}
    count = 0
    pending = ""
    for line in sys.stdin:
        pending += line
        if line.strip() or not pending.strip():  # a command ends with a blank line
            continue
        query, pending = json.loads(pending), ""
        if DELAY_S:
            time.sleep(DELAY_S)
        env = query.get("env")
        if "pickleTo" in query:
            pickles[query["pickleTo"]] = environments[env]
            reply = {"env": env}
        elif "unpickleEnvFrom" in query:
            environments[count] = pickles.pop(query["unpickleEnvFrom"])
            reply, count = {"env": count}, count + 1
        elif env is not None and env not in environments:
            reply = {"message": "Unknown environment."}
        else:
            known = frozenset() if env is None else environments.pop(env)
            if env is not None:
                environments[env] = known  # used last
            messages, environments[count] = run(query["cmd"], known)
            reply = {"env": count, **({"messages": messages} if messages else {})}
            count += 1
        if len(environments) > KEPT:
            del environments[next(iter(environments))]
        sys.stdout.write(json.dumps(reply) + "\n\n")
        sys.stdout.flush()


main()
