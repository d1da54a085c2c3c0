package hudiindex;

import java.lang.reflect.Field;
import sun.misc.Unsafe;

/**
 * Reads and writes memory outside the Java heap by address.
 *
 * <p>JDK 17 has no supported way to wrap a foreign address (java.lang.foreign came with JDK 22), so
 * this class uses Unsafe. Addresses are not checked: callers own the memory and keep it alive.
 */
final class NativeMemory {
  private static final Unsafe UNSAFE = unsafe();
  private static final long BYTES = UNSAFE.arrayBaseOffset(byte[].class);
  private static final long INTS = UNSAFE.arrayBaseOffset(int[].class);

  private NativeMemory() {}

  private static Unsafe unsafe() {
    try {
      Field field = Unsafe.class.getDeclaredField("theUnsafe");
      field.setAccessible(true);
      return (Unsafe) field.get(null);
    } catch (ReflectiveOperationException e) {
      throw new ExceptionInInitializerError(e);
    }
  }

  static byte getByte(long address) {
    return UNSAFE.getByte(address);
  }

  static int getInt(long address) {
    return UNSAFE.getInt(address);
  }

  static long getLong(long address) {
    return UNSAFE.getLong(address);
  }

  /** Copies {@code length} bytes at {@code address} to the start of {@code target}. */
  static void read(long address, byte[] target, int length) {
    UNSAFE.copyMemory(null, address, target, BYTES, length);
  }

  /** Copies {@code count} ints at {@code address} to the start of {@code target}. */
  static void read(long address, int[] target, int count) {
    UNSAFE.copyMemory(null, address, target, INTS, 4L * count);
  }

  /** Copies the first {@code count} bytes of {@code source} to {@code address}. */
  static void write(byte[] source, int count, long address) {
    UNSAFE.copyMemory(source, BYTES, null, address, count);
  }

  /** Copies the first {@code count} ints of {@code source} to {@code address}. */
  static void write(int[] source, int count, long address) {
    UNSAFE.copyMemory(source, INTS, null, address, 4L * count);
  }
}
