"""A Hudi table read through hudi-rs, without Spark; hudi-rs' errors in the service's terms."""

from collections.abc import Iterator
from contextlib import contextmanager
from textwrap import shorten

from hudi_index_service.errors import IndexServiceError, NeedsSpark, StorageFailed
from hudi_index_service.process import OwnRuntime
from hudi_index_service.wording import first_line

_UNSUPPORTED = (
    "support",
    "cannot reproduce",
    "no reader here",
    "not yet implemented",
    # Column names beyond ASCII, which Hudi writes but Avro's specification does not allow.
    "failed to parse avro schema",
    # Log files with an array of timestamps: hudi-rs treats the zones UTC and +00:00 as different.
    "reconcile: column",
    # Log files, or the base file below them, from before a column was widened.
    "but the table schema expects",
    # Text that Spark reads as it is.
    "non utf-8 data",
)

_runtime = OwnRuntime("opened a Hudi table")


@contextmanager
def hudi_rs_errors_named(what: str) -> Iterator[None]:
    """Converts hudi-rs' errors to the service's; `what` begins their message.

    hudi-rs raises one Python type for everything and does not export it, so only the text
    distinguishes an unsupported table from a failing store. A panic of its Rust code arrives as a
    BaseException, whose type cannot be imported either; the read is then left to Spark. Raises
    NativeModuleMissing in a forked process that cannot use hudi-rs.
    """
    _runtime.require()
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
        raise NeedsSpark(f"{what}: hudi-rs failed ({_first_line(error)}).") from error


def _first_line(error: BaseException) -> str:
    # Some messages contain whole schemas.
    return shorten(first_line(error), 400, placeholder=" …").rstrip(". ")
