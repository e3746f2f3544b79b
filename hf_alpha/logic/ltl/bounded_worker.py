"""What the process of `bounded` runs; it imports nothing of this package (see `solver_process`).

A formula becomes a table of nodes, equal subformulas one node: `&` of two nodes, `X` of one, and
names. `a U b` is `b | a & X(a U b)`. A node has a variable at each step; a literal is a number, its
negation the number with the other sign. Clauses for another step are the first step's, shifted.

With one clause more, which a question may assume or not, the last of k steps is followed by the
step at which the loop begins. Without it the clauses describe the first k steps of any word: where
they contradict one another, no word satisfies the formula. So one solver answers for all k, and
keeps what it has learnt (Heljanko, Junttila and Latvala, "Incremental and Complete Bounded Model
Checking for Full PLTL", CAV 2005).
"""

from collections.abc import Callable, Sequence
from typing import Any

Clauses = list[list[int]]

TRUE = 1


def prepare() -> Any:
    """Import python-sat."""
    from pysat import solvers

    return solvers


class Nodes:
    """The subformulas of a formula, each once.

    Attributes:
        root: the literal of the formula.
        clauses: what holds between nodes at one step.
        nexts: node of `X a` -> node of a.
        untils: node of `X !(a U b)` -> literal of b.
        names: name -> its node.
    """

    def __init__(self, tokens: Sequence[str]):
        self.count = TRUE
        self.clauses: Clauses = [[TRUE]]
        self.nexts: dict[int, int] = {}
        self.untils: dict[int, int] = {}
        self.names: dict[str, int] = {}
        self._known: dict[tuple[Any, ...], int] = {}
        stack: list[int] = []
        for token in reversed(tokens):
            if token == "!":
                stack.append(-stack.pop())
            elif token == "X":
                stack.append(self._next(stack.pop()))
            elif token == "&":
                stack.append(self._and(stack.pop(), stack.pop()))
            elif token == "|":
                stack.append(-self._and(-stack.pop(), -stack.pop()))
            elif token == "U":
                stack.append(self._until(stack.pop(), stack.pop()))
            elif token in ("<->", "^"):
                stack.append(self._equal(stack.pop(), stack.pop() * (1 if token == "<->" else -1)))
            elif token == "W":
                a, b = stack.pop(), stack.pop()
                stack.append(-self._until(-b, self._and(-a, -b)))
            elif token == "M":
                a, b = stack.pop(), stack.pop()
                stack.append(self._until(b, self._and(a, b)))
            elif token in ("0", "1"):
                stack.append(TRUE if token == "1" else -TRUE)
            else:
                stack.append(self.names.get(token) or self._name(token))
        self.root = stack[0]

    def _new(self) -> int:
        self.count += 1
        return self.count

    def _name(self, token: str) -> int:
        node = self.names[token] = self._new()
        return node

    def _and(self, x: int, y: int) -> int:
        if x > y:
            x, y = y, x
        if x in (-TRUE, -y):
            return -TRUE
        if x in (TRUE, y):
            return y
        if y in (TRUE, -TRUE):
            return x if y == TRUE else y
        node = self._known.get((x, y))
        if node is None:
            node = self._known[x, y] = self._new()
            self._define(node, x, y)
        return node

    def _define(self, node: int, x: int, y: int) -> None:
        """Say that a node is x & y."""
        self.clauses += [[-node, x], [-node, y], [node, -x, -y]]

    def _equal(self, x: int, y: int) -> int:
        neither = self._and(-x, -y)
        return -self._and(-self._and(x, y), -neither)

    def _next(self, x: int) -> int:
        if abs(x) == TRUE:
            return x
        node = self._known.get((abs(x),))
        if node is None:
            node = self._known[(abs(x),)] = self._new()
            self.nexts[node] = abs(x)
        return node if x > 0 else -node

    def _until(self, a: int, b: int) -> int:
        if a == -TRUE or abs(b) == TRUE or a == b:
            return b
        node = self._known.get(("U", a, b))
        if node is None:
            node = self._known["U", a, b] = self._new()  # of the negation, which is an `&`
            after = self._next(-node)
            self._define(node, -b, -self._and(a, after))
            self.untils[abs(after)] = b
        return -node


class Lassos:
    """The clauses of lassos, step by step.

    A block of variables a step: the nodes; where the loop begins, whether it has begun, and
    whether this is the last step; for each `until`, whether its right side has held in the loop.
    Before the blocks there is, for each `X`, what its operand is where the loop begins.
    """

    def __init__(self, tokens: Sequence[str], solver: Any):
        self.nodes, self.solver, self.steps = Nodes(tokens), solver, 0
        self._entries = {x: number for number, x in enumerate(self.nodes.nexts, start=1)}
        self._first = len(self._entries)
        self._size = self.nodes.count + 3 + len(self.nodes.untils)

    def at(self, step: int, node: int) -> int:
        """Return the variable of a node at a step, or its negation."""
        shift = self._first + step * self._size
        return node + shift if node > 0 else node - shift

    def begins(self, step: int) -> int:
        """Return the variable that says that the loop begins at a step."""
        return self.at(step, self.nodes.count + 1)

    def begun(self, step: int) -> int:
        """Return the variable that says that the loop begins at a step or before."""
        return self.at(step, self.nodes.count + 2)

    def last(self, step: int) -> int:
        """Return the variable that says that a step is the last one."""
        return self.at(step, self.nodes.count + 3)

    def add_step(self) -> None:
        """Have one step more."""
        step, at = self.steps, self.at
        shift = self._first + step * self._size
        clauses = [[x + shift if x > 0 else x - shift for x in c] for c in self.nodes.clauses]
        if step == 0:
            clauses.append([at(0, self.nodes.root)])
        else:
            clauses.append([-self.last(step - 1)])
            for x, operand in self.nodes.nexts.items():
                clauses += _equal(at(step - 1, x), at(step, operand))
        self.steps += 1
        self.solver.append_formula(clauses + self._loop(step))

    def _loop(self, step: int) -> Clauses:
        """Say what the loop has to do with a step, and what follows if that is the last one."""
        at, begins, begun, last = self.at, self.begins(step), self.begun(step), self.last(step)
        before = self.begun(step - 1) if step else None
        clauses = [[-begins, begun], [-last, begun]]
        if before is None:
            clauses += [[-begun, begins]]
        else:
            clauses += [[-begun, begins, before], [-before, begun], [-before, -begins]]
        for x, operand in self.nodes.nexts.items():
            entry = self._entries[x]
            clauses += _equal(entry, at(step, operand), unless=-begins)
            clauses += _equal(at(step, x), entry, unless=-last)
        for number, (x, right) in enumerate(self.nodes.untils.items(), start=4):
            held = at(step, self.nodes.count + number)
            earlier = [at(step - 1, self.nodes.count + number)] if step else []
            clauses += [[-held, begun, *earlier], [-held, at(step, right), *earlier]]
            # The operand of x is the negation of `a U b`: where the loop begins it holds, or b has
            # to come true within the loop.
            clauses.append([-last, self._entries[x], held])
        return clauses


def _equal(x: int, y: int, unless: int | None = None) -> Clauses:
    condition = [] if unless is None else [unless]
    return [[*condition, -x, y], [*condition, x, -y]]


def search(
    tokens: Sequence[str], max_steps: int | None = None
) -> tuple[list[list[str]], int] | bool | None:
    """Find a lasso that satisfies a formula: one with the fewest steps, then the shortest loop.

    Args:
        tokens: prefix tokens over `! & | X U <-> ^ W M 0 1` and names.
        max_steps: longest lasso that is looked for; without it, a formula that has none and is not
            refuted on the way keeps the search going for ever.

    Returns:
        The names that are true at each step, and the step at which the loop begins; False if no
        word satisfies the formula, None if no lasso of so many steps does.
    """
    with prepare().Minisat22() as solver:  # the fastest of python-sat's here, by a little
        lassos = Lassos(tokens, solver)
        while max_steps is None or lassos.steps < max_steps:
            lassos.add_step()
            last = lassos.last(lassos.steps - 1)
            if not solver.solve(assumptions=[last]):
                if not solver.get_core():
                    return False
                continue
            return _shortest_loop(lassos, last)
    return None


def _shortest_loop(lassos: Lassos, last: int) -> tuple[list[list[str]], int]:
    solver, at = lassos.solver, lassos.at
    model = set(solver.get_model())
    loop = next(step for step in range(lassos.steps) if lassos.begins(step) in model)
    for step in range(lassos.steps - 1, loop, -1):
        if solver.solve(assumptions=[last, lassos.begins(step)]):
            model, loop = set(solver.get_model()), step
            break
    names = lassos.nodes.names.items()
    return [
        [name for name, node in names if at(step, node) in model] for step in range(lassos.steps)
    ], loop


SERVED: dict[str, Callable[..., Any]] = {"search": search}
