"""Which name nodes of an HDFS name service can be connected to.

`hdfs-native` tries them in order, and has no limit of its own for a connection: a host that is
switched off delays it by TCP's, about two minutes, again and again.
"""

import logging
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from socket import create_connection
from xml.etree import ElementTree

log = logging.getLogger(__name__)

_SECONDS = 3
_FILES = ("core-site.xml", "hdfs-site.xml")


def connectable_only(service: str, options: Mapping[str, str]) -> dict[str, str]:
    """An option that leaves the other name nodes out; none if there is no choice, or if none can be
    connected to.

    Args:
        service: The name of a name service, or of a host, which has no choice; "" for the service
            of ``fs.defaultFS``.
        options: Hadoop's, which take precedence over its configuration files.
    """
    config = {**_configured(), **options}
    default = config.get("fs.defaultFS", "").removeprefix("hdfs://").partition("/")[0]
    service = service or default
    names = f"dfs.ha.namenodes.{service}"
    addresses = {
        each: config.get(f"dfs.namenode.rpc-address.{service}.{each}", "")
        for each in (name.strip() for name in config.get(names, "").split(","))
    }
    if len(addresses) < 2:
        return {}
    with ThreadPoolExecutor(len(addresses), "name-nodes") as threads:
        connectable = list(threads.map(_is_connectable, addresses.values()))
    kept = [each for each, is_kept in zip(addresses, connectable, strict=True) if is_kept]
    return {names: ",".join(kept)} if kept else {}


def _is_connectable(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        create_connection((host, int(port)), _SECONDS).close()
    except (OSError, ValueError) as error:
        log.info("Name node %s is left out: %s", address, error)
        return False
    return True


def _configured() -> dict[str, str]:
    """The properties of Hadoop's configuration files, which the client reads as well."""
    folder = os.environ.get("HADOOP_CONF_DIR")
    if folder is None and "HADOOP_HOME" in os.environ:
        folder = os.path.join(os.environ["HADOOP_HOME"], "etc", "hadoop")  # noqa: PTH118
    properties: dict[str, str] = {}
    for path in (Path(folder, each) for each in _FILES) if folder else ():
        try:
            root = ElementTree.parse(path).getroot()
        except FileNotFoundError:
            continue
        except (OSError, ElementTree.ParseError) as error:  # the client has the last word
            log.info("%s is not read for name nodes: %s", path, error)
            continue
        for each in root.iter("property"):
            properties[each.findtext("name", "")] = each.findtext("value", "")
    return properties
