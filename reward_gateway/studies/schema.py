"""The recorded columns: one row a candidate. `docs/studies.md` lists them; a test keeps both equal.

What concerns the whole batch is repeated in each of its rows, which Parquet's encoding makes cheap. Names that are
digests are keyed with a secret of the folder, so that they can be joined but not looked up.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from services.contracts.outcomes import LeanStatus, Reason, Verdict
from services.contracts.proofs import Mode

VERSION = 1
VERSION_KEY = b"lean_reward.cohort"


class Column(NamedTuple):
    """`kind`: `text`, `word` (one of few texts), `count`, `number`, `flag`, `time` (UTC) or `numbers`.

    `words`: those that a reader goes by, and that no other may stand for.
    """

    name: str
    kind: str
    meaning: str
    optional: bool = False
    words: type[Enum] | None = None


COLUMNS = (
    Column("batch", "text", "Digest of the batch's id (the id itself with `recorder.code`)."),
    Column("received_at", "time", "When the batch was received."),
    Column("mode", "word", "Who could decide: `hybrid`, `lean` or `evaluator`.", words=Mode),
    Column("cutoff_policy", "word", "The event that was to end the batch."),
    Column("cutoff_reason", "word", "What ended it."),
    Column("cutoff_s", "number", "When it ended, seconds after receipt."),
    Column("timeout_s", "number", "Wall-clock limit of a Lean check, seconds."),
    Column("scheduling", "word", "Which checks ran first."),
    Column("engines", "count", "Warm Lean engines when the batch ended."),
    Column("index", "count", "Place of the candidate in its batch, from 0."),
    Column("program", "text", "Digest of the program.", optional=True),
    Column("check", "text", "Digest of everything that the verdict depends on; equal checks ran once.", optional=True),
    Column("group", "text", "Digest of the candidate's group (the group itself with `recorder.code`).", optional=True),
    Column("problem", "text", "Digest of the statement, else of the group: what check times share.", optional=True),
    Column("code", "text", "The program, with `recorder.code`.", optional=True),
    Column("characters", "count", "Length of the program.", optional=True),
    Column("features", "numbers", "What the check-time predictor sees of the program.", optional=True),
    Column("precheck", "word", "Why the precheck rejected it; null where it passed.", optional=True, words=Reason),
    Column("lean_status", "word", "What became of its Lean check by the cutoff.", words=LeanStatus),
    Column("lean_verdict", "word", "Lean's verdict; `unknown` without one.", words=Verdict),
    Column("lean_reason", "word", "Lean's reason.", optional=True, words=Reason),
    Column("check_s", "number", "Time of the check itself, seconds.", optional=True),
    Column("lean_at_s", "number", "When the gateway had Lean's answer, seconds after receipt.", optional=True),
    Column("cached", "flag", "The verdict cache answered."),
    Column(
        "misstated",
        "flag",
        "A prediction of valid counts for nothing: the statement is not in the program, or no model saw all of it.",
    ),
    Column(
        "predicted",
        "word",
        "The evaluator's verdict; null where none came by the cutoff.",
        optional=True,
        words=Verdict,
    ),
    Column("predicted_reason", "word", "Its reason.", optional=True, words=Reason),
    Column("gate", "number", "The gate's probability of valid.", optional=True),
    Column("feedback", "word", "The feedback model's verdict.", optional=True, words=Verdict),
    Column("predicted_at_s", "number", "When the gateway had the prediction, seconds after receipt.", optional=True),
    Column("model", "word", "The models that predicted.", optional=True),
)
