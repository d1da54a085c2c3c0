package hudiindex;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.lucene.codecs.Codec;
import org.apache.lucene.codecs.FieldsConsumer;
import org.apache.lucene.codecs.NormsConsumer;
import org.apache.lucene.codecs.PointsWriter;
import org.apache.lucene.codecs.PostingsFormat;
import org.apache.lucene.codecs.StoredFieldsWriter;
import org.apache.lucene.codecs.lucene912.Lucene912Codec;
import org.apache.lucene.codecs.lucene912.Lucene912PostingsFormat;
import org.apache.lucene.codecs.perfield.PerFieldPostingsFormat;
import org.apache.lucene.index.FieldInfo;
import org.apache.lucene.index.FieldInfos;
import org.apache.lucene.index.Fields;
import org.apache.lucene.index.SegmentCommitInfo;
import org.apache.lucene.index.SegmentInfo;
import org.apache.lucene.index.SegmentInfos;
import org.apache.lucene.index.SegmentWriteState;
import org.apache.lucene.index.Terms;
import org.apache.lucene.store.Directory;
import org.apache.lucene.store.FilterDirectory;
import org.apache.lucene.store.FlushInfo;
import org.apache.lucene.store.IOContext;
import org.apache.lucene.store.TrackingDirectoryWrapper;
import org.apache.lucene.util.InfoStream;
import org.apache.lucene.util.StringHelper;
import org.apache.lucene.util.Version;

/**
 * Writes segments from whole fields, with Lucene 9.12's codec, and the commit that lists them.
 *
 * <p>An {@link org.apache.lucene.index.IndexWriter} splits documents, one at a time, into fields,
 * which Arrow provides from the start; and it would number the segments of every index from 0.
 */
final class SegmentWriter {
  private final Directory directory;
  private final Codec codec = new Lucene912Codec();
  private final Workers workers;
  private final SegmentInfos segments = new SegmentInfos(Version.LATEST.major);
  private int number;

  /**
   * @param first number of the first segment; indexes to be joined need different segment numbers
   */
  SegmentWriter(Directory directory, int first, Workers workers) {
    this.directory = directory;
    this.workers = workers;
    number = first;
  }

  /** The codec's name, as the list of segments holds it. */
  String codec() {
    return codec.getName();
  }

  /** Writes the fields of {@code rows} rows as the next segment, and clears them. */
  void write(List<ArrowField> all, int rows) throws IOException {
    List<ArrowField> fields = all.stream().filter(field -> !field.isEmpty()).toList();
    FieldInfo[] infos = new FieldInfo[fields.size()];
    for (int i = 0; i < infos.length; i++) {
      infos[i] = fields.get(i).info(i);
    }
    TrackingDirectoryWrapper files = new TrackingDirectoryWrapper(directory);
    SegmentInfo segment =
        new SegmentInfo(
            files,
            Version.LATEST,
            Version.LATEST,
            "_" + Integer.toString(number++, Character.MAX_RADIX),
            rows,
            false, // no compound file: the index is packed in one file of our own
            false,
            codec,
            Map.of(),
            StringHelper.randomId(),
            new HashMap<>(),
            null);
    FieldInfos fieldInfos = new FieldInfos(infos);
    IOContext context = new IOContext(new FlushInfo(rows, 0));
    SegmentWriteState state =
        new SegmentWriteState(InfoStream.NO_OUTPUT, files, segment, fieldInfos, null, context);
    Norms norms = norms(fields, rows);
    List<Workers.Job> jobs = jobs(state, fields, norms);
    if (norms != null) {
      jobs.add(() -> writeNorms(state, norms));
    }
    workers.run(jobs);
    writeStoredFields(files, segment, context);
    codec.fieldInfosFormat().write(files, segment, "", fieldInfos, context);
    segment.setFiles(new HashSet<>(files.getCreatedFiles()));
    codec.segmentInfoFormat().write(files, segment, context);
    segments.add(new SegmentCommitInfo(segment, 0, 0, -1, -1, -1, StringHelper.randomId()));
  }

  /**
   * Each job writes its own files: one job per group of fields with terms, with a group per thread,
   * and one job for the fields with points.
   */
  private List<Workers.Job> jobs(SegmentWriteState state, List<ArrowField> fields, Norms norms) {
    List<ArrowField> points = new ArrayList<>();
    List<ArrowField> terms = new ArrayList<>();
    for (ArrowField field : fields) {
      FieldInfo info = state.fieldInfos.fieldInfo(field.name);
      (info.getPointDimensionCount() > 0 ? points : terms).add(field);
    }
    terms.sort(Comparator.comparingLong(ArrowField::bytes).reversed());
    List<Workers.Job> jobs = new ArrayList<>();
    List<List<ArrowField>> groups = groups(terms, workers.threads);
    for (int i = 0; i < groups.size(); i++) {
      List<ArrowField> group = groups.get(i);
      int suffix = i;
      jobs.add(() -> writeTerms(state, group, norms, suffix));
    }
    if (!points.isEmpty()) {
      jobs.add(() -> writePoints(state, points));
    }
    return jobs;
  }

  /** Assigns the fields, largest first, each to the group that is smallest at that point. */
  private static List<List<ArrowField>> groups(List<ArrowField> fields, int count) {
    List<List<ArrowField>> groups = new ArrayList<>();
    long[] sizes = new long[Math.min(count, fields.size())];
    for (ArrowField field : fields) {
      int smallest = 0;
      for (int i = 1; i < sizes.length; i++) {
        smallest = sizes[i] < sizes[smallest] ? i : smallest;
      }
      if (smallest == groups.size()) {
        groups.add(new ArrayList<>());
      }
      groups.get(smallest).add(field);
      sizes[smallest] += field.bytes();
    }
    return groups;
  }

  /** The norms of the rankable fields; null if there are none. */
  private static Norms norms(List<ArrowField> fields, int rows) {
    Map<String, byte[]> lengths = new HashMap<>();
    for (ArrowField field : fields) {
      byte[] ofField = field.lengths(rows);
      if (ofField != null) {
        lengths.put(field.name, ofField);
      }
    }
    return lengths.isEmpty() ? null : new Norms(lengths);
  }

  private void writeNorms(SegmentWriteState state, Norms norms) throws IOException {
    try (NormsConsumer consumer = codec.normsFormat().normsConsumer(state)) {
      for (FieldInfo info : state.fieldInfos) {
        if (info.hasNorms()) {
          consumer.addNormsField(info, norms);
        }
      }
    }
  }

  private void writePoints(SegmentWriteState state, List<ArrowField> fields) throws IOException {
    try (PointsWriter writer = codec.pointsFormat().fieldsWriter(state)) {
      for (ArrowField field : fields) {
        writer.writeField(state.fieldInfos.fieldInfo(field.name), field.points().reader());
        field.clear();
      }
      writer.finish();
    }
  }

  /** Nothing is stored, but a segment must record this for every document. */
  private void writeStoredFields(Directory files, SegmentInfo segment, IOContext context)
      throws IOException {
    try (StoredFieldsWriter writer =
        codec.storedFieldsFormat().fieldsWriter(files, segment, context)) {
      for (int row = 0; row < segment.maxDoc(); row++) {
        writer.startDocument();
        writer.finishDocument();
      }
      writer.finish(segment.maxDoc());
    }
  }

  /** Writes fields with terms in the layout of PerFieldPostingsFormat, which will read them. */
  private void writeTerms(SegmentWriteState state, List<ArrowField> fields, Norms norms, int suffix)
      throws IOException {
    PostingsFormat format = new Lucene912PostingsFormat();
    Map<String, ArrowField> byName = new TreeMap<>();
    for (ArrowField field : fields) {
      byName.put(field.name, field);
      FieldInfo info = state.fieldInfos.fieldInfo(field.name);
      info.putAttribute(PerFieldPostingsFormat.PER_FIELD_FORMAT_KEY, format.getName());
      info.putAttribute(PerFieldPostingsFormat.PER_FIELD_SUFFIX_KEY, Integer.toString(suffix));
    }
    SegmentWriteState own = new SegmentWriteState(state, format.getName() + "_" + suffix);
    try (FieldsConsumer consumer = format.fieldsConsumer(own)) {
      consumer.write(new OnceInOrder(byName), norms);
    }
  }

  /** Returns each field to the codec once, so that its memory is free for the next field. */
  private static final class OnceInOrder extends Fields {
    private final Map<String, ArrowField> fields;

    OnceInOrder(Map<String, ArrowField> fields) {
      this.fields = fields;
    }

    @Override
    public Iterator<String> iterator() {
      return fields.keySet().iterator();
    }

    @Override
    public Terms terms(String field) {
      return fields.get(field).sortedTerms();
    }

    @Override
    public int size() {
      return fields.size();
    }
  }

  /** Number of rows in the written segments. */
  int rows() {
    return segments.totalMaxDoc();
  }

  /** Writes the commit that lists the segments in their order. */
  void commit() throws IOException {
    commit(segments, directory, number);
  }

  static void commit(SegmentInfos segments, Directory directory, int next) throws IOException {
    segments.counter = next;
    segments.commit(new Unsynced(directory));
  }

  /** The files are copied and checked before they are used: no need to wait for the disk. */
  private static final class Unsynced extends FilterDirectory {
    Unsynced(Directory directory) {
      super(directory);
    }

    @Override
    public void sync(Collection<String> names) {}

    @Override
    public void syncMetaData() {}
  }
}
