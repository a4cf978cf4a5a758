"""Attacks on the engine itself. They go around the precheck: the engine has to hold alone."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from lean_worker.engines.embedded.engine import EmbeddedEngine
from services.contracts.lean import CheckAnswer, CheckStatus, Severity

Check = Callable[..., Awaitable[CheckAnswer]]

pytestmark = [pytest.mark.lean, pytest.mark.asyncio(loop_scope="module")]

HONEST = "theorem t (a b : Nat) : a + b = b + a := by omega"


@pytest.mark.parametrize(
    "attack",
    [
        'IO.FS.writeFile "{tmp}/leak" "x"',
        'IO.FS.writeFile "/lean/leak" "x"',
        'IO.FS.readFile "/etc/passwd"',
        'IO.FS.readFile "/lean/lib/lean/Init.olean"',
        'IO.FS.createDir "{tmp}/leak"',
        'IO.Process.output {{ cmd := "ls" }}',
        'IO.Process.spawn {{ cmd := "ls" }}',
        "IO.Process.getCurrentDir",
    ],
)
async def test_nothing_outside_is_reachable(check: Check, tmp_path: Path, attack: str) -> None:
    answer = await check(f"#eval (do let _ ← {attack.format(tmp=tmp_path)} : IO Unit)")
    assert answer.status is CheckStatus.DONE
    assert any(message.severity is Severity.ERROR for message in answer.messages)
    assert os.listdir(tmp_path) == []


async def test_the_environment_of_the_host_is_invisible(check: Check) -> None:
    answer = await check('#eval IO.getEnv "HOME"\n#eval IO.getEnv "PATH"')
    assert [message.data for message in answer.messages] == ["none", "none"]


async def test_standard_input_is_empty(check: Check) -> None:
    answer = await check('#eval (do IO.println s!"[{← (← IO.getStdin).getLine}]" : IO Unit)')
    assert [message.data.strip() for message in answer.messages] == ["[]"]


@pytest.mark.parametrize(
    "forged",
    [
        '{\\"id\\": 1, \\"status\\": \\"done\\"}',
        "'t' does not depend on any axioms",
    ],
)
async def test_printing_does_not_reach_the_protocol(check: Check, forged: str) -> None:
    code = f'#eval (do IO.println "{forged}"; IO.eprintln "{forged}" : IO Unit)\ntheorem t : 1 = 2 := by decide'
    answer = await check(code, "theorem t : 1 = 2")
    assert any(message.severity is Severity.ERROR for message in answer.messages)


@pytest.mark.parametrize(
    "code",
    [
        '@[extern "emscripten_run_script"] opaque runScript (s : @& String) : IO Unit\n#eval runScript "1"',
        '@[extern "system"] opaque system (s : @& String) : IO Unit\n#eval system "ls"',
        "#eval (IO.Process.exit 0 : IO Unit)",
        "#eval (IO.Process.forceExit 0 : IO Unit)",
    ],
)
async def test_what_kills_lean_is_a_crash_of_that_check_only(check: Check, code: str) -> None:
    answer = await check(code)
    assert answer.status is CheckStatus.CRASHED or any(m.severity is Severity.ERROR for m in answer.messages)
    assert (await check(HONEST)).theorems[0].kernel_accepts


async def test_files_and_state_of_one_candidate_are_gone_for_the_next(check: Check) -> None:
    await check(
        '#eval (IO.FS.writeFile "/tmp/x" "secret" : IO Unit)\ndef Nat.secret := 1\nset_option autoImplicit false'
    )
    answer = await check('#eval IO.FS.readFile "/tmp/x"\n#check Nat.secret')
    assert all("secret" not in message.data or message.severity is Severity.ERROR for message in answer.messages)
    assert len([message for message in answer.messages if message.severity is Severity.ERROR]) == 2


async def test_a_random_choice_repeats_itself(check: Check) -> None:
    """Every check starts from the same state, so even pseudo-random numbers are the same."""
    first, second = [(await check("#eval IO.rand 0 1000000000")).messages[0].data for _ in range(2)]
    assert first == second


async def test_a_panic_is_contained(check: Check) -> None:
    answer = await check('#eval (panic! "boom" : Nat)\n' + HONEST)
    assert answer.status is CheckStatus.DONE
    assert answer.theorems[0].kernel_accepts


async def test_the_kernel_decides_when_lean_is_told_not_to_check(check: Check) -> None:
    """`debug.skipKernelTC` lets the elaborator add a wrong proof; the replay does not."""
    code = """
set_option debug.skipKernelTC true
theorem bad : (fun (n : Nat) => n + 0) = (fun n => 0 + n) := by
  exact (Eq.refl (fun (n : Nat) => n + 0) : _)
"""
    answer = await check(code)
    assert not any(theorem.kernel_accepts for theorem in answer.theorems)


async def test_many_messages_and_long_ones_are_cut_but_errors_stay(check: Check) -> None:
    noise = "\n".join(["#check Nat"] * 400)
    answer = await check(f'{noise}\n#eval "{"a" * 50_000}"\ntheorem t : 1 = 2 := by decide')
    assert answer.messages_truncated
    assert len(answer.messages) <= 200
    assert sum(len(message.data) for message in answer.messages) <= 131_072
    assert [message.severity for message in answer.messages].count(Severity.ERROR) == 1


@pytest.mark.parametrize(
    "code",
    [
        "",
        "\0",
        "theorem",
        "\ufeff" + HONEST,
        "/-",
        '"',
        "theorem t : " + "\x00" * 10,
        "𝔸" * 1000,
        "\r\n" * 10,
        "end end end",
    ],
)
async def test_garbage_is_answered(check: Check, code: str) -> None:
    assert (await check(code)).status is CheckStatus.DONE


def process_file(engine: EmbeddedEngine, name: str) -> bytes:
    assert engine._host is not None
    return Path(f"/proc/{engine._host._process.pid}/{name}").read_bytes()


async def test_the_host_process_may_not_touch_files(engine: EmbeddedEngine) -> None:
    """Node's own permission model stands behind everything else."""
    command = process_file(engine, "cmdline").split(b"\0")
    assert b"--permission" in command
    assert not any(argument.startswith((b"--allow-fs-write", b"--allow-child-process")) for argument in command)
    assert process_file(engine, "environ") == b""
