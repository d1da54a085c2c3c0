"""The process's Java virtual machine, in which PyLucene runs.

Rules:

- A process has one JVM, started once.
- Every thread attaches before its first call, else the process dies.
- Every thread detaches when it ends, else Java keeps its data (some 15 KB) and visits it in every
  garbage collection, for ever.
- A process forked after the start must not use the JVM.

It may start with an archive of Lucene's Java classes (class-data sharing), which `class_archive`
makes: a process maps the archive in place of reading, parsing and verifying the classes from the
jars. Java itself checks that it was made by the same build of the JDK and from the same jars, and
otherwise does without. It does not check for damage, which would end the process. So the file is
Java's archive, followed by its CRC-32 in four bytes.
"""

import os
import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from locale import CODESET, nl_langinfo
from pathlib import Path
from threading import Lock, Thread, get_ident, local, main_thread
from typing import Any

from hudi_index_parquet import raise_ended

from hudi_index_service.config import settings
from hudi_index_service.errors import EntryInvalid, NativeModuleMissing
from hudi_index_service.index.lucene.directory import answer_java
from hudi_index_service.tested import WITHOUT_SPARK, name_untested

_REINSTALL = "Install hudi-index-pylucene again, for this Python."

_FIRST_HEAP_MB = 48
_CRC_BYTES = 4

# Also held while PyLucene is imported: if the import fails in one thread, another thread that
# imports the module at the same time gets an incomplete module.
_lock = Lock()
_started_in: int | None = None
_is_tried = False  # whether a thread has begun to start it, or has started it
_unusable: tuple[str, str] | None = None  # why PyLucene does not run in the JVM, and the remedy
_of_thread = local()


class _Attachment:
    """A thread's attachment to the JVM. It is a thread-local variable, so the thread itself deletes
    it when it ends, which detaches the thread."""

    def __init__(self, environment: Any) -> None:
        self._environment = environment
        self._owner = os.getpid(), get_ident()

    def __del__(self) -> None:
        # Python also deletes the variables of threads that do not exist after a fork, or that still
        # run when the process ends.
        if self._owner == (os.getpid(), get_ident()):
            self._environment.detachCurrentThread()


def require() -> Any:
    """Imports PyLucene, which loads the JDK's libjvm, and returns the module; starts no JVM.

    Raises:
        NativeModuleMissing: PyLucene is not installed or cannot be loaded, or no suitable Java was
            found; message and remedy say which.
    """
    with _lock:
        return _module()


def supported_java() -> range | None:
    """The major versions of Java that run the installed PyLucene; None if it is not installed."""
    with suppress(
        NativeModuleMissing
    ):  # its module for Java is loaded first, and tells all the same
        require()
    return getattr(sys.modules.get("lucene.libjvm"), "JAVA_MAJORS", None)


def attach(recorded: Path | None = None) -> Any:
    """Starts the JVM if needed, attaches this thread to it until the thread ends, and returns the
    `lucene` module.

    Args:
        recorded: Where Java writes an archive of its classes when it exits; None for nowhere.

    Raises:
        NativeModuleMissing: see `require`; or PyLucene does not run in this JVM, or this process
            was forked from one with a running JVM.
    """
    global _is_tried, _started_in
    _is_tried = True
    with _lock:
        lucene = _module()
        if _started_in is not None and _started_in != os.getpid():
            raise NativeModuleMissing(
                "This process was forked from one whose Lucene JVM was already running.",
                remedy="Use the multiprocessing start method 'spawn'.",
            )
        environment = lucene.getVMEnv()
        if environment is None:
            if recorded is None:
                _start(lucene, shared_classes(classes_path(lucene)))
            else:
                _start(lucene, (f"-XX:ArchiveClassesAtExit={recorded}",))
        else:
            environment.attachCurrentThread()
        _started_in = os.getpid()
    if not hasattr(_of_thread, "attachment") and get_ident() != main_thread().ident:
        _of_thread.attachment = _Attachment(lucene.getVMEnv())
    return lucene


def start() -> None:
    """Starts the JVM in a thread of its own, unless a start was tried before. `attach` waits for
    it, and raises its failure."""
    global _is_tried
    if not _is_tried:
        _is_tried = True
        Thread(target=_try_to_start, name="lucene-start").start()


def _try_to_start() -> None:
    with suppress(NativeModuleMissing):  # raised by `attach`, in the thread that needs the JVM
        attach()


@contextmanager
def damage_named(source: object) -> Iterator[None]:
    """Turns Java errors while an index is read into EntryInvalid, including the InternalError if
    part of a mapped file is gone; raises what has ended a look-up (`cancellation`)."""
    lucene = attach()
    answer_java()
    try:
        yield
    except lucene.JavaError as error:
        raise_ended()
        first = str(error.getJavaException().toString()).split("\n", 1)[0]
        raise EntryInvalid(f"{source} cannot be read: {first}.") from error
    raise_ended()


def _module() -> Any:
    if _unusable is not None:
        reason, remedy = _unusable
        raise NativeModuleMissing(reason, remedy=remedy)
    try:
        import lucene
    except ModuleNotFoundError as error:
        if error.name != "lucene":
            raise _not_loaded(error) from error
        raise NativeModuleMissing(
            "The index type lucene needs PyLucene, which is not installed.",
            remedy="Install hudi-index-pylucene, wherever indexes are built or read.",
        ) from error
    except ImportError as error:
        raise _not_loaded(error) from error
    return lucene


def _not_loaded(error: ImportError) -> NativeModuleMissing:
    """The error for a failed import of the installed package. The cause is either Java, then the
    message of its module `libjvm` ends with the remedy, or the package itself."""
    reason = str(error)
    remedy = getattr(sys.modules.get("lucene.libjvm"), "REMEDY", None)
    if remedy is not None and reason.endswith(remedy):
        return NativeModuleMissing(reason.removesuffix(remedy).rstrip(), remedy=remedy)
    return NativeModuleMissing(f"PyLucene cannot be loaded: {reason}.", remedy=_REINSTALL)


@contextmanager
def _names_in_utf8() -> Iterator[None]:
    """Has a JVM that starts in the block encode names of files as Python does. It asks the locale,
    while Python uses UTF-8 in the locale C, too."""
    codeset = nl_langinfo(CODESET).replace("-", "").upper()
    if codeset == "UTF8" or sys.getfilesystemencoding() != "utf-8":
        yield
        return
    before = os.environ.get("LC_ALL")
    os.environ["LC_ALL"] = "C.UTF-8"
    try:
        yield
    finally:
        if before is None:
            del os.environ["LC_ALL"]
        else:
            os.environ["LC_ALL"] = before


def _start(lucene: Any, class_options: Sequence[str]) -> None:
    global _unusable
    heap_mb = settings().lucene.heap_mb
    try:
        with _names_in_utf8():
            # -Xrs leaves signals to Python, so that Ctrl-C works as usual.
            lucene.initVM(
                vmargs=[
                    "-Xrs",
                    "-Xss1m",
                    # Java would otherwise fence off all but the first megabyte of the main thread's
                    # stack, which Python goes on to use: from 3.12 on, C code may call itself
                    # deeply, as in nested JSON, and then the process would end without a word.
                    "-XX:+UnlockExperimentalVMOptions",
                    "-XX:+DisablePrimordialThreadGuardPages",
                    f"-Xmx{heap_mb}m",
                    # Java would begin with a 64th of the machine's memory; queries need less.
                    f"-Xms{min(_FIRST_HEAP_MB, heap_mb)}m",
                    "-XX:+UseSerialGC",
                    # The compiler pastes hot methods of at most so many bytes into each other. By
                    # default 325: it then takes a third of a build of 1,000 small base files, and
                    # what it compiles is hardly faster.
                    "-XX:FreqInlineSize=100",
                    # Reserved at the start; the defaults needlessly exceed the heap.
                    "-XX:CompressedClassSpaceSize=64m",
                    "-XX:ReservedCodeCacheSize=64m",
                    # Avoids the file of counters for monitors in /tmp, which a killed process
                    # leaves.
                    "-XX:-UsePerfData",
                    "-Djava.awt.headless=true",
                    # Nobody who queries can act on what Lucene logs: that it does not make full use
                    # of a later Java. Without a configuration there is no handler.
                    "-Djava.util.logging.config.file=/dev/null",
                    *_consent(lucene.libjvm),
                    *class_options,
                ]
            )
    except lucene.JavaError as error:  # it has no message; Java has printed the reason
        reason, remedy = _unusable = _not_running(lucene)
        raise NativeModuleMissing(reason, remedy=remedy) from error
    name_untested({"Java": lucene.getVMEnv().java_version}, WITHOUT_SPARK)


def _consent(libjvm: Any) -> Sequence[str]:
    """The options by which later Javas do not warn of what 17 has no other way for: sun.misc.Unsafe
    gives our classes and Lucene's the addresses of buffers; and of the advice that Lucene gives the
    kernel on mapped files."""
    major = libjvm.major_version(libjvm.java_home())
    if major is None or major <= 22:
        return ()
    return ("--sun-misc-unsafe-memory-access=allow", "--enable-native-access=ALL-UNNAMED")


def _not_running(lucene: Any) -> tuple[str, str]:
    """Why PyLucene does not run in the started JVM, and the remedy. The cause is the wrong Java,
    from a folder that does not contain its version, or the package itself."""
    java, libjvm = lucene.getVMEnv().java_version, lucene.libjvm
    actual = f"Java {java} ({libjvm.load()})"
    if int(java.split(".")[0]) not in libjvm.JAVA_MAJORS:
        return f"lucene needs Java {libjvm.JAVA}, but found {actual}.", libjvm.REMEDY
    return f"PyLucene does not run on {actual}.", _REINSTALL


def classes_path(lucene: Any) -> Path:
    """The path of the archive of classes for an installed PyLucene, whether or not it exists. It is
    beside the package's folder: whoever may change the jars makes it, for all users; and an
    uninstallation leaves no folder that looks like a package."""
    return Path(lucene.__file__).parent.with_name("hudi_index_pylucene.jsa")


def store_classes(content: bytes, path: Path) -> None:
    """Writes an archive of Java's, with its checksum."""
    path.write_bytes(content + _checksum(content))


def shared_classes(path: Path) -> Sequence[str]:
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
