enum Level { Low = 1, High = Low + 1 }
const enum Flag { On = "on" }
namespace Shapes { const side = 2; export const area = side * side;
  export function scaled(by: number) { const side = by; return area * side } }
interface Named { readonly name: string; greet?(other: Named): string }
type Pair<A, B = A> = { [K in keyof A]: A[K] } & { second: B };
type Inner<T> = T extends Array<infer U> ? Inner<U> : T;
abstract class Base<T extends Named> implements Named { static made = 0;
  [key: string]: unknown;
  constructor(readonly name: string, protected items: T[] = [], extra?: number) {
    Base.made += extra ?? 1 }
  abstract describe(level: Level): string;
  greet(this: Base<T>, other: Named) { return `${this.name} ${other.name}` } }
class Person extends Base<Person> {
  describe(level: Level) { const name = Level[level]; return name + this.items.length } }
function pick(value: string): string; function pick(value: number[]): number;
function pick(value: string | number[]) {
  return typeof value === "string" ? value + "!" : value.length }
function isText(value: unknown): value is string { return typeof value == "string" }
function assertText(value: unknown): asserts value is string {
  if (!isText(value)) throw new Error("no text") }
const both = <A extends object, B>(first: A, second: B): Pair<A, B> =>
  ({ ...first, second }) as Pair<A, B>;
function local(Person: number) { interface Point { x: number; move(by: number): Point }
  const point: Point = { x: Person, move(by) { return { ...this, x: this.x + by } } };
  const { x: start, move } = point.move(2)!; return [start, typeof move, Person] }
const out: unknown[] = [];
const ann = new Person("Ann", [new Person("Bob", [], 5)]);
const last: Inner<number[][]> = 3, flag: Flag = Flag.On;
let text: unknown = ann.greet({ name: "Cy" }); assertText(text);
out.push(Level.High, Shapes.scaled(3), ann.describe(Level.High), Base.made, pick("a"),
  pick([1, 2]), both({ a: 1 }, "b"), local(1), last satisfies number, flag, text.length);
for (const [index, item] of out.entries() as Iterable<[number, unknown]>)
  console.log(index, JSON.stringify(item));
