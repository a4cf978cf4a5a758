"""One and the same run as each harness records it: look, think aloud, wait, look again, edit, finish.

The run's penalties are the same in every format: step 1 does nothing (rule 5) and step 2 only sleeps (rule 2).
"""

from __future__ import annotations

import json
from typing import Any

PENALTIES = [(1, 5), (2, 2)]


def _call(index: int, command: str) -> dict[str, Any]:
    return {
        "id": f"c{index}",
        "type": "function",
        "function": {"name": "bash", "arguments": json.dumps({"command": command})},
    }


STEPS: list[Any] = [
    {"thought": "look", "tool_calls": [{"name": "bash", "arguments": {"command": "ls"}}], "observation": "a.py"},
    {"thought": "Let me think about it."},
    {"thought": "wait", "tool_calls": [{"name": "bash", "arguments": '{"command": "sleep 5"}'}], "observation": ""},
    {"thought": "done", "tool_calls": [{"name": "submit", "arguments": {}}]},
]

CHAT: list[Any] = [
    {"role": "system", "content": "s"},
    {"role": "user", "content": "fix it"},
    {"role": "assistant", "content": None, "tool_calls": [_call(0, "ls")]},
    {"role": "tool", "tool_call_id": "c0", "content": [{"type": "text", "text": "a.py"}]},
    {"role": "assistant", "content": "Let me think about it.", "tool_calls": []},
    {"role": "user", "content": "Go on."},
    {"role": "assistant", "content": "wait", "tool_calls": [_call(1, "sleep 5")]},
    {"role": "tool", "tool_call_id": "c1", "content": ""},
    {"role": "assistant", "content": "All done.", "tool_calls": None},
]

ATIF: dict[str, Any] = {
    "schema_version": "ATIF-v1.6",
    "agent": {"name": "claude-code", "version": "1"},
    "steps": [
        {"step_id": 1, "source": "user", "message": "fix it"},
        {
            "step_id": 2,
            "source": "agent",
            "message": [{"type": "text", "text": "look"}],
            "tool_calls": [{"tool_call_id": "t0", "function_name": "Bash", "arguments": {"command": "ls"}}],
            "observation": {"results": [{"source_call_id": "t0", "content": "a.py"}]},
        },
        {"step_id": 3, "source": "agent", "message": "Let me think about it.", "tool_calls": None, "observation": None},
        {"step_id": 4, "source": "user", "message": "Go on."},
        {
            "step_id": 5,
            "source": "agent",
            "message": "wait",
            "tool_calls": [{"tool_call_id": "t1", "function_name": "Bash", "arguments": {"command": "sleep 5"}}],
            "observation": {"results": [{"source_call_id": "t1", "content": None}]},
        },
        {"step_id": 6, "source": "agent", "message": "All done."},
    ],
}


def _raw(commands: list[str], complete: bool = False) -> str:
    keys = [{"keystrokes": command, "duration": 1.0} for command in commands]
    return json.dumps({"analysis": "a", "plan": "p", "commands": keys, "task_complete": complete})


TERMINUS_RAW: dict[str, Any] = {
    "schema_version": "ATIF-v1.6",
    "agent": {"name": "terminus-2", "version": "2.0.0", "extra": {"parser": "json"}},
    "steps": [
        {"step_id": 1, "source": "user", "message": "fix it"},
        {"step_id": 2, "source": "agent", "message": _raw(["ls\n"]), "observation": {"results": [{"content": "a.py"}]}},
        {"step_id": 3, "source": "agent", "message": _raw([]), "observation": {"results": [{"content": ""}]}},
        {"step_id": 4, "source": "agent", "message": "Sure:\n" + _raw(["sleep 5\n"])},
        {"step_id": 5, "source": "agent", "message": _raw([], complete=True)},
    ],
}

_XML = "<response><analysis>a</analysis><plan>p</plan><commands>{}</commands>{}</response>"
TERMINUS_XML: dict[str, Any] = {
    "schema_version": "ATIF-v1.6",
    "agent": {"name": "terminus-2", "version": "2.0.0", "extra": {"parser": "xml"}},
    "steps": [
        {"step_id": 1, "source": "agent", "message": _XML.format('<keystrokes duration="0.1">ls\n</keystrokes>', "")},
        {"step_id": 2, "source": "agent", "message": _XML.format("", "")},
        {"step_id": 3, "source": "agent", "message": _XML.format("<keystrokes>sleep 5\n</keystrokes>", "")},
        {"step_id": 4, "source": "agent", "message": _XML.format("", "<task_complete>true</task_complete>")},
    ],
}


def _assistant(message_id: str, block: dict[str, Any], parent: str | None = None) -> dict[str, Any]:
    message = {"id": message_id, "type": "message", "role": "assistant", "model": "m", "content": [block]}
    return {"type": "assistant", "message": message, "parent_tool_use_id": parent, "session_id": "s"}


def _result(tool_use_id: str, content: Any, parent: str | None = None) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": tool_use_id, "content": content, "is_error": False}
    return {
        "type": "user",
        "message": {"role": "user", "content": [block]},
        "parent_tool_use_id": parent,
        "session_id": "s",
    }


def _use(identity: str, name: str, given: dict[str, Any]) -> dict[str, Any]:
    return {"type": "tool_use", "id": identity, "name": name, "input": given}


CLAUDE_CODE: list[Any] = [
    {"type": "system", "subtype": "init", "cwd": "/w", "session_id": "s", "tools": ["Bash"]},
    _assistant("m1", {"type": "thinking", "thinking": "look", "signature": "x"}),
    _assistant("m1", {"type": "text", "text": "I look."}),
    _assistant("m1", _use("t0", "Bash", {"command": "ls", "description": "List"})),
    _assistant("sub", _use("t9", "Bash", {"command": "exit 0"}), parent="t0"),
    _result("t9", "", parent="t0"),
    _result("t0", [{"type": "text", "text": "a.py"}]),
    _assistant("m2", {"type": "text", "text": "Let me think about it."}),
    {"type": "rate_limit_event", "session_id": "s"},
    {"type": "user", "message": {"role": "user", "content": "Go on."}, "session_id": "s"},
    _assistant("m3", _use("t1", "Bash", {"command": "sleep 5"})),
    _result("t1", ""),
    _assistant("m4", {"type": "text", "text": "All done."}),
    {
        "type": "result",
        "subtype": "success",
        "is_error": False,
        "num_turns": 4,
        "result": "All done.",
        "session_id": "s",
    },
]

MINI_SWE_AGENT: dict[str, Any] = {
    "info": {"mini_version": "2.0", "exit_status": "Submitted", "submission": ""},
    "messages": [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "fix it"},
        {
            "role": "assistant",
            "content": "look",
            "tool_calls": [_call(0, "ls")],
            "extra": {"actions": [{"command": "ls", "tool_call_id": "c0"}]},
        },
        {"role": "tool", "tool_call_id": "c0", "content": "a.py", "extra": {"returncode": 0}},
        {
            "role": "user",
            "content": "No tool calls found in the response. Every response MUST include at least one tool call.",
            "extra": {"interrupt_type": "FormatError"},
        },
        {"role": "assistant", "content": "wait\n```bash\nsleep 5\n```", "extra": {"actions": [{"command": "sleep 5"}]}},
        {"role": "user", "content": "<output></output>", "extra": {"returncode": 0}},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [_call(3, "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT")],
            "extra": {"actions": [{"command": "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"}]},
        },
        {"role": "exit", "content": "", "extra": {"exit_status": "Submitted", "submission": ""}},
    ],
    "trajectory_format": "mini-swe-agent-1.1",
}

OPENHANDS: list[Any] = [
    {"id": 0, "source": "user", "action": "message", "args": {"content": "fix it"}},
    {"id": 1, "source": "agent", "action": "system", "args": {"content": "prompt"}},
    {"id": 2, "source": "agent", "action": "run", "args": {"command": "ls", "thought": "look", "is_input": False}},
    {"id": 3, "source": "agent", "cause": 2, "observation": "run", "content": "a.py", "extras": {}},
    {"id": 4, "source": "agent", "action": "message", "args": {"content": "Let me think.", "wait_for_response": True}},
    {"id": 5, "source": "user", "action": "message", "args": {"content": "Go on."}},
    {"id": 6, "source": "environment", "observation": "agent_state_changed", "content": "", "extras": {}},
    {"id": 7, "source": "agent", "action": "run", "args": {"command": "sleep 5", "thought": ""}},
    {"id": 8, "source": "agent", "cause": 7, "observation": "run", "content": "", "extras": {}},
    {"id": 9, "source": "agent", "action": "finish", "args": {"final_thought": "done", "outputs": {}}},
]


def _sdk_action(index: int, tool: str, action: dict[str, Any] | None, response: str) -> dict[str, Any]:
    return {
        "kind": "ActionEvent",
        "id": f"a{index}",
        "source": "agent",
        "thought": [{"type": "text", "text": "t"}],
        "action": action,
        "tool_name": tool,
        "tool_call_id": f"c{index}",
        "tool_call": {"id": f"c{index}", "name": tool, "arguments": "{}"},
        "llm_response_id": response,
    }


OPENHANDS_SDK: list[Any] = [
    {"kind": "SystemPromptEvent", "id": "s", "source": "agent", "system_prompt": {"type": "text", "text": "p"}},
    {"kind": "MessageEvent", "id": "u", "source": "user", "llm_message": {"role": "user", "content": []}},
    _sdk_action(0, "terminal", {"kind": "TerminalAction", "command": "ls", "is_input": False}, "r1"),
    _sdk_action(1, "file_editor", {"kind": "FileEditorAction", "command": "view", "path": "/a"}, "r1"),
    {
        "kind": "ObservationEvent",
        "source": "environment",
        "tool_name": "terminal",
        "tool_call_id": "c0",
        "action_id": "a0",
        "observation": {"kind": "TerminalObservation", "content": [{"type": "text", "text": "a.py"}]},
    },
    {"kind": "AgentErrorEvent", "source": "agent", "tool_call_id": "c1", "error": "no such file"},
    {
        "kind": "MessageEvent",
        "source": "agent",
        "llm_response_id": "r2",
        "llm_message": {"role": "assistant", "content": [{"type": "text", "text": "Let me think."}]},
    },
    {"kind": "CondensationRequest", "source": "environment"},
    _sdk_action(2, "terminal", {"kind": "TerminalAction", "command": "sleep 5", "is_input": False}, "r3"),
    _sdk_action(3, "finish", {"kind": "FinishAction", "message": "done"}, "r4"),
]

SWE_AGENT: dict[str, Any] = {
    "environment": "swe_main",
    "trajectory": [
        {"action": "ls\n", "observation": "a.py\n", "response": "r", "thought": "look", "state": {}},
        {"action": "", "observation": "Your output was not formatted correctly.", "response": "hm", "thought": "hm"},
        {"action": "sleep 5", "observation": "", "response": "r", "thought": "wait"},
        {"action": "submit", "observation": "", "response": "submit", "thought": ""},
    ],
    "history": [],
    "info": {},
}

RECORDS: dict[str, tuple[str, Any]] = {
    "steps": ("steps", STEPS),
    "steps in an object": ("steps", {"steps": STEPS}),
    "chat": ("chat", CHAT),
    "chat in an object": ("chat", {"messages": CHAT}),
    "atif": ("atif", ATIF),
    "terminus raw json": ("atif", TERMINUS_RAW),
    "terminus raw xml": ("atif", TERMINUS_XML),
    "claude code": ("claude_code", CLAUDE_CODE),
    "claude code text": ("claude_code", "\n".join(json.dumps(event) for event in CLAUDE_CODE)),
    "mini-swe-agent": ("mini_swe_agent", MINI_SWE_AGENT),
    "mini-swe-agent messages": ("mini_swe_agent", MINI_SWE_AGENT["messages"]),
    "openhands": ("openhands", OPENHANDS),
    "openhands history": ("openhands", {"history": OPENHANDS}),
    "openhands sdk": ("openhands_sdk", OPENHANDS_SDK),
    "swe-agent": ("swe_agent", SWE_AGENT),
    "swe-agent list": ("swe_agent", SWE_AGENT["trajectory"]),
}
