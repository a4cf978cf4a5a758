"""Errors that a route answers with: one exception, turned into an RFC 9457 problem document at the edge."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.responses import Response

from services.contracts.problems import PROBLEM_MEDIA_TYPE, Fault, Missing, Problem, ProblemCode

MAX_FAULTS = 20
_LONGEST_TEXT = 500


class ProblemError(Exception):
    """An answer that is not a result. `code` fixes the status; `detail` is for a person and never carries a program."""

    def __init__(
        self,
        code: ProblemCode,
        detail: str,
        *,
        faults: Sequence[Fault] = (),
        more_faults: int = 0,
        missing: Sequence[Missing] = (),
        retry_after_s: int | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.faults = tuple(faults[:MAX_FAULTS])
        self.more_faults = more_faults + max(0, len(faults) - MAX_FAULTS)
        self.missing = tuple(missing)
        self.retry_after_s = retry_after_s
        self.headers = headers or {}

    def document(self, request_id: str) -> Problem:
        return Problem(
            type=self.code.uri,
            title=self.code.summary,
            status=self.code.status,
            code=self.code,
            detail=printable(self.detail),
            instance=f"urn:lean-reward:request:{request_id}",
            errors=self.faults,
            more_errors=self.more_faults,
            missing=self.missing,
            retry_after_s=self.retry_after_s,
        )

    def response(self, request_id: str) -> Response:
        headers = dict(self.headers)
        if self.retry_after_s is not None:
            headers["Retry-After"] = str(self.retry_after_s)
        body = self.document(request_id).model_dump_json(exclude_defaults=True)
        return Response(body, status_code=self.code.status, media_type=PROBLEM_MEDIA_TYPE, headers=headers)


def printable(text: str, limit: int = _LONGEST_TEXT) -> str:
    """`text` cut to `limit` characters and free of lone surrogates, so that it can be sent."""
    if len(text) > limit:
        text = f"{text[:limit]}..."
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
