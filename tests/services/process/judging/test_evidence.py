"""Views and quotes on any text: what was not shown, or is no answer of a tool, is never evidence."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from services.contracts.votes import Downgrade
from services.process.judging.quotes import LEAST, find
from services.process.judging.transcript import Transcript, normalised
from services.process.judging.view import Chunk, chunks_of, estimated_tokens
from services.process.penalties import gamma
from services.process.trajectories import read_trajectory

TEXT = st.text(st.sampled_from("abc \n\t é\U0001f600\ud800"), max_size=400)
STEPS = st.lists(st.tuples(st.sampled_from(["ls", "make", "echo abc abc abc abc", "sleep 1", None]), TEXT), min_size=1)


def transcript(turns: list[tuple[str | None, str]]) -> Transcript:
    steps = read_trajectory(
        [
            {
                "observation": seen,
                "tool_calls": [{"name": "bash", "arguments": {"command": command}}] if command else [],
            }
            for command, seen in turns
        ],
        "steps",
    )
    return Transcript(steps, gamma(steps))


@given(STEPS, st.integers(40, 2_000))
def test_chunks_are_bounded_and_hold_only_what_was_observed(turns: list[tuple[str | None, str]], tokens: int) -> None:
    made = transcript(turns)
    for chunk in chunks_of(made, range(len(turns)), tokens):
        assert estimated_tokens(chunk.text) <= tokens + 80  # a heading of its own at most
        chunk.text.encode()  # can be sent
        for piece in chunk.pieces:
            assert piece.text in normalised(chunk.text)
            shown = turns[piece.step][1].encode("utf-8", "replace").decode()
            assert piece.text in normalised(shown)


@given(STEPS)
def test_small_views_lose_nothing(turns: list[tuple[str | None, str]]) -> None:
    made = transcript(turns)
    shown = {piece.step for chunk in chunks_of(made, range(len(turns))) for piece in chunk.pieces}
    assert shown == {index for index, (command, seen) in enumerate(turns) if command and seen}


@given(STEPS, TEXT, st.data())
@example([("echo abc abc abc abc", "abc abc abc abc")], "abc abc abc", None)
def test_an_accepted_quote_is_a_tools_answer_within_the_stage(
    turns: list[tuple[str | None, str]], words: str, data: st.DataObject | None
) -> None:
    made = transcript(turns)
    end = len(turns) - 1 if data is None else data.draw(st.integers(0, len(turns) - 1))
    quote = words if data is None else data.draw(st.sampled_from([words, *(seen for _, seen in turns)]))
    chunks = chunks_of(made, range(end + 1))
    finding = find(quote, [piece for chunk in chunks for piece in chunk.pieces], made, end)
    if finding.downgrade is not None:
        return
    text = normalised(quote)
    assert finding.step is not None
    assert finding.step <= end
    assert len(text) >= LEAST
    command, seen = turns[finding.step]
    assert command not in (None, "sleep 1", "echo abc abc abc abc")
    assert text in normalised(seen.encode("utf-8", "replace").decode())
    assert text not in " ".join(filter(None, (typed for typed, _ in turns[: finding.step + 1])))


def test_nothing_shown_means_nothing_found() -> None:
    made = transcript([("ls", "a passage of some length")])
    assert find("a passage of some length", Chunk("", ()).pieces, made, 0).downgrade is Downgrade.QUOTE_NOT_FOUND


def test_an_elided_passage_is_not_found_although_the_record_holds_it() -> None:
    middle = "the passage in the middle"
    made = transcript([("ls", "x" * 50_000 + middle + "y" * 50_000)])
    (chunk,) = chunks_of(made, [0])
    assert "characters left out" in chunk.text
    assert find(middle, chunk.pieces, made, 0).downgrade is Downgrade.QUOTE_NOT_FOUND
    assert find("x" * 40 + "y" * 40, chunk.pieces, made, 0).downgrade is Downgrade.QUOTE_NOT_FOUND  # across the gap


def test_an_answer_to_a_turn_without_a_call_is_a_message_and_no_evidence() -> None:
    made = transcript([(None, "the tests have all passed"), ("ls", "nothing much to see")])
    pieces = [piece for chunk in chunks_of(made, [0, 1]) for piece in chunk.pieces]
    assert find("the tests have all passed", pieces, made, 1).downgrade is Downgrade.QUOTE_NOT_FOUND


def test_what_an_earlier_command_wrote_is_its_own_echo() -> None:
    made = transcript([("cat > log <<'E'\nall 12 tests passed\nE", ""), ("cat log", "all 12 tests passed")])
    pieces = [piece for chunk in chunks_of(made, [0, 1]) for piece in chunk.pieces]
    assert find("all 12 tests passed", pieces, made, 1).downgrade is Downgrade.ECHO
