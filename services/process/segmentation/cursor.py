"""Where a segmentation stands, and the moves that the workflow allows from there."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from services.contracts.workflows import Workflow
from services.process.certificates.claims import Decision, Row
from services.process.workflow import transitions_of


class Move(NamedTuple):
    """STAY has no target; every other move names the node that it enters."""

    decision: Decision
    target: int | None = None


STAY = Move(Decision.STAY)


class Cursor:
    """Starts at the entry, in its visit 0. Each entry into a node is a visit of its own."""

    def __init__(self, workflow: Workflow) -> None:
        transitions = transitions_of(workflow)
        self._moves: dict[int, list[Move]] = {}
        for decision, arcs in ((Decision.ADVANCE, transitions.forward), (Decision.LOOP_BACK, transitions.back)):
            for source, target in arcs:
                moves = self._moves.setdefault(source, [])
                if Move(decision, target) not in moves:
                    moves.append(Move(decision, target))
        self.node = workflow.entry
        self.visit = 0
        self._entered = Counter({workflow.entry: 1})

    def moves(self) -> list[Move]:
        """What is legal besides staying: forward arcs, and declared loop-backs."""
        return self._moves.get(self.node, [])

    def row(self, move: Move) -> Row:
        """Make a move and give the row of the turn that made it. Raises ValueError for a move that is not legal."""
        if move != STAY:
            if move not in self.moves() or move.target is None:
                raise ValueError(f"{move} is no move from node {self.node}")
            self.node = move.target
            self.visit = self._entered[self.node]
            self._entered[self.node] += 1
        return Row(move.decision, self.node, self.visit)
