package hudiindex.spark;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

/** JSON by Jackson, one of Spark's own libraries. */
public final class Json {
  private static final ObjectMapper MAPPER = new ObjectMapper();

  private Json() {}

  /** A new object. */
  public static ObjectNode object() {
    return MAPPER.createObjectNode();
  }

  /** A new array. */
  public static ArrayNode array() {
    return MAPPER.createArrayNode();
  }

  /** What a text says. Throws IllegalArgumentException if it is no JSON. */
  public static JsonNode read(String text) {
    try {
      return MAPPER.readTree(text);
    } catch (JsonProcessingException error) {
      throw new IllegalArgumentException("This is no JSON: " + text, error);
    }
  }
}
