"""What runs beside tables and Spark: serve, watch, pack, demo."""

from pathlib import Path
from typing import Annotated

import typer

from hudi_index_service import config
from hudi_index_service.build.strategy import Strategy
from hudi_index_service.cli.arguments import HoodieConfOption, OutputOption, PropsOption
from hudi_index_service.cli.console import out
from hudi_index_service.cli.logs import announcer
from hudi_index_service.cli.output import Items, output_of_report
from hudi_index_service.upkeep import read_write_config


def serve(
    tables: Annotated[list[str], typer.Argument(help="Base paths of the tables to serve.")],
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="Port; 0 for a free one.")] = None,
    wait: Annotated[float, typer.Option(help="Seconds to hold a write for its build.")] = 0.0,
    strategy: Annotated[Strategy, typer.Option(help="Which base files.")] = Strategy.INCREMENTAL,
    clean: Annotated[bool, typer.Option("--clean", help="Clean after each build.")] = False,
    props: PropsOption = None,
    hoodie_conf: HoodieConfOption = None,
) -> None:
    """Listen for Hudi's commit callbacks and build what is due, until stopped."""
    from hudi_index_service.server.daemon import serve as serve_until_stopped

    serve_until_stopped(
        tables,
        wait=wait,
        host=host,
        port=port,
        strategy=strategy,
        clean=clean,
        options=read_write_config(hoodie_conf or (), props),
        say=announcer(config.settings().logging.format),
    )


def watch(
    tables: Annotated[list[str], typer.Argument(help="Base paths of the tables to watch.")],
    interval: Annotated[
        float | None, typer.Option(help="Seconds between two looks, instead of the setting's.")
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="Look once, build what is due, and end.")
    ] = False,
    strategy: Annotated[Strategy, typer.Option(help="Which base files.")] = Strategy.INCREMENTAL,
    clean: Annotated[bool, typer.Option("--clean", help="Clean after each build.")] = False,
    props: PropsOption = None,
    hoodie_conf: HoodieConfOption = None,
) -> None:
    """Look at timelines now and then and build what is due, until stopped; writers need no option
    for it. With --once, exit status 1 if something could not be built."""
    from hudi_index_service.server.watch import watch as watch_until_stopped

    done = watch_until_stopped(
        tables,
        interval=interval,
        once=once,
        strategy=strategy,
        clean=clean,
        options=read_write_config(hoodie_conf or (), props),
        say=announcer(config.settings().logging.format),
    )
    if once and not done:
        raise typer.Exit(1)


def pack(
    archive: Annotated[
        Path, typer.Argument(metavar="OUTPUT", help="The archive to write: a name in .tar.gz.")
    ],
    output: OutputOption = None,
) -> None:
    """Pack this Python environment for Spark executors that have none."""
    from hudi_index_service.submit.pack import pack_environment

    packed = pack_environment(archive)
    told = {
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
    output_of_report(output).report(told, lines, Items(tuple(told), [told]))


def demo(
    folder: Annotated[
        Path | None, typer.Option(help="Where to put the tables; a temporary folder without.")
    ] = None,
    rows: Annotated[int, typer.Option(help="Rows of the large table.")] = 1_000_000,
    configs: Annotated[Path, typer.Option(help="The folder of the write config.")] = Path(
        "configs"
    ),
) -> None:
    """Write, cluster, compact, index, query and clean real Hudi tables; needs Spark and Hudi."""
    from hudi_index_service.demo.story import run_demo

    if not run_demo(out, folder, rows, configs):
        raise typer.Exit(1)
