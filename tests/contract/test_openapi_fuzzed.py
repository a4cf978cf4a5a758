"""schemathesis reads docs/openapi.json and tries every operation of a live gateway: requests that fit, and that do not.

Bounded (`EXAMPLES` a operation and phase) and repeatable: the examples are derived from the document, not from chance.
"""

from __future__ import annotations

from pathlib import Path

import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import load_all_checks, not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from bench.processes import Platform

EXAMPLES = 8
DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "openapi.json"
# Their clients send what Python's `json` makes of anything, so these read numbers as booleans and the like.
LENIENT = ("/api/check", "/verify", "/one_pass_verify_batch", "/compat/")
# Server-sent events: OpenAPI 3.1 calls the whole stream a string, schemathesis looks at each event.
STREAMS = ("/events", "/v1/live")

load_all_checks()
# A path that ends in a slash is another spelling of the one without.
schema = schemathesis.openapi.from_path(DOCUMENT).exclude(path_regex=r".+/$")


@schema.parametrize()
@settings(
    max_examples=EXAMPLES, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)
def test_every_answer_is_documented(case: schemathesis.Case, live: Platform) -> None:
    """Status, type, headers and body are as the document says, and what it forbids is refused.

    What it allows may be refused, too: it cannot say all that is checked (a label's form, a workflow's order).
    """
    checks = [
        status_code_conformance,
        content_type_conformance,
        response_headers_conformance,
    ]
    if not case.path.endswith(STREAMS):
        checks.append(response_schema_conformance)
    if not case.path.startswith(LENIENT):
        checks.append(negative_data_rejection)
    answer = case.call(base_url=live.url, timeout=30)
    if answer.status_code != 503:  # a part that is documented as missing: no evaluator, no judge
        checks.append(not_a_server_error)
    case.validate_response(answer, checks=checks)
