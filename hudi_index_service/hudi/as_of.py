"""Converts times as users write them to the format of instants.

The formats are those of Spark's option ``as.of.instant``, interpreted as Hudi does
(``HoodieSqlCommonUtils.formatQueryInstant``): in the table's time zone, not the session's.
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


def instant_of(text: str, what: str = "as_of") -> str:
    """The latest requested time that the text includes: the last millisecond of a second, the start
    of a day. A time of 14 digits is returned as it is, before the instants of that second. It is by
    the table's clock, as in Spark's option ``as.of.instant``.

    Args:
        what: The argument's name, for the message.

    Raises:
        ConfigInvalid: the text is none of ``yyyyMMddHHmmss[SSS]``, ``yyyy-MM-dd HH:mm:ss[.SSS]``
            and ``yyyy-MM-dd``, or no such time exists.
    """
    try:
        moment = datetime.strptime(text, _FORMS[len(text)])
    except (KeyError, TypeError, ValueError):
        raise ConfigInvalid(
            f"{what}={text!r} is not a time.",
            remedy="Write yyyyMMddHHmmssSSS, yyyy-MM-dd HH:mm:ss.SSS or yyyy-MM-dd.",
        ) from None
    if len(text) in map(len, _DIGITS_FORMS):
        return text
    millis = 999 if len(text) == len("yyyy-MM-dd HH:mm:ss") else moment.microsecond // 1000
    return f"{moment:%Y%m%d%H%M%S}{millis:03}"
