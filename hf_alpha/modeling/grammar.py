"""Reading and writing formulas: compact prefix, spaced prefix and infix.

A `Grammar` is data (operators with their arity, constants, precedences, spellings, derived
operators), so that it travels inside a tokenizer's JSON file. All readers give the same thing: a
list of canonical tokens in prefix order. Nothing here is recursive, because formulas may be nested
deeper than Python's stack. This file needs the standard library only, and no sibling: the command
line reads formulas with it before it loads torch.

A name is a Unicode identifier (`str.isidentifier`), or several with dots between them (`p.q`; the
parts after a dot may begin with a digit). In double quotes it may be anything on one line; as in
Spot, a backslash stands before a quote and before a backslash. The token of a name is the name
itself, with quotes only where it would be read as something else: `"p"` gives `p`, `"a b"` and
`"true"` keep their quotes. Names are compared character by character, with no Unicode
normalisation: distinct names are never merged, and each comes back as it was written.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Self

NOTATIONS = ("prefix", "compact", "infix")
MAX_TOKENS = 1_000_000
"""A derived operator may repeat its operands; one that makes a formula longer is not rewritten."""

PATH_STEPS = 62
# Every character that an identifier may hold. Outside Latin these are whole blocks, so that `_WORD`
# may hold some that are not allowed; `is_plain_name` decides.
_CHARACTER = (
    r"[\w\xb7\u0300-\u1fff\u203f\u2040\u2054\u20d0-\u20ff\u2118\u212e\u2c00-\u2fff\u302a-\u302f"
    r"\u3099\u309a\ua000-\ud7ff\uf900-\ufe4f\uff3f\U00010000-\U0001efff\U000e0100-\U000e01ef]"
)
_WORD = rf"{_CHARACTER}+(?:\.{_CHARACTER}+)*"
_IN_QUOTES = r"[^\n\r\ud800-\udfff"  # a line, and no halves of characters
_QUOTED = rf'"(?:{_IN_QUOTES}"\\]|\\{_IN_QUOTES}])*"'
NAME = rf"(?:{_QUOTED}|(?!\d){_WORD})"
"""Pattern of what may be a name in a text; `Grammar.is_name` decides."""
_SPACED = re.compile(rf"(?:{_QUOTED}|\S)+")
_UNARY = 1 << 30  # binds tighter than every binary operator
_UNKNOWN = -(1 << 60)  # an arity after which no count of operands can recover

Node = tuple[Any, ...]  # (token, child nodes ...)
Lexeme = tuple[str, int]  # (canonical token or raw text, index of its first character)


class FormulaError(ValueError):
    """A text is not a formula. `position` is the index of the offending character, if known."""

    def __init__(self, message: str, position: int = -1):
        super().__init__(message)
        self.position = position


def check_unicode(text: str) -> None:
    """Refuse halves of characters (lone surrogates), as arguments have that are no UTF-8.

    Raises:
        FormulaError: with the place.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise FormulaError(
            f"the character {text[error.start]!a} at {error.start} is half of one: the text was "
            "not read as UTF-8",
            error.start,
        ) from None


def is_plain_name(text: str) -> bool:
    """Whether a text is a name that needs no quotes, as far as its characters are concerned."""
    if text.isidentifier():
        return True
    head, *parts = text.split(".")
    return head.isidentifier() and all(x and f"_{x}".isidentifier() for x in parts)


def unquoted(token: str) -> str:
    """Return the name that a token stands for."""
    return re.sub(r"\\(.)", r"\1", token[1:-1]) if _is_quoted(token) else token


def words(text: str) -> list[Lexeme]:
    """Return the words of a text, split at spaces outside double quotes, and their starts."""
    return [(match.group(), match.start()) for match in _SPACED.finditer(text)]


def split_at(text: str, signs: str) -> list[str]:
    """Split a text at each of these signs, no special ones of a class, outside double quotes."""
    matches = re.finditer(rf"{_QUOTED}|[{signs}]", text)
    edges = [match.start() for match in matches if match.group() in signs]
    starts = [0, *(edge + 1 for edge in edges)]
    return [text[i:j] for i, j in zip(starts, [*edges, len(text)], strict=True)]


def _is_quoted(token: str) -> bool:
    return len(token) > 1 and token[0] == token[-1] == '"'


@dataclass(frozen=True)
class Grammar:
    """The syntax of one kind of formula.

    Attributes:
        operators: canonical token -> arity (1 or 2).
        constants: canonical tokens of arity 0 that are not names.
        infix: binary operator (canonical or derived) -> [precedence, "left" or "right"]; a higher
            precedence binds tighter, and unary operators bind tightest.
        spellings: other ways to write an operator, constant or derived operator. Words of two
            letters or more that stand for a constant do so in any case, as in Spot: `True`, `TRUE`.
        derived: further operators that are rewritten while reading, as prefix templates over
            canonical tokens: `{"->": "| ! $1 $2"}`. Double negations are then dropped: `!a -> b` is
            `| a b`. A formula without derived operators is read as it stands.
        glued: letters that, in infix, are operators even where a word follows at once, as in
            Spot's syntax: with "FGXU" `GFa` is G F a and, after an operand, `Ub` is U b. A letter
            before a digit is not one (`F1` is a name), and a name in double quotes stays whole.
        refused: signs of notations that are not read -> what to write instead. One that is a letter
            is a name wherever a name may stand, a longer word only in double quotes.
    """

    operators: dict[str, int]
    constants: tuple[str, ...]
    infix: dict[str, list[Any]]
    spellings: dict[str, str]
    derived: dict[str, str]
    glued: str = ""
    refused: dict[str, str] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        for fault in self._faults():
            raise ValueError(fault)

    def _faults(self) -> Iterator[str]:
        """What is wrong with the data; each is looked for where those before it are not there."""
        for name, (meaning, is_valid) in _FIELDS.items():
            value = getattr(self, name)
            table = isinstance(value, dict)
            entries = value.items() if table else []
            if not table or not all(isinstance(x, str) and x and is_valid(y) for x, y in entries):
                yield f"`{name}` of a grammar maps {meaning}, not {_shorten(value)}"
        if not all(isinstance(token, str) and token for token in self.constants):
            yield f"`constants` of a grammar are tokens, not {_shorten(self.constants)}"
        if not isinstance(self.glued, str):
            yield f"`glued` of a grammar is a string, not {_shorten(self.glued)}"
        for token, arity in self.arities.items():
            if arity == 2 and token not in self.infix:
                yield f"binary operator {token!r} has no entry in `infix`"
        for token, template in self.derived.items():
            parts = template.split()
            basic = {*self.operators, *self.constants, "$1", "$2"}
            if self._prefix_end(parts) != len(parts) or not basic.issuperset(parts):
                yield f"template {template!r} of {token!r} is not one basic formula"
        for spelling, token in self.spellings.items():
            if token not in self.arities:
                yield f"{spelling!r} is a spelling of {token!r}, which is no token"
        for letter in self.glued:
            if not letter.isalpha() or not self.arities.get(self.spellings.get(letter, letter)):
                yield f"{letter!r} in `glued` is no operator that is a letter"
        levels: dict[int, str] = {}
        for token, (precedence, side) in self.infix.items():
            if levels.setdefault(precedence, side) != side:
                yield f"{token!r} and another operator of its precedence differ in side"

    def parse(self, text: str, notation: str | None = None) -> list[str]:
        """Return a formula's canonical prefix tokens; names stay as they are written.

        Args:
            text: a formula; whitespace around it does not matter.
            notation: "compact" (`&aXb`: no whitespace, each letter a name), "prefix" (`& request
                ! grant`), "infix" (`request & !grant`) or None to try them in this order. A text
                that two of them read differently counts as prefix or compact only if it uses
                neither derived operators nor other spellings: `X Fa` is X of a name, `G Fa` is
                G F a.

        Raises:
            FormulaError: no reading succeeds; the error is that of the reading that got furthest.
        """
        return self.rewritten(self.read(text, notation))

    def rewritten(self, tokens: list[str]) -> list[str]:
        """Rewrite the derived operators of a formula that `read` gave, be it of another grammar.

        Raises:
            FormulaError: the formula becomes longer than `MAX_TOKENS`, by `repeating` operators.
        """
        if self.derived.keys().isdisjoint(tokens):
            return tokens
        most = math.inf if self.repeating.isdisjoint(tokens) else MAX_TOKENS
        rewritten = self._flatten(self._tree(tokens), most)
        if len(rewritten) > most:
            raise FormulaError(
                f"the formula has more than {MAX_TOKENS} tokens once its derived operators are "
                "rewritten, too many for a model: write it without them, or ask a solver alone"
            )
        return _without_double_negation(rewritten)

    def read(self, text: str, notation: str | None = None) -> list[str]:
        """Return a formula's prefix tokens, derived operators among them; see `parse`."""
        if notation is None:
            return self._read_any(text)
        _check_notation(notation)
        if not text.strip():
            raise FormulaError("the formula is empty", 0)
        if notation == "compact":
            return self._read_compact(text)
        lexemes = self._lex(self._word_pattern, text)
        reader = self._read_prefix if notation == "prefix" else self._read_infix
        return reader(lexemes, text)

    def _read_any(self, text: str) -> list[str]:
        """Return the prefix tokens of a text in the notation that is detected."""
        spaced = len(text.split()) > 1
        text = text if spaced else text.strip()
        errors: list[FormulaError] = []
        likely: list[str] | None = None
        for notation in ("prefix" if spaced else "compact", "infix"):
            try:
                tokens = self.read(text, notation)
            except FormulaError as error:
                errors.append(error)
            else:
                pieces = [word for word, _ in words(text)] if spaced else list(text)
                is_plain = tokens == pieces and self.derived.keys().isdisjoint(tokens)
                if notation == "infix" or is_plain:
                    return tokens
                likely = tokens
        if likely is not None:
            return likely
        # of two that got equally far, infix: the text begins with an operand
        foreign = tuple(f"{word!r} at " for word in self.refused if len(word) > 1)
        raise max(reversed(errors), key=lambda e: (str(e).startswith(foreign), e.position))

    def _read_compact(self, text: str) -> list[str]:
        arities = self._character_arities
        missing = 1
        for token in text[:-1]:  # fast path: canonical characters only
            missing += arities.get(token, _UNKNOWN) - 1
            if missing <= 0:
                break
        else:
            if missing + arities.get(text[-1], _UNKNOWN) == 1:
                return list(text)
        return self._read_prefix(self._lex(self._compact_pattern, text), text)

    def _lex(self, pattern: re.Pattern[str], text: str) -> Iterator[Lexeme]:
        """Split without judging: what is no token is refused when a reader gets to it."""
        for match in pattern.finditer(text):
            piece = match.group()
            if not piece.isspace():
                yield self._canonical(piece), match.start()

    def _read_prefix(self, lexemes: Iterable[Lexeme], text: str) -> list[str]:
        tokens: list[str] = []
        missing, end = 1, len(text)
        before = ("", 0)
        for lexeme in lexemes:
            token, start = self.named(lexeme)
            arity = self._arity(token)
            if missing == 0:
                expected = "the end" + ": the formula is already complete" * (arity is not None)
                raise self._unexpected(text, (token, start), expected, before)
            if arity is None:
                raise self._unexpected(text, (token, start), "a name, a constant or an operator")
            missing += arity - 1
            tokens.append(token)
            before = (token, start)
        if missing:
            operands = "operand is" if missing == 1 else "operands are"
            raise FormulaError(
                f"the formula ends at character {end} while {missing} {operands} missing", end
            )
        return tokens

    def _read_infix(self, lexemes: Iterable[Lexeme], text: str) -> list[str]:
        """Parse infix by precedence climbing with two explicit stacks (the shunting yard)."""
        operands: list[Node] = []
        waiting: list[Lexeme] = []
        want_operand, end = True, len(text)
        before = ("", 0)
        for lexeme in lexemes:
            for piece in self._unglued(lexeme, want_operand):
                token, start = self.named(piece)
                arity = self._arity(token)
                if want_operand:
                    if not (token == "(" or arity in (0, 1)):
                        raise self._unexpected(text, (token, start), _OPERAND, before)
                    if arity == 0:
                        operands.append((token,))
                        want_operand = False
                    else:
                        waiting.append((token, start))
                elif token == ")":
                    self._reduce(-math.inf, operands, waiting)
                    if not waiting:
                        raise FormulaError(f"')' at character {start + 1} closes nothing", start)
                    waiting.pop()
                elif arity == 2:
                    precedence, side = self.infix[token]
                    self._reduce(precedence + (side == "right"), operands, waiting)
                    waiting.append((token, start))
                    want_operand = True
                else:
                    expected = "a binary operator, ')' or the end"
                    raise self._unexpected(text, (token, start), expected, before)
                before = (token, start)
        if want_operand:
            raise FormulaError(f"the formula ends at character {end} where {_OPERAND} is due", end)
        self._reduce(-math.inf, operands, waiting)
        if waiting:
            raise FormulaError(f"'(' at character {waiting[-1][1] + 1} is never closed", end)
        return self._flatten(operands[0])

    def _unglued(self, lexeme: Lexeme, want_operand: bool) -> list[Lexeme]:
        """Split a word into the operators glued to its front, and the rest of it."""
        word, start = lexeme
        if not self.glued or not self.is_name(word):
            return [lexeme]
        unary, binary, constant = self._glue
        cuts = [0] if want_operand or not binary.match(word) else [0, 1]
        while unary.match(word, cuts[-1]):
            cuts.append(cuts[-1] + 1)
        if (match := constant.match(word, cuts[-1])) and match.end() < len(word):
            cuts.append(match.end())
        pieces = [word[i:j] for i, j in zip(cuts, [*cuts[1:], None], strict=True)]
        return [(self._canonical(x), start + i) for x, i in zip(pieces, cuts, strict=True)]

    def named(self, lexeme: Lexeme) -> Lexeme:
        """Return the same word, but a name in quotes as its token."""
        token, start = lexeme
        return (self.token_of(unquoted(token)), start) if _is_quoted(token) else lexeme

    def token_of(self, name: str) -> str:
        """Return a name's token: the name, in quotes if it would be read as something else."""
        if self._is_plain(name):
            return name
        return '"' + re.sub(r'(["\\])', r"\\\1", name) + '"'

    def _reduce(self, bound: float, nodes: list[Node], waiting: list[Lexeme]) -> None:
        """Apply the operators that wait behind the last "(" and bind at least so tightly."""
        while waiting and (token := waiting[-1][0]) != "(":
            arity = self.arities[token]
            if (_UNARY if arity == 1 else self.infix[token][0]) < bound:
                break
            waiting.pop()
            nodes[-arity:] = [(token, *nodes[-arity:])]

    def _node(self, token: str, children: tuple[Node, ...]) -> Node:
        if token not in self.derived:
            return (token, *children)
        leaves = {f"${i}": child for i, child in enumerate(children, start=1)}
        return self._tree(self.derived[token].split(), leaves)

    def _tree(self, tokens: list[str], leaves: dict[str, Node] | None = None) -> Node:
        """Build the tree of valid prefix tokens from the right; operands may be shared."""
        leaves = leaves or {}
        nodes: list[Node] = []
        for token in reversed(tokens):
            arity = self.arities.get(token, 0)
            children = tuple(nodes.pop() for _ in range(arity))
            nodes.append(leaves[token] if token in leaves else self._node(token, children))
        return nodes[0]

    @staticmethod
    def _flatten(root: Node, most: float = math.inf) -> list[str]:
        """Return prefix tokens; of more than `most`, one more than these."""
        tokens: list[str] = []
        stack = [root]
        while stack and len(tokens) <= most:
            token, *children = stack.pop()
            tokens.append(token)
            stack.extend(reversed(children))
        return tokens

    def tree_paths(self, tokens: list[str]) -> list[int]:
        """Return the nodes' heap numbers: root 1, left or only child 2c, right child 2c + 1.

        Only the 62 steps nearest to a node are kept, below a leading one, so that a number always
        fits int64; 0 is free to mean "no position".

        Raises:
            FormulaError: the tokens are not one prefix formula.
        """
        arity_of = self.operators
        paths: list[int] = []
        stack = [1]
        for token in tokens:
            if not stack:
                raise FormulaError(f"token {len(paths) + 1}, {token!r}, follows a whole formula")
            path = stack.pop()
            paths.append(path)
            if token in arity_of:
                path *= 2
                if path >> (PATH_STEPS + 1):
                    path = path & (1 << PATH_STEPS) - 1 | 1 << PATH_STEPS
                if arity_of[token] == 2:
                    stack.append(path + 1)
                stack.append(path)
        if stack:
            raise FormulaError(f"the formula lacks {len(stack)} operands after its last token")
        return paths

    def as_written(self) -> Self:
        """Return the grammar that keeps derived operators, as `format` of this one does not."""
        operators = {token: arity for token, arity in self.arities.items() if arity}
        return replace(self, operators=operators, derived={})

    def format(self, tokens: list[str], notation: str = "prefix") -> str:
        """Write canonical prefix tokens: "prefix" (spaced), "compact" or "infix".

        Infix uses as few parentheses as `parse` needs to give the same tokens back. `parse` reads
        each of them without being told the notation.

        Raises:
            FormulaError: the tokens are not one prefix formula, or a token is too long for compact.
        """
        _check_notation(notation)
        end = self._prefix_end(tokens)
        if not tokens or end != len(tokens):
            raise FormulaError(f"the {len(tokens)} tokens are not one formula in prefix order")
        if notation == "prefix":
            return " ".join(tokens) if len(tokens) > 1 else self._whole(tokens[0])
        if notation == "compact":
            long = next((token for token in tokens if len(token) > 1), None)
            if long is not None:
                raise FormulaError(f"{long!r} is too long for compact notation: use 'prefix'")
            return "".join(tokens)
        return "".join(self._infix_pieces(self._tree(tokens)))

    def _infix_pieces(self, root: Node) -> Iterator[str]:
        stack: list[str | tuple[Node, int]] = [(root, 0)]
        while stack:
            top = stack.pop()
            if isinstance(top, str):
                yield top
                continue
            (token, *children), bound = top
            if not children:
                text = self._whole(token)
                foreign = self.glued and not text.isascii()  # Spot takes ASCII only, but in quotes
                yield f'"{text}"' if foreign and not _is_quoted(text) else text
            elif len(children) == 1:
                yield f"{token} " if is_plain_name(token) else token
                stack.append((children[0], _UNARY))
            else:
                precedence, side = self.infix[token]
                left, right = (0, 1) if side == "left" else (1, 0)
                enclosed = precedence < bound
                yield "(" * enclosed
                stack += [
                    ")" * enclosed,
                    (children[1], precedence + right),
                    f" {token} ",
                    (children[0], precedence + left),
                ]

    def _whole(self, token: str) -> str:
        """Return a leaf, in quotes if infix would split it or compact notation read it."""
        glued = len(self._unglued((token, 0), True)) > 1
        compact = token[0] in self.operators and self._prefix_end([*token]) == len(token)
        return f'"{token}"' if glued or (compact and len(token) > 1) else token

    @cached_property
    def repeating(self) -> frozenset[str]:
        """Derived operators that repeat an operand: n of them may make a formula 2 ** n long."""
        counts = {x: map(template.count, ("$1", "$2")) for x, template in self.derived.items()}
        return frozenset(token for token, count in counts.items() if max(count) > 1)

    @cached_property
    def arities(self) -> dict[str, int]:
        """Arity of every operator, derived operator and constant."""
        derived = {token: 1 + ("$2" in template) for token, template in self.derived.items()}
        return {**dict.fromkeys(self.constants, 0), **self.operators, **derived}

    def is_name(self, token: str) -> bool:
        """Whether a token can stand for a symbol: a name, with quotes only where it needs them."""
        if _is_quoted(token):
            return self.token_of(unquoted(token)) == token and bool(re.fullmatch(_QUOTED, token))
        return self._is_plain(token)

    def _is_plain(self, word: str) -> bool:
        """Whether a word is a name without quotes."""
        is_refused = len(word) > 1 and word in self.refused
        return not is_refused and self._canonical(word) not in self.arities and is_plain_name(word)

    def _canonical(self, word: str) -> str:
        """Return the token that a word is a spelling of, or the word."""
        return self.spellings.get(word) or self._constant_words.get(word.lower(), word)

    @cached_property
    def _constant_words(self) -> dict[str, str]:
        """Words that stand for a constant, in lower case."""
        words = {x.lower(): token for x, token in self.spellings.items() if x.isalpha()}
        return {x: token for x, token in words.items() if token in self.constants and len(x) > 1}

    def _arity(self, token: str) -> int | None:
        arity = self.arities.get(token)
        return 0 if arity is None and self.is_name(token) else arity

    def _prefix_end(self, tokens: list[str]) -> int:
        """Return how many tokens make up the first whole formula; len + 1 if it is incomplete."""
        missing = 1
        for index, token in enumerate(tokens):
            missing += self.arities.get(token, 0) - 1
            if missing == 0:
                return index + 1
        return len(tokens) + 1

    @cached_property
    def _character_arities(self) -> dict[str, int]:
        letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"
        tokens = {*letters, *self.operators, *self.constants}
        arities = {token: self._arity(token) for token in tokens if token not in self.derived}
        return {t: arity for t, arity in arities.items() if len(t) == 1 and arity is not None}

    @cached_property
    def _word_pattern(self) -> re.Pattern[str]:
        return self._pattern([_WORD, _QUOTED], {*self.arities, *self.spellings})

    @cached_property
    def _glue(self) -> tuple[re.Pattern[str], ...]:
        """A glued unary operator, a glued binary one, and a constant that begins like the first.

        As in Spot, the letter of such a constant is no operator: `XFalse` is X of `False`, and
        `FalseAlarm` has no meaning without quotes.
        """
        arity = {x: self.arities[self.spellings.get(x, x)] for x in self.glued}
        unary, binary = ("".join(x for x in self.glued if arity[x] == n) or " " for n in (1, 2))
        constant = f"(?i:{'|'.join(self._constant_words) or ' '})"
        return (
            # before a dot too, as in Spot; there its operand is a name that begins with a dot
            re.compile(rf"(?!{constant})[{unary}](?=[^\W\d]|\.)"),
            re.compile(f"[{binary}](?=.)"),
            re.compile(f"(?=[{unary}]){constant}"),
        )

    @cached_property
    def _compact_pattern(self) -> re.Pattern[str]:
        # `&&abc` is two operators: a longer sign counts only if its characters are not all tokens
        single = {token for token in {*self.arities, *self.spellings} if len(token) == 1}
        signs = {token for token in {*self.arities, *self.spellings} if not single >= set(token)}
        return self._pattern([], signs)

    @staticmethod
    def _pattern(first: list[str], tokens: set[str]) -> re.Pattern[str]:
        signs = [token for token in tokens if not re.fullmatch(_WORD, token)]
        longest_first = sorted(signs, key=lambda sign: (-len(sign), sign))
        return re.compile("|".join([*first, *map(re.escape, longest_first), "."]), re.DOTALL)

    def _unexpected(
        self, text: str, lexeme: Lexeme, expected: str, before: Lexeme = ("", 0)
    ) -> FormulaError:
        """Return the error for a token out of place; `before` is the token before it."""
        token, start = lexeme
        arity = self._arity(token)
        if before[0] in self.refused and (token == "(" or arity in (0, 1)):
            # an operand after `Y` says that `Y` was meant as an operator
            token, start = before
        if not text.startswith(token, start):  # another spelling, or needless quotes
            token = self._word_pattern.match(text, start).group()  # type: ignore[union-attr]
        if token in self.refused:
            reason = f": {self.refused[token]}"
        elif token == '"':
            reason = ": this quote is never closed on its line"
        elif arity is None and token != "(":
            bad_places = (i for i, x in enumerate(token) if x != "." and not f"_{x}".isidentifier())
            first = next(bad_places, 0)
            token, start = (token[first], start + first) if first else (token, start)
            reason = f" has no meaning here: expected {expected} ({self._known})"
        else:
            reason = f": expected {expected}"
        return FormulaError(f"{_shorten(token)} at character {start + 1}{reason}", start)

    @property
    def _known(self) -> str:
        tokens = " ".join(self.arities)
        rule = "letters, digits, _ and dots, or anything in double quotes"
        return f'operators and constants: {tokens}; names are {rule}, such as "x\'"'

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        data = {**asdict(self), "constants": list(self.constants)}
        return {key: value for key, value in data.items() if value or key not in _OPTIONAL}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Grammar":
        """Undo `to_dict`, also after a trip through JSON.

        Raises:
            ValueError: the data are no grammar; the message names the entry.
        """
        names = {entry.name for entry in fields(cls)}
        if not isinstance(data, dict) or not names.difference(_OPTIONAL) <= data.keys() <= names:
            entries = ", ".join(map(str, data)) if isinstance(data, dict) else _shorten(data)
            expected_entries = ", ".join(sorted(names))
            raise ValueError(
                f"a grammar has the entries {expected_entries}; this one is {entries or 'empty'}"
            )
        constants = data["constants"]
        if not isinstance(constants, list | tuple):
            raise ValueError(f"`constants` of a grammar is a list, not {_shorten(constants)}")
        return cls(**{**data, "constants": tuple(constants)})


def _check_notation(notation: str) -> None:
    if notation not in NOTATIONS:
        raise ValueError(f"unknown notation {notation!r}: choose one of {', '.join(NOTATIONS)}")


def _is_text(value: object) -> bool:
    return isinstance(value, str)


_FIELDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "operators": ("tokens to 1 or 2", lambda value: value in (1, 2)),
    "infix": (
        'operators to [precedence, "left" or "right"]',
        lambda value: (
            isinstance(value, list | tuple)
            and [*map(type, value)] == [int, str]
            and value[1] in ("left", "right")
        ),
    ),
    "spellings": ("spellings to tokens", _is_text),
    "derived": ("tokens to templates", _is_text),
    "refused": ("signs to advice", _is_text),
}
_OPTIONAL = ("glued", "refused")
_OPERAND = "a name, a constant, a unary operator or '('"


def _without_double_negation(tokens: list[str]) -> list[str]:
    shortened: list[str] = []
    for token in tokens:
        if token == "!" and shortened and shortened[-1] == "!":
            shortened.pop()
        else:
            shortened.append(token)
    return shortened


def _shorten(value: object) -> str:
    text = value if isinstance(value, str) else repr(value)
    excerpt = text if len(text) <= 40 else text[:37] + "..."
    return repr(excerpt) if isinstance(value, str) else excerpt
