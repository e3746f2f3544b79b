import java.util.*;
import java.util.function.*;
public class Main {
  int x = 1; static int size = 4; enum Color { RED, BLUE } record Point(int x, int y) {}
  Main(int x) { this.x = x; }
  int sum(int... values) { int total = x; for (int value : values) total += value;
    int size = total; { int inner = size; size += inner; }
    { int inner = 2; size += inner; }
    return size + Main.size; }
  static <T> List<T> twice(List<T> list, Function<T, T> f) {
    List<T> out = new ArrayList<>();
    for (T item : list) { out.add(f.apply(item)); } return out; }
  static int captured(int base, int other) { Supplier<Integer> s = new Supplier<>() {
      int local = base; public Integer get() { int other = local; return other + base; } };
    Supplier<Integer> t = () -> other + s.get(); return t.get(); }
  static String kind(Object o, Color c) { if (o instanceof String text) return text;
    if (!(o instanceof Point point)) return "none"; int RED = 9;
    switch (c) { case RED: int n = point.x(); return "red" + n + RED;
      default: n = 2; return "other" + n; } }
  public static void main(String[] args) throws Exception {
    Main main = new Main(3); BiFunction<Integer, Integer, Integer> f = (a, b) -> a * 10 + b;
    StringBuilder out = new StringBuilder();
    outer: for (int i = 0, j = 9; ; i++, j--) {
      for (;;) { if (i > j) break outer; break; }
      out.append(i * j).append(' '); }
    try (Scanner in = new Scanner("5")) {
      out.append(in.nextInt()); throw new Exception("e");
    } catch (RuntimeException | Error e) { out.append(e);
    } catch (Exception e) { out.append(e.getMessage()); }
    System.out.println(out + " " + main.sum(1, 2) + twice(List.of(1, 2), v -> v + 1)
      + captured(1, 2) + kind("s", null) + kind(new Point(1, 2), Color.RED)
      + f.apply(1, 2));
  } }
