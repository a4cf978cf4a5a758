"""Refusals as RFC 9457 problem documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from starlette.responses import Response

from services.contracts.problems import PROBLEM_MEDIA_TYPE, Fault, Missing, Problem, ProblemCode

MAX_FAULTS = 20


class Refusal(Exception):
    """A request that is not served. `detail` is for a person and never carries a program."""

    def __init__(
        self,
        code: ProblemCode,
        detail: str,
        *,
        faults: Sequence[Fault] = (),
        missing: Sequence[Missing] = (),
        retry_after_s: int | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.faults = tuple(faults)
        self.missing = tuple(missing)
        self.retry_after_s = retry_after_s
        self.headers = dict(headers or {})

    def response(self, request_id: str) -> Response:
        document = Problem(
            type=self.code.uri,
            title=self.code.summary,
            status=self.code.status,
            code=self.code,
            detail=self.detail,
            instance=f"urn:lean-reward:request:{request_id}",
            errors=self.faults[:MAX_FAULTS],
            more_errors=max(0, len(self.faults) - MAX_FAULTS),
            missing=self.missing,
            retry_after_s=self.retry_after_s,
        )
        if self.retry_after_s is not None:
            self.headers["Retry-After"] = str(self.retry_after_s)
        return Response(
            document.model_dump_json(exclude_defaults=True),
            status_code=self.code.status,
            media_type=PROBLEM_MEDIA_TYPE,
            headers=self.headers,
        )
