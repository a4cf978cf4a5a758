"""Rules 1, 5 and 6: what they compare, what they look through, what clears them."""

from __future__ import annotations

import pytest

from services.process.penalties import gamma
from services.process.trajectories import read_trajectory
from tests.services.process.turns import Turn, fired, judge, record

# A command, and a call after which running it again shows nothing new.
NOTHING_CHANGED: list[tuple[str, Turn]] = [
    ("ls", "node -v; make -n"),
    ("ls", "x=1 grep a b"),
    ("ls", "cat a"),
    ("ls", "pwd"),
    ("ls", ("Read", {"file_path": "a"})),
    ("ls", ("Grep", {"pattern": "a"})),
    ("ls", ("TodoWrite", {})),
    ("ls", "grep -rn x . | head"),
    ("ls", "find . -name '*.py'"),
    ("ls", "git status"),
    ("ls", "git diff"),
    ("ls", "git log --oneline -5"),
    ("ls", "sed -n 1,5p f"),
    ("ls", "awk '{print $1}' f"),
    ("ls", "pytest -q"),
    ("ls", "python -m pytest tests -x 2>&1 | tail -5"),
    ("ls", "echo hi"),
    ("ls", "sleep 5"),
    ("ls", None),
    ("ls", "curl -s http://x"),
    ("ls", ("think", {"thought": "x"})),
    ("ls", ("str_replace_editor", {"command": "view", "path": "a"})),
    ("ls", "wc -l f 2>/dev/null"),
    ("ls", "ps aux | grep python"),
    ("ls", "test -f x && echo y"),
    ("ls", "diff a b"),
    ("ls", "cat a b | sort | uniq -c"),
    ("ls", "find . -exec grep -l x {} \\;"),
    ("ls", "python3 --version"),
    ("ls", "which python"),
    ("ls", "git show HEAD:a.py"),
    ("ls", "tail -20 log"),
    ("ls", "docker ps"),
    ("ls", "pip list"),
    ("ls", "xargs grep x < f"),
    ("cd /t && pytest -q", "cd /t && cat a"),
    ("cd /t && pytest -q", "cd /t/src && ls"),
    ("pytest", "timeout 60 pytest a"),
    ("ls", "(cd src && ls)"),
    ("ls", "for f in *.py; do head -1 $f; done"),
    ("ls", "python -c \"print('x')\""),
    ("git diff", "git diff --stat"),
    ("ls", ("WebSearch", {"query": "x"})),
    ("npm test", "cat package.json"),
    ("go test ./...", "cat a.go"),
    ("ls", "[ -d x ]"),
    ("ls", "cat <<'E'\nx\nE"),
    ("cat a.py", "cat b.py"),
    ("ls", "jq . f"),
    ("ls", "while read l; do echo $l; done < f"),
    ("ls", "export -p"),
    ("ls", "time ls"),
    ("ls", "echo $(git rev-parse HEAD)"),
    ("ls", "ls /x || true"),
    ("ls", "exit 0"),
    ("ls", "tree -L 2"),
    ("ls", "nl f | sed -n '1,5p'"),
    ("ls", "rg foo -g '*.py'"),
]
# A command, and a call (or a command that itself) may have changed what it would show.
MAY_HAVE_CHANGED: list[tuple[str, Turn]] = [
    ("pytest", "pytest --snapshot-update"),
    ("pytest", "python -m pytest --junitxml=out.xml"),
    ("ls", "jest -u"),
    ("ls", "npx vitest run --update"),
    ("history", "history -c"),
    ("ls", "sed -i 's/a/b/' f"),
    ("ls", "echo x > f"),
    ("ls", "echo x >> f"),
    ("ls", "cat > f <<'E'\nx\nE"),
    ("ls", "mkdir d"),
    ("ls", "rm f"),
    ("ls", "mv a b"),
    ("ls", "touch x"),
    ("ls", "git add ."),
    ("ls", "git commit -m x"),
    ("ls", "git checkout f"),
    ("ls", "git stash"),
    ("ls", "pip install x"),
    ("ls", "python script.py"),
    ("ls", "./run"),
    ("ls", "make"),
    ("ls", "cd src"),
    ("ls", "export X=1"),
    ("ls", ("Edit", {"file_path": "a"})),
    ("ls", ("Write", {"file_path": "a"})),
    ("ls", ("MultiEdit", {})),
    ("ls", ("mcp__x__y", {})),
    ("ls", ("Task", {})),
    ("ls", ("str_replace_editor", {"command": "create", "path": "a"})),
    ("ls", ("KillShell", {})),
    ("ls", "tee f"),
    ("ls", "curl -o f http://x"),
    ("ls", "curl -X POST http://x"),
    ("ls", "wget http://x"),
    ("ls", "find . -delete"),
    ("ls", "find . -exec rm {} \\;"),
    ("ls", "ls | xargs rm"),
    ("ls", "perl -pi -e 's/a/b/' f"),
    ("ls", "awk '{print > \"f\"}' a"),
    ("ls", "sort -o f f"),
    ("ls", "tar xf a"),
    ("ls", "npm install"),
    ("ls", "patch -p1 < d"),
    ("ls", "bash s.sh"),
    ("ls", "$CMD"),
    ("ls", "unknown_prog"),
    ("ls", "kill 1"),
    ("ls", "chmod +x f"),
    ("ls", "cp a b"),
    ("ls", "ln -s a b"),
    ("ls", "echo $(rm x)"),
    ("ls", "test -f x || touch x"),
    ("ls", "dd if=a of=b"),
    ("ls", "sed -n 'w out' f"),
    ("ls", "git branch new"),
    ("ls", "docker run x"),
    ("ls", 'python -c \'open("x","w")\''),
    ("ls", "cat a | tee b"),
    ("ls", "if true; then rm x; fi"),
    ("ls", "bash -c 'rm x'"),
    ("ls", 'eval "$X"'),
    ("ls", ("execute_ipython_cell", {"code": "open('x','w')"})),
    ("ls", ("Bash", {"command": "y", "is_input": True})),
    ("make", "cat a"),
    ("python app.py", "cat a"),
    ("touch a", "ls"),
    ("ls", "echo 'unterminated"),
    ("echo x > f", "ls"),
    ("cd src && ls", "cat a"),
    ("ls", "black ."),
    ("ls", "npm run build"),
    ("ls", "apt-get install x"),
    ("ls", ("apply_patch", {"input": "x"})),
    ("ls", "git -C /x reset --hard"),
    ("ls", "foo() { rm x; }; foo"),
    ("ls", "cat <<E\n$(rm x)\nE"),
    ("ls", "sed --in-place 's/a/b/' f"),
    ("ls", "git pull"),
    ("ls", "source venv/bin/activate"),
]


@pytest.mark.parametrize(("command", "between"), NOTHING_CHANGED)
def test_a_re_run_after_mere_looking_is_rule_6(command: str, between: Turn) -> None:
    assert (2, 6) in fired(command, between, command)


@pytest.mark.parametrize(("command", "between"), MAY_HAVE_CHANGED)
def test_a_re_run_after_a_possible_change_is_not_rule_6(command: str, between: Turn) -> None:
    assert (2, 6) not in fired(command, between, command)


def test_rule_6_names_the_last_run() -> None:
    penalty = judge("ls", "cat a", "ls", "cat b", "ls")[4].penalties[0]
    assert (penalty.rule, penalty.earlier_step, penalty.quote) == (6, 2, "ls")


def test_rule_6_looks_within_one_stage_visit() -> None:
    assert fired("ls", "cat a", "ls", stages=("a", "b", "a")) == []
    assert fired("ls", "cat a", "ls", stages=("a", "a", "a")) == [(2, 6)]


def test_without_labels_the_trajectory_is_one_visit() -> None:
    assert {row.visit for row in judge("ls", "pwd", "ls")} == {0}


def test_a_step_without_a_label_goes_on_with_the_visit() -> None:
    steps = record("ls", "cat a", "ls", stages=("a", "a", "a"))
    del steps[1]["stage"]
    assert [(row.stage, row.visit) for row in gamma(read_trajectory(steps))] == [("a", 0)] * 4


def test_the_third_run_and_every_later_one_is_rule_1() -> None:
    assert fired("make", "make", "make", "make") == [(2, 1), (3, 1)]
    assert judge("make", "make", "make")[2].penalties[0].earlier_step == 0


def test_another_call_ends_a_run_and_words_do_not() -> None:
    assert fired("make", "make", ("Read", {"file_path": "a"}), "make") == []
    assert fired("make", None, "make", "make") == [(1, 5), (3, 1)]


def test_rule_1_compares_normal_forms_across_tools_and_stages() -> None:
    keys: Turn = ("bash_command", {"keystrokes": "make  all\n"})
    other: Turn = ("execute_bash", {"command": "make all;"})
    assert fired(keys, "make all # again", other) == [(2, 1)]
    assert fired("make", "make", "make", stages=("a", "a", "b")) == [(2, 1)]


def test_text_that_does_not_parse_is_compared_as_text() -> None:
    assert fired('echo "oops', 'echo "oops', 'echo "oops') == [(2, 1)]


def test_other_tools_and_waiting_are_no_repeats() -> None:
    edit: Turn = ("Edit", {"file_path": "a", "old_string": "x", "new_string": "y"})
    wait: Turn = ("bash_command", {"keystrokes": "", "duration": 5})
    assert fired(edit, edit, edit) == []
    assert fired(wait, wait, wait) == []


def test_an_intermediate_turn_without_a_call_is_rule_5_and_the_last_is_not() -> None:
    assert fired("make", None, None) == [(1, 5), (2, 5)]
    assert fired() == []


@pytest.mark.parametrize("calls", [None, []])
def test_missing_null_and_empty_calls_are_no_action(calls: object) -> None:
    steps = [{"thought": "t", "tool_calls": calls}, {"thought": "end"}]
    assert [row.rules for row in gamma(read_trajectory(steps))] == [(5,), ()]


def test_an_unreadable_action_is_not_idleness_but_idle_prose_is() -> None:
    error = "Previous response had parsing errors: no valid JSON found"
    tried = [{"thought": '{"commands": [{"keystrokes": "ls\\n"', "observation": error}, {"thought": "end"}]
    idle = [{"thought": "I think we are done here.", "observation": error}, {"thought": "end"}]
    assert [row.gamma for row in gamma(read_trajectory(tried))] == [0, 0]
    assert [row.gamma for row in gamma(read_trajectory(idle))] == [-1, 0]


def test_planning_is_never_penalised_and_no_earlier_run() -> None:
    steps = [
        {"thought": "the plan", "phase": "plan"},
        {"tool_calls": [{"name": "Bash", "arguments": {"command": "ls"}}], "phase": "plan"},
        {"tool_calls": [{"name": "Bash", "arguments": {"command": "ls"}}]},
        {"thought": "end"},
    ]
    assert [row.gamma for row in gamma(read_trajectory(steps))] == [0, 0, 0, 0]


def test_a_command_that_sets_its_own_directory_does_not_mind_others() -> None:
    assert fired("cd /a && ls", "cd /b && cat x", "cd /a && ls") == [(2, 6)]
    assert fired("ls", "cd /b && cat x", "ls") == []
    assert fired("cd /a && ls", "export X=1", "cd /a && ls") == []
    assert fired("export X=2 && ls", "export X=1", "export X=2 && ls") == [(2, 6)]
