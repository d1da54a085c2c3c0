"""Moments as people name them, brought to the form in which instants are named.

What Spark's option ``as.of.instant`` takes, read as Hudi reads it
(``HoodieSqlCommonUtils.formatQueryInstant``): by the table's own clock, whatever the session's time
zone is.
"""

from datetime import datetime

from hudi_index_service.errors import ConfigInvalid

_INSTANT = "%Y%m%d%H%M%S"
_FORMS = {
    len("yyyyMMddHHmmssSSS"): f"{_INSTANT}%f",
    len("yyyyMMddHHmmss"): _INSTANT,
    len("yyyy-MM-dd HH:mm:ss.SSS"): "%Y-%m-%d %H:%M:%S.%f",
    len("yyyy-MM-dd HH:mm:ss"): "%Y-%m-%d %H:%M:%S",
    len("yyyy-MM-dd"): "%Y-%m-%d",
}
_DIGITS_FORMS = ("yyyyMMddHHmmssSSS", "yyyyMMddHHmmss")


def instant_of(text: str) -> str:
    """The latest requested time that the text includes: of a second all its milliseconds, of a day
    its first moment. A time of 14 digits stays as it is, before the instants of that second.

    Raises:
        ConfigInvalid: it is none of ``yyyyMMddHHmmss[SSS]``, ``yyyy-MM-dd HH:mm:ss[.SSS]`` and
            ``yyyy-MM-dd``, or no such moment exists.
    """
    try:
        moment = datetime.strptime(text, _FORMS[len(text)])
    except (KeyError, TypeError, ValueError):
        raise ConfigInvalid(
            f"as_of={text!r} names no moment.",
            remedy="Write yyyyMMddHHmmssSSS, yyyy-MM-dd HH:mm:ss.SSS or yyyy-MM-dd.",
        ) from None
    if len(text) in map(len, _DIGITS_FORMS):
        return text
    millis = 999 if len(text) == len("yyyy-MM-dd HH:mm:ss") else moment.microsecond // 1000
    return f"{moment:%Y%m%d%H%M%S}{millis:03}"
