"""What well-known programs do to the environment, by name and arguments.

``inspects(name, arguments)`` is True when the program only reads. Everything that is not known to only read counts as
modifying (rule 6 must not punish a re-run that could have had a reason), so this table may be short but not wrong.
Arguments are the words after quote removal, None where a word depends on the machine.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

Arguments = Sequence["str | None"]

_READERS = frozenset([
    "ls", "ll", "dir", "vdir", "head", "tail", "grep", "egrep", "fgrep", "zgrep", "rg", "ag", "ack", "wc", "diff",
    "cmp", "comm", "colordiff", "du", "df", "ps", "pgrep", "pstree", "pwd", "whoami", "id", "groups", "uname",
    "arch", "nproc", "free", "uptime", "w", "who", "last", "which", "whereis", "type", "printenv", "test", "[",
    "[[", "true", "false", ":", "read", "less", "more", "most", "bat", "nl", "tac", "rev", "od", "hexdump",
    "strings", "file", "stat", "readlink", "realpath", "basename", "dirname", "cut", "tr", "column", "fold", "fmt",
    "pr", "expand", "unexpand", "join", "paste", "seq", "expr", "bc", "factor", "cal", "md5sum", "sha1sum",
    "sha224sum", "sha256sum", "sha384sum", "sha512sum", "b2sum", "cksum", "sum", "base64", "base32", "lsof", "ss",
    "netstat", "lsblk", "blkid", "lscpu", "lsmod", "lspci", "lsusb", "dmesg", "vmstat", "iostat", "mpstat",
    "nvidia-smi", "getent", "locale", "man", "help", "info", "history", "jobs", "wait", "nslookup", "dig", "host",
    "ping", "traceroute", "jq", "zcat", "bzcat", "xzcat", "nm", "objdump", "readelf", "ldd", "size", "addr2line",
    "tput", "clear", "ctest", "pytest", "py.test", "nosetests", "nose2", "jest", "mocha", "vitest", "rspec",
    "phpunit", "flake8", "mypy", "pyright", "pylint", "pyflakes", "pycodestyle", "shellcheck", "tox", "nox",
    "apt-cache", "tokei", "cloc", "scc", "yes", "numfmt", "logname", "tty", "users", "runlevel", "getconf",
    "hostid", "return",
])  # fmt: skip
_GIT_READERS = frozenset([
    "status", "log", "diff", "show", "blame", "annotate", "grep", "ls-files", "ls-tree", "ls-remote", "rev-parse",
    "rev-list", "describe", "shortlog", "cat-file", "merge-base", "name-rev", "diff-tree", "diff-index",
    "diff-files", "count-objects", "help", "version", "check-ignore", "for-each-ref", "show-ref", "whatchanged",
    "range-diff", "cherry", "var", "--version",
])  # fmt: skip
_SUBCOMMANDS: dict[str, frozenset[str]] = {
    "docker": frozenset(["ps", "images", "logs", "inspect", "version", "info", "stats", "diff", "history"]),
    "podman": frozenset(["ps", "images", "logs", "inspect", "version", "info", "stats", "diff", "history"]),
    "kubectl": frozenset(["get", "describe", "logs", "top", "explain", "version", "cluster-info", "api-resources"]),
    "helm": frozenset(["list", "ls", "status", "get", "history", "show", "version"]),
    "pip": frozenset(["list", "show", "freeze", "check", "help", "debug", "inspect", "index"]),
    "uv": frozenset(["version", "tree", "help"]),
    "conda": frozenset(["list", "info", "search"]),
    "npm": frozenset(["ls", "list", "view", "show", "info", "outdated", "test", "t", "audit", "root", "bin"]),
    "yarn": frozenset(["list", "info", "why", "test", "outdated"]),
    "pnpm": frozenset(["list", "ls", "why", "test", "outdated"]),
    "cargo": frozenset(["test", "check", "tree", "metadata", "clippy", "search", "--version"]),
    "go": frozenset(["test", "vet", "list", "env", "version", "doc"]),
    "mvn": frozenset(["test", "verify", "--version"]),
    "gradle": frozenset(["test", "check", "tasks", "--version"]),
    "dotnet": frozenset(["test", "--info", "--version"]),
    "make": frozenset(["test", "check", "lint", "tests"]),
    "gem": frozenset(["list", "search", "info", "which"]),
    "brew": frozenset(["list", "info", "search"]),
    "apt": frozenset(["list", "show", "search", "policy"]),
    "rustup": frozenset(["show"]),
    "systemctl": frozenset(["status", "show", "cat", "is-active", "is-enabled", "list-units", "list-unit-files"]),
    "gh": frozenset(["status"]),
}
# Options with which a reader writes: the name of a program, then its short and long ones.
_WRITING: dict[str, tuple[str, tuple[str, ...]]] = {
    "pytest": (
        "",
        ("--snapshot-update", "--force-regen", "--inline-snapshot", "--update-golden", "--junitxml", "--junit-xml"),
    ),
    "jest": ("u", ("--updateSnapshot", "--update-snapshot", "--outputFile", "--coverage", "--clearCache")),
    "vitest": ("u", ("--update", "--outputFile", "--coverage")),
    "mocha": ("", ("--update",)),
    "mypy": ("", ("--install-types", "--junit-xml", "--html-report", "--txt-report", "--xml-report")),
    "pylint": ("", ("--output",)),
    "flake8": ("", ("--output-file",)),
    "phpunit": ("", ("--log-junit", "--coverage-html")),
    "rspec": ("", ("--out",)),
    "history": ("cdwa", ()),
    "dmesg": ("cC", ("--clear", "--read-clear")),
    "less": ("oO", ("--log-file",)),
}
_WRITING["py.test"] = _WRITING["pytest"]
_ASKS = {"--version", "--help", "-version", "-V", "version", "help"}
_SCRIPT = 4_096  # characters of an awk or sed script that are searched; a longer one counts as writing
_AWK_EFFECT = re.compile(r"print[^;}\n]*>|>>|system\s*\(|\|\s*[\"g]|\"\s*\||@load|-i\s")
_SED_WRITE = re.compile(r"(?:^|[;{}\n]|[0-9$/pgIi])\s*[wW]\s+\S|(?:^|[;{}\n])\s*[0-9,$]*e\b|/[gpIi0-9]*e\b")


def inspects(name: str, arguments: Arguments) -> bool:
    """Whether ``name arguments`` reads its inputs and changes nothing."""
    check = _CHECKS.get(name)
    if check is not None:
        return check(arguments)
    if name in _READERS:
        short, long = _WRITING.get(name, ("", ()))
        return not _short(arguments, short) and not _long(arguments, *long)
    if name in _SUBCOMMANDS:
        return _subcommand(name, arguments)
    return len(arguments) == 1 and arguments[0] in _ASKS


def _words(arguments: Arguments) -> list[str]:
    return [a for a in arguments if a is not None]


def _operands(arguments: Arguments) -> list[str | None]:
    return [a for a in arguments if a is None or not a.startswith("-") or a == "-"]


def _short(arguments: Arguments, letters: str) -> bool:
    """Whether a cluster of short options holds one of ``letters``."""
    return any(a.startswith("-") and not a.startswith("--") and set(a[1:]) & set(letters) for a in _words(arguments))


def _long(arguments: Arguments, *names: str) -> bool:
    return any(a == n or a.startswith(n + "=") for a in _words(arguments) for n in names)


def _subcommand(name: str, arguments: Arguments) -> bool:
    operands = _operands(arguments)
    if name == "make" and (_short(arguments, "nq") or _long(arguments, "--dry-run", "--just-print", "--question")):
        return True
    if not operands:
        return bool(arguments) and all(a in _ASKS for a in arguments)
    if name == "npm" and len(operands) > 1 and operands[0] in ("run", "run-script"):
        return operands[1] in ("test", "lint", "typecheck", "check")
    if name == "gh":
        return len(operands) > 1 and operands[1] in ("list", "view", "status", "diff", "checks")
    if name == "make":
        return all(operand in _SUBCOMMANDS["make"] for operand in operands)
    if _long(arguments, "--fix", "--write"):
        return False
    return operands[0] in _SUBCOMMANDS[name]


def _git(arguments: Arguments) -> bool:
    rest = list(arguments)
    while rest and rest[0] is not None and rest[0].startswith("-") and rest[0] != "--version":
        rest = rest[2:] if rest[0] in ("-C", "-c", "--git-dir", "--work-tree") else rest[1:]
    if not rest:
        return True
    verb, tail = rest[0], rest[1:]
    if _long(tail, "--output"):
        return False
    if verb in _GIT_READERS:
        return True
    operands = _operands(tail)
    if verb == "branch":
        return (
            not operands
            and not _short(tail, "dDmMcCfu")
            and not _long(tail, "--delete", "--move", "--edit-description")
        )
    if verb == "tag":
        return not operands or _short(tail, "l") or _long(tail, "--list")
    if verb in ("remote", "stash", "worktree", "submodule", "notes", "bisect", "reflog"):
        reads = {"show", "get-url", "list", "status", "log", "summary"}
        return (not operands and verb != "stash") or (bool(operands) and operands[0] in reads)
    if verb == "config":
        return _long(tail, "--get", "--get-all", "--get-regexp", "--list") or _short(tail, "l") or len(operands) == 1
    return verb == "apply" and _long(tail, "--check", "--stat")


def _sed(arguments: Arguments) -> bool:
    for word in _words(arguments):
        if word.startswith("--in-place"):
            return False
        # -i, -i.bak, and clusters such as -ni; -e and -f take the rest of their cluster as their argument.
        if re.match(r"-[nEruszb]*i", word):
            return False
    words = _words(arguments)
    given = [words[i + 1] for i, word in enumerate(words[:-1]) if word in ("-e", "--expression")]
    scripts = given or [word for word in words if not word.startswith("-")][:1]
    if _long(arguments, "--file") or _short(arguments, "f") or any(len(script) > _SCRIPT for script in scripts):
        return False
    return not any(_SED_WRITE.search(script) for script in scripts)


def _awk(arguments: Arguments) -> bool:
    if _short(arguments[:1], "fi") or any(len(word) > _SCRIPT for word in _words(arguments)):
        return False
    return not any(_AWK_EFFECT.search(word) for word in _words(arguments))


_CURL_WRITES = (
    "--output", "--remote-name", "--remote-name-all", "--output-dir", "--upload-file", "--data", "--data-raw",
    "--data-binary", "--data-urlencode", "--form", "--json", "--cookie-jar", "--dump-header", "--trace",
)  # fmt: skip
_CURL_CLUSTER = re.compile(r"-(?![HAu])[A-Za-z]*[OTdFcDJK]")


def _curl(arguments: Arguments) -> bool:
    words = _words(arguments)
    discards = "/dev/null" in words
    if _long(words, *_CURL_WRITES) and not (discards and _long(words, "--output")):
        return False
    for index, word in enumerate(words):
        method = word[2:] if word.startswith("-X") else ""
        if word in ("-X", "--request"):
            method = next(iter(words[index + 1 : index + 2]), "")
        elif word.startswith("--request="):
            method = word.partition("=")[2]
        if method and method.upper() not in ("GET", "HEAD", "OPTIONS"):
            return False
        if not word.startswith("--") and _CURL_CLUSTER.match(word):
            return False
        if re.fullmatch(r"-[A-Za-z]*o", word) and words[index + 1 : index + 2] != ["/dev/null"]:
            return False
    return True


def _find(arguments: Arguments) -> bool:
    words = _words(arguments)
    if any(w in ("-delete", "-fprint", "-fprintf", "-fls", "-fprint0") for w in words):
        return False
    for index, word in enumerate(words):
        if word in ("-exec", "-execdir", "-ok", "-okdir"):
            inner = words[index + 1 :]
            end = next((i for i, w in enumerate(inner) if w in (";", "+")), len(inner))
            if not inner or not (inner[0] in ("echo", "printf", "cat") or inspects(inner[0], inner[1:end])):
                return False
    return True


def _wget(arguments: Arguments) -> bool:
    words = _words(arguments)
    return "-O-" in words or "-qO-" in words or _long(words, "--spider") or ("-O" in words and "-" in words)


def _tar(arguments: Arguments) -> bool:
    first = next(iter(_words(arguments)), "")
    return "t" in first.lstrip("-") and not first.startswith("--") and not set(first) & set("xcruA")


_CHECKS: dict[str, Callable[[Arguments], bool]] = {
    "git": _git,
    "sed": _sed,
    "gsed": _sed,
    "awk": _awk,
    "gawk": _awk,
    "mawk": _awk,
    "nawk": _awk,
    "curl": _curl,
    "wget": _wget,
    "find": _find,
    "tar": _tar,
    "sort": lambda a: not _short(a, "o") and not _long(a, "--output"),
    "uniq": lambda a: len(_operands(a)) < 2,
    "cat": lambda a: True,
    "fd": lambda a: not _short(a, "xX") and not _long(a, "--exec", "--exec-batch"),
    "tree": lambda a: not _short(a, "o"),
    "xxd": lambda a: not _short(a, "r") and len(_operands(a)) < 2,
    "iconv": lambda a: not _short(a, "o") and not _long(a, "--output"),
    "yq": lambda a: not _short(a, "i") and not _long(a, "--inplace"),
    "date": lambda a: not _short(a, "s") and not _long(a, "--set"),
    "hostname": lambda a: not _operands(a),
    "top": lambda a: _short(a, "b"),
    "kill": lambda a: a[:1] == ["-0"] or a[:1] == ["-l"],
    "crontab": lambda a: list(a) == ["-l"],
    "mount": lambda a: not a,
    "ip": lambda a: not set(_words(a)) & {"add", "del", "set", "flush", "change", "replace"},
    "ifconfig": lambda a: len(_operands(a)) < 2,
    "journalctl": lambda a: not any(w.startswith(("--rotate", "--vacuum", "--flush")) for w in _words(a)),
    "service": lambda a: "status" in _words(a),
    "dpkg": lambda a: _short(a, "lLsSp") and not _short(a, "irP"),
    "dpkg-query": lambda a: True,
    "rpm": lambda a: _short(a[:1], "q"),
    "unzip": lambda a: _short(a, "lptZ"),
    "patch": lambda a: _long(a, "--dry-run"),
    "black": lambda a: _long(a, "--check", "--diff"),
    "isort": lambda a: _long(a, "--check", "--check-only", "--diff") or _short(a, "c"),
    "ruff": lambda a: _operands(a)[:1] == ["check"] and not _long(a, "--fix"),
    "eslint": lambda a: not _long(a, "--fix"),
    "prettier": lambda a: _long(a, "--check", "-c", "-l", "--list-different"),
    "tsc": lambda a: _long(a, "--noEmit", "--version", "-v"),
    "java": lambda a: list(a) in (["-version"], ["--version"]),
    "npx": lambda a: bool(_operands(a)) and inspects(str(_operands(a)[0]), a[list(a).index(_operands(a)[0]) + 1 :]),
    "pip3": lambda a: _subcommand("pip", a),
}
