"""Make pairs of a database schema with a question, and its SQL; tables and columns are names.

    python examples/tasks/sql.py data/sql

Training has one to three tables with two or three columns, and a few dozen names. The test has up
to five tables with up to five columns, and no name of training. Columns beside source and target
list the names of a row: `tables` and `columns`. Numbers are names too, by the recipe's pattern.
"""

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pair_files import parser_of, run

TRAINING = """orders clients items invoices shops teams players games books authors loans members
    staff courses students rooms price amount city age weight height score year month status color
    size brand country street phone email title genre salary bonus rank rating level stock tax
    discount width depth speed power distance duration capacity region zone quarter week day hour
    category kind""".split()  # noqa: SIM905
TEST = """vessels harbours reactors turbines genomes proteins orchards vineyards satellites violins
    telescopes quartets glaciers tonnage draught voltage torque allele codon acidity vintage orbit
    aperture pitch tempo albedo latitude longitude humidity viscosity opacity tensile_strength
    crew_size owner_ref last_seen is_valid x1 GrossWeight qty_on_hand unitCost ean13 isbn postcode
    iban vat_no""".split()  # noqa: SIM905
SIGNS = {"is": "=", "is more than": ">", "is less than": "<", "is not": "<>"}
FUNCTIONS = {"average": "AVG", "highest": "MAX", "lowest": "MIN", "sum of": "SUM"}
ORDERS = {"ascending": "ASC", "descending": "DESC"}
ROWS = 20_000


class Schema:
    """Tables with their columns, and columns that refer to another table's."""

    def __init__(self, rng: random.Random, pool: Sequence[str], sizes: Sequence[int]):
        names = iter(rng.sample(pool, 2 * len(sizes) + sum(sizes)))
        self.tables = {next(names): [next(names) for _ in range(size)] for size in sizes}
        self.references: list[tuple[str, str, str, str]] = []
        listed = list(self.tables)
        for place, table in enumerate(listed[1:], 1):
            other = rng.choice(listed[:place])
            column = next(names)
            self.references.append((table, column, other, self.tables[other][0]))
            self.tables[table].append(column)
        for columns in self.tables.values():
            rng.shuffle(columns)

    def text(self, rng: random.Random) -> str:
        """Write tables and references, each in random order."""
        tables = [f"{table} ( {' , '.join(names)} )" for table, names in self.tables.items()]
        references = [f"{a} . {b} refers to {c} . {d}" for a, b, c, d in self.references]
        return " ; ".join([*rng.sample(tables, len(tables)), *references])


def question(rng: random.Random, schema: Schema) -> tuple[str, str]:
    """Draw a question about a schema; return it with its SQL."""
    table = rng.choice(list(schema.tables))
    one, two = rng.sample(schema.tables[table], 2)
    words, sign = rng.choice(list(SIGNS.items()))
    number = rng.randint(1, 999)
    kinds = ["filter", "group", "order"] + 2 * ["join"] * bool(schema.references)
    match rng.choice(kinds):
        case "filter":
            asked = f"which {one} has a {two} that {words} {number} ?"
            return asked, f"SELECT {one} FROM {table} WHERE {two} {sign} {number}"
        case "group":
            word, function = rng.choice(list(FUNCTIONS.items()))
            asked = f"what is the {word} {one} for each {two} ?"
            return asked, f"SELECT {two} , {function} ( {one} ) FROM {table} GROUP BY {two}"
        case "order":
            word, order = rng.choice(list(ORDERS.items()))
            asked = f"list every {one} in {word} order of {two}"
            return asked, f"SELECT {one} FROM {table} ORDER BY {two} {order}"
    table, column, other, key = rng.choice(schema.references)
    one, two = rng.choice(schema.tables[table]), rng.choice(schema.tables[other])
    asked = f"show {one} and {two} where the {two} {words} {number}"
    return asked, (
        f"SELECT {table} . {one} , {other} . {two} FROM {table} JOIN {other} "
        f"ON {table} . {column} = {other} . {key} WHERE {other} . {two} {sign} {number}"
    )


def pair(
    rng: random.Random, pool: Sequence[str], tables: Sequence[int], columns: Sequence[int]
) -> dict[str, Any]:
    """Draw a pair, with a number of tables and of columns of each from those given."""
    schema = Schema(rng, pool, [rng.choice(columns) for _ in range(rng.choice(tables))])
    asked, sql = question(rng, schema)
    return {
        "source": f"{schema.text(rng)} | {asked}",
        "target": sql,
        "tables": list(schema.tables),
        "columns": [name for names in schema.tables.values() for name in names],
    }


def main(folder: Path) -> None:
    """Write the files."""
    rng = random.Random(0)
    parts = {
        "train": [pair(rng, TRAINING, [1, 2, 2, 3], [2, 3]) for _ in range(ROWS)],
        "test": [pair(rng, TEST, range(1, 6), range(2, 6)) for _ in range(500)],
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, pairs in parts.items():
        rows = "".join(json.dumps(pair) + "\n" for pair in pairs)
        (folder / f"{name}.jsonl").write_text(rows, encoding="utf-8")


if __name__ == "__main__":
    arguments = parser_of(__doc__)
    arguments.add_argument("folder", type=Path)
    run(main, arguments)
