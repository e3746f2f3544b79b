const out = [];
var hoisted = typeof late;
var free = 1; out.push(((a = free) => { var free = a + 1; return free })());
function late(n, m = () => n + 1) { var n = n * 2; return [n, m()] }
class Stack { #items = []; push(item) { this.#items.push(item); return this }
  get size() { return this.#items.length } static of(...items) { const made = new Stack();
    for (const item of items) made.push(item); return made } }
function scopes(x) { const found = [x]; { let x = 2; found.push(x) }
  try { throw x } catch (x) { var caught = x; found.push(x) }
  for (let x = 0, y = 3; x < y; x++) found.push(() => x);
  lbl: for (const x in {a: 1}) { for (;;) break lbl }
  switch (x) { case 1: let z = 5; found.push(z) }
  return found.map(x => typeof x == "function" ? x() : x).concat(caught) }
function blocks() { { function inner() { return 1 } } return typeof inner }
const counter = (function self(n) { return n ? n + self(n - 1) : 0 });
function* walk({left: l, right: r = null, ...rest}, [first, , third = first] = [1, 2]) {
  if (l) yield* walk(l); yield [first, third, Object.keys(rest)]; if (r) yield r }
const size = 7, shorthand = {size, late, ["size" + size](size) { return size }};
out.push(hoisted, late(3), Stack.of(1, 2).size, scopes(1), blocks(), counter(4),
  [...walk({left: {right: 5}, size})], shorthand.size7(8), shorthand.size,
  `${out.map((out) => out)} ${(() => arguments.length > -1)()}`);
out.push(((a, b) => { [a, b] = [b, a]; return {a, b: b} })(1, 2));
console.log(JSON.stringify(out));
