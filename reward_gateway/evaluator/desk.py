"""The desk between batches and evaluators: knows which of them can predict, shares programs out, tries once more."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field

import httpx
from pydantic import ValidationError

from reward_gateway.batches.state import BatchState
from reward_gateway.evaluator.stream import EvaluatorBusy, EvaluatorFault, evaluate, is_news
from services.contracts.evaluator import EvaluateRequest, EvaluatorModel, EvaluatorReadiness, Prediction
from services.contracts.health import EvaluatorState
from services.contracts.outcomes import Verdict
from services.runtime import metrics
from services.runtime.logging import get_logger

_WATCH_S = 1.0
_LOOK_S = 2.0
_AGAIN_S = 0.5
_SHARE_PROGRAMS = 16_384
_SHARE_CHARACTERS = 64 * 2**20
_UNNAMED = "unnamed"


@dataclass(eq=False)
class Evaluator:
    """One URL. `ready` and `models` are at most some seconds old; `programs` are under way."""

    client: httpx.AsyncClient
    ready: bool = False
    models: tuple[EvaluatorModel, ...] = ()
    programs: int = 0
    why: str = field(default="it was not asked yet")

    @property
    def model(self) -> str:
        """The name under which its predictions are counted."""
        return "+".join(dict.fromkeys(model.name for model in self.models)) or _UNNAMED

    @property
    def url(self) -> str:
        return str(self.client.base_url)


class EvaluatorDesk:
    """One for each gateway process. `watch` runs as a task for the life of the process."""

    def __init__(self, urls: Sequence[str], key: str | None, silence_s: float) -> None:
        """Raises ValueError: a URL is malformed."""
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=20)
        self._silence_s = silence_s
        try:
            self.evaluators = tuple(
                Evaluator(httpx.AsyncClient(base_url=url, headers=headers, limits=limits, trust_env=False))
                for url in dict.fromkeys(urls)
            )
        except httpx.InvalidURL as error:
            raise ValueError(str(error)) from None

    @property
    def configured(self) -> bool:
        return bool(self.evaluators)

    @property
    def present(self) -> bool:
        """One of them could predict a moment ago."""
        return any(evaluator.ready for evaluator in self.evaluators)

    @property
    def models(self) -> tuple[EvaluatorModel, ...]:
        ready = [evaluator for evaluator in self.evaluators if evaluator.ready]
        return tuple(dict.fromkeys(model for evaluator in ready for model in evaluator.models))

    def readiness(self) -> EvaluatorState | None:
        if not self.configured:
            return None
        ready = sum(evaluator.ready for evaluator in self.evaluators)
        return EvaluatorState(configured=len(self.evaluators), ready=ready, models=self.models)

    def what_is_missing(self) -> str:
        """Why none of them can predict, in words."""
        return "; ".join(f"evaluator {i}: {e.why}" for i, e in enumerate(self.evaluators, 1) if not e.ready)

    async def look(self) -> None:
        """Ask each whether it can predict now; never raises."""
        await asyncio.gather(*(self._look_at(evaluator) for evaluator in self.evaluators))
        metrics.EVALUATORS_READY.set(sum(evaluator.ready for evaluator in self.evaluators))

    async def watch(self) -> None:
        while self.configured:
            await asyncio.sleep(_WATCH_S)
            await self.look()
        await asyncio.Event().wait()

    async def close(self) -> None:
        await asyncio.gather(*(evaluator.client.aclose() for evaluator in self.evaluators))

    async def evaluate(self, request: EvaluateRequest) -> AsyncGenerator[Prediction, None]:
        """Predictions for a caller of the gateway, from the evaluator with the least to do; see `stream.evaluate`.

        Raises `EvaluatorFault`; also when none of them can predict.
        """
        evaluator = min((e for e in self.evaluators if e.ready), key=lambda e: e.programs, default=None)
        if evaluator is None:
            raise EvaluatorFault("none of them can predict now")
        programs = {program.id: program.code for program in request.programs}
        options = request.model_dump(mode="json", exclude={"programs"}, exclude_none=True)
        evaluator.programs += len(programs)
        predictions = evaluate(evaluator.client, programs, options, self._silence_s)
        try:
            async for prediction in predictions:
                yield prediction
        finally:
            evaluator.programs -= len(programs)
            await predictions.aclose()

    async def predict(self, state: BatchState, *, patient: bool = False) -> None:
        """Have a batch's programs predicted and tell `state` each prediction as it comes, and the end.

        Programs that an evaluator failed on go to another one once, or once more to the only one. Cancelling aborts
        what is under way. `patient`: wait for an evaluator as long as it takes.
        """
        programs = state.to_predict()
        while patient and programs and not self.present:
            await asyncio.sleep(_AGAIN_S)
            await self.look()
        failed = bool(programs) and not self.present
        if programs and self.present:
            ready = sorted((e for e in self.evaluators if e.ready), key=lambda e: e.programs)
            rounds = [
                self._ask(ready[i % len(ready)], state, share) for i, share in enumerate(_shares(programs, ready))
            ]
            failed = any(await asyncio.gather(*rounds))
        state.evaluator_has_ended(time.monotonic() - state.received_at, failed=failed)

    async def _ask(self, evaluator: Evaluator, state: BatchState, share: Sequence[str]) -> bool:
        """True: programs are left without a prediction, after a second attempt."""
        left = await self._ask_once(evaluator, state, share)
        if not left:
            return False
        others = [other for other in self.evaluators if other.ready and other is not evaluator]
        second = min(others, key=lambda other: other.programs, default=evaluator)
        metrics.EVALUATOR_SECOND_TRIES.inc(len(left))
        return bool(await self._ask_once(second, state, left))

    async def _ask_once(self, evaluator: Evaluator, state: BatchState, share: Sequence[str]) -> list[str]:
        """The programs that are left without a prediction."""
        names = {str(index): program for index, program in enumerate(share)}
        evaluator.programs += len(share)
        try:
            while True:
                try:
                    await self._receive(evaluator, state, names)
                    break
                except EvaluatorBusy as busy:
                    await asyncio.sleep(busy.retry_after_s)
        except EvaluatorFault as fault:
            get_logger().warning("evaluator_failed", evaluator=evaluator.url, programs=len(share), error=str(fault))
            metrics.EVALUATOR_FAILURES.inc()
            await self._look_at(evaluator)
        finally:
            evaluator.programs -= len(share)
        return [program for program in share if not _is_predicted(state, program)]

    async def _receive(self, evaluator: Evaluator, state: BatchState, names: Mapping[str, str]) -> None:
        options = {"priority": state.plan.priority, "trace": state.plan.trace, "scores": True}
        predictions = evaluate(evaluator.client, names, options, self._silence_s)
        try:
            async for prediction in predictions:
                if is_news(prediction):
                    state.score(names[prediction.id], prediction)
                    continue
                at_s = time.monotonic() - state.received_at
                state.predict(names[prediction.id], prediction, evaluator.model, at_s)
        finally:
            await predictions.aclose()

    async def _look_at(self, evaluator: Evaluator) -> None:
        was = evaluator.ready
        try:
            answer = await evaluator.client.get("/readyz", timeout=_LOOK_S)
        except httpx.HTTPError as error:
            evaluator.ready, evaluator.why = False, f"it does not answer ({type(error).__name__})"
        else:
            # Whoever serves the prediction route need not serve this one: only a plain "no" counts as one.
            evaluator.ready = answer.status_code < 500
            evaluator.why = f"its readiness is {answer.status_code}"
            try:
                readiness = EvaluatorReadiness.model_validate_json(answer.content)
            except ValidationError:
                evaluator.models = ()
            else:
                evaluator.models = tuple(dict.fromkeys((readiness.gate, readiness.feedback)))
                if readiness.missing:
                    evaluator.why = ", ".join(missing.detail for missing in readiness.missing)
        if was != evaluator.ready:
            get_logger().info("evaluator_changed", evaluator=evaluator.url, ready=evaluator.ready, why=evaluator.why)


def _is_predicted(state: BatchState, program: str) -> bool:
    found = state.predictions.get(program)
    return found is not None and found.prediction.verdict is not Verdict.UNKNOWN


def _shares(programs: Sequence[str], ready: Sequence[Evaluator]) -> list[list[str]]:
    """Programs shared out evenly by length, one share for each evaluator at least, none too large for a request."""
    total = sum(map(len, programs))
    count = max(len(ready), -(-len(programs) // _SHARE_PROGRAMS), -(-total // _SHARE_CHARACTERS))
    shares: list[list[str]] = [[] for _ in range(count)]
    for index, program in enumerate(sorted(programs, key=len)):
        shares[index % count].append(program)
    return [share for share in shares if share]
