"""What the two precheck profiles forbid: tables of words, options and attributes, no logic.

``paper`` is the acceptance policy of learning-lean-feedback, Appendix B; ``strict`` adds what lets a program run code
of its own inside the checker, silence the checker, or change what it trusts. `docs/policy.md` explains each entry.
"""

from __future__ import annotations

from services.contracts.outcomes import Profile

MAX_CHARACTERS = 262_144
"""Longest program, in code points, that is looked at (Appendix B)."""

DEFAULT_HEARTBEATS = 800_000
"""Budget of a check, in Lean's unit of thousands of small allocations (Appendix B)."""

THEOREM_WORDS = ("theorem", "lemma")

PLACEHOLDER_AND_AXIOM_WORDS = ("sorry", "admit", "axiom", "constant", "opaque", "unsafe")

_RUNS_CODE = (
    "#eval",
    "#eval!",
    "run_cmd",
    "run_elab",
    "run_meta",
    "run_tac",
    "by_elab",
    "eval%",
    "elab",
    "elab_rules",
    "elab_stx_quot",
    "initialize",
    "builtin_initialize",
    "simproc",
    "simproc_decl",
    "dsimproc",
    "dsimproc_decl",
    "builtin_simproc",
    "builtin_simproc_decl",
    "builtin_dsimproc",
    "builtin_dsimproc_decl",
    "declare_config_elab",
    "declare_command_config_elab",
    "declare_config_getter",
    "register_option",
    "register_builtin_option",
    "register_parser_alias",
    "grind_propagator",
    "builtin_grind_propagator",
    "set_library_suggestions",
    "include_str",
    "bv_check",
    "dbg_trace",
    "#widget",
    "#html",
    "show_panel_widgets",
)
_SILENCES_THE_CHECKER = ("#exit", "#guard_msgs", "#guard_panic")
_CHANGES_WHAT_RUNS = ("implemented_by", "extern", "csimp")

FORBIDDEN_WORDS: dict[Profile, tuple[str, ...]] = {
    Profile.PAPER: PLACEHOLDER_AND_AXIOM_WORDS,
    Profile.STRICT: (*PLACEHOLDER_AND_AXIOM_WORDS, *_RUNS_CODE, *_SILENCES_THE_CHECKER, *_CHANGES_WHAT_RUNS),
}
"""Whole words, as Lean lexes them, that a program may not contain."""

ESCAPES = (
    "lc(?:Proof|Unreachable|Any|Erased|Void|Cast)",
    "unsafe[A-Z][A-Za-z]*",
    "ptr(?:Eq|Addr)[A-Za-z]*",
    "dbg(?:Trace[A-Za-z]*|StackTrace|Sleep)",
)
"""Constants that lead out of what Lean's types allow: patterns of one component of a name, wherever it stands there.

Lean refuses most of them in what it keeps, but not in what it evaluates by the way; ``strict`` forbids them.
"""

FORBIDDEN_OPTION_PREFIXES = ("debug.", "internal.", "bootstrap.", "doc.verso.", "sat.solver.")
FORBIDDEN_OPTIONS = frozenset({"warn.sorry", "doc.verso", "sat.solver"})
"""Options that ``strict`` forbids whatever their value."""

HEARTBEAT_OPTION = "maxHeartbeats"
"""Last component of the options whose value ``strict`` holds below the budget (``synthInstance.maxHeartbeats`` too)."""

FORBIDDEN_ATTRIBUTES = frozenset(
    {
        "tactic",
        "macro",
        "init",
        "export",
        "implemented_by",
        "extern",
        "csimp",
        "simproc",
        "simprocAttr",
        "delab",
        "app_unexpander",
        "quot_precheck",
        "norm_num",
        "positivity",
        "server_rpc_method",
        "widget_module",
        "command_code_action",
        "code_action_provider",
        "hole_code_action",
        "tactic_code_action",
        "unused_variables_ignore_fn",
        "missing_docs_handler",
        "env_linter",
        "grind_propagator",
        "cpass",
        "try_suggestion",
        "bv_normalize_proc",
        "sevalproc",
    }
)
FORBIDDEN_ATTRIBUTE_PREFIXES = ("builtin_", "doc_")
FORBIDDEN_ATTRIBUTE_SUFFIXES = ("_elab", "_parser", "_delab", "parenthesizer", "formatter")
"""Attributes that make Lean run a definition of the program; ``strict`` forbids them."""

TRUSTED_AXIOMS = frozenset({"propext", "Classical.choice", "Quot.sound"})

COMPILER_AXIOMS = frozenset({"Lean.ofReduceBool", "Lean.ofReduceNat", "Lean.trustCompiler"})
"""Axioms of ``native_decide``, which Appendix B does not block: only ``paper`` lets them pass."""

PLACEHOLDER_AXIOM = "sorryAx"
