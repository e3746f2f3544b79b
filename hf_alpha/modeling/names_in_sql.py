"""Names of SQL, as sqlglot reads it: tables, columns, and aliases scope by scope.

What is not sure is no name: a word that may be read by its spelling somewhere in a text keeps that
spelling everywhere in it.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache
from importlib import import_module
from itertools import pairwise
from typing import Any, NamedTuple

import regex  # type: ignore[import-untyped]

from .names_in_code import library
from .python_code import NAME

_IDENTIFIER, _WORDS = regex.compile(NAME), regex.compile(r"\w+")
_DOTTED, _CALL = regex.compile(r"[^.]+"), regex.compile(r"\w+\(.*\)")
STATEMENTS = ("SELECT", "WITH", "INSERT", "UPDATE", "DELETE", "CREATE")
_KINDS = "Query DDL DML Drop Alter TruncateTable Comment Analyze Grant Use Condition Alias"
"""Of statements of which sqlglot says what each word is; and expressions."""
_KEPT = "DataType UserDefinedFunction GrantPrincipal Property Collate ColumnConstraintKind"
"""Of nodes whose identifiers are no tables, columns or aliases."""
_OPERANDS = {"VAR", "IDENTIFIER", "NUMBER", "STRING", "R_PAREN", "R_BRACKET", "PLACEHOLDER"}
_BEFORE_PARAMETER = {"PARAMETER", "SESSION_PARAMETER", "PLACEHOLDER", "COLON"}
_OF_TRIGGERS = regex.compile(
    "CREATE|OR|REPLACE|ALTER|TEMP|TEMPORARY|TRIGGER|IF|NOT|EXISTS|BEFORE|AFTER|INSTEAD|OF|DELETE"
    "|INSERT|UPDATE|ON|FOR|EACH|ROW|[.,]"
)
_ROWS = {"new", "old", "excluded", "inserted", "deleted"}
"""Tables that triggers, upserts and RETURNING have."""
_OF_SQLITE = {"rowid", "_rowid_", "oid"}
_SYSTEM_COLUMNS = {
    "sqlite": _OF_SQLITE,
    "duckdb": {"rowid"},
    "postgres": {"oid", "ctid", "tableoid", "xmin", "xmax", "cmin", "cmax"},
    "bigquery": {"_table_suffix", "_partitiontime", "_partitiondate", "_file_name"},
    "oracle": {"rowid", "rownum", "level", "user", "nextval", "currval", "column_value"},
    "snowflake": {"value", "level"},
    "clickhouse": {"_table", "_part", "_path", "_file"},
}
_OTHER_SYSTEM_COLUMNS = _OF_SQLITE | _SYSTEM_COLUMNS["bigquery"] | {"ctid", "tableoid"}
_CONSTANTS = {"default", "maxvalue", "current_role", "current_schema", "current_catalog"}
_SCHEMA = regex.compile("public|main|temp|memory|dbo|pg_temp")
"""Where a table is that is named without one."""
_SYSTEM_SCHEMA = regex.compile(
    "information_schema|pg_catalog|sys|system|mysql|performance_schema|account_usage"
)
_SYSTEM_TABLE = regex.compile(r"(?i)dual|information_schema|(?:sqlite|pragma|pg|duckdb)_\w+|v\$\w+")
_OF_ORACLE = regex.compile(r"(?i)(?:all|dba|user)_\w+")
_READS = regex.compile(
    r"(?i)pragma\s+(?:\w+\.)?(?:table|index|foreign_key)_|(?:desc|describe|summarize)\s+\S+$"
    r"|show\s+(?:full\s+|create\s+)?(?:tables?|columns|fields|index|indexes|keys|views)\b"
)
"""Statements that tell names."""
_PROSE = regex.compile(r"(?i)(?:show|describe|explain\s+(?!query|analyze|select|with|insert|\())\b")
_BY_SPELLING = regex.compile(
    r"(?i)\w*(?:next|curr|set)val|to_?reg\w+|pg_\w+|has_\w+|object\w*_?id|col_\w+|ident_current"
    r"|columns|struct\w*|element_at"
)
"""Functions that take a name as a string."""
_OF_TIME = regex.compile(r"(?i)\w*(?:date|time)\w*(?:diff|add|sub|trunc|part|name)\w*")
_FUNCTIONS = {"FUNCTION", "PROCEDURE", "MACRO", "AGGREGATE"}
_UNIT = regex.compile(
    "(?:iso|dayof|week)?(?:year|quarter|month|week|day|hour|minute|second|epoch)"
    "|(?:milli|micro)second"
)
Places = list[tuple[int, int]]


def sql_names(
    text: str, language: str | None = None, ignore_case: bool = True
) -> list[tuple[int, int, str]]:
    """Return start, stop and binding of tables, columns and aliases, databases and schemas.

    A binding is called by the name and a number: 0 for all that is spelled so, others for aliases
    of tables and common table expressions where it is sure what refers to them. Quotes are no part
    of a name. Functions, types, parameters and strings are no names, nor is what there is without
    being declared (`rowid`, `excluded`, `sqlite_master` and its columns).

    Args:
        text: statements. If the last one cannot be parsed, it has the identifiers that its tokens
            are if it begins like one, else the names of those before.
        language: the dialect, such as "mysql", as sqlglot calls it.
        ignore_case: names are one if the dialect says so, such as `Users` and `users`; else if they
            are spelled alike.

    Raises:
        ImportError: sqlglot is not installed.
        ValueError: it does not know the dialect.
    """
    return _script(text, language, ignore_case)[0]


def sql_words(text: str, language: str | None = None, ignore_case: bool = True) -> Places:
    """Return what may be names of another text: identifiers that by this one are none."""
    return _script(text, language, ignore_case)[1]


@lru_cache(maxsize=64)
def _script(
    text: str, language: str | None, ignore_case: bool
) -> tuple[list[tuple[int, int, str]], Places]:
    sqlglot = library("sqlglot", "'hf_alpha[sql]'", "names of SQL")
    script = _Script(text, sqlglot, sqlglot.Dialect.get_or_raise(language), ignore_case)
    numbers: dict[tuple[str, int], int] = {}
    alike = Counter[str]()
    names, words = [], []
    for place in script.in_order:
        if not script.is_name(place):
            words.append((place.start, place.stop))
            continue
        alias = (place.name, place.alias)
        if place.alias and alias not in numbers:
            alike[place.name] += 1
            numbers[alias] = alike[place.name]
        names.append((place.start, place.stop, f"{place.name} {numbers.get(alias, 0)}"))
    return names, words


class _Place(NamedTuple):
    """An identifier: its place without quotes, and its name as the dialect has it.

    Attributes:
        role: "column"; "other", as of a table; "field" of a struct, a name if the text declares
            one; "string", a column in double quotes, or to SQLite a string; "mention" of a name
            that there is; "kept", by its spelling, everywhere.
        alias: the number of the alias in the text that it is, or refers to; else 0.
    """

    start: int
    stop: int
    name: str
    is_quoted: bool
    role: str
    alias: int = 0


class _Script:
    """What the identifiers of statements are."""

    def __init__(self, text: str, sqlglot: Any, dialect: Any, ignore_case: bool):
        self.text, self.sqlglot, self.exp, self.dialect = text, sqlglot, sqlglot.exp, dialect
        self.key, self.ignore_case = type(dialect).__name__.lower(), ignore_case
        self.known = tuple(getattr(self.exp, kind) for kind in _KINDS.split())
        self.system = _SYSTEM_COLUMNS.get(self.key, _OTHER_SYSTEM_COLUMNS) | _CONSTANTS
        self.places: list[_Place] = []
        self.kept: set[str] = set()
        """Words that keep their spelling, in small letters."""
        self.fields: set[str] = set()
        self.aliases = 0
        self.is_read = False
        """Whether the text asks what tables and columns are called."""
        chunks = [*self._chunks()]
        for number, chunk in enumerate(chunks, start=1):
            self._read(chunk, number == len(chunks), len(chunks) == 1)

    @cached_property
    def in_order(self) -> list[_Place]:
        """The identifiers, each once."""
        places = sorted({place.start: place for place in self.places}.values())
        sure = [place for place in places if place.role in ("column", "other")]
        columns = {place.name for place in sure if place.role == "column"}
        self._named = {
            "mention": {place.name for place in sure},
            "string": columns,
            "field": self.fields,
        }
        for place in places:
            is_unknown = place.role == "field" and place.name not in self.fields
            if place.role == "kept" or is_unknown:
                self.kept.add(place.name.lower())
        self.kept |= self._folded_otherwise(sure)
        return places

    def is_name(self, place: _Place) -> bool:
        """Whether an identifier is one, as all of the text has it."""
        if place.role == "kept" or place.name.lower() in self.kept:
            return False
        if self.is_read and not place.alias:
            return False
        return place.name in self._named.get(place.role, (place.name,))

    def _folded_otherwise(self, places: Iterable[_Place]) -> set[str]:
        """Return names with and without quotes, of which these alone make several spellings one."""
        spellings, quoted = defaultdict(set), defaultdict(set)
        for place in places:
            spellings[place.name].add(self.text[place.start : place.stop])
            quoted[place.name].add(place.is_quoted)
        strategy = self.dialect.normalization_strategy.name
        if not self.ignore_case or "INSENSITIVE" in strategy:
            return set()
        return {n.lower() for n, alike in spellings.items() if len(alike) > 1 < len(quoted[n])}

    def _add(self, start: int, stop: int, role: str, name: str = "", alias: int = 0) -> None:
        """Add an identifier, with its quotes if it has some; parameters (`$1`) are none."""
        is_quoted = self.text[start] in "\"'`["
        if is_quoted:
            start, stop = start + 1, stop - 1
        if self.text[start:stop].strip() and (is_quoted or _IDENTIFIER.match(self.text, start)):
            name = name or self._folded(self.text[start:stop], is_quoted)
            self.places.append(_Place(start, stop, name, is_quoted, role, alias))

    def _folded(self, name: str, is_quoted: bool) -> str:
        """Return a name as the dialect has it, wherever it stands."""
        if not self.ignore_case:
            return name
        node = self.exp.Identifier(this=name, quoted=is_quoted)
        # Not as BigQuery's own method, to which a table before a column is no table.
        return str(self.sqlglot.Dialect.normalize_identifier(self.dialect, node).this)

    # -- tokens -----------------------------------------------------------------------------------

    def _chunks(self) -> Iterator[list[Any]]:
        """Yield the tokens of each statement; the first one in a trigger stands behind its head."""
        try:
            tokens = [*self._tokens(self.dialect.tokenize(self.text))]
        except self.sqlglot.errors.SqlglotError:
            return
        chunk: list[Any] = []
        for token in tokens:
            if token.token_type.name != "SEMICOLON":
                chunk.append(token)
            elif chunk:
                yield chunk
                chunk = []
        if chunk:
            yield chunk

    def _tokens(self, tokens: list[Any]) -> Iterator[Any]:
        """Yield tokens, with `%s` and `%(x)s` as parameters, and quoted paths of BigQuery apart."""
        kinds, skipped = self.sqlglot.tokens.TokenType, 0
        for place, token in enumerate(tokens):
            kind = token.token_type.name
            if skipped:
                skipped -= 1
            elif kind == "MOD" and (skipped := _behind_percent(tokens, place)):
                yield _token(kinds.PLACEHOLDER, "?", token.start, tokens[place + skipped].end)
            elif kind == "IDENTIFIER" and self.key == "bigquery" and "." in token.text:
                for part in _DOTTED.finditer(self.text, token.start + 1, token.end):
                    if part.start() > token.start + 1:
                        yield _token(kinds.DOT, ".", part.start() - 1, part.start() - 1)
                    yield _token(kinds.IDENTIFIER, part[0], part.start(), part.end() - 1)
            else:
                yield token

    def _read(self, tokens: list[Any], is_last: bool, is_all: bool = False) -> None:
        """Read a statement."""
        words = _upper(tokens)
        if _is_trigger(words) and self._read_trigger(tokens, words):
            return
        if words[-2:] == ["WITHOUT", "ROWID"]:
            words, tokens = words[:-2], tokens[:-2]
        strings = [t.text for t in tokens if t.token_type.name.endswith("STRING")]
        written = self.text[tokens[0].start : tokens[-1].end + 1]
        self.is_read |= _READS.match(written) is not None
        tree = self._parsed(tokens)
        if isinstance(tree, self.known) and self._is_one(tree, tokens, is_all):
            self._read_tree(tree, tokens)
            strings = [t.text for t in tokens if t.token_type.name == "HEREDOC_STRING"]
        elif is_last and (
            tree is None or words.count("(") > words.count(")") or _PROSE.match(written)
        ):
            begins = tokens[0].token_type.name in STATEMENTS
            self._read_tokens(tokens, "other" if begins else "mention")
            return
        else:
            self._read_tokens(tokens, "kept")
        self._keep(strings)

    def _parsed(self, tokens: list[Any]) -> Any:
        """Parse a statement; None if that cannot be done."""
        parser = self.dialect.parser(error_level=self.sqlglot.ErrorLevel.RAISE)
        try:
            (tree,) = parser.parse(tokens, self.text)
        except (self.sqlglot.errors.SqlglotError, RecursionError, ValueError):
            return None
        return tree

    def _is_one(self, tree: Any, tokens: list[Any], is_all: bool) -> bool:
        """Whether an expression is one, and no statement of words that look like it: `VACUUM`."""
        is_expression = isinstance(tree, (self.exp.Condition, self.exp.Alias))
        kinds = [token.token_type.name for token in tokens[:2]]
        return is_all or not is_expression or (len(kinds) == 2 and kinds != ["VAR", "VAR"])

    def _read_trigger(self, tokens: list[Any], words: list[str]) -> bool:
        """Read the head of a trigger and its first statement; False if it has none."""
        if "BEGIN" in words:
            head = words.index("BEGIN")
            body = head + 1
        elif "ROW" in words and words[words.index("ROW") + 1 :][:1] not in ([], ["EXECUTE"]):
            head = body = words.index("ROW") + 1
        else:
            return False
        when = words.index("WHEN") if "WHEN" in words[:head] else head
        for token, word in zip(tokens[:when], words, strict=False):
            if not _OF_TRIGGERS.fullmatch(word):
                self._add(token.start, token.end + 1, "other")
        for statement in (tokens[when + 1 : head], tokens[body:]):
            if statement:
                self._read(statement, is_last=False)
        return True

    def _words(self, tokens: list[Any]) -> Iterator[Any]:
        """Yield tokens that may be identifiers, whatever a parser says."""
        for before, token, behind in zip(
            [None, *tokens], tokens, [*tokens[1:], None], strict=False
        ):
            kind, word = token.token_type.name, token.text.lower()
            past = "" if before is None else before.token_type.name
            coming = "" if behind is None else behind.token_type.name
            if kind not in ("VAR", "IDENTIFIER") or word in self.system:
                continue
            is_call = coming == "L_PAREN" and past not in ("TABLE", "INTO")
            is_parameter = past in _BEFORE_PARAMETER and before.end + 1 == token.start
            if not (is_call or is_parameter or (coming == "DOT" and word in _ROWS)):
                yield token

    def _read_tokens(self, tokens: list[Any], role: str) -> None:
        """Take for identifiers what may be some, in a statement that is not parsed."""
        for token in self._words(tokens):
            self._add(token.start, token.end + 1, role)

    def _keep(self, strings: Iterable[str]) -> None:
        for text in strings:
            self.kept |= {text.lower(), *_WORDS.findall(text.lower())}

    # -- trees ------------------------------------------------------------------------------------

    def _read_tree(self, tree: Any, tokens: list[Any]) -> None:
        """Say what each identifier of a statement is."""
        exp, nodes = self.exp, []
        for node in tree.find_all(exp.Identifier):
            if self._spelled(node) == node.name:
                nodes.append(node)
            elif isinstance(node.parent, exp.PropertyEQ) or "start" in node.meta:
                self._keep([node.name])
            node.set("this", self._folded(node.name, bool(node.args.get("quoted"))))
        found = {node.meta["start"] for node in nodes}
        self._keep(
            token.text
            for token in self._words(tokens)
            if token.start not in found and not _UNIT.fullmatch(token.text.lower())
        )
        roles, end = _Roles(self, tree), 0
        aliases = self._aliases(tree, nodes)
        for node in sorted(nodes, key=lambda node: (node.meta["start"], -node.meta["end"])):
            start, stop = node.meta["start"], node.meta["end"] + 1
            if start < end:  # sqlglot has taken several words for one, or made one of another
                self._keep([self.text[start:stop], self.text[self.places[-1].start : end]])
            elif role := roles.of(node):
                self._add(start, stop, role, node.name, aliases.get(id(node), 0))
                end = stop
        self._keep(roles.strings())

    def _spelled(self, node: Any) -> str:
        """Return what stands where an identifier does, without quotes."""
        if "start" not in node.meta:
            return ""
        text = self.text[node.meta["start"] : node.meta["end"] + 1]
        if text[0] not in "\"'`[":
            return text
        return text[1:-1].replace(text[-1] * 2, text[-1])

    def _aliases(self, tree: Any, nodes: list[Any]) -> dict[int, int]:
        """Return the number of an alias for its node, and for those that refer to it.

        Aliases are of tables, and common table expressions. One has none if another node that is
        spelled so may refer to it.
        """
        owner, within, tables = self._owners(tree)
        seen = defaultdict(list)
        for alias in {id(alias): alias for alias in owner.values() if alias is not None}.values():
            seen[alias.name, id(within[id(alias)])].append(id(alias))
        names, unsure = {name for name, _ in seen}, set[int]()
        for node in nodes:
            if node.name in names and id(node) not in owner and self._may_refer(node, tables):
                around = node.parent
                while around is not None:
                    unsure.update(seen.get((node.name, id(around)), ()))
                    around = around.parent
        numbers: dict[int, int] = {}
        for alias in owner.values():
            if alias is not None and id(alias) not in unsure:
                numbers.setdefault(id(alias), self.aliases + 1 + len(numbers))
        self.aliases += len(numbers)
        return {node: numbers[id(a)] for node, a in owner.items() if id(a) in numbers}

    def _owners(self, tree: Any) -> tuple[dict[int, Any], dict[int, Any], set[int]]:
        """Return what refers to aliases, by sqlglot's scopes.

        Returns:
            The alias, or None, by the id of a node that is one, or refers to a source; where an
            alias can be seen, by its id; and the ids of tables that are sources.
        """
        exp = self.exp
        try:
            scopes = import_module("sqlglot.optimizer.scope").traverse_scope(tree)
        except (self.sqlglot.errors.SqlglotError, RecursionError):
            return {}, {}, set()
        owner, within, tables = dict[int, Any](), dict[int, Any](), set[int]()
        sources: dict[int, dict[str, Any]] = {}  # scope -> what its tables are called -> the alias
        for scope in scopes:
            for table in scope.tables:
                tables.add(id(table))
                source = None if table.db else scope.cte_sources.get(table.name)
                cte = source and source.expression.find_ancestor(exp.CTE)
                if cte and cte.alias == table.name:
                    owner[id(table.this)] = alias = cte.args["alias"].this
                    owner[id(alias)], within[id(alias)] = alias, cte.parent.parent
            called = sources[id(scope)] = {}
            for name, node in scope.references:
                holder = node.parent if isinstance(node.parent, exp.Subquery) else node
                alias = getattr(holder.args.get("alias"), "this", None)
                if alias is not None:
                    owner[id(alias)], within[id(alias)] = alias, scope.expression
                called[name] = alias or owner.get(id(node.this))
        for scope in scopes:
            for column in scope.find_all(exp.Column):
                *qualifiers, _ = column.parts
                for part in qualifiers[-1:] + qualifiers[:1]:
                    around = scope
                    while around and part.name not in sources.get(id(around), ()):
                        around = around.parent
                    if around:
                        owner[id(part)] = sources[id(around)][part.name]
                        break
        return owner, within, tables

    def _may_refer(self, node: Any, tables: set[int]) -> bool:
        """Whether an identifier may refer to an alias, though no scope says so."""
        parent = node.parent
        if isinstance(parent, self.exp.Column):
            return node.arg_key != "this" or not parent.args.get("table")
        if isinstance(parent, self.exp.Table):
            is_source = node.arg_key == "this" and id(parent) in tables
            return not (is_source and parent.args.get("alias"))
        return isinstance(parent, self.exp.Dot)


class _Roles:
    """What the identifiers of a tree are, by where they stand.

    Attributes:
        tables: what tables, and their aliases, are called, in small letters.
        declared: of these, tables of which nobody but a text declares columns.
        is_open: whether there are columns without being declared: of catalogs and functions.
    """

    def __init__(self, script: _Script, tree: Any):
        exp = self.exp = script.exp
        self.script, self.tree = script, tree
        ctes = {node.alias.lower() for node in tree.find_all(exp.CTE)}
        self.tables, self.declared = {*ctes}, set[str]()
        others = {*ctes}
        self.is_open = tree.find(exp.Pivot) is not None
        for node in tree.find_all(exp.Table, exp.Subquery, exp.Values, exp.Lateral, exp.Unnest):
            called = {node.alias_or_name.lower(), node.name.lower()} - {""}
            is_table = isinstance(node, exp.Table)
            is_declared = is_table and isinstance(node.this, exp.Identifier)
            is_declared = is_declared and not self._is_system(node)
            script.is_read |= is_table and self._is_system(node) and node.name.lower() != "dual"
            is_query = isinstance(node.this, exp.Subquery) or isinstance(node, exp.Subquery)
            if not (is_declared or is_query):
                self.is_open |= not self._is_told(node)
            self.tables |= called
            if is_declared and node.name.lower() not in ctes:
                self.declared.add(node.alias_or_name.lower())
            else:
                others |= called
        self.declared -= others

    def _is_told(self, node: Any) -> bool:
        """Whether a text says what the columns of rows are called, or nobody asks."""
        exp = self.exp
        alias = node.args.get("alias")
        if isinstance(node, exp.Values) and alias and not _has_place(alias.this):  # VALUES alone
            node = node.find_ancestor(exp.CTE, exp.Subquery)
            alias = node and node.args.get("alias")
        columns = alias.args.get("columns") if alias else None
        is_inserted = isinstance(node and node.parent, exp.Insert)
        return is_inserted or bool(columns and all(map(_has_place, columns)))

    def _is_system(self, table: Any) -> bool:
        names = {name for part in table.parts for name in part.name.lower().split(".")}
        called = table.parts[-1].name if table.parts else ""
        oracle = self.script.key == "oracle" and _OF_ORACLE.fullmatch(called)
        is_in_one = any(map(_SYSTEM_SCHEMA.fullmatch, names))
        return bool(is_in_one or _SYSTEM_TABLE.fullmatch(called) or oracle)

    def of(self, node: Any) -> str:
        """Return the role of an identifier; the empty string if here it is no name."""
        exp, parent, name = self.exp, node.parent, node.name.lower()
        if isinstance(parent, exp.Placeholder | exp.Parameter | exp.SessionParameter):
            return ""
        if _CALL.fullmatch(name):  # a column of another query: "max(size)"
            self.script._keep([name])
            return "kept"
        if isinstance(parent, exp.Column):
            return self._of_column(node, parent)
        if isinstance(parent, exp.Dot):
            return self._of_dot(node)
        if isinstance(parent, exp.Table):
            return self._of_table(node, parent)
        if isinstance(parent, exp.PropertyEQ | exp.ColumnDef) and node.arg_key == "this":
            if isinstance(parent.parent, exp.Struct | exp.DataType):
                self.script.fields.add(node.name)
                return "field"
            is_parameter = isinstance(parent.parent, exp.UserDefinedFunction | exp.TableAlias)
            return "kept" if is_parameter or isinstance(parent, exp.PropertyEQ) else "column"
        if isinstance(parent, tuple(getattr(exp, kind) for kind in _KEPT.split())):
            return "kept"
        is_column = isinstance(parent, exp.Alias | exp.Schema) or node.arg_key == "columns"
        return "column" if is_column else "other"

    def _of_column(self, node: Any, column: Any) -> str:
        exp, parts = self.exp, column.parts
        place = next(i for i, part in enumerate(parts) if part is node)
        source = len(parts) - 2  # of the parts, the one that is a table
        if source >= 0 and (table := parts[source].name.lower()) not in self.tables:
            if parts[0].name.lower() in self.tables:
                source = 0
            elif table not in _ROWS:
                source = -1 if self.tables else source  # a field of a struct
            elif place == source:
                return ""
        if place < source:
            return "kept" if _is_schema(node.name.lower()) else "other"
        if place == source:
            return "other"
        if place > source + 1:
            return "field"
        table = parts[source].name.lower() if source >= 0 else ""
        is_kept = self.is_open and table not in self.declared
        around = column.parent
        if isinstance(around, exp.Parameter):
            return ""
        is_kept |= isinstance(around, exp.Collate) and column.arg_key == "expression"
        is_kept |= isinstance(around, exp.CollateColumnConstraint)
        if is_kept or node.name.lower() in self.script.system:
            return "kept"
        if len(parts) > 1:
            return "column"
        is_of_time = isinstance(around, exp.Func) and _OF_TIME.fullmatch(_called(around))
        if is_of_time and _UNIT.fullmatch(node.name.lower()):
            return ""
        if self.script.key != "sqlite" or self.script.text[node.meta["start"]] != '"':
            return "column"
        is_value = isinstance(column.find_ancestor(exp.Values, exp.Select), exp.Values)
        return "" if is_value else "string"

    def _of_dot(self, node: Any) -> str:
        exp, top = self.exp, node.parent
        while isinstance(top.parent, exp.Dot):
            top = top.parent
        if isinstance(top.parent, exp.Table):
            return self._of_table(node, top.parent)
        is_type = isinstance(top.parent, exp.DataType | exp.Cast) and top.arg_key in ("to", "kind")
        if is_type or isinstance(top.expression, exp.Func):
            return "kept"
        return "field" if node.arg_key == "expression" else "other"

    def _of_table(self, node: Any, table: Any) -> str:
        exp, parent, name = self.exp, table.parent, node.name.lower()
        kind = str(parent.args.get("kind") or "").upper()
        is_function = isinstance(parent, exp.UserDefinedFunction) or kind in _FUNCTIONS
        is_file = self.script.text[node.meta["start"]] == "'"  # of DuckDB
        is_schema = node is not table.parts[-1]
        if is_schema and not _is_schema(name):
            return "other"
        is_kept = is_schema or is_function or is_file or "*" in name or self._is_system(table)
        return "kept" if is_kept else "other"

    def strings(self) -> Iterator[str]:
        """Yield strings that may be names, and what columns without an alias are called."""
        exp = self.exp
        for node in self.tree.find_all(exp.Literal, exp.Func):
            parent = node.parent
            if isinstance(node, exp.Func):
                query = node.find_ancestor(exp.Select)
                is_column = isinstance(parent, exp.Select | exp.Window)
                if is_column and query is not None and query.parent:
                    yield _called(node)
            elif node.is_string and (
                self.is_open
                or isinstance(parent, exp.Bracket)
                or (isinstance(parent, exp.Cast) and parent.to.sql().startswith("REG"))
                or (isinstance(parent, exp.Func) and _BY_SPELLING.fullmatch(_called(parent)))
            ):
                yield node.name


def _is_schema(name: str) -> bool:
    """Whether there is a schema of this name without being made."""
    return bool(_SCHEMA.fullmatch(name) or _SYSTEM_SCHEMA.fullmatch(name))


def _has_place(node: Any) -> bool:
    return node is not None and node.meta.get("start") is not None


def _called(function: Any) -> str:
    return str(function.name if function.key == "anonymous" else function.sql_name())


def _is_trigger(words: list[str]) -> bool:
    return words[:1] == ["CREATE"] and "TRIGGER" in words[1:4]


def _upper(tokens: list[Any]) -> list[str]:
    """Return words and signs in capitals; what is in quotes is neither."""
    quoted = ("IDENTIFIER", "STRING")
    return ["" if t.token_type.name.endswith(quoted) else t.text.upper() for t in tokens]


def _token(kind: Any, text: str, start: int, end: int) -> Any:
    return import_module("sqlglot.tokens").Token(kind, text, start=start, end=end)


def _behind_percent(tokens: list[Any], place: int) -> int:
    """Return how many tokens behind `%` are a part of a parameter, `%s` or `%(x)s`; else 0."""
    if place and tokens[place - 1].token_type.name in _OPERANDS:
        return 0
    for length in (1, 4):
        some = tokens[place : place + 1 + length]
        joined = all(a.end + 1 == b.start for a, b in pairwise(some))
        texts = [token.text for token in some[1:]]
        if joined and texts[-1:] == ["s"] and (length == 1 or (texts[0], texts[2]) == ("(", ")")):
            return length
    return 0
