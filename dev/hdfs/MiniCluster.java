import java.io.File;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.HdfsConfiguration;
import org.apache.hadoop.hdfs.MiniDFSCluster;
import org.apache.hadoop.hdfs.MiniDFSNNTopology;

/**
 * Runs an HDFS of two name nodes, of which the second is active, and two data nodes, until it is
 * killed. Arguments: the folder for its data, and properties as key=value. Prints the name nodes'
 * ports once it answers.
 */
public final class MiniCluster {
  public static void main(String[] arguments) throws Exception {
    Configuration configuration = new HdfsConfiguration();
    for (int each = 1; each < arguments.length; each++) {
      String[] property = arguments[each].split("=", 2);
      configuration.set(property[0], property[1]);
    }
    MiniDFSCluster cluster =
        new MiniDFSCluster.Builder(configuration, new File(arguments[0]))
            .nnTopology(MiniDFSNNTopology.simpleHATopology())
            .numDataNodes(2)
            .build();
    cluster.transitionToActive(1);
    cluster.waitActive(1);
    System.out.printf(
        "Name nodes: %d %d%n", cluster.getNameNodePort(0), cluster.getNameNodePort(1));
    Thread.currentThread().join();
  }
}
