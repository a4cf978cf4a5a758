"""The normal form of shell text: what makes two commands the same command, and what does not."""

from __future__ import annotations

import pytest

from services.process.shell import parse

SAME = [
    ("ls  -la   src", " ls -la src \n"),
    ("ls # x", "ls"),
    ("ls;", "ls"),
    ("echo 'a' b", 'echo "a" b'),
    ("a\nb", "a; b"),
    ("ls \\\n -l", "ls -l"),
    ("ls > f", "ls >f"),
    ("ls 1> f", "ls > f"),
    ('ls "src"', "ls src"),
    ("ls -la\r\n", "ls -la"),
    ("# c\nls", "ls"),
    ("\\ls", "ls"),
    ("ls |  wc", "ls|wc"),
    ("ls &&\n wc", "ls && wc"),
    ("cat <<'E'\nx\nE", 'cat <<"E"\nx\nE'),
    ("cat <<A\nx\nA", "cat <<B\nx\nB"),
    ("(ls)", "( ls )"),
    ("for i in 1;do ls;done", "for i in 1\ndo\n ls\ndone"),
    ("if a;then b;fi", "if a\nthen\n  b\nfi"),
]
# Case, order, operators, expansions and quoting that changes the meaning all count.
DIFFERENT = [
    ("make; ./run", "make && ./run"),
    ("ls *.py", "ls '*.py'"),
    ("ls $x", 'ls "$x"'),
    ("ls", "LS"),
    ("ls a b", "ls b a"),
    ("ls &", "ls"),
    ("a | b", "a || b"),
    ("ls -a", "ls -A"),
    ("echo 'a  b'", "echo a b"),
    ("ls > f", "ls >> f"),
    ("X=1 ls", "ls"),
    ("git commit -m \"$(cat <<'E'\na\nE\n)\"", "git commit -m \"$(cat <<'E'\nb\nE\n)\""),
    ("cat <<'E'\n$x\nE", "cat <<E\n$x\nE"),
    ("grep -n 'a b' f", "grep -n a b f"),
    ("sed -n '1,5p' f", "sed -n '1,6p' f"),
    ("ls ~", "ls '~'"),
    ("cd a && ls", "(cd a && ls)"),
    ("echo {a,b}", "echo '{a,b}'"),
]


def normal(text: str) -> str:
    script = parse(text)
    assert script is not None, text
    return script.text


@pytest.mark.parametrize(("one", "other"), SAME)
def test_writing_a_command_another_way_keeps_its_normal_form(one: str, other: str) -> None:
    assert normal(one) == normal(other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_another_command_has_another_normal_form(one: str, other: str) -> None:
    assert normal(one) != normal(other)


def test_a_normal_form_is_its_own_normal_form() -> None:
    for pair in SAME:
        text = normal(pair[0])
        if "<<" not in text:  # a heredoc is written inline in a normal form, which is not shell
            assert normal(text) == text


def test_a_heredoc_may_share_its_line_with_more_commands() -> None:
    script = parse("cat <<'EOF'; echo done\nhello\nEOF")
    assert script is not None
    assert len(script.items) == 2
    assert normal("a && cat <<E | python3\nprint(1)\nE") == "a && cat <<'print(1)\n' | python3"


@pytest.mark.parametrize(
    "text", ["))((", 'echo "open', "echo 'open", "cat <<EOF\nno end", "if true", "a &&", "$(", "ls;;", "done", "a; fi"]
)
def test_text_that_is_no_shell_has_no_syntax(text: str) -> None:
    assert parse(text) is None
