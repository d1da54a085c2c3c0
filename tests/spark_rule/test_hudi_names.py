"""What the rule calls of Hudi by name (HudiFiles.java), in each bundle that is pinned."""

import subprocess
from pathlib import Path

import pyspark
import pytest

from dev.jars import PINS, PinnedJar, fetch, pinned
from dev.prerequisites import find_jdk
from dev.spark_home import spark_home

pytestmark = pytest.mark.slow

PROGRAM = """
public class Names {
  public static void main(String[] arguments) throws Exception {
    Class<?> files = Class.forName("org.apache.hudi.HoodieFileIndex");
    Class<?> metaClient = files.getMethod("metaClient").getReturnType();
    Class<?> timeline = metaClient.getMethod("getActiveTimeline").getReturnType();
    metaClient.getMethod("getBasePath");
    timeline.getMethod("getInstants");
    System.out.println(
        Class.forName("org.apache.spark.sql.execution.datasources.FileIndex")
            .isAssignableFrom(files));
  }
}
"""


@pytest.mark.parametrize(
    "bundle", pinned(PINS), ids=lambda jar: f"{jar.version}-{jar.artifact[-4:]}"
)
def test_the_bundle_has_the_names(bundle: PinnedJar, tmp_path: Path) -> None:
    of_2_12 = bundle.artifact.endswith("_2.12")
    home = Path(pyspark.__file__).parent if of_2_12 else spark_home()
    (tmp_path / "Names.java").write_text(PROGRAM)
    command = [find_jdk().home / "bin" / "java", "-classpath", f"{fetch(bundle)}:{home}/jars/*"]
    done = subprocess.run(
        [*map(str, command), str(tmp_path / "Names.java")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "true\n", done.stderr
