"""Spark's plans as texts: `PlanReader.java`, in the JVM of a plan."""

import json
import zlib
from importlib.resources import files
from threading import Lock
from typing import Any

from py4j.java_gateway import JavaClass

_NAME = "PlanReader"
_KNOWN = "_hudi_index_plan_reader"
_compiling = Lock()


def plan_reader(java: Any) -> Any:
    """The reader in the JVM that an object lies in: compiled when it is first asked for, by Janino,
    which Spark has for the code that it generates."""
    client = java._gateway_client
    reader = client.__dict__.get(_KNOWN)
    if reader is None:
        with _compiling:
            reader = client.__dict__.get(_KNOWN)
            if reader is None:
                reader = client.__dict__[_KNOWN] = _compiled(client)
    return reader


def _compiled(client: Any) -> Any:
    source = files("hudi_index_service.sql.select").joinpath(f"{_NAME}.java").read_text("utf-8")
    thread = JavaClass("java.lang.Thread", client).currentThread()
    compiler = JavaClass("org.codehaus.janino.SimpleCompiler", client)()
    compiler.setParentClassLoader(thread.getContextClassLoader())
    compiler.cook(source)
    return compiler.getClassLoader().loadClass(_NAME).newInstance()


def told(answer: bytes) -> Any:
    """What the reader's answer says."""
    return json.loads(zlib.decompress(answer))
