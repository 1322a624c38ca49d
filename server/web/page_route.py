"""A route of the page: errors are pages, and a change comes from a page of this server."""

import logging
import re
from collections.abc import Callable, Coroutine
from typing import Annotated, Any

from fastapi import Form, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import AfterValidator, BeforeValidator
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException

from esker.server.core.errors import EskerError, Forbidden, InvalidInput
from esker.server.core.json_input import clean_text
from esker.server.core.records import Kind
from esker.server.rest.problems import problem_of, status_of
from esker.server.web.rendering import page

CleanText = Annotated[str, AfterValidator(clean_text)]
"""A text of a form, cleaned as JSON is."""
FormText = Annotated[str, Form(max_length=100_000), AfterValidator(clean_text)]
"""A field of a form, cleaned as JSON is."""
ChosenKind = Annotated[Kind | None, BeforeValidator(lambda chosen: chosen or None)]
"""The kind that was chosen in a list whose first entry, for all kinds, is empty."""
log = logging.getLogger(__name__)

# A page and its query. Browsers take `//` and `/\` at the beginning of an address for another server.
_OWN = re.compile(r"/(?:ui/[\w/-]*|docs)?(?:\?[!-\[\]-~]*)?")
_SIGNING_IN = re.compile(r"/ui/(?:login|link)\b")
_CHANGING = frozenset({"POST", "PUT", "PATCH", "DELETE"})


def own_address(given: str) -> str | None:
    """Return the address of a page to which a form wants to return; None for any other, such as one of another site."""
    return given if _OWN.fullmatch(given) else None


def error_page(request: Request, error: EskerError) -> Response:
    """Return the page for an error: what happened, and what to do next. Without a valid key, it asks for one."""
    status = status_of(error)
    request.state.problem = str(error)  # for the log
    template = "login.html" if status == 401 else "error.html"
    back = _address(request) if request.method == "GET" and not _SIGNING_IN.match(request.url.path) else ""
    answer = page(request, template, status, code=status, problem=str(error), hint=error.hint, back=back)
    told = problem_of(error).headers
    answer.headers.update({name: told[name] for name in ("WWW-Authenticate", "Retry-After") if name in told})
    return answer


def _address(request: Request) -> str:
    return f"{request.url.path}?{request.url.query}" if request.url.query else request.url.path


class PageRoute(APIRoute):
    """A route that answers with a page in every case, and to HEAD with its headers alone."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        if self.methods and "GET" in self.methods:
            self.methods |= {"HEAD"}

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the route's handler, which shows errors as pages and refuses the forms of other sites."""
        handle = super().get_route_handler()

        async def handle_as_page(request: Request) -> Response:
            try:
                if request.method in _CHANGING:
                    _require_own_page(request.headers)
                return await handle(request)
            except EskerError as error:
                return error_page(request, error)
            except RequestValidationError as error:
                return error_page(request, InvalidInput(_wrong_fields(error)))
            except HTTPException as error:  # of a form that cannot be read, maybe because it is too large or too slow
                cause = error.__cause__
                unread = cause if isinstance(cause, EskerError) else InvalidInput("This form cannot be read.")
                return error_page(request, unread)
            except Exception:
                log.exception("%s %s failed", request.method, request.url.path)
                return error_page(request, _fault(request))

        return handle_as_page


def _wrong_fields(error: RequestValidationError) -> str:
    names = dict.fromkeys(str(each["loc"][-1]) for each in error.errors())
    return f"This address or form lacks these fields, or has a wrong value in them: {', '.join(names)}."


def _fault(request: Request) -> EskerError:
    """Return the error for an unexpected fault: it tells a person how to find the cause in the log."""
    hint = f"The request has the id {request.state.request_id} there."
    return EskerError("An internal error occurred in Esker; the server's log has the details.", hint=hint)


def _require_own_page(headers: Headers) -> None:
    """Raise Forbidden unless the browser says that a page of this server sent the form.

    A form of another site would be sent with the cookie of this one, or over the owner's connection. A foreign Origin
    has been refused by now; here one has to be there.
    """
    if "origin" not in headers and headers.get("sec-fetch-site") != "same-origin":
        raise Forbidden("This form was not sent from a page of this server.", hint="Use the API for programs.")
