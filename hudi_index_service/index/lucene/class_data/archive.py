"""The archive of Lucene's Java classes (class-data sharing), by which a JVM starts faster.

It holds the classes as the JVM keeps them in memory. A process maps it in place of reading, parsing
and verifying them from the jars. Java itself checks that it was made by the same build of the JDK
and from the same jars, and otherwise does without. It does not check for damage, which would end
the process. So the file is Java's archive, followed by its CRC-32 in four bytes.
"""

import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_CRC_BYTES = 4


def archive_of(lucene: Any) -> Path:
    """The path of the archive for an installed PyLucene, whether or not it exists. It is beside the
    package's folder: whoever may change the jars makes it, for all users; and an uninstallation
    leaves no folder that looks like a package."""
    return Path(lucene.__file__).parent.with_name("hudi_index_pylucene.jsa")


def store(content: bytes, path: Path) -> None:
    """Writes an archive of Java's, with its checksum."""
    path.write_bytes(content + _checksum(content))


def recording(path: Path) -> Sequence[str]:
    """Java's options to write an archive of all classes that are loaded until Java exits."""
    return (f"-XX:ArchiveClassesAtExit={path}",)


def sharing(path: Path) -> Sequence[str]:
    """Java's options to use an archive; none if it is missing or damaged."""
    try:
        content = memoryview(path.read_bytes())
    except OSError:
        return ()
    if bytes(content[-_CRC_BYTES:]) != _checksum(content[:-_CRC_BYTES]):
        return ()
    # An archive that does not fit is no reason for a warning.
    return f"-XX:SharedArchiveFile={path}", "-Xlog:cds*=off"


def _checksum(content: bytes | memoryview) -> bytes:
    return zlib.crc32(content).to_bytes(_CRC_BYTES, "big")
