"""Rules 2, 3 and 4 over single commands: what fires, and what looks alike and must not."""

from __future__ import annotations

import pytest

from services.process.penalties import gamma
from services.process.trajectories import read_trajectory
from tests.services.process.turns import fired, judge

NO_OPS = [
    "true\r",
    "true",
    "exit",
    "exit 0",
    "exit 1",
    "sleep 5",
    "sleep 0.5; sleep 2",
    "true && exit 0",
    "true || true",
    ":",
    "sleep 5m",
    "sleep 5 &",
    "exit 0 # ok",
    "/bin/true",
    "command true",
    "bash -c 'exit 0'",
    'sh -c "sleep 5"',
    "( true )",
    "{ true; }",
    "time sleep 5",
    "timeout 10 sleep 5",
    "FOO=1 true",
    "true > /dev/null",
    "sleep 3 2>&1",
    "if true; then exit 0; fi",
    "for i in 1 2 3; do sleep 1; done",
    "! true",
    "sleep '5'",
    "sleep 1 2",
    "\\true",
    "true;",
    "sleep 5\n\n",
    "while true; do sleep 1; done",
    "sudo sleep 1",
    "eval 'true'",
    "true | true",
    "exec true",
    "sleep \\\n 5",
]
CONSTANT_OUTPUT = [
    "echo " + "a" * 100_000,
    "echo a{1..3}b",
    "echo hi || true",
    "echo hi | cat - | cat",
    "echo hi",
    "echo",
    "echo ''",
    "echo -n hi",
    "echo -e 'a\\nb'",
    "printf 'x\\n'",
    "printf '%s\\n' done",
    'printf "%d items\\n" 5',
    "cat <<'EOF'\nhello\nEOF",
    "cat <<EOF\nhello\nEOF",
    "cat <<-EOF\n\thello\n\tEOF",
    "cat <<< 'text'",
    "cat <<<x",
    "echo a && echo b; printf c",
    "echo 'a' | cat",
    'echo "a\\$b"',
    "echo 'it'\"'\"'s'",
    "echo $'a\\nb'",
    "(echo hi)",
    "{ echo hi; }",
    "echo hi &",
    "bash -c 'echo hi'",
    "sh <<'EOF'\necho done\nEOF",
    "eval 'echo hi'",
    "echo hi >&2",
    "echo hi 1>&2",
    "echo hi > /dev/null",
    "command echo hi",
    "/bin/echo hi",
    "echo done; exit 0",
    "sleep 1; echo done",
    "echo {1..3}",
    "echo done # c",
    "echo \\\n hi",
    "cat <<'EOF' <<'EOF2'\na\nEOF\nb\nEOF2",
    "cat <<EOF\nprice: 5\\$\nEOF",
    "if true; then echo yes; fi",
    "for i in 1 2; do echo hi; done",
    "echo 'hi' | tee",
    'cat << "EOF"\n$HOME `ls`\nEOF',
    "cat << \\EOF\n$HOME\nEOF",
    'echo "100%"',
    "echo '*.py'",
    "echo '~'",
    'echo "a # b"',
    "X=1 echo hi",
    "cat -n <<'EOF'\nx\nEOF",
    'echo ""\necho x',
    "echo '''quoted'''",
    "printf hello",
    "echo a$",
    "echo 'a\nb'",
    "echo =====",
    "echo -- hi",
    "echo ok",
]
PURE_PRINTS = [
    "python3 -c'print(1)'",
    "python -c 'print(\"hello\")'",
    "python3 - <<'EOF'\nprint('a')\nprint('b')\nEOF",
    "python3 <<'EOF'\nprint('a')\nEOF",
    "python3 <<< \"print('x')\"",
    "echo \"print('hi')\" | python3",
    "cat <<'EOF' | python3\nprint('ok')\nEOF",
    "python3 -u -c \"print('x')\"",
    "python -c 'print(f\"ok\")'",
    "python -c 'print(\"=\" * 60)'",
    "python3 -c \"print('a'); print('b', end='')\"",
    "/usr/bin/python3 -c 'print(1)'",
    "node -e 'console.log(\"ok\")'",
    "perl -e 'print \"ok\\n\"'",
    "ruby -e 'puts \"ok\"'",
    "php -r 'echo \"ok\";'",
    "awk 'BEGIN{print \"ok\"}'",
    "python3 -c \"print('a')\" && echo done",
    "python3 -c \"\nif __name__ == '__main__':\n    print('x')\n\"",
    "python3 -c 'import sys; print(\"ok\")'",
    "node <<'EOF'\nconsole.log('x');\nEOF",
    "bash -c \"python3 -c 'print(1)'\"",
    "python3 -c 'print([1,2,3])'",
    "python3 -c 'print(-1)'",
    "timeout 5 python3 -c 'print(1)'",
    "python3.11 -c 'print(1)'",
    "python3 -c $'print(1)\\nprint(2)'",
]
# Commands that read or change something, run what is not known, or do not parse.
INNOCENT = [
    "printf '%(%F)T'",
    "> f echo hi",
    "{ echo hi; } > f",
    ": > f",
    "exit 0; rm x",
    "print('hi')",
    "",
    "  ",
    "# c",
    "))((",
    'echo "unterminated',
    "sleep $N",
    "exit $?",
    "exit $(rm x)",
    "true $(ls)",
    "sleep 5 && pytest",
    "true > f",
    "true() { rm -rf b; }; true",
    "alias true='rm x'; true",
    "sleep infinity",
    "while ! test -f x; do sleep 1; done",
    "false",
    "wait",
    "cd /app",
    "X=5",
    "set -e; true",
    "true | tee f",
    "sleep 1 && ls",
    "until curl -s localhost; do sleep 1; done",
    "echo $HOME",
    "echo $?",
    "echo `pwd`",
    "echo $(date)",
    "echo *.py",
    "echo ~",
    "echo hi > f",
    "echo hi >> f",
    "echo hi | grep h",
    "echo hi | wc -c",
    "echo hi | tee f",
    "printf -v x hi",
    "printf '%s' \"$X\"",
    "cat f",
    "cat",
    "cat f - <<'E'\nx\nE",
    "cat <<EOF\n$HOME\nEOF",
    "cat <<EOF\n`ls`\nEOF",
    "cat <<EOF > f\nx\nEOF",
    "cat > f <<'EOF'\nx\nEOF",
    "cat <<'EOF' | psql\nx\nEOF",
    "echo() { rm x; }; echo hi",
    "alias echo='rm x'\necho hi",
    "echo hi; ls",
    "cd /app && echo hi",
    "export X=1; echo hi",
    "[ -f x ] && echo yes",
    "test -f x && echo yes || echo no",
    "echo y | apt install x",
    "for f in *; do echo x; done",
    "for i in 1 2; do echo $i; done",
    'echo "${X:-a}"',
    "echo $((1+1))",
    'echo "$(cat f)"',
    "cat <(ls)",
    "echo hi > $F",
    "echo a > f; echo b",
    "echo x &> f",
    "echo hi | sh -c 'cat > f'",
    "echo 'rm -rf x' | sh",
    "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT",
    'echo "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"',
    "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && cat patch.txt",
    "cat <<EOF\nx",
    "echo 'unterminated",
    "echo hi | xargs rm",
    "read x <<< 'a'",
    "echo ?",
    "cat << EOF > f; echo done\nx\nEOF",
    "which echo",
    "echo a >f",
    "git commit -m 'x'",
    "export FOO=bar",
    "source x; echo hi",
    ". x; echo hi",
    "ls",
    "python script.py",
    'python -c "print(input())"',
    "python -c 'import numpy; print(\"ok\")'",
    "python -c \"print('$HOME')\"",
    "python3 <<EOF\nprint('$HOME')\nEOF",
    "python -c 'print(open(\"x\").read())'",
    "python -c 'x=1\nprint(x)'",
    "python -c 'print(len(\"a\"))'",
    "python3 -c \"print('A'*10)\" > f",
    "python3 -c \"print('A'*10)\" | ./vuln",
    "./prog $(python3 -c 'print(\"A\"*64)')",
    "python3 -c \"def print(*a): open('x','w')\nprint('ok')\"",
    "python3 -c 'pass'",
    "python3 -c ''",
    "python2 -c 'print \"x\"'",
    "python -c 'print('",
    'node -e \'require("fs").writeFileSync("a","b"); console.log("ok")\'',
    "node -e 'console.log(process.cwd())'",
    "node -e 'console.log(`a${1}`)' x",
    "perl -e 'print `ls`'",
    "perl -pe 's/a/b/' f",
    "perl -i -pe 'print \"x\"' f",
    "ruby -e 'puts ARGV'",
    "ruby -e 'puts \"#{x}\"'",
    "php -r 'echo $argv;'",
    "awk '{print \"ok\"}' f",
    "awk 'BEGIN{system(\"ls\")}'",
    'awk \'BEGIN{print "x" > "f"}\'',
    "python -m pytest",
    "python",
    "echo \"print(open('a'))\" | python3",
    "cat > a.py <<'E'\nprint('x')\nE\npython3 a.py",
    "python3 -c \"import os; print('x')\"",
    "python3 -c \"from x import *; print('x')\"",
    "python3 -c \"print('x', file=open('f','w'))\"",
    'python3 -c "print(__file__)"',
    "python3 -c \"assert 1; print('x')\"",
    "cd /x && python3 -c 'print(1)'",
    "python3 -c \"exec('print(1)')\"",
    "print=1",
    "python3 -c \"print('a') if f() else 0\"",
    "python3 -c \"for print in [1]: print('x')\"",
    "python3 -c 'lambda: print(1)'",
]


def rules(command: str) -> list[int]:
    return [rule for step, rule in fired(command) if step == 0]


@pytest.mark.parametrize("command", NO_OPS)
def test_a_chain_of_no_ops_is_rule_2(command: str) -> None:
    assert rules(command) == [2]


@pytest.mark.parametrize("command", CONSTANT_OUTPUT)
def test_printing_constants_by_the_shell_is_rule_3(command: str) -> None:
    assert rules(command) == [3]


@pytest.mark.parametrize("command", PURE_PRINTS)
def test_a_script_of_literal_prints_is_rule_4(command: str) -> None:
    assert rules(command) == [4]


@pytest.mark.parametrize("command", INNOCENT)
def test_an_innocent_command_is_not_penalised(command: str) -> None:
    assert rules(command) == []


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("print('hi')", [4]),
        ("print('a')\nprint(f'{1}')", [4]),
        ("print(open('a').read())", []),
        ("!ls", []),
        ("x = 1\nprint('a')", []),
        ("'just a value'", []),
    ],
)
def test_a_notebook_cell_is_judged_as_a_script(code: str, expected: list[int]) -> None:
    assert fired(("execute_ipython_cell", {"code": code})) == [(0, rule) for rule in expected]


def test_a_call_without_a_name_and_an_odd_observation_are_data() -> None:
    steps = [{"tool_calls": [{"arguments": {}}], "observation": 7}, {"observation": {"exit_code": 0}}]
    assert [row.rules for row in gamma(read_trajectory(steps))] == [(), ()]


def test_every_call_of_a_step_must_be_idle() -> None:
    assert fired(("Bash", {"command": "exit 0"}), "ls") == [(0, 2)]
    row = judge(("Bash", {"command": "true"}))[0]
    assert row.gamma == -1
    assert row.penalties[0].quote == "true"


def test_text_typed_into_a_running_program_is_no_command() -> None:
    assert fired(("execute_bash", {"command": "exit", "is_input": True})) == []
    assert fired(("bash_command", {"keystrokes": "exit 0"})) == []
    assert fired(("bash_command", {"keystrokes": "exit 0\n"})) == [(0, 2)]


@pytest.mark.parametrize(
    "arguments",
    [
        {"command": "exit 0"},
        {"cmd": "exit 0"},
        '{"command": "exit 0"}',
        "exit 0",
        {"command": ["bash", "-lc", "exit 0"]},
    ],
)
def test_arguments_of_any_shape_give_the_command(arguments: object) -> None:
    assert fired(("shell", arguments)) == [(0, 2)]


@pytest.mark.parametrize("arguments", [None, {}, {"command": None}, {"command": 5}, '{"command": "exit', [], ["x"], 3])
def test_arguments_without_a_command_are_no_guess(arguments: object) -> None:
    assert fired(("Bash", arguments)) == []
