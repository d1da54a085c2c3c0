package hudiindex;

import java.nio.charset.StandardCharsets;
import org.apache.lucene.analysis.Analyzer;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.FieldType;
import org.apache.lucene.document.LongPoint;
import org.apache.lucene.index.IndexOptions;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexableField;
import org.apache.lucene.util.ArrayUtil;
import org.apache.lucene.util.BytesRef;

/**
 * One field of the index and the Arrow column that fills it.
 *
 * <p>The Lucene field object is made once and given a new value for every row: making objects per
 * row costs more than indexing them.
 */
abstract class ArrowField {
  final String name;
  ArrowColumn column;
  long truncated;

  ArrowField(String name) {
    this.name = name;
  }

  static ArrowField of(String name, int kind, Analyzer analyzer) {
    switch (kind) {
      case ArrowIndexer.KEYWORD:
        return new Keyword(name);
      case ArrowIndexer.TEXT:
        return new Text(name, analyzer);
      case ArrowIndexer.LONG:
        return new Long(name);
      case ArrowIndexer.NULLS:
        return new Nulls(name);
      default:
        throw new IllegalArgumentException("field " + name + " has the unknown kind " + kind);
    }
  }

  /** What the row adds to its document: null when nothing. */
  abstract IndexableField at(long row);

  /** Refuses, before any row is read, a column that lacks a buffer this kind of field reads. */
  abstract void requireBuffers();

  final void require(boolean present, String buffer) {
    if (!present) {
      throw new IllegalArgumentException("field " + name + " needs the " + buffer + " buffer");
    }
  }

  private static FieldType fieldType(boolean tokenized, IndexOptions options) {
    FieldType type = new FieldType();
    type.setTokenized(tokenized);
    type.setOmitNorms(true); // nothing is ranked
    type.setIndexOptions(options);
    type.freeze();
    return type;
  }

  private static final class Keyword extends ArrowField {
    private static final FieldType TYPE = fieldType(false, IndexOptions.DOCS);
    private final BytesRef term = new BytesRef(64);
    private final Field field;

    Keyword(String name) {
      super(name);
      field = new Field(name, term, TYPE);
    }

    @Override
    IndexableField at(long row) {
      if (column.isNull(row)) {
        return null;
      }
      int length = column.byteLength(row);
      if (length > IndexWriter.MAX_TERM_LENGTH) {
        length = IndexWriter.MAX_TERM_LENGTH;
        truncated++;
      }
      term.bytes = ArrayUtil.growNoCopy(term.bytes, length);
      column.copy(row, term.bytes, length);
      term.length = length;
      return field;
    }

    @Override
    void requireBuffers() {
      require(column.hasOffsets(), "offsets");
    }
  }

  private static final class Text extends ArrowField {
    private static final FieldType TYPE =
        fieldType(true, IndexOptions.DOCS_AND_FREQS_AND_POSITIONS);

    /**
     * No token of a text below this many bytes can be an immense term: a filter that maps
     * characters one by one (lower case) makes at most 3 bytes of 1.
     */
    private static final int SAFE_LENGTH = IndexWriter.MAX_TERM_LENGTH / 3;

    private final Analyzer analyzer;
    private final Field field;
    private byte[] utf8 = new byte[256];

    Text(String name, Analyzer analyzer) {
      super(name);
      this.analyzer = analyzer;
      field = new Field(name, "", TYPE);
    }

    @Override
    IndexableField at(long row) {
      if (column.isNull(row)) {
        return null;
      }
      int length = column.byteLength(row);
      utf8 = ArrayUtil.growNoCopy(utf8, length);
      column.copy(row, utf8, length);
      String text = new String(utf8, 0, length, StandardCharsets.UTF_8);
      if (length <= SAFE_LENGTH) {
        field.setStringValue(text);
        return field;
      }
      return new Field(
          name,
          new TermLengthFilter(analyzer.tokenStream(name, text), () -> truncated++),
          TYPE);
    }

    @Override
    void requireBuffers() {
      require(column.hasOffsets(), "offsets");
    }
  }

  private static final class Long extends ArrowField {
    private final Field field;

    Long(String name) {
      super(name);
      field = new LongPoint(name, 0L);
    }

    @Override
    IndexableField at(long row) {
      if (column.isNull(row)) {
        return null;
      }
      field.setLongValue(column.longAt(row));
      return field;
    }

    @Override
    void requireBuffers() {
      require(column.hasData(), "data");
    }
  }

  private static final class Nulls extends ArrowField {
    private static final FieldType TYPE = fieldType(false, IndexOptions.DOCS);
    private final Field field;

    Nulls(String name) {
      super(name);
      field = new Field(name, new BytesRef(ArrowIndexer.NULL_TERM), TYPE);
    }

    @Override
    IndexableField at(long row) {
      return column.isNull(row) ? field : null;
    }

    @Override
    void requireBuffers() {} // a column without a validity buffer has no NULL
  }
}
