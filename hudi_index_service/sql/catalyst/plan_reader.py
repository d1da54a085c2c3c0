"""Spark's plans as texts: `PlanReader.java` and `JoinReader.java`, in the JVM of a plan."""

import json
import zlib
from importlib.resources import files
from threading import Lock
from typing import Any

from py4j.java_gateway import JavaClass

_ATTRIBUTE_PREFIX = "_hudi_index_"
_compiling = Lock()


def plan_reader(java: Any) -> Any:
    """The reader of plans in the JVM of a Java object."""
    return _reader(java, "PlanReader")


def join_reader(java: Any) -> Any:
    """The reader of joins in the JVM of a Java object."""
    return _reader(java, "JoinReader", plan_reader(java))


def _reader(java: Any, name: str, below: Any = None) -> Any:
    """A reader, compiled on first use by Janino, which Spark ships for its generated code.

    Args:
        below: A reader whose class the source uses.
    """
    client = java._gateway_client
    reader = client.__dict__.get(_ATTRIBUTE_PREFIX + name)
    if reader is None:
        with _compiling:
            reader = client.__dict__.get(_ATTRIBUTE_PREFIX + name)
            if reader is None:
                reader = client.__dict__[_ATTRIBUTE_PREFIX + name] = _compile(client, name, below)
    return reader


def _compile(client: Any, name: str, below: Any) -> Any:
    source = files("hudi_index_service.sql.catalyst").joinpath(f"{name}.java").read_text("utf-8")
    thread = JavaClass("java.lang.Thread", client).currentThread()
    compiler = JavaClass("org.codehaus.janino.SimpleCompiler", client)()
    parent = thread.getContextClassLoader() if below is None else below.getClass().getClassLoader()
    compiler.setParentClassLoader(parent)
    compiler.cook(source)
    return compiler.getClassLoader().loadClass(name).newInstance()


def decoded(response: bytes) -> Any:
    """A reader's response, decoded."""
    return json.loads(zlib.decompress(response))
