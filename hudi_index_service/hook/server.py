"""Errors as the clients of a server see them. Needs the extra ``hook`` (starlette)."""

import logging
from http import HTTPStatus

from starlette.responses import JSONResponse

from hudi_index_service.errors import IndexServiceError

log = logging.getLogger(__name__)


def refusal(status: HTTPStatus, error: IndexServiceError) -> JSONResponse:
    """The answer to a request with the secret that is refused all the same, which is logged."""
    log.warning("Request refused (%d): %s", status, error)
    return JSONResponse(report(error), status)


def report(error: IndexServiceError) -> dict[str, str]:
    """An error in JSON."""
    return {"code": error.code, "message": error.message, "remedy": error.remedy}
