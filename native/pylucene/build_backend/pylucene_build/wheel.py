"""Compiles the generated C++ and builds the wheel, with setuptools."""

import contextlib
import os
import shutil
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import setuptools
from setuptools.command.build_ext import build_ext

from .jcc import Generated

# The code only passes calls to the JVM: more optimization costs build time and has no benefit.
# The warnings come from JCC's code and cannot be fixed here.
COMPILE_ARGUMENTS = ["-O1", "-g0", "-fno-strict-aliasing", "-w"]
OLD_GLIBC = Path(__file__).with_name("old_glibc.h")
LINK_ARGUMENTS = ["-Wl,--strip-debug"]


class ParallelBuildExt(build_ext):
    """Compiles the files of an extension in parallel; setuptools does so only for extensions."""

    def build_extensions(self) -> None:
        compile_files = self.compiler.compile

        def compile_in_parallel(sources: list[str], **options: Any) -> list[str]:
            largest_first = sorted(sources, key=os.path.getsize, reverse=True)
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                objects = pool.map(lambda file: compile_files([file], **options), largest_first)
                return [name for names in objects for name in names]

        self.compiler.compile = compile_in_parallel
        super().build_extensions()


def build(generated: Generated, *, project: Path, target: Path) -> str:
    """Build the wheel for the pyproject.toml in ``project`` into ``target``; return its name."""
    extension = setuptools.Extension(
        "lucene._lucene",
        # Relative, because setuptools puts the object files below its own folder at the same path.
        sources=[str(file.relative_to(project)) for file in generated.sources],
        include_dirs=[str(folder) for folder in generated.include_folders],
        define_macros=generated.macros,
        library_dirs=[str(generated.libjvm_folder)],
        libraries=["jvm"],  # by name only: lucene/libjvm.py finds it at run time
        extra_compile_args=[*COMPILE_ARGUMENTS, "-include", str(OLD_GLIBC)],
        extra_link_args=LINK_ARGUMENTS,
    )
    jars = sorted(file.name for file in generated.package.glob("*.jar"))
    with contextlib.chdir(project), warnings.catch_warnings():
        # bdist_wheel uses that command itself; setuptools' own backend ignores the warning, too.
        warnings.filterwarnings("ignore", "setup.py install is deprecated")
        setuptools.setup(
            script_args=["--quiet", "bdist_wheel", "--dist-dir", "dist"],
            packages=["lucene"],
            package_dir={"lucene": str(generated.package.relative_to(project))},
            package_data={"lucene": jars},
            ext_modules=[extension],
            cmdclass={"build_ext": ParallelBuildExt},
        )
    (wheel,) = (project / "dist").glob("*.whl")
    shutil.move(wheel, target / wheel.name)
    return wheel.name
