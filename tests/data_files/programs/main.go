package main
import ("fmt"; "sort"; str "strings")
type node struct { value int; next *node }
type shape interface { area(scale int) (size int, err error) }
type square struct{ side int }
func (square square) area(scale int) (size int, err error) {
  size = square.side * square.side * scale
  defer func() { if size > 50 { size, err = 50, fmt.Errorf("%d is too much", size) } }()
  return }
func (node *node) last() *node { for node.next != nil { node = node.next }; return node }
func sum(values ...int) int { total := 0
  for _, value := range values { total := total + value; _ = total }
  for i := 0; i < len(values); i++ { total += values[i] }; return total }
func mapped[T, U any](values []T, f func(value T) U) []U { var out []U
  for _, v := range values { out = append(out, f(v)) }; return out }
func kind(x any) string { switch x := x.(type) {
  case int: x++; return fmt.Sprint("int ", x)
  case fmt.Stringer, nil: return fmt.Sprint(x == nil)
  case string: if x, ok := any(len(x)).(int); ok { return fmt.Sprint(x) } }
  return "other" }
func scopes(x int) []int { out := []int{x}
  if x := x + 1; x > 5 { out = append(out, x) } else if y := x * 2; y > x {
    x, y := y, x; out = append(out, x, y) } else { out = append(out, -x) }
  x, z := x+10, 3; { x := x; x++; out = append(out, x) }
outer:
  for x := range 4 { switch y := x % 3; {
    case y == 1: continue outer; case x > 2: break outer
    default: z := z + y; out = append(out, z) } }
  return append(out, x, z) }
func main() {
  const low, high = iota, iota + 4
  list := &node{value: low, next: &node{value: high}}
  point := struct{ x, y int }{x: 1, y: 2}; x, y := 7, 8
  table := map[int]string{x: "x", y: "y"}; keys := []int{}
  for key := range table { keys = append(keys, key) }; sort.Ints(keys)
  ch := make(chan int, 2); ch <- 5; close(ch); got := []int{}
  for range 2 { select { case v, ok := <-ch: if ok { got = append(got, v) } } }
  var shapes = []shape{square{2}, square{9}}
  for i, shape := range shapes { size, err := shape.area(i + 1); fmt.Println(size, err) }
  len := func(s string) int { return str.Count(s, "") - 1 }
  type local struct{ len int }; made := local{len: len("four")}
  fmt.Println(list.last().value, point.x, point.y, x, y, keys, got, sum(1, 2, 3),
    mapped([]int{1, 2}, func(v int) string { return str.Repeat("a", v) }),
    kind(1), kind(nil), kind("abc"), kind(1.5), scopes(1), scopes(7), made.len) }
