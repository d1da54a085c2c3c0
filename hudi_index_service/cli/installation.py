"""The installation: doctor, pack, prepare, demo."""

from pathlib import Path
from typing import Annotated

import typer

from hudi_index_service.cli.arguments import OutputOption, tables_of
from hudi_index_service.cli.console import out
from hudi_index_service.cli.output import print_report
from hudi_index_service.index.lucene.class_archive import make_class_archive


def doctor(
    tables: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TABLES",
            help="Base paths of tables to check, too, or folders with tables: reading, listing, "
            "writing.",
        ),
    ] = None,
    output: OutputOption = None,
) -> None:
    """Check this installation, and tell how to fix each problem; exit status 1 if something is
    missing that is not optional."""
    from hudi_index_service.doctor import diagnose, diagnose_table

    names = ("name", "status", "required", "detail", "remedy")
    named, is_one = tables_of(tables or ())
    if is_one or not named:
        diagnosis = diagnose(*named)
        report = diagnosis.to_dict()
        lines = [each.line() for each in diagnosis.checks]
        print_report(output, report, lines, names, report["checks"])
        is_well = diagnosis.is_well
    else:
        found = {"": diagnose(), **{each: diagnose_table(each) for each in named}}
        reports = [{"table": table or None, **each.to_dict()} for table, each in found.items()]
        lines = []
        for table, each in found.items():
            own = [check.line() for check in each.checks]
            lines += [f"{table}:", *(f"  {line}" for line in own)] if table else own
        items = [{"table": one["table"], **each} for one in reports for each in one["checks"]]
        print_report(output, reports, lines, ("table", *names), items)
        is_well = all(each.is_well for each in found.values())
    if not is_well:
        raise typer.Exit(1)


def pack(
    archive: Annotated[
        Path, typer.Argument(metavar="OUTPUT", help="The archive to write: a .tar.gz file.")
    ],
    output: OutputOption = None,
) -> None:
    """Pack this Python environment for Spark executors without one."""
    from hudi_index_service.submit.pack import pack_environment

    packed = pack_environment(archive)
    report = {
        "path": str(packed.path),
        "bytes": packed.size,
        "python": packed.python,
        "distributions": packed.distributions,
    }
    lines = [
        f"{packed.path}: Python {packed.python}, {len(packed.distributions)} distributions, "
        f"{packed.size:,} bytes.",
        f"spark-submit --archives {packed.path}#environment "
        "--conf spark.pyspark.python=./environment/bin/python "
        "--conf spark.executorEnv.JAVA_HOME=<the workers' JDK 17> ...",
    ]
    print_report(output, report, lines)


def prepare(output: OutputOption = None) -> None:
    """Prepare this installation: write an archive of Lucene's Java classes, by which processes
    start faster. Run it once after each change of this package or the JDK."""

    archive = make_class_archive()
    size = archive.stat().st_size
    report = {"path": str(archive), "bytes": size}
    lines = [f"{archive}: Lucene's Java classes, {size:,} bytes."]
    print_report(output, report, lines)


def demo(
    folder: Annotated[
        Path | None, typer.Option(help="Folder for the tables; by default a temporary one.")
    ] = None,
    rows: Annotated[int, typer.Option(help="Rows of the large table.")] = 200_000,
) -> None:
    """Write, cluster, compact, index, query and clean real Hudi tables. Needs the extra demo, by
    which it downloads Hudi once."""
    from hudi_index_service.demo.story import run_demo

    if not run_demo(out, folder, rows):
        raise typer.Exit(1)
