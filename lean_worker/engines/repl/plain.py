"""Whether a candidate's text can change how later commands are read or run.

A probe in the candidate's own environment is trusted only when the candidate cannot have changed the language. Lean's
own language is changed by commands and attributes that must be spelled out, so a text in which none of their words
occurs, not even inside of a longer name, leaves it as it was. This errs on the safe side: what is rejected here is
checked in a replayed environment instead (`probes`).
"""

from __future__ import annotations

import re

from lean_worker.engines.repl.program import Program

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
)
_WORDS = re.compile("|".join(map(re.escape, _CHANGING)))
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
    if _WORDS.search(text.replace("elab_as_elim", "")):
        return False
    lists = list(_ATTRIBUTES.finditer(text))
    if len(lists) != len(_ATTRIBUTE_START.findall(text)):
        return False
    attributes = (one for found in lists for one in (found["list"] or found["command"] or "").split(","))
    return all(_HARMLESS.fullmatch(one) for one in attributes)
