"""Whether a candidate's text can change how later commands are read or run.

A probe in the candidate's own environment is trusted only when the candidate cannot have changed the language. Lean's
own language is changed by commands and attributes that must be spelled out, so a text in which none of their words
occurs, not even inside of a longer name, leaves it as it was. Nor may it run a program of its own on the way, which
tactics do with configurations that are more than literals. This errs on the safe side: what is rejected here is
checked in a replayed environment instead (`probes`).
"""

from __future__ import annotations

import re
from itertools import groupby

from lean_worker.engines.repl.program import Program
from services.proofs.configurations import computed_configurations, tactic_rules

_CHANGING = (
    "notation",  # notation3 too
    "infix",  # infixl, infixr too
    "prefix",
    "postfix",
    "macro",  # macro_rules too
    "syntax",  # declare_syntax_cat too
    "elab",  # elab_rules, run_elab, by_elab, term_elab, command_elab too
    "unexpand",
    "binder_predicate",
    "simproc",
    "run_",  # run_cmd, run_tac, run_meta
    "#eval",
    "#exit",
    "#guard_msgs",
    "initialize",
    "unsafe",
    "implemented_by",
    "extern",
    "csimp",
    "export",
    "register_",
    "declare_",
    "unif_hint",
    "debug.",
    "compiler.",
    "builtin_",
    "eval%",
    "include_str",
    "quot_precheck",
    "doc.verso",  # then a comment holds commands
    "sat.solver",
    "widget",
    "#html",
    "propagator",
    "library_suggestions",
    "bv_check",
    # What compiles a program of the candidate's and runs it. Not `native_decide`: what it runs is as pure, but `paper`
    # lets it pass, and no kernel can replay it.
    "plausible",
    "slim_check",
    "#guard",
    "#test",
    "#sample",
    # What breaks out of the types of such a program, or out of the kernel.
    "Unsafe",
    "RealWorld",
    "lcProof",
    "lcUnreachable",
    "lcAny",
    "lcErased",
    "lcVoid",
    "lcCast",
    "ptrEq",
    "ptrAddr",
    "dbg",
    "sorryAx",
)
_changes = re.compile(
    # One branch for each first letter: the engine skips quickly to where a word may start.
    "|".join(
        f"{re.escape(first)}(?:{'|'.join(re.escape(word[1:]) for word in words)})"
        for first, words in groupby(sorted(_CHANGING), key=lambda word: word[0])
    )
).search
_ATTRIBUTES = re.compile(r"@\[(?P<list>[^\]]*)\]|\battribute\s*\[(?P<command>[^\]]*)\]")
_ATTRIBUTE_START = re.compile(r"@\[|\battribute\b")
# Attributes that name lemmas and classes, never a definition to run.
_HARMLESS = re.compile(
    r"\s*(?:(?:local|scoped)\s+)?-?(?:simp|ext|refl|symm|trans|congr|gcongr|grind|instance|default_instance|reducible"
    r"|irreducible|semireducible|inline|noinline|specialize|norm_cast|push_cast|elab_as_elim)(?:\s+[\w↓↑←= .'-]*)?\s*"
)


def is_plain(program: Program) -> bool:
    """No word of the program can change the language: probes after it are read as we wrote them."""
    text = program.masked.text if program.masked.certain else program.body
    if _changes(text.replace("elab_as_elim", "")):
        return False
    if any(next(find(text), None) for find in (computed_configurations, tactic_rules)):
        return False
    if "@[" not in text and "attribute" not in text:
        return True
    lists = list(_ATTRIBUTES.finditer(text))
    if len(lists) != len(_ATTRIBUTE_START.findall(text)):
        return False
    attributes = (one for found in lists for one in (found["list"] or found["command"] or "").split(","))
    return all(_HARMLESS.fullmatch(one) for one in attributes)
