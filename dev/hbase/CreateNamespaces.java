import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.NamespaceDescriptor;
import org.apache.hadoop.hbase.NamespaceExistException;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;

/** Creates the namespaces that are named, unless they are there: run from source by java. */
class CreateNamespaces {
  public static void main(String[] names) throws Exception {
    try (Connection connection = ConnectionFactory.createConnection(HBaseConfiguration.create());
        Admin admin = connection.getAdmin()) {
      for (String name : names) {
        try {
          admin.createNamespace(NamespaceDescriptor.create(name).build());
        } catch (NamespaceExistException there) {
          System.out.println(name + " is there");
        }
      }
    }
  }
}
