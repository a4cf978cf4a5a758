"""The embedded Lean behind the REPL protocol, driven by LeanInteract's own `LeanServer`."""

import asyncio
import subprocess

import pytest
from lean_interact import Command, FileCommand, LeanREPLConfig, LeanServer
from lean_interact.interface import CommandResponse, LeanError, PickleEnvironment, UnpickleEnvironment

from lean_worker.engines.base import HeaderError
from lean_worker.engines.embedded.layout import Installation
from lean_worker.engines.embedded.repl_shim import lay_out

pytestmark = pytest.mark.lean


@pytest.fixture(scope="module")
def shim(tmp_path_factory):
    return asyncio.run(lay_out(tmp_path_factory.mktemp("shim") / "a folder", Installation.locate(), ("Init", "Std")))


@pytest.fixture(scope="module")
def server(shim):
    config = LeanREPLConfig(local_repl_path=shim.folder, build_repl=False, lake_path=shim.lake)
    with LeanServer(config) as running:
        yield running


def test_leaninteract_reads_the_version(server):
    assert server.lean_version == "v4.28.0"


def test_a_command_without_an_environment_starts_afresh(server):
    first = server.run(Command(cmd="theorem a : 1 = 1 := rfl"), timeout=60)
    assert isinstance(first, CommandResponse)
    assert first.messages == []
    behind = server.run(Command(cmd="theorem b : 1 = 1 := a", env=first.env))
    assert not behind.has_errors()
    assert behind.env != first.env
    assert server.run(Command(cmd="theorem b : 1 = 1 := a")).has_errors()


def test_messages_have_positions_and_severities(server):
    answer = server.run(Command(cmd="theorem a : 1 = 1 := rfl\n#check a\ntheorem b : 1 = 2 := by sorry\n#check nope"))
    assert [(m.severity, m.start_pos.line, m.start_pos.column) for m in answer.messages] == [
        ("info", 2, 0),
        ("warning", 3, 8),
        ("error", 4, 7),
    ]
    assert answer.messages[1].data == "declaration uses `sorry`"
    assert not answer.lean_code_is_valid()


def test_imports_decide_the_environment(server):
    assert not server.run(Command(cmd="import Std\n#check Std.HashMap"), timeout=60).has_errors()
    assert server.run(Command(cmd="import Init\n#check Std.Net.SocketAddress")).has_errors()
    unknown = server.run(Command(cmd="import Nope"))
    assert "unknown module prefix 'Nope'" in unknown.messages[0].data


def test_an_import_block_that_cannot_be_read_is_an_error(server):
    answer = server.run(Command(cmd="\ttheorem a : 1 = 1 := rfl"), timeout=60)
    assert "tabs are not allowed" in answer.messages[0].data


def test_an_environment_that_does_not_exist_is_an_error(server):
    assert server.run(Command(cmd="#check 1", env=10_000)) == LeanError(message="Unknown environment.")
    assert server.run(PickleEnvironment(env=10_000, pickle_to="/nowhere")) == LeanError(message="Unknown environment.")


def test_placeholders_and_tactics_come_with_their_goals(server):
    text = "theorem a (p : Prop) (h : p) : p ∧ p := by\n  constructor\n  · exact h\n  · sorry"
    answer = server.run(Command(cmd=text, all_tactics=True))
    (hole,) = answer.sorries
    assert (hole.start_pos.line, hole.start_pos.column) == (4, 4)
    assert hole.goal.endswith("p : Prop\nh : p\n⊢ p")
    assert [tactic.tactic for tactic in answer.tactics if "\n" not in tactic.tactic][:2] == ["constructor", "· exact h"]
    assert "⊢ p ∧ p" in answer.tactics[0].goals
    assert server.run(Command(cmd="theorem b : True := by trivial")).tactics == []


def test_a_file_is_a_command(server, tmp_path):
    (tmp_path / "a.lean").write_text("theorem a : 1 = 1 := rfl\n#print axioms a\n")
    answer = server.run(FileCommand(path=str(tmp_path / "a.lean")))
    assert answer.messages[0].data == "'a' does not depend on any axioms"
    assert isinstance(server.run(FileCommand(path=str(tmp_path / "b.lean"))), LeanError)


def test_constants_are_carried_over_and_syntax_is_not(server, tmp_path):
    text = (
        'notation "yes" => True\ninductive T where | one | two (t : T)\n'
        "def f : T → Nat | .one => 1 | .two t => f t + 1\n"
        "theorem g : f (.two .one) = 2 := rfl\nnamespace N\ntheorem h : yes := trivial"
    )
    there = server.run(Command(cmd=text))
    assert not there.has_errors(), there
    path = str(tmp_path / "env.olean")
    server.run(PickleEnvironment(env=there.env, pickle_to=path))
    carried = server.run(UnpickleEnvironment(unpickle_env_from=path))
    assert isinstance(carried, CommandResponse)
    asked = server.run(Command(cmd="#print axioms g\n#check h\nend N\n#check T.rec\n#check f", env=carried.env))
    assert not asked.has_errors(), asked
    assert server.run(Command(cmd="theorem again : yes := trivial", env=carried.env)).has_errors()


def test_the_kernel_refuses_what_it_never_saw(shim, tmp_path):
    config = LeanREPLConfig(local_repl_path=shim.folder, build_repl=False, lake_path=shim.lake)
    with LeanServer(config) as server:
        bad = server.run(
            Command(cmd="set_option debug.skipKernelTC true in\ntheorem bad : (1 : Nat) = 2 := by decide +kernel"),
            timeout=60,
        )
        assert not bad.has_errors()
        server.run(PickleEnvironment(env=bad.env, pickle_to=str(tmp_path / "bad.olean")))
        with pytest.raises(ConnectionAbortedError, match=r"\(kernel\)"):
            server.run(UnpickleEnvironment(unpickle_env_from=str(tmp_path / "bad.olean")))


def test_a_pickle_of_another_process_is_read(shim, server, tmp_path):
    there = server.run(Command(cmd="def seven := 7"))
    server.run(PickleEnvironment(env=there.env, pickle_to=str(tmp_path / "seven.olean")))
    config = LeanREPLConfig(local_repl_path=shim.folder, build_repl=False, lake_path=shim.lake)
    with LeanServer(config) as other:
        carried = other.run(UnpickleEnvironment(unpickle_env_from=str(tmp_path / "seven.olean")), timeout=60)
        assert not other.run(Command(cmd="theorem t : seven = 7 := rfl", env=carried.env)).has_errors()


def test_malformed_json_ends_it_as_it_ends_the_real_one(shim):
    done = subprocess.run(
        [shim.lake, "env", shim.folder / ".lake/build/bin/repl"],
        input='{"cmd": \n\n',
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode != 0
    assert done.stdout == ""
    assert "Could not parse JSON" in done.stderr


def test_an_unknown_environment_cannot_be_laid_out(tmp_path):
    with pytest.raises(HeaderError, match="Mathlib"):
        asyncio.run(lay_out(tmp_path, Installation.locate(), ("Mathlib",)))
