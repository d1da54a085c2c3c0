"""Commands that run until they are stopped: serve, serve-spark, watch, mcp."""

from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from hudi_index_service import config
from hudi_index_service.build.strategy import Strategy
from hudi_index_service.cli.arguments import HoodieConfOption, PropsOption
from hudi_index_service.cli.console import announcer
from hudi_index_service.errors import UsageInvalid
from hudi_index_service.hook.daemon import extra_required
from hudi_index_service.hook.write_options import read_write_config

HostOption = Annotated[str | None, typer.Option(help="Address to listen on.")]
PortOption = Annotated[int | None, typer.Option(min=0, max=65535, help="Port; 0 for a free one.")]


def serve(
    tables: Annotated[
        list[str] | None, typer.Argument(help="Base paths of the tables to serve.")
    ] = None,
    fleet: Annotated[
        Path | None,
        typer.Option(
            "--config", help="A fleet file, in place of tables: polls, callbacks, API and page."
        ),
    ] = None,
    shard: Annotated[
        str | None, typer.Option(help="Of a fleet, the tables of one of several services: 1/3.")
    ] = None,
    host: HostOption = None,
    port: PortOption = None,
    wait: Annotated[float, typer.Option(help="Seconds to hold a write for its build.")] = 0.0,
    strategy: Annotated[Strategy, typer.Option(help="Which base files.")] = Strategy.INCREMENTAL,
    clean: Annotated[bool, typer.Option(help="Clean after each build.")] = True,
    props: PropsOption = None,
    hoodie_conf: HoodieConfOption = None,
) -> None:
    """Listen for Hudi's commit callbacks and build what is due, until stopped. With --config, keep
    the tables of a fleet file."""
    say = announcer(config.settings().logging.format)
    if fleet is not None:
        if tables or wait or props or hoodie_conf or not clean:
            raise UsageInvalid(
                "With --config the tables, and what is done for each, are those of the file.",
                remedy="Leave out tables, --wait, --no-clean, --props and --hoodie-conf.",
            )
        with extra_required("The service of a fleet", "hook"):
            from hudi_index_service.fleet.service import serve_fleet
            from hudi_index_service.fleet.shard import Shard

        part = None if shard is None else Shard.parse(shard)
        serve_fleet(fleet, shard=part, host=host, port=port, say=say)
        return
    if not tables:
        raise UsageInvalid("No table is given.", remedy="Give tables, or --config with a file.")
    with extra_required("The hook", "hook"):
        from hudi_index_service.fleet.forms.serve import serve as serve_until_stopped

    serve_until_stopped(
        tables,
        wait=wait,
        host=host,
        port=port,
        strategy=strategy,
        clean=clean,
        options=read_write_config(hoodie_conf or (), props),
        say=say,
    )


def serve_spark(
    folders: Annotated[
        list[str],
        typer.Argument(metavar="TABLES", help="Base paths of tables, or folders with tables."),
    ],
    host: HostOption = None,
    port: PortOption = None,
    allow_changes: Annotated[
        bool | None,
        typer.Option(
            "--allow-changes/--no-changes",
            help="Take index statements that change indexes; overrides the setting.",
        ),
    ] = None,
) -> None:
    """Answer Spark sessions without Python, such as spark-sql and the Thrift server, so that their
    queries use the index, until stopped."""
    with extra_required("The daemon", "spark,hook"):
        from hudi_index_service.fleet.forms.answer import answer as answer_until_stopped

    answer_until_stopped(
        folders,
        host=host,
        port=port,
        allow_changes=allow_changes,
        say=announcer(config.settings().logging.format),
    )


def watch(
    tables: Annotated[list[str], typer.Argument(help="Base paths of the tables to watch.")],
    interval: Annotated[
        float | None, typer.Option(help="Seconds between two polls; overrides the setting.")
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="Poll once, build what is due, and exit.")
    ] = False,
    strategy: Annotated[Strategy, typer.Option(help="Which base files.")] = Strategy.INCREMENTAL,
    clean: Annotated[bool, typer.Option(help="Clean after each build.")] = True,
    props: PropsOption = None,
    hoodie_conf: HoodieConfOption = None,
) -> None:
    """Poll timelines and build what is due, until stopped; writers need no option. With --once,
    exit status 1 if a build failed."""
    from hudi_index_service.fleet.forms.watch import watch as watch_until_stopped

    if once and interval is not None:
        raise UsageInvalid(
            "With --once there is no second poll, so no --interval.", remedy="Give one of the two."
        )
    succeeded = watch_until_stopped(
        tables,
        interval=interval,
        once=once,
        strategy=strategy,
        clean=clean,
        options=read_write_config(hoodie_conf or (), props),
        say=announcer(config.settings().logging.format),
    )
    if once and not succeeded:
        raise typer.Exit(1)


def mcp(
    tables: Annotated[list[str], typer.Argument(help="Base paths of the tables to read.")],
    rows: Annotated[int, typer.Option(min=1, help="The most rows of an answer.")] = 50,
    kib: Annotated[int, typer.Option(min=1, help="The most KiB of an answer's rows.")] = 32,
    allow_changes: Annotated[
        bool,
        typer.Option("--allow-changes", help="Let it build and clean indexes, after a dry run."),
    ] = False,
) -> None:
    """Let an agent read tables, by the Model Context Protocol on standard input and output. Without
    --allow-changes it can change nothing."""
    with extra_required("The server for agents", "mcp"):
        from hudi_index_service.mcp.calls import Agent
        from hudi_index_service.mcp.server import server_of

    from hudi_index_service.mcp.answers import Answers
    from hudi_index_service.mcp.changes import Changes, Plans
    from hudi_index_service.mcp.own_tables import OwnChanges, OwnTables

    with closing(OwnTables(tables)) as own, closing(OwnChanges(own)) as maker:
        changes = Changes(maker, Plans()) if allow_changes else None
        agent = Agent(Answers(own, rows=rows, kib=kib), changes)
        server_of(lambda context: agent, changes=allow_changes).run("stdio")
