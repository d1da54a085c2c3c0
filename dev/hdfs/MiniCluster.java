import java.io.File;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.HdfsConfiguration;
import org.apache.hadoop.hdfs.MiniDFSCluster;
import org.apache.hadoop.hdfs.MiniDFSNNTopology;
import org.apache.hadoop.minikdc.MiniKdc;

/**
 * Runs an HDFS of two name nodes, of which the second is active, and two data nodes, until it is
 * killed. Arguments: the folder for its data, and properties as key=value. Prints the name nodes'
 * ports once it answers.
 *
 * <p>If the properties ask for Kerberos, its own KDC runs beside it, whose krb5.conf is printed,
 * too. The name nodes' user, hdfs/localhost, has server.keytab in the folder; a user named client
 * has client.keytab.
 */
public final class MiniCluster {
  public static void main(String[] arguments) throws Exception {
    File folder = new File(arguments[0]);
    folder.mkdirs();
    Configuration configuration = new HdfsConfiguration();
    for (int each = 1; each < arguments.length; each++) {
      String[] property = arguments[each].split("=", 2);
      configuration.set(property[0], property[1]);
    }
    if ("kerberos".equals(configuration.get("hadoop.security.authentication"))) {
      addKerberos(configuration, folder);
    }
    MiniDFSCluster cluster =
        new MiniDFSCluster.Builder(configuration, new File(folder, "hdfs"))
            .nnTopology(MiniDFSNNTopology.simpleHATopology())
            .numDataNodes(2)
            .build();
    cluster.transitionToActive(1);
    cluster.waitActive(1);
    System.out.printf(
        "Name nodes: %d %d%n", cluster.getNameNodePort(0), cluster.getNameNodePort(1));
    Thread.currentThread().join();
  }

  private static void addKerberos(Configuration configuration, File folder) throws Exception {
    MiniKdc kdc = new MiniKdc(MiniKdc.createConf(), folder);
    kdc.start();
    File keytab = new File(folder, "server.keytab");
    kdc.createPrincipal(keytab, "hdfs/localhost");
    kdc.createPrincipal(new File(folder, "client.keytab"), "client");
    for (String server : new String[] {"namenode", "datanode"}) {
      configuration.set("dfs." + server + ".keytab.file", keytab.getPath());
      configuration.set(
          "dfs." + server + ".kerberos.principal", "hdfs/localhost@" + kdc.getRealm());
    }
    configuration.set("hadoop.security.authorization", "true");
    configuration.set("dfs.block.access.token.enable", "true");
    // The ports of data nodes are not those below 1024.
    configuration.set("ignore.secure.ports.for.testing", "true");
    System.out.printf("Kerberos: %s%n", kdc.getKrb5conf());
  }
}
