package hudiindex;

import java.io.IOException;
import org.apache.lucene.index.SegmentInfos;
import org.apache.lucene.store.Directory;
import org.apache.lucene.util.Version;

/** Joins indexes of consecutive rows: their segments, one after the other, form one index. */
public final class SegmentList {
  private SegmentList() {}

  /**
   * Writes to {@code target} only the file that lists the segments of all {@code parts} in order.
   * The segments' files are those of the parts; the caller puts them next to it.
   *
   * @return the number of rows
   * @throws IllegalArgumentException if two parts have segments of the same name
   */
  public static int join(Directory[] parts, Directory target) throws IOException {
    SegmentInfos joined = new SegmentInfos(Version.LATEST.major);
    int segments = 0;
    for (Directory part : parts) {
      SegmentInfos infos = SegmentInfos.readLatestCommit(part);
      joined.addAll(infos);
      segments += infos.size();
      joined.counter = Math.max(joined.counter, infos.counter);
    }
    if (joined.asList().stream().map(segment -> segment.info.name).distinct().count() < segments) {
      throw new IllegalArgumentException("parts with segments of the same name");
    }
    SegmentWriter.commit(joined, target, (int) joined.counter);
    return joined.totalMaxDoc();
  }
}
