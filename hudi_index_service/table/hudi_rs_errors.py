"""hudi-rs' errors in the service's terms."""

from collections.abc import Iterator
from contextlib import contextmanager
from textwrap import shorten

from hudi_index_service.errors import IndexServiceError, NeedsSpark, StorageFailed

_UNSUPPORTED = (
    "support",
    "cannot reproduce",
    "no reader here",
    "not yet implemented",
    # Column names beyond ASCII, which Hudi writes and Avro's specification does not know.
    "failed to parse avro schema",
    # Log files with an array of timestamps: it takes the zones UTC and +00:00 for different types.
    "reconcile: column",
    # Log files, or the base file below them, from before a column was widened.
    "but the table schema expects",
)


@contextmanager
def hudi_rs_errors_named(what: str) -> Iterator[None]:
    """Raises the service's errors for those of hudi-rs; `what` begins their message.

    hudi-rs raises one Python type for everything, and does not export it: only the text tells an
    unsupported table from a failing store. A panic of its Rust code arrives as a BaseException,
    whose type cannot be imported either; what hudi-rs panics at is Spark's to read.
    """
    try:
        yield
    except IndexServiceError:
        raise
    except Exception as error:
        text = _first_line(error)
        if any(sign in text.lower() for sign in _UNSUPPORTED):
            raise NeedsSpark(f"{what}: {text}.") from error
        raise StorageFailed(f"{what}: {text}.") from error
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise NeedsSpark(f"{what}: hudi-rs gave up ({_first_line(error)}).") from error


def _first_line(error: BaseException) -> str:
    # Some spell out whole schemas.
    return shorten(str(error).split("\n", 1)[0], 400, placeholder=" …").rstrip(". ")
