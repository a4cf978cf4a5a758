"""What a tool call is to the rules: a shell command, a cell of code, or another tool that reads or may write.

Names are those of the known harnesses (facts of their tool sets are in the readers), compared without case and without
a ``functions.`` prefix. A tool that is not known may write.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from services.process.trajectories import ToolCall

SHELLS = frozenset([
    "bash", "execute_bash", "terminal", "run", "run_command", "bash_command", "shell", "sh", "run_shell_command",
    "run_terminal_cmd", "execute_command", "exec_command", "local_shell", "shell_command", "run_bash",
    "terminal_command",
])  # fmt: skip
CELLS = frozenset([
    "execute_ipython_cell", "run_ipython", "ipython", "ipython_cell", "jupyter", "python", "python_interpreter",
    "execute_python", "run_python", "code_interpreter", "execute_code", "run_code",
])  # fmt: skip
# Tools that only read, and tools whose effect stays inside the agent.
READERS = frozenset([
    "read", "grep", "glob", "ls", "notebookread", "bashoutput", "webfetch", "websearch", "view", "view_file",
    "read_file", "read_many_files", "list_directory", "list_dir", "list_files", "file_search", "grep_search",
    "codebase_search", "search_files", "search_file_content", "search_dir", "search_file", "find_file", "open",
    "goto", "scroll_up", "scroll_down", "filemap", "view_image", "read_image", "google_web_search", "web_search",
    "web_fetch", "fetch", "recall", "glob_tool", "grep_tool", "task_output", "taskoutput", "toolsearch",
])  # fmt: skip
INTERNAL = frozenset([
    "todowrite", "todoread", "todo_write", "todo_read", "write_todos", "update_plan", "think", "finish", "submit",
    "mark_task_complete", "task_tracker", "task_tracking", "exitplanmode", "exit_plan_mode", "enterplanmode",
    "askuserquestion", "ask_user", "message", "attempt_completion", "complete", "done", "final_answer",
    "exit_forfeit", "skill",
])  # fmt: skip
_COMMAND_KEYS = ("command", "cmd", "keystrokes", "script", "code", "input")
_CODE_KEYS = ("code", "source", "script", "input", "command", "cmd")
_SHELL_LANGUAGES = {"bash", "sh", "shell", "zsh"}


@dataclass(frozen=True, slots=True)
class Use:
    """``shell`` is the text of a shell command; ``code`` and ``language`` a cell; both None for any other tool, or for
    text that is typed into a running program. ``modifies`` holds for those others only.
    """

    tool: str
    shell: str | None = None
    code: str | None = None
    language: str = ""
    modifies: bool = False


def use_of(call: ToolCall) -> Use:
    """What a call is. Never raises, whatever the arguments are."""
    name = call.name.rpartition("functions.")[2].lower()
    arguments = call.arguments
    if name in SHELLS:
        return _shell(call.name, arguments)
    if name in CELLS:
        text = _text(arguments, _CODE_KEYS)
        language = str(arguments.get("language") or arguments.get("lang") or "python").lower()
        if text is None:
            return Use(call.name)
        if language in _SHELL_LANGUAGES:
            return Use(call.name, shell=text)
        return Use(call.name, code=text, language={"js": "javascript", "py": "python"}.get(language, language))
    if name in READERS or name in INTERNAL or arguments.get("command") == "view":
        return Use(call.name)
    return Use(call.name, modifies=True)


def _shell(tool: str, arguments: Mapping[str, Any]) -> Use:
    if arguments.get("is_input") in (True, "true", "True"):
        return Use(tool, modifies=True)
    text = _text(arguments, _COMMAND_KEYS)
    if text is None or not text.strip():
        return Use(tool)  # waits for output, or is no command at all
    if "keystrokes" in arguments and "command" not in arguments:
        if not text.endswith("\n"):
            return Use(tool, modifies=True)  # keys for whatever runs in the terminal
        text = text[:-1]
        if not text.strip():
            return Use(tool)
    return Use(tool, shell=text)


def _text(arguments: Mapping[str, Any], keys: tuple[str, ...]) -> str | None:
    for key in keys:
        value = arguments.get(key)
        if isinstance(value, str):
            return value
        if isinstance(value, list) and value and all(isinstance(part, str) for part in value):
            # An argument vector; `["bash", "-lc", text]` is the text.
            if len(value) == 3 and value[1] in ("-c", "-lc"):
                return str(value[2])
            return shlex.join(value)
    return None
