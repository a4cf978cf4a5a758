"""Errors on the wire: RFC 9457 problem documents with a closed list of codes."""

from __future__ import annotations

from enum import Enum

from pydantic import ConfigDict, Field

from services.contracts.base import Wire

PROBLEM_MEDIA_TYPE = "application/problem+json"
_TYPE_PREFIX = "urn:lean-reward:problem:"


class ProblemCode(str, Enum):
    """Every error that a route answers with; the value is stable, its meaning never changes."""

    MALFORMED_REQUEST = "malformed_request"
    MALFORMED_JSON = "malformed_json"
    MALFORMED_BODY = "malformed_body"
    UNAUTHENTICATED = "unauthenticated"
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not_found"
    METHOD_NOT_ALLOWED = "method_not_allowed"
    BODY_TIMEOUT = "body_timeout"
    BATCH_CONFLICT = "batch_conflict"
    CANCELLED = "cancelled"
    BODY_TOO_LARGE = "body_too_large"
    PROGRAM_TOO_LARGE = "program_too_large"
    TOO_MANY_CANDIDATES = "too_many_candidates"
    UNSUPPORTED_MEDIA_TYPE = "unsupported_media_type"
    UNSUPPORTED_ENCODING = "unsupported_encoding"
    INVALID_REQUEST = "invalid_request"
    EVALUATOR_NOT_CONFIGURED = "evaluator_not_configured"
    TOO_MUCH_IN_FLIGHT = "too_much_in_flight"
    QUEUE_FULL = "queue_full"
    QUOTA_EXCEEDED = "quota_exceeded"
    INTERNAL_ERROR = "internal_error"
    QUEUE_UNAVAILABLE = "queue_unavailable"
    LEAN_UNAVAILABLE = "lean_unavailable"
    EVALUATOR_UNAVAILABLE = "evaluator_unavailable"
    JUDGE_UNAVAILABLE = "judge_unavailable"
    SHUTTING_DOWN = "shutting_down"

    @property
    def uri(self) -> str:
        """The `type` member of the problem document."""
        return _TYPE_PREFIX + self.value

    @property
    def status(self) -> int:
        return _KINDS[self][0]

    @property
    def summary(self) -> str:
        """The `title` member of the problem document."""
        return _KINDS[self][1]


_KINDS: dict[ProblemCode, tuple[int, str]] = {
    ProblemCode.MALFORMED_REQUEST: (400, "The request is not valid HTTP"),
    ProblemCode.MALFORMED_JSON: (400, "The body is not valid JSON"),
    ProblemCode.MALFORMED_BODY: (400, "The body does not match its content encoding"),
    ProblemCode.UNAUTHENTICATED: (401, "A valid API key is needed"),
    ProblemCode.FORBIDDEN: (403, "The API key does not allow this"),
    ProblemCode.NOT_FOUND: (404, "There is nothing here"),
    ProblemCode.METHOD_NOT_ALLOWED: (405, "The route does not have this method"),
    ProblemCode.BODY_TIMEOUT: (408, "The body did not arrive in time"),
    ProblemCode.BATCH_CONFLICT: (409, "The id belongs to a batch with another body"),
    ProblemCode.CANCELLED: (409, "The batch was cancelled"),
    ProblemCode.BODY_TOO_LARGE: (413, "The body is too large"),
    ProblemCode.PROGRAM_TOO_LARGE: (413, "A program is too large"),
    ProblemCode.TOO_MANY_CANDIDATES: (413, "The batch has too many candidates"),
    ProblemCode.UNSUPPORTED_MEDIA_TYPE: (415, "The body must be JSON"),
    ProblemCode.UNSUPPORTED_ENCODING: (415, "The content encoding is not supported"),
    ProblemCode.INVALID_REQUEST: (422, "The request does not fit the contract"),
    ProblemCode.EVALUATOR_NOT_CONFIGURED: (422, "This server has no evaluator"),
    ProblemCode.TOO_MUCH_IN_FLIGHT: (429, "Too much is in flight"),
    ProblemCode.QUEUE_FULL: (429, "The queue is full"),
    ProblemCode.QUOTA_EXCEEDED: (429, "The quota of the API key is used up"),
    ProblemCode.INTERNAL_ERROR: (500, "Unexpected error"),
    ProblemCode.QUEUE_UNAVAILABLE: (503, "The queue cannot be reached"),
    ProblemCode.LEAN_UNAVAILABLE: (503, "No Lean worker is ready"),
    ProblemCode.EVALUATOR_UNAVAILABLE: (503, "The evaluator cannot be reached"),
    ProblemCode.JUDGE_UNAVAILABLE: (503, "The judge cannot be reached"),
    ProblemCode.SHUTTING_DOWN: (503, "The server is shutting down"),
}


class Fault(Wire):
    """One thing that is wrong with a request. Never carries the offending text."""

    pointer: str = Field(description="JSON pointer (RFC 6901) into the body, cut when it is too long.")
    detail: str


class Missing(Wire):
    """A part that the server waits for."""

    component: str = Field(description="`queue`, `lean`, `evaluator`, `judge` or `gateway`.")
    detail: str


class Problem(Wire):
    """An RFC 9457 problem document, media type `application/problem+json`."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "type": "urn:lean-reward:problem:invalid_request",
                    "title": "The request does not fit the contract",
                    "status": 422,
                    "code": "invalid_request",
                    "detail": "1 fault",
                    "instance": "urn:lean-reward:request:8f14e45fceea",
                    "errors": [{"pointer": "/candidates/1/id", "detail": "the id of /candidates/0 again"}],
                }
            ]
        }
    )

    type: str
    title: str
    status: int
    code: ProblemCode
    detail: str
    instance: str = Field(description="Names this request in the server's logs.")
    errors: tuple[Fault, ...] = Field(default=(), description="The first faults, at most 20.")
    more_errors: int = Field(default=0, ge=0, description="Faults beyond those listed.")
    missing: tuple[Missing, ...] = ()
    retry_after_s: int | None = Field(default=None, description="Also the `Retry-After` header, seconds.")
