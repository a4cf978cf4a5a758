"""Structured logs: one event a line, snake_case names, ids and never programs.

Candidates are data of strangers and can be a megabyte long, so no event carries a program, and a string that is too
long is cut.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import MutableMapping
from typing import Any

import structlog

from services.runtime.settings import LogSettings
from services.runtime.trouble import recent_trouble

_LONGEST_VALUE = 2_000


def _cut_long_values(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    for name, value in event.items():
        if isinstance(value, str) and len(value) > _LONGEST_VALUE and name != "exception":
            event[name] = f"{value[:_LONGEST_VALUE]}... ({len(value)} characters)"
    return event


def configure_logging(settings: LogSettings, **context: str) -> None:
    """Send every event to standard error; `context` (for example `service="gateway"`) goes on each line."""
    for_a_person = settings.format == "console" or (settings.format == "auto" and sys.stderr.isatty())
    renderer: Any = structlog.dev.ConsoleRenderer() if for_a_person else structlog.processors.JSONRenderer()
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            recent_trouble,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            _cut_long_values,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelName(settings.level.upper())),
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=True,
    )
    structlog.contextvars.clear_contextvars()
    structlog.contextvars.bind_contextvars(**context)


def get_logger() -> structlog.typing.FilteringBoundLogger:
    """The logger of the process, with the context that `configure_logging` and the current task bound."""
    logger: structlog.typing.FilteringBoundLogger = structlog.get_logger()
    return logger
