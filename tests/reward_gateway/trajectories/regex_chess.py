"""The worked cases of lean4agenticrl, Appendix J (Figures 6 to 9): regex-chess at four checkpoints, as test vectors.

The figures give the segments, the stage outcomes with their vote counts (how many of three replicas agree with the
majority), the downgrades and the step rewards. Steps that they abridge have an output of no meaning; a cited passage
stands in the observations that the figure names. The first replica of a case is the one whose segments the figure
heads its stages with (the third one at step 40), because a rollout's own segments are the first replica's.

Where a figure says less than a vector needs, the choice is noted: what a lone dissenting +1 cites, the rest of replica
2's segments at step 80 (its stages reach the turns that it cites), and the first stage at step 120 (its heading is
missing from the text of the paper; every stage there is +1).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

FINAL = "final_verification"
Span = tuple[int, int]
Spans = Mapping[str, Sequence[Span]]

NO = ("insufficient", "")


def yes(quote: str) -> tuple[str, str]:
    return "support", quote


@dataclass(frozen=True)
class Stage:
    """Answers of the three replicas, and what must come of them: beta, agreeing votes, downgrades by replica."""

    answers: Sequence[tuple[str, str]]
    beta: int
    agreeing: int
    downgrades: Sequence[str | None] = (None, None, None)


@dataclass(frozen=True)
class Case:
    """`passages`: cited text by the steps whose observations hold it; `elided`: one that stands in the clipped middle
    of a long observation.
    """

    name: str
    alpha: int
    steps: int
    nodes: Sequence[str]
    segments: Sequence[Spans]
    stages: Mapping[str, Stage]
    passages: Mapping[int, Sequence[str]]
    illegal: Sequence[int]
    elided: Mapping[int, str] = field(default_factory=dict)
    parse_failures: Sequence[int] = ()


def _pswf(count: int) -> list[str]:
    return [*(f"PSWF_{number:02}" for number in range(1, count)), FINAL]


_ROUNDTRIP = "ENCODED:rnb1k1nr/p2p1ppp/3B4/1p1NPN1P/6P1/3P1Q2/P1P5/q4Kb1\nROUNDTRIP OK:True"
_SIZES = "pairs:3907 bytes:696266"
_BROKEN = '"My previous /tmp/g.py chunk was broken" removed'

STEP_0 = Case(
    name="base model (step 0)",
    alpha=-1,
    steps=20,
    nodes=_pswf(8),
    segments=[
        {
            "PSWF_01": [(0, 1)],
            "PSWF_03": [(2, 4)],
            "PSWF_04": [(5, 9)],
            "PSWF_05": [(10, 10)],
            "PSWF_02": [(11, 11)],
            "PSWF_06": [(12, 13)],
            "PSWF_07": [(14, 16)],
            FINAL: [(17, 19)],
        }
    ]
    * 3,
    stages={
        "PSWF_01": Stage([NO, NO, yes(_BROKEN)], -1, 2),
        "PSWF_03": Stage([yes("ROUNDTRIP OK:True")] * 3, 1, 3),
        "PSWF_04": Stage([NO] * 3, -1, 3),
        "PSWF_05": Stage([NO] * 3, -1, 3),
        "PSWF_02": Stage([yes(_SIZES), NO, yes(_SIZES)], 1, 2),
        "PSWF_06": Stage([NO] * 3, -1, 3),
        "PSWF_07": Stage([NO] * 3, -1, 3),
        FINAL: Stage([NO] * 3, -1, 3),
    },
    passages={1: [_BROKEN], 4: [_ROUNDTRIP], 10: [_SIZES]},
    illegal=[2, 11, 12],
    parse_failures=[17],
)

_FLATTENED = "after flatten:'rnb.k.nr/p..p.ppp/...B..../.p.NPN.P/......P./...P.Q../P.P...../q....Kb.w kq-0."
_SAMPLE_43 = "6P1/3P2Q1/P1P5/q4Kb1 b kq-"
_LATER_50 = "start position:20 lines, ep set"
_COUNT_3 = "COUNT 3:'...P.Q../P.P.K.../q.....b.b kq-0 0'"
_QD1 = "...P..../P.P...../q..Q.Kb.b kq-0 0"
_WROTE = "wrote 2391 rules, size 414197"
_AT_72 = "OURS 20 PY 20 and the size holds"
_CASTLED = "OURS 43 PY 43 countmatch True subset True"
_RAN = "Ran 1 test in 9.475 s"
_EP = "OURS 31 PY 31"
_RAN_LAST = "Ran 1 test in 9.540 s"
_OTHERS_40 = {
    "PSWF_04": [(0, 7), (68, 76)],
    "PSWF_01": [(8, 21)],
    "PSWF_02": [(22, 29)],
    "PSWF_05": [(30, 52)],
    "PSWF_06": [(53, 56)],
    FINAL: [(57, 67)],
    "PSWF_03": [(77, 94)],
}

STEP_40 = Case(
    name="step 40 (replicas 3, 1, 2)",
    alpha=-1,
    steps=95,
    nodes=_pswf(7),
    segments=[
        {
            "PSWF_04": [(0, 7), (68, 92)],
            "PSWF_01": [(8, 21)],
            "PSWF_02": [(22, 29)],
            "PSWF_05": [(30, 52)],
            "PSWF_06": [(53, 56)],
            "PSWF_03": [(57, 67)],
            FINAL: [(93, 94)],
        },
        _OTHERS_40,
        _OTHERS_40,
    ],
    stages={
        "PSWF_01": Stage([yes(_FLATTENED)] * 3, 1, 3),
        "PSWF_02": Stage(
            [yes(_LATER_50), yes(_SAMPLE_43), yes(_LATER_50)], -1, 2, ["from_the_future", None, "from_the_future"]
        ),
        "PSWF_05": Stage([yes(_QD1), yes(_COUNT_3), yes(_COUNT_3)], 1, 3),
        "PSWF_06": Stage([yes(_AT_72), yes(_WROTE), yes(_WROTE)], -1, 3, ["from_the_future"] * 3),
        "PSWF_03": Stage([yes(_RAN), yes(_LATER_50), yes(_CASTLED)], 1, 2, [None, "quote_not_found", None]),
        "PSWF_04": Stage([yes(_EP)] * 3, 1, 3),
        FINAL: Stage([yes(_RAN_LAST), NO, NO], -1, 2),
    },
    passages={
        20: [_FLATTENED],
        28: [_SAMPLE_43],
        50: [_LATER_50],
        52: [_COUNT_3, _QD1],
        66: [_CASTLED],
        67: [_RAN],
        72: [_WROTE, _AT_72],
        76: [_EP],
        93: [_WROTE],
        94: [_RAN_LAST],
    },
    elided={56: _WROTE},
    # Its first stage is PSWF_04; 8, 30, 57 and 93 jump, and 68 comes back to a visit that was left.
    illegal=[0, 8, 30, 57, 68, 93],
)

_HARNESS = "our=2 exp=3 FAIL"
_PART_A = "part A loading 171(preproc+pawns)"
_MARKERS = "markers 6341/total 6352/size 1001073"
_THREE = "our=3 exp=3 OK on the sample"
_EDGES = "ALL EDGE TESTS:PASS"
_RAN_72 = "Ran 1 test in 72.898 s"
_PAIRS_91 = "pairs:14201 size:2270000"
_VALID = "valid 2-item pairs:True pairs:14249 size:2283900"
_RAN_116 = "Ran 1 test in 70.1 s"


def _others_80(*, late: bool) -> Spans:
    """Replicas 2 and 3; replica 2 (`late`) has its fourth stage go on to t111 and its fifth to t91."""
    rest: Spans = {"PSWF_04": [(24, 63)], "PSWF_05": [(64, 70)], FINAL: [(71, 120)]}
    if late:
        rest = {"PSWF_04": [(24, 63), (92, 111)], "PSWF_05": [(64, 91)], FINAL: [(112, 120)]}
    return {"PSWF_01": [(0, 1)], "PSWF_03": [(2, 12)], "PSWF_02": [(13, 23)], **rest}


STEP_80 = Case(
    name="step 80",
    alpha=-1,
    steps=121,
    nodes=_pswf(6),
    segments=[
        {
            "PSWF_01": [(0, 1)],
            "PSWF_02": [(2, 2)],
            "PSWF_03": [(3, 5)],
            "PSWF_04": [(6, 63)],
            "PSWF_05": [(64, 70)],
            FINAL: [(71, 120)],
        },
        _others_80(late=True),
        _others_80(late=False),
    ],
    stages={
        "PSWF_01": Stage([yes("the three lines are reprinted"), NO, NO], -1, 3, ["quote_not_found", None, None]),
        "PSWF_02": Stage([yes(_HARNESS)] * 3, 1, 2, ["from_the_future", None, None]),
        "PSWF_03": Stage([yes(_PART_A), yes(_MARKERS), yes(_MARKERS)], 1, 3),
        "PSWF_04": Stage([yes(_THREE), yes(_EDGES), yes(_THREE)], 1, 3),
        "PSWF_05": Stage([yes(_RAN_72), yes(_PAIRS_91), yes(_RAN_72)], 1, 3),
        FINAL: Stage([yes(_VALID), yes(_RAN_116), yes(_VALID)], 1, 3),
    },
    passages={
        5: [_PART_A],
        12: [_MARKERS],
        23: [_HARNESS],
        33: [_THREE],
        69: [_RAN_72],
        91: [_PAIRS_91],
        111: [_EDGES],
        116: [_RAN_116],
        117: [_VALID],
    },
    illegal=[],
)

_MATCH_42 = "fen legal 20 ours 20 MATCH"
_LINE_39 = "'rnb1k1nr/.../P1P1K3/q5b1 b kq-0 0'"
_BAD_2 = "DONE bad=2/23"
_BAD_0 = "EXIT=0 DONE bad=0/23"
_OPERA = "Successfully tested 18 positions from Morphy's Opera Game(33 moves)"

STEP_120 = Case(
    name="step 120",
    alpha=1,
    steps=173,
    nodes=_pswf(5),
    segments=[
        {
            "PSWF_01": [(0, 42)],
            "PSWF_02": [(43, 45)],
            "PSWF_03": [(46, 86)],
            "PSWF_04": [(87, 137)],
            FINAL: [(138, 172)],
        }
    ]
    * 3,
    stages={
        "PSWF_01": Stage([yes(_MATCH_42)] * 3, 1, 3),
        "PSWF_02": Stage([yes(_LINE_39)] * 3, 1, 3),
        "PSWF_03": Stage([yes(_BAD_2)] * 3, 1, 3),
        "PSWF_04": Stage([yes(_BAD_0)] * 3, 1, 3),
        FINAL: Stage([yes(_OPERA)] * 3, 1, 3),
    },
    passages={39: [_LINE_39], 42: [_MATCH_42], 86: [_BAD_2], 128: [_BAD_0], 139: [_OPERA]},
    illegal=[],
)

CASES = (STEP_0, STEP_40, STEP_80, STEP_120)

STEP_REWARDS = {(-1, 1): -0.8, (-1, -1): -1.2, (1, 1): 1.5}
"""The figures' last lines: the reward of a step by alpha and the beta of its stage."""
