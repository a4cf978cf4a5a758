"""The three static verdicts on a workflow (lean4agenticrl, Appendix H.1): each independent, a negative one as valid."""

from __future__ import annotations

from services.contracts.workflows import StaticVerdicts, Workflow
from services.process.workflow.coverage import coverage_of
from services.process.workflow.information import information_of
from services.process.workflow.variable_chain import chain_of


def static_verdicts(workflow: Workflow) -> StaticVerdicts:
    """For a workflow whose parts fit together (`check_workflow`)."""
    chain = chain_of(workflow)
    return StaticVerdicts(
        variable_chain=chain.verdict,
        information=information_of(workflow),
        coverage=coverage_of(workflow, chain),
    )
