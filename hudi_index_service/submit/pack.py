"""A Python environment for Spark executors: ``hudi-index pack environment.tar.gz``.

Workers need neither Python nor this package: Spark ships the archive (``spark.archives``) and
starts the interpreter inside it. It contains this interpreter with its standard library, this
package, every distribution it needs and every installed index type. PySpark is left out: Spark
gives its workers the matching version.

    environment/
      bin/python          the target of spark.pyspark.python; finds the rest by its own location
      bin/python3.11      the interpreter
      lib/                its library, if it has one, and the standard library
      packages/           the distributions

The workers need compatible Linux (processor, C library, and the libraries that Python's own modules
link to, such as OpenSSL), and a JDK 17 that JAVA_HOME names.
"""

import json
import os
import re
import sys
import sysconfig
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution, entry_points
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from hudi_index_service.errors import ConfigInvalid
from hudi_index_service.index.factory import ENTRY_POINT_GROUP
from hudi_index_service.tested import version_of
from hudi_index_service.wording import reason

SUFFIXES = (".tar.gz", ".tgz")
_OWN = "hudi-index-service"
# Spark ships these in the version that it needs.
_SPARKS_OWN = frozenset({"pyspark", "py4j"})
# Of extras: clients of servers that tasks use.
_CLIENTS = ("hdfs-native",)
_COMPRESSION = 3

# Parts of the standard library: tests, files of its build, GUI modules, other packages.
_UNNEEDED = re.compile(
    r"(?:.*/)?(?:__pycache__|test|tests|idlelib|turtledemo|tkinter|lib2to3|ensurepip|"
    r"config-[^/]*|site-packages|dist-packages)(?:/.*)?"
)

_LAUNCHER = """\
#!/bin/sh
# Starts the interpreter beside it, with the packages that were packed with it and no others of the
# machine; those that Spark adds come after them.
here=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd -P) || exit 1
LD_LIBRARY_PATH="$here/lib${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"
PYTHONPATH="$here/packages${{PYTHONPATH:+:$PYTHONPATH}}"
PYTHONNOUSERSITE=1
export LD_LIBRARY_PATH PYTHONPATH PYTHONNOUSERSITE
unset PYTHONHOME
exec "$here/bin/{interpreter}" "$@"
"""


@dataclass(frozen=True, slots=True)
class PackedEnvironment:
    """A written archive.

    Attributes:
        path: Its path.
        size: Bytes.
        python: The interpreter's version, such as ``3.11.7``.
        distributions: ``name==version`` of each distribution in it, sorted by name.
    """

    path: Path
    size: int
    python: str
    distributions: tuple[str, ...]


def pack_environment(output: Path) -> PackedEnvironment:
    """Packs the running environment. Replaces an existing file only when the new one is complete.

    Raises:
        ConfigInvalid: Spark cannot unpack a file of this name; its folder does not exist or cannot
            be written; or a distribution is missing, or installed so that its files are elsewhere.
    """
    if not output.name.endswith(SUFFIXES):
        raise ConfigInvalid(
            f"Spark cannot unpack a file named {output}.",
            remedy=f"Use a name that ends with {' or '.join(SUFFIXES)}.",
        )
    distributions = needed_distributions()
    draft = output.with_name(f".{output.name}.{os.getpid()}")
    try:
        with tarfile.open(draft, mode="w:gz", compresslevel=_COMPRESSION) as archive:
            for name, source in _files(distributions):
                _add(archive, name, source)
        size = draft.stat().st_size
        draft.replace(output)
    except OSError as error:
        raise ConfigInvalid(
            f"{output} cannot be written: {reason(error)}.",
            remedy="Name a file in an existing, writable folder with enough free space.",
        ) from error
    finally:
        draft.unlink(missing_ok=True)
    versions = tuple(f"{each.name}=={each.version}" for each in distributions)
    return PackedEnvironment(output, size, sys.version.split()[0], versions)


def needed_distributions() -> list[Distribution]:
    """This distribution, those of the installed index types and of installed clients, and their
    dependencies, by name.

    Raises:
        ConfigInvalid: a dependency is not installed.
    """
    providers = {
        point.dist.name for point in entry_points(group=ENTRY_POINT_GROUP) if point.dist is not None
    }
    distributions: dict[str, Distribution] = {}
    clients = filter(version_of, _CLIENTS)
    pending = [(name, "") for name in sorted({_OWN, *providers, *clients})]
    while pending:
        name, needed_by = pending.pop()
        if canonicalize_name(name) in distributions.keys() | _SPARKS_OWN:
            continue
        try:
            distributions[canonicalize_name(name)] = distribution(name)
        except PackageNotFoundError as error:
            raise ConfigInvalid(
                f"{needed_by or 'The index service'} needs the package {name}, which is not "
                "installed here.",
                remedy="Install it, then pack again.",
            ) from error
        pending += [(each, name) for each in _requirements(distributions[canonicalize_name(name)])]
    return [distributions[name] for name in sorted(distributions)]


def _requirements(package: Distribution) -> Iterator[str]:
    """The names of a distribution's requirements, without those of its extras and those for other
    platforms."""
    for requirement in map(Requirement, package.requires or ()):
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            yield requirement.name


def _files(distributions: list[Distribution]) -> Iterator[tuple[str, Path | bytes]]:
    """Every file of the archive: its path there, and its content or source path."""
    # In a virtual environment, this is the interpreter that it was created from.
    interpreter = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
    name = "python{}.{}".format(*sys.version_info[:2])
    yield "bin/python", _LAUNCHER.format(interpreter=name).encode()
    yield f"bin/{name}", interpreter
    if library := sysconfig.get_config_var("INSTSONAME"):
        folders = (Path(sys.base_prefix, sys.platlibdir), Path(sysconfig.get_config_var("LIBDIR")))
        # A static interpreter names an archive that it does not need.
        if ".so" in library:
            yield f"lib/{library}", next(f / library for f in folders if (f / library).is_file())
    standard = Path(os.__file__).parent
    for path in _below(standard):
        yield f"{sys.platlibdir}/{name}/{path}", standard / path
    for each in distributions:
        yield from _distribution_files(each)


def _distribution_files(package: Distribution) -> Iterator[tuple[str, Path]]:
    origin = json.loads(package.read_text("direct_url.json") or "{}")
    editable = origin.get("dir_info", {}).get("editable", False)
    folders = _index_type_folders(package) if editable else ()
    if package.files is None or (editable and not folders):
        raise ConfigInvalid(
            f"The files of the installed package {package.name} cannot be listed.",
            remedy="Install it from a wheel, not in editable mode, then pack again.",
        )
    for file in package.files:
        # Scripts are outside the package folder and contain this machine's paths.
        if ".." not in file.parts and "__pycache__" not in file.parts and file.suffix != ".pth":
            yield f"packages/{file}", Path(str(package.locate_file(file)))
    for folder in folders:
        for path in _below(folder):
            yield f"packages/{folder.name}/{path}", folder / path


def _index_type_folders(package: Distribution) -> list[Path]:
    """The folders of the packages with a distribution's index types, this one's or others'."""
    points = package.entry_points.select(group=ENTRY_POINT_GROUP)
    names = sorted({each.module.partition(".")[0] for each in points})
    specs = (find_spec(name) for name in names)
    return [Path(each.origin).parent for each in specs if each is not None and each.origin]


def _below(folder: Path) -> Iterator[str]:
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder).as_posix()
        if path.is_file() and not _UNNEEDED.fullmatch(relative):
            yield relative


def _add(archive: tarfile.TarFile, name: str, source: Path | bytes) -> None:
    content = source if isinstance(source, bytes) else source.read_bytes()
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    entry.mode = 0o755 if name.startswith("bin/") or ".so" in name else 0o644
    # A zip file inside, such as a wheel that Python imports from, cannot store times before 1980.
    entry.mtime = 315_532_800
    archive.addfile(entry, BytesIO(content))
