"""Error answers: one table from errors to HTTP statuses, and bodies as application/problem+json."""

import math
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any, cast

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic_core import ErrorDetails
from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope, Send

from esker.server.core import errors
from esker.server.core.invalid_values import broken_rule, problem_with

STATUS: tuple[tuple[type[errors.EskerError], int], ...] = (
    # The first match counts, so subclasses come before their parents.
    (errors.TooLarge, 413),
    (errors.InvalidInput, 422),
    (errors.NotFound, 404),
    (errors.Unauthorized, 401),
    (errors.TooManyRequests, 429),
    (errors.TooSlow, 408),
    (errors.Forbidden, 403),
    (errors.Conflict, 409),
    (errors.ModelFailed, 502),
    (errors.JobStuck, 503),
    (errors.Unavailable, 503),
    (errors.Misconfigured, 503),
)
_RETRY_AFTER_SECONDS = 5


class ProblemResponse(JSONResponse):
    """An error in the format of RFC 9457."""

    media_type = "application/problem+json"

    def __init__(self, document: dict[str, Any], status: int, headers: dict[str, str]) -> None:
        super().__init__(document, status, headers)
        self._document = document

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the document with the id of the request, and keep its detail for the log of the request."""
        state = scope.setdefault("state", {})
        state["problem"] = self._document["detail"]
        if "request_id" in state:
            self.body = self.render({**self._document, "request_id": state["request_id"]})
            self.headers["content-length"] = str(len(self.body))
        await super().__call__(scope, receive, send)


def problem(status: int, detail: str, *, hint: str | None = None, invalid: Sequence[Any] = ()) -> ProblemResponse:
    """Return a problem document: what happened, what to do next, and which fields are wrong."""
    body: dict[str, Any] = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status}
    body["detail"] = detail
    if hint:
        body["hint"] = hint
    if invalid:
        body["errors"] = list(invalid)
    headers: dict[str, str] = {}
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if status == 503:
        headers["Retry-After"] = str(_RETRY_AFTER_SECONDS)
    if status == 408:
        headers["Connection"] = "close"
    return ProblemResponse(body, status, headers)


def status_of(error: errors.EskerError) -> int:
    """Return the HTTP status of an error."""
    return next((status for kind, status in STATUS if isinstance(error, kind)), 500)


def problem_of(error: errors.EskerError) -> ProblemResponse:
    """Return the problem document of an EskerError."""
    answer = problem(status_of(error), str(error), hint=error.hint)
    if isinstance(error, errors.TooManyRequests):
        answer.headers["Retry-After"] = str(max(1, math.ceil(error.seconds)))
    return answer


def install(app: FastAPI) -> None:
    """Have an app answer every error with a problem document."""
    app.add_exception_handler(errors.EskerError, _on_esker_error)
    app.add_exception_handler(RequestValidationError, _on_invalid_request)
    app.add_exception_handler(HTTPException, _on_http_error)


async def _on_esker_error(_: Request, error: Exception) -> ProblemResponse:
    assert isinstance(error, errors.EskerError)  # the handler is installed only for this class
    return problem_of(error)


async def _on_invalid_request(_: Request, error: Exception) -> ProblemResponse:
    assert isinstance(error, RequestValidationError)  # the handler is installed only for this class
    details = cast("Sequence[ErrorDetails]", error.errors())
    found = [{"at": _path(item["loc"]), "problem": broken_rule(item)} for item in details[:20]]
    detail = problem_with(found[0]["at"], details[0]) if details else "The request is not valid"
    return problem(422, f"{detail}.", invalid=found)


def _path(location: Sequence[int | str]) -> str:
    """Return the path of an invalid value, such as `messages[3].role`, without the leading `body`."""
    parts = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in location if part != "body"]
    return "".join(parts).lstrip(".")[:200] or "body"


async def _on_http_error(_: Request, error: Exception) -> ProblemResponse:
    assert isinstance(error, HTTPException)  # the handler is installed only for this class
    return problem(error.status_code, str(error.detail))
