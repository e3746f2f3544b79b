"""The figures of README.md and docs/, taken from the store of results: tables, and sentences.

    python benchmarks/figures.py

writes the tables between `<!-- figures: NAME -->` and `<!-- end -->` in the documents again, and
names each sentence that no longer says what the results say. `tests/test_figures.py` fails
where a document and the results differ. A row of a table whose figures have not been measured is
left out.
"""

import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import beyond
import gpu
import ltl
import measure
import propositional
import retrofit
from hf_alpha.recipe import RECIPE_FILE, read_recipe
from steps import WORKS
from studies import sizes, store
from studies.results import Results
from studies.table import TASKS
from studies.tables import TABLES as TABLES_OF_STUDIES

COPIED = (
    *("geometric-study", "geometric-minilm-dimsum", "clutrr-longer-copies"),
    *("encodings-together", "extrapolation-relational", "names-benchmark"),
    *("real-models", "real-models-augmented", "real-models-rates"),
    *("real-models-augmented-longer", "real-models-wider", "real-models-wider-relational"),
    *("real-models-wider-augmented", "real-models-wider-random", "chats"),
    *("real-tasks", "real-tasks-calls", "real-tasks-extract"),
    *("reactions", "rxnfp", "scale", "text_tokenizer", "kinship-pairs-in-turns", "installs"),
    *("first-wrong", "normal-forms", "normal-forms-seeds", "normal-forms-16"),
)
"""Results whose tables stand in a document as they are."""
BLOCK = re.compile(r"(<!-- figures: (\S+) -->\n\n).*?(<!-- end -->)", re.DOTALL)
BEAMS = "the three beams of ltl-streams-small"
HOST = retrofit.BACKBONE
SMALL = next(iter(propositional.SIZES))
PYSAT, AIGER = propositional.PYSAT, propositional.AIGER
DEFAULT, FAST = ltl.SPOT

Place = tuple[str, ...]
PAIRS_5, PAIRS_10 = (("pairs", size, "pairs_per_second") for size in ltl.SIZES)
CHECKS, MODEL = ("checks", BEAMS, "ways"), "the beams of `ltl-streams-small`"
SIZE, PARTS = "5 symbols, 35 tokens", (SMALL, "per_second")
RATES: tuple[tuple[str, str, Place, str, str], ...] = (
    (f"LTL pairs, {SIZE}; drawn, deduplicated, proved", "ltl", PAIRS_5, DEFAULT,
     "Spot's default translation, as DeepLTL does"),
    ("LTL pairs, 10 symbols, 50 tokens; likewise", "ltl", PAIRS_10, DEFAULT,
     "Spot's default translation"),
    (f"LTL checks, {MODEL}, each side cold", "ltl", (*CHECKS, ltl.COLD), DEFAULT,
     "Spot, one default translation a formula"),
    (f"LTL checks, {MODEL}, each side cold", "ltl", (*CHECKS, ltl.COLD), FAST,
     "Spot, one `low any` translation a formula"),
    (f"LTL checks, {MODEL}, a second time", "ltl", (*CHECKS, ltl.WARM), DEFAULT,
     "Spot, a default translation for each answer"),
    (f"propositional answers, {SIZE}", "propositional", (*PARTS, propositional.ANSWERS), PYSAT,
     "python-sat used directly"),
    (f"propositional checks, {SIZE}, each side cold", "propositional",
     (*PARTS, propositional.COLD), PYSAT, "python-sat used directly"),
    (f"propositional pairs, {SIZE}; drawn, deduplicated, checked", "propositional",
     (*PARTS, propositional.PAIRS), AIGER, "py-aiger-sat, as the papers do"),
    (f"propositional checks, {SIZE}, a formula read for each", "propositional",
     (*PARTS, propositional.EACH), AIGER, "py-aiger-sat, as the papers do"),
)  # fmt: skip
"""Rows of `peers`: what, result, place of the rates in it, the peer there and in words."""
STREAMS = (
    ("training step, LTL, 5 symbols, sizes 10-35", "streams-training", "2"),
    ("beam 3, 31 tokens, 5 symbols", "streams-generation-5", "4"),
    ("beam 3, 31 tokens, 10 symbols", "streams-generation-10", "4"),
)


@cache
def stored(result: str) -> dict[str, Any]:
    """A result of the store."""
    return store.read(result)


def rates(data: Any, place: Place, side: str) -> list[float] | None:
    """What one side did in a second, round by round; None where it was not measured."""
    for key in (*place, side):
        if key not in data:
            return None
        data = data[key]
    values: list[float] = data["checks_per_second"] if isinstance(data, dict) else data
    return values


def both(data: Any, place: Place, peer: str) -> tuple[list[float], list[float]] | None:
    """Our rates and the peer's; None where one of them was not measured."""
    ours, theirs = rates(data, place, "ours"), rates(data, place, peer)
    return None if ours is None or theirs is None else (ours, theirs)


def digits(value: float) -> str:
    """Three digits, or all before the point."""
    return f"{value:,.{0 if value >= 100 else 1 if value >= 10 else 2}f}"


def three(values: Sequence[float]) -> str:
    """Minimum, median and maximum."""
    return " / ".join(map(digits, (min(values), statistics.median(values), max(values))))


def median_ratio(one: Sequence[float], two: Sequence[float]) -> float:
    return statistics.median(measure.ratios(one, two))


def by(times: Mapping[str, Sequence[float]], side: str, peer: str) -> str:
    """A side's times by its peer's: the median over the rounds."""
    return f"{median_ratio(times[side], times[peer]):.2f}"


# -- tables ---------------------------------------------------------------------------------------


def peers() -> str:
    """What is done in a second, ours and peers'."""
    rows = []
    for work, result, place, peer, name in RATES:
        if (pair := both(stored(result)["data"], place, peer)) is not None:
            ours, theirs = pair
            cells = [f"{statistics.median(ours):,.0f}", f"{name}: {statistics.median(theirs):,.0f}"]
            rows.append([work, *cells, digits(median_ratio(ours, theirs))])
    return measure.table(["what, per second", "ours", "peer", "ratio"], rows, words=["peer"])


def streams() -> str:
    """The model against all streams of the vocabulary."""
    rows = []
    for work, result, goal in STREAMS:
        result_file = stored(result)
        data = result_file["data"]
        seconds = data["seconds"]
        ours, peer = seconds["streams of the input"], seconds["streams of the vocabulary"]
        reached = statistics.median(data["ratios"]) >= float(goal)
        plain = seconds.get("streams of the input, F.linear for oneDNN")
        rows.append([
            work, three(data["ratios"]), three(measure.ratios(peer, plain)) if plain else "",
            goal if reached else f"{goal}, missed", time_of(data, ours),
            f"`{result_file['command']}`",
        ])  # fmt: skip
    columns = ["what", "peer / ours", "the same without oneDNN", "goal", "ours", "command"]
    return measure.table(columns, rows, words=["goal", "command"])


def time_of(data: dict[str, Any], seconds: Sequence[float]) -> str:
    """Time of a batch in training, of a sample in generation."""
    settings = data["settings"]
    if settings["work"] == "training":
        step = 1e3 * statistics.median(seconds) / settings["batches"]
        return f"{step:,.0f} ms for {settings['batch']}"
    return f"{1e3 * statistics.median(seconds) / len(data['keys']):.1f} ms a sample"


def streams_price() -> str:
    """Times of `streams` by those of a BART, by number of names."""
    names = (1, 2, 3, 5, 10)
    lines = []
    for work, label in (("training step", "training step"), ("generation", "3 beams")):
        times = costs(work, "BART")
        lines.append([label, *(f"{times[count]:.1f}" for count in names)])
    return measure.table(["names:", *map(str, names)], lines)


def memory() -> str:
    """Megabytes of training and generation."""
    data = stored("streams-memory")["data"]
    count = len(data["settings"]["symbols"])
    lines = []
    for work, start in zip(
        data["settings"]["work"], range(0, len(data["rows"]), count), strict=True
    ):
        rows = data["rows"][start : start + count]
        first = rows[0]["work"] / rows[0]["symbols"]
        name = "generation with 3 beams" if work == "generation" else work
        lines.append([f"{name}, MB", *(f"{row['work']:,.0f}" for row in rows)])
        shares = (row["work"] / row["symbols"] / first for row in rows)
        lines.append(["by k times one stream", *(f"{share:.2f}" for share in shares)])
    return measure.table(["symbols", *map(str, data["settings"]["symbols"])], lines)


def gpu_costs() -> str:
    """Times and memory of decoders on a GPU, by those of the bare backbone."""
    rows = [row for row in stored("gpu")["data"]["rows"] if row["section"] == "decoders"]
    return gpu.decoder_table([row for row in rows if row.get("work") in ("prefill", "training")])


def memory_by_length() -> str:
    """Megabytes of the prefill of a decoder, and of one with relations."""
    results = ("retrofit-tokens", "retrofit-tokens-names")
    rows = [row for result in results for row in stored(result)["data"]["rows"]]
    return retrofit.memory_table(rows, ["relational"])


def retrofit_costs() -> str:
    """Medians of the time of retrofits, by that of the bare backbone."""
    rows = stored("retrofit")["data"]["rows"]
    sides = [side for side in rows[0]["seconds"] if side != HOST]
    lines = [
        [WORKS[row["work"]], f"{row['names']}", *(by(row["seconds"], x, HOST) for x in sides)]
        for row in rows
    ]
    return measure.table(["", "names", *(f"`{side}`" for side in sides)], lines)


MODELS = {
    "text-small": "own encoder-decoder, d 64, 35 tokens; BART",
    "d-256": "the same, d 256",
    "llama-256": "converted Llama, d 256, 64 tokens; the Llama",
    "llama-768": "the same, d 768, 256 tokens",
    "train": "`hf-alpha train`, d 64; Seq2SeqTrainer with a BART",
}


def goals() -> str:
    """Medians of the processor time of `relational`, by that of its peer."""
    works = ("training", "prefill", "greedy", "beams")
    found: dict[str, dict[str, str]] = {}
    for row in stored("goals")["data"]["rows"]:
        ours, *_, peer = row["seconds"]
        work = "training" if row["what"] == "train" else row["work"]
        found.setdefault(row["what"], {})[work] = by(row["seconds"], ours, peer)
    lines = [[MODELS[what], *(found[what].get(work, "") for work in works)] for what in MODELS]
    return measure.table(["model; peer", "training", "prefill", "greedy", "3 beams"], lines)


def tables_of(result: str) -> str:
    """The tables of a result, as it has them."""
    tables = re.findall(r"(?:^\|.*\n)+", stored(result)["text"] + "\n", re.MULTILINE)
    return "\n".join(tables).rstrip()


def named_otherwise(is_board: bool) -> str:
    """The table of all tasks of models under other names, or the tables of each task."""
    board, _, others = tables_of("alias-models").partition("\n\n")
    return board if is_board else others


def encoding_costs() -> str:
    """Times of `relational` and `streams` by those of `learned`: medians of the rounds' ratios."""
    rows = stored("relational")["data"]["rows"]
    works = {"training": "training step", "greedy": "greedy search", "beams": "3 beams"}
    lines = []
    for side in ("relational", "streams"):
        for work, label in works.items():
            times = [row["seconds"] for row in rows if row["work"] == work]
            cells = [by(each, side, "learned") if each.get(side) else "-" for each in times]
            lines.append([f"`{side}`, {label}", *cells])
    names = sorted({row["names"] for row in rows})
    return measure.table(["names:", *map(str, names)], lines)


def relational_price() -> str:
    """`relational` by a BART, one thread: times for each number of names, and megabytes."""
    times = stored("relational-price")["data"]["times"]
    memory = stored("relational-price-memory")["data"]["memory"]
    rows = [row for row in times if row["threads"] == 1]
    sizes = sorted({(row["width"], row["length"]) for row in rows})
    lines = []
    for width, length in sizes:
        lines.append([str(width), str(length)])
        for work in ("training", "greedy", "beams"):
            ratios = [
                by(row["processor"], "relational", "BART")
                for row in rows
                if (row["work"], row["width"], row["length"]) == (work, width, length)
            ]
            lines[-1].append(" / ".join(ratios))
        for work in ("training", "greedy"):
            (held,) = (
                row["megabytes"]
                for row in memory
                if (row["work"], row["width"], row["length"]) == (work, width, length)
            )
            lines[-1].append(f"{held['relational'] / held['BART']:.2f}")
    works = ["training step", "greedy search", "3 beams"]
    return measure.table(["d", "tokens", *works, "memory, training", "memory, greedy"], lines)


def many_names() -> str:
    """Times of `relational` by those of a BART: minimum, median and maximum, by number of names."""
    times = stored("many-names")["data"]["times"]
    names, lines = list(dict.fromkeys(row["names"] for row in times)), []
    for work, length in dict.fromkeys((row["work"], row["length"]) for row in times):
        cells = [
            measure.three(measure.ratios(row["processor"]["relational"], row["processor"]["BART"]))
            for row in times
            if (row["work"], row["length"]) == (work, length)
        ]
        lines.append([f"{WORKS[work]}, {length:,} tokens", *cells])
    return measure.table(["names:", *map(str, names)], lines)


def geometric() -> str:
    """Training steps of geometric encoders: medians by those of BERT."""
    times_by_length = stored("geometric")["data"]
    sides = [side for side in next(iter(times_by_length.values())) if side != "BERT"]
    lines = [[side, *(by(x, side, "BERT") for x in times_by_length.values())] for side in sides]
    return measure.table(["", *(f"{length} tokens" for length in times_by_length)], lines)


def folnet_original() -> str:
    """FOLNet against its original code: medians of how many times faster, and share of memory."""
    lines = []
    for label, name in (
        ("one thread, without dropout", "folnet-original"),
        ("two threads, dropout 0.1", "folnet-original-dropout"),
    ):
        for row in stored(name)["data"]["rows"]["works"]:
            seconds, megabytes = row["seconds"], row["megabytes"]
            faster = median_ratio(seconds["original"], seconds["ours"])
            share = megabytes["ours"] / megabytes["original"]
            work = "forward and backward" if row["work"] == "training" else row["work"]
            lines.append([work, label, f"{faster:.2f}", f"{share:.2f}"])
    return measure.table(["", "", "times faster", "of the memory"], lines, words=[""])


def folnet_cost() -> str:
    """Training of FOLNet by a BERT's of as many layers and units, by length: time and memory."""
    rows = [row for row in stored("folnet")["data"]["rows"] if row["work"] == "training"]
    lines = []
    for quantity, key, ratio in (
        ("time", "seconds", median_ratio),
        ("memory", "megabytes", lambda some, other: some / other),
    ):
        for operators, label in (("j.a", "`j.a`"), ("jmc.atp", "all operators")):
            ratios = [f"{ratio(row[key][operators], row[key]['BERT']):.1f}" for row in rows]
            lines.append([f"{quantity}, {label}", *ratios])
    columns = [f"{row['length']} tokens" for row in rows]
    return measure.table(["forward and backward, times BERT's", *columns], lines)


def study(table: str, task: str = "", title: str = "") -> str:
    """Tables of a study, those of a task or with a title alone, where they are given."""
    size, results = sizes.SIZES["cpu"], Results.of(store.RESULTS, table, "cpu")
    head = f"**{TASKS.get(task, '')}"
    parts = re.split(r"\n\n(?=\*\*)", TABLES_OF_STUDIES[table].render(results, size))
    return "\n\n".join(
        part for part in parts if part.startswith(head) and title in part.partition("\n")[0]
    )


def findings(table: str) -> str:
    """What a study's numbers say, in sentences."""
    results = Results.of(store.RESULTS, table, "cpu")
    return "\n".join(
        f"- {each}" for each in TABLES_OF_STUDIES[table].findings(results, sizes.SIZES["cpu"])
    )


def kinship_pairs() -> str:
    """Right answers to pairs of relations, without stories about families and with them."""
    before, after = (stored(name)["data"] for name in ("kinship-pairs-before", "kinship-pairs"))
    lines = [
        [group, str(len(rows)), *(f"{100 * kinship_rate(x[group]):.1f}" for x in (before, after))]
        for group, rows in after.items()
    ]
    heads = ("pairs of relations", "pairs", "CLUTRR alone: right, %", "with families: right, %")
    return measure.table(heads, lines)


def kinship_rate(rows: Sequence[Mapping[str, Any]]) -> float:
    """Right answers to pairs of relations, in both orders of their facts."""
    return statistics.mean(said == row["answer"] for row in rows for said in row["said"])


def transduction() -> str:
    """Medians of the sentences that transducers and peers read in a second."""
    lines = []
    for row in stored("transduction")["data"]["rows"]:
        rates = [
            f"{statistics.median(row['sentences'] / s for s in seconds):,.0f}"
            for seconds in row["processor_seconds"].values()
        ]
        loaded, trie = row["alone"]["load"], row["alone"]["trie"]
        costs = [
            f"{loaded['seconds']:.2f}",
            f"{loaded['megabytes']:.0f}",
            f"{trie['megabytes']:.0f}",
        ]
        lines.append([f"{row['entries']:,}", *rates, *costs])
    sides = stored("transduction")["data"]["rows"][0]["processor_seconds"]
    return measure.table(["entries", *sides, "ours: load, s", "ours: MB", "token trie: MB"], lines)


CARDS = measure.ROOT / "model_cards"
TESTED = re.compile(
    r"--out runs/(evaluations/[\w-]+).*?trained on \w+ with at most (\d+) symbols and (\d+) tokens",
    re.DOTALL,
)
Cells = dict[tuple[int, int], tuple[int, float]]


def compared() -> str:
    """Right answers of the small models to compare with, in the range of training and beyond."""
    tasks = ["propositional", "ltl", "copying"]
    folders = [path.parent for path in CARDS.glob("small/*/recipe.yaml")]
    rows = sorted(map(released_row, folders), key=lambda row: (tasks.index(row[0]), row[2]))
    columns = ["model", "trained on", "tested on", "right in that range, %", "beyond, %"]
    return measure.table(columns, [row[2:] for row in rows], words=columns[1:3])


FRONT = {
    "propositional-relational": "values that make a formula true",
    "ltl-relational": "a run that a temporal-logic formula allows",
    "anf-relational": "A-normal form of a term: steps get new names",
    "proofs-relational": "rules that lead from a fact to a goal",
    "inline-t5": "a Python function without one variable",
    "kinship-folnet": "how two people are related, from facts",
}
"""The released models that README.md names: what their answer is."""
SIZES = {
    "anf-relational": f"{beyond.OPERATIONS} operations",
    "proofs-relational": f"{max(steps for _, steps in beyond.proofs.FILES.train)} steps",
}
"""What is said of the size of training problems where it is not tokens that count."""
LONGER = ("inline-t5",)
"""Models whose problems are longer by a line with each name."""
RELEASED = FRONT | {
    "propositional-converted": "values that make a formula true; one stream for each name",
    "ltl-converted": "a run that a temporal-logic formula allows; one stream for each name",
}
"""All but those to compare with."""


def released() -> str:
    """What models answer right, with as much as training had and with more names."""
    lines = []
    for name, answer in RELEASED.items():
        size, seen = front_row(CARDS / name)
        link = f"[{name}](../model_cards/{name}/README.md)"
        lines.append([link, answer, size, seen, more_names(name)])
    columns = ["model", "its answer", "trained on", "right in that range, %", "with more names, %"]
    return measure.table(columns, lines, words=[*columns[1:3], columns[-1]])


def more_names(name: str) -> str:
    """Right answers with more names than in training, in problems no longer than those."""
    known = stored("beyond")["data"]
    if name in known:
        points = [point for point in known[name] if point["axis"] == "names"]
        if not points or name in LONGER:
            return ""
        return ", ".join(f"{point['value']}: {beyond.cell(point)}" for point in ends(points))
    _, trained, tokens, ours, chance = tested_cells(CARDS / name)
    more = {cell for cell in ours if cell[0] > trained and cell[1] <= tokens}
    numbers = sorted({names for names, _ in more})
    cell = f"{share(ours, more)} ({share(chance, more)})"
    return f"{numbers[0]} to {numbers[-1]}: {cell}"


def front() -> str:
    """The same in short: right answers as in training, and with more names at its lengths."""
    lines = []
    for name, answer in FRONT.items():
        size, seen = front_row(CARDS / name)
        points = [p for p in stored("beyond")["data"][name] if p["axis"] == "names"]
        more = ""
        if points and name not in LONGER:
            end, trained = ends(points)[-1], re.search(r"(\d+) names", size)
            chance = f" (random {100 * end['random']:.1f})" if "random" in end else ""
            more = f"{trained and trained[1]} → {end['value']}: {100 * end['right']:.1f}{chance}"
        link = f"[{name}](model_cards/{name}/README.md)"
        lines.append([link, answer, seen, more])
    columns = ["model", "its answer", "right, %", "with more names than in training, %"]
    return measure.table(columns, lines, words=[columns[1], columns[-1]])


def further(is_longer: bool) -> str:
    """Right answers with more names, or to longer problems, until chance is as good."""
    lines = []
    for name, points in stored("beyond")["data"].items():
        for axis in dict.fromkeys(point["axis"] for point in points):
            if is_longer is (axis != "names" or name in LONGER):
                lines.append([name, axis, *until_chance([p for p in points if p["axis"] == axis])])
    columns = ["model", "more", "right, % (random)", "no better than random"]
    return measure.table(columns, lines, words=columns[1:])


def until_chance(points: Sequence[Mapping[str, Any]]) -> tuple[str, str]:
    """Right answers of points that are better than random ones, and where they are not."""
    chance = [point["right"] <= point.get("random", 0) for point in points]
    better = points[: chance.index(True)] if any(chance) else points
    cells = ", ".join(f"{point['value']}: {beyond.cell(point)}" for point in better)
    worse = points[len(better) :]
    return cells, f"{worse[0]['value']} and more" if worse else ""


NAMINGS = {
    "choice": "which of 3 to 5 tools (BFCL)",
    "calls": "whole calls (BFCL)",
    "code": "what a function returns (CRUXEval)",
    "completions": "the second half of a function, run (HumanEval)",
    "sql": "queries, run (Spider)",
}
"""Task of `alias-models` -> what is asked."""


def naming() -> str:
    """Right answers of one model in %, by how things are called."""
    rows = []
    for task, what in NAMINGS.items():
        count, rates = swap_rates(task)
        rows.append([what, f"{count}", *(f"{rate:.1f}" for rate in rates)])
    names = ("own", "invented", "swapped", "canonical")
    return measure.table(["task", "questions", *names], rows)


def ends(points: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the nearest point, and the first where at most half are right or chance is as good,
    or else the furthest."""
    near, *others = points
    failed = [point for point in points if point["right"] <= max(0.5, point.get("random", 0))]
    return [near, *(failed or others[-1:])[:1]]


def front_row(folder: Path) -> list[str]:
    """What was in training, and right answers in that range."""
    card = (folder / "README.md").read_text(encoding="utf-8")
    found = TESTED.search(card)
    if found:
        size = f"at most {found[2]} names, {SIZES.get(folder.name, f'{found[3]} tokens')}"
        if read_recipe(folder / RECIPE_FILE).task != "text":
            return [size, released_row(folder)[-2]]
        cells = cells_of(found[1], folder.name)
        seen = {cell for cell in cells if cell[0] <= int(found[2]) and cell[1] <= int(found[3])}
        return [size, share(cells, seen)]
    told = stored(f"evaluations/{folder.name}")["data"]
    cells = {
        (int(facts), 0): (count, count * told["metrics"][facts]["accuracy"])
        for facts, count in told["samples"].items()
        if facts != "all"
    }
    seen = {cell for cell in cells if cell[0] <= 8}  # MOST_FACTS of examples/tasks/kinship.py
    return ["2 to 8 facts", share(cells, seen)]


def tested_cells(folder: Path) -> tuple[str, int, int, Cells, Cells]:
    """The result of a model's card, names and tokens of training, and right answers of both: the
    model's and random ones."""
    card = (folder / "README.md").read_text(encoding="utf-8")
    result, names, tokens = TESTED.search(card).groups()  # type: ignore[union-attr]
    (name,) = (name for name in stored(result)["data"]["models"] if name.startswith("random-"))
    ours, chance = cells_of(result, folder.name), cells_of(result, name)
    return result, int(names), int(tokens), ours, chance


def released_row(folder: Path) -> list[Any]:
    """Task, tokens in training, and what the table says of a model; its card has the command."""
    _, names, tokens, ours, chance = tested_cells(folder)
    task = read_recipe(folder / RECIPE_FILE).task
    trained_cells = {c for c in ours if c[0] <= names and c[1] <= tokens}
    parts = [
        f"{share(ours, part)} (random {share(chance, part)})"
        for part in (trained_cells, set(ours) - trained_cells)
    ]
    ranges = [f"{min(values)}-{max(values)}" for values in zip(*ours, strict=True)]
    return [
        task, tokens, f"[{folder.name}](../{folder.relative_to(measure.ROOT)}/README.md)",
        f"at most {names} names, {tokens} tokens", f"{ranges[0]} names, {ranges[1]} tokens", *parts,
    ]  # fmt: skip


def cells_of(result: str, model: str) -> Cells:
    """Problems and right ones among them by number of names and tokens."""
    return {
        (int(names), int(size)): (asked, right)
        for names, sizes in stored(result)["data"]["models"][model].items()
        for size, (right, asked) in sizes.items()
    }


def share(cells: Cells, chosen: set[tuple[int, int]]) -> str:
    """Right answers of all problems of some cells, in %."""
    if not chosen:
        return "not tested"
    counts, right = zip(*(cells[cell] for cell in chosen), strict=True)
    return f"{100 * sum(right) / sum(counts):.1f}"


REAL = {
    "plain": ("trained as it is", "#8b949e"),
    "augmented": ("with random names", "#a371f7"),
    "canonical": ("canonical spelling", "#2f81f7"),
    "relational": ("converted", "#d9822b"),
}
"""Remedies of docs/retrofit.md's picture, their names and colours."""
INK = "#7d8590"
"""Suits a light and a dark page."""
REAL_KINDS = {
    "names of training": "names of\ntraining",
    "unseen words": "unseen\nwords",
    "nonsense": "nonsense\nnames",
    "misleading": "misleading\nnames",
}
REAL_STEPS = 300
REAL_PICTURE = measure.PICTURES / "real-model.png"


def real_rates() -> dict[str, list[float]]:
    """Right answers of SmolLM2 by remedy, for each kind of names, in %: means over the seeds."""
    return {
        remedy: [statistics.mean(shares) for shares in real_shares(f"{remedy} {REAL_STEPS}")]
        for remedy in REAL
    }


def real_shares(remedy: str) -> list[list[float]]:
    """Right answers of SmolLM2 by a remedy and so many steps, in %: by kind of names and seed."""
    data = stored("real-models")["data"] | stored("real-models-augmented")["data"]
    return [
        [100 * run["tests"][kind]["right"] / run["tests"][kind]["of"] for run in data[remedy]]
        for kind in REAL_KINDS
    ]


def remedies() -> str:
    """Right answers of SmolLM2 in %, by remedy and kind of names: after few steps, and more."""
    rows = []
    for steps, remedy in product((60, REAL_STEPS), REAL):
        shares = real_shares(f"{remedy} {steps}")
        cells = [measure.share_and_spread([share / 100 for share in each]) for each in shares]
        rows.append([remedy, f"{steps}", *cells])
    return measure.table(["remedy", "steps", *REAL_KINDS], rows)


def draw_real_model(path: Path) -> None:
    """The picture of docs/retrofit.md: a real model before and after."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 3), layout="constrained")
    axes = figure.subplots()
    width = 0.2
    for number, (remedy, rates) in enumerate(real_rates().items()):
        label, colour = REAL[remedy]
        places = [kind + (number - 1.5) * (width + 0.02) for kind in range(len(rates))]
        bars = axes.bar(places, rates, width, color=colour, label=label)
        axes.bar_label(bars, fmt="%.0f", color=colour, fontsize=11, padding=1)
    axes.set_xticks(range(len(REAL_KINDS)), REAL_KINDS.values(), fontsize=12)
    axes.set(ylim=(0, 105), yticks=[])
    axes.tick_params(colors=INK, length=0)
    axes.spines[["top", "left", "right"]].set_visible(False)
    axes.spines["bottom"].set_color(INK)
    figure.legend(loc="outside upper center", ncols=2, frameon=False, fontsize=12, labelcolor=INK)
    figure.savefig(path, dpi=170, transparent=True)


SWAP_PICTURE = measure.PICTURES / "swapped-tools.png"
PICTURED = "Qwen2.5-Coder-1.5B"
"""Of README.md's picture."""


def swap_rates(task: str) -> tuple[int, list[float]]:
    """Questions of a task, and right answers of README.md's model in %, by naming."""
    found = stored("alias-models")["data"][task]["models"][PICTURED]
    count = found["questions"]
    return count, [100 * right / count for right in found["right"].values()]


def draw_swapped_tools(path: Path) -> None:
    """README.md's picture: a real model when tools swap names, without and with the option."""
    from matplotlib.figure import Figure

    _, (own, _, swapped, canonical) = swap_rates("choice")
    figure = Figure(figsize=(6, 2.6), layout="constrained")
    axes, height = figure.subplots(), 0.36
    sides = {
        "the model as it is": (REAL["plain"][1], (own, swapped)),
        "with canonical spelling": (REAL["canonical"][1], (canonical, canonical)),
    }
    for number, (label, (colour, values)) in enumerate(sides.items()):
        places = [place + number * (height + 0.03) for place in range(2)]
        bars = axes.barh(places, values, height, color=colour, label=label)
        axes.bar_label(bars, fmt="%.0f %%", color=colour, fontsize=13, padding=3)
    axes.set_yticks([0.2, 1.2], ["tools have\ntheir names", "tools swap\nnames"], fontsize=13)
    axes.set(xlim=(0, 105), xticks=[])
    axes.invert_yaxis()
    axes.tick_params(colors=INK, length=0)
    axes.spines[["top", "bottom", "right"]].set_visible(False)
    axes.spines["left"].set_color(INK)
    figure.legend(loc="outside upper center", ncols=2, frameon=False, fontsize=12, labelcolor=INK)
    figure.savefig(path, dpi=170, transparent=True)


TABLES = {
    "peers": peers,
    "front": front,
    "naming": naming,
    "leaderboard": partial(named_otherwise, True),
    "alias-models": partial(named_otherwise, False),
    "remedies": remedies,
    "released": released,
    "more-names": partial(further, False),
    "longer": partial(further, True),
    "compared": compared,
    "streams": streams,
    "streams-price": streams_price,
    "memory": memory,
    "gpu": gpu_costs,
    "retrofit": retrofit_costs,
    "memory-by-length": memory_by_length,
    "encoding-costs": encoding_costs,
    "relational-price": relational_price,
    "many-names": many_names,
    "kinship-pairs": kinship_pairs,
    "folnet": folnet_cost,
    "folnet-original": folnet_original,
    "geometric": geometric,
    **{name: partial(tables_of, name) for name in COPIED},
    "transduction": transduction,
    "goals": goals,
    "encodings-propositional": partial(study, "encodings", "propositional", "by number of names"),
    "encodings-ltl-names": partial(study, "encodings", "ltl", "by number of names"),
    "specifications": partial(study, "specifications", "ltl"),
    "published": partial(study, "published"),
    **{
        f"findings-{name}": partial(findings, name)
        for name in (
            *("encodings", "top-n", "copying", "cost"),
            *("draws", "normalization", "covariance"),
        )
    },
}
DOCUMENTS = (
    "README.md",
    "docs/models.md",
    "docs/results-models.md",
    "docs/performance.md",
    "docs/results-performance.md",
    "docs/results.md",
    "docs/alias.md",
    "docs/results-alias.md",
    "docs/retrofit.md",
    "docs/chats.md",
    "docs/results-chemistry.md",
    "docs/results-retrofit.md",
    "docs/results-folnet.md",
    "docs/results-geometric.md",
)


def fill(text: str) -> str:
    """A document with its tables made anew."""
    return BLOCK.sub(lambda match: match[1] + TABLES[match[2]]() + "\n\n" + match[3], text)


# -- sentences ------------------------------------------------------------------------------------


def costs(work: str, peer: str) -> dict[int, float]:
    """How many times as long `streams` takes, by number of symbols."""
    seconds = {
        (row["symbols"], row["side"]): row["seconds"]
        for row in stored("streams")["data"]["rows"]
        if row["work"] == work
    }
    counts = sorted({symbols for symbols, _ in seconds})
    return {k: median_ratio(seconds[k, "streams"], seconds[k, peer]) for k in counts}


def sentences() -> Iterator[tuple[str, str]]:
    """Documents, and what they say of results outside of tables."""
    training, five, ten = (
        statistics.median(stored(result)["data"]["ratios"]) for _, result, _ in STREAMS
    )
    yield (
        "docs/results-performance.md",
        (
            f"a training step on LTL data takes {training:.2f} times less, beam search {five:.2f} "
            f"(5 symbols) to {ten:.2f} times less (10)"
        ),
    )
    yield "docs/performance.md", f"generation here is {five:.1f} to {ten:.1f} times faster"
    works = {
        work: [
            median_ratio(row["processor"]["relational"], row["processor"]["BART"])
            for row in stored("relational-price")["data"]["times"]
            if (row["work"], row["threads"]) == (work, 1)
        ]
        for work in ("training", "beams", "greedy")
    }
    training, beams, greedy = (f"{min(x):.2f} to {max(x):.2f} times" for x in works.values())
    yield (
        "docs/performance.md",
        (
            f"takes {training} as long as a BART of its size in training, {beams} in beam search "
            f"and {greedy} in greedy search"
        ),
    )
    shares = [
        median_ratio(
            # Results of earlier versions say how many processes checked.
            next(seconds for side, seconds in times["seconds"].items() if "evaluation" in side),
            times["seconds"]["generation alone"],
        )
        for times in stored("evaluation")["data"].values()
    ]
    yield (
        "docs/performance.md",
        f"takes {min(shares):.2f} to {max(shares):.2f} times as long as generating",
    )
    times = stored("startup")["data"]
    start = median_ratio(times["hf-alpha --help"], times["import transformers"])
    yield (
        "docs/performance.md",
        f"`hf-alpha --help` takes {start:.2f} times as long as importing Transformers",
    )
    learned, beams = costs("training step", "learned"), costs("generation", "learned")
    yield (
        "docs/results-performance.md",
        (
            f"A training step costs {learned[1]:.1f} times `learned` with 1 symbol and "
            f"{learned[10]:.1f} times with 10, generation {beams[1]:.1f} and {beams[10]:.1f} times"
        ),
    )
    dearest = [
        max(
            median_ratio(row["processor"]["relational"], row["processor"]["BART"])
            for row in stored("many-names")["data"]["times"]
            if (row["work"], row["names"]) == (work, 50)
        )
        for work in ("training", "greedy")
    ]
    page = "docs/performance.md"
    yield page, "with 50, up to {:.1f} and {:.1f}".format(*dearest)
    megabytes = stored("streams-memory-200")["data"]["rows"][0]["process"]
    yield "docs/performance.md", f"the whole process takes {megabytes:,.0f} MB at most"
    walks = [
        statistics.median(measure.ratios(*reversed(sides.values())))
        for sides in stored("walks")["data"]["pairs per second"].values()
    ]
    for name in ("docs/performance.md", "docs/results-performance.md"):
        yield name, f"{min(walks):.1f} to {max(walks):.1f} times as many hard pairs per second"
    over_all = stored("evaluations/kinship-folnet")["data"]["metrics"]["all"]["accuracy"]
    yield "docs/models.md", f"right in {100 * over_all:.1f} % over stories of 2 to 10 facts"
    yield from sentences_of_edges()
    yield from sentences_of_pictures()
    yield from sentences_of_naming()
    steps = stored("dual-part")["data"]["seconds"]["training step"]
    dual = measure.ratios(steps["dual_part, hypercube_vertices"], steps["learned"])
    yield "docs/results.md", f"a training step takes {three(dual)} times that of `learned`"


def sentences_of_pictures() -> Iterator[tuple[str, str]]:
    """What documents say of pictures of real models."""
    plain, augmented, *remedies = real_rates().values()
    seen, _, nonsense, _ = plain
    page = "docs/retrofit.md"
    yield page, f"right in {seen:.0f} % with names of training, and in {nonsense:.0f} %"
    yield page, f"{min(augmented):.0f} to {max(augmented):.0f} % with random names in training"
    yield page, f"at least {int(min(map(min, remedies)))} % right, whatever the names are"
    count, (own, _, swapped, canonical) = swap_rates("choice")
    yield "README.md", f"{count} questions"
    yield "README.md", f"{own:.0f} % become {swapped:.0f} %"
    yield "README.md", f"right in {canonical:.0f} %, whatever"


def sentences_of_naming() -> Iterator[tuple[str, str]]:
    """What documents say of whole calls, SQL and Python, by naming."""
    count, (own, _, swapped, canonical) = swap_rates("calls")
    yield "README.md", f"{own:.0f}, {swapped:.0f} and {canonical:.0f} % of {count}"
    _, (own, _, _, canonical) = swap_rates("sql")
    cost = f"{own - canonical:.1f} points ({own:.1f} to {canonical:.1f})"
    yield "docs/alias.md", f"In SQL it costs {cost}"
    more, fewer = stored("alias-models")["data"]["code"]["models"]["all"]["signs"]["b : own"]
    yield "docs/alias.md", f"({more} questions more, {fewer} fewer, p = "


def sentences_of_edges() -> Iterator[tuple[str, str]]:
    """What documents and cards say of where models fail."""
    groups = [(len(rows), kinship_rate(rows)) for rows in stored("kinship-pairs")["data"].values()]
    *known, (number, right) = groups
    assert all(rate == 1 for _, rate in known)
    said = f"of {number} that are held out it has {100 * right:.1f} % right"
    yield "docs/results-models.md", said
    yield "model_cards/kinship-folnet/README.md", said
    told = sum(count for count, _ in known)
    yield "model_cards/kinship-folnet/README.md", f"that its training tells (100.0 % of {told})"
    points = stored("beyond")["data"]
    for name, edge, text in (
        (
            "anf-relational",
            ("operations", "18"),
            "of terms with 18, {:.0f} in {} are answered right",
        ),
        ("inline-t5", ("names", "28"), "With 28 names, {:.0f} of {} answers are right"),
    ):
        (point,) = (p for p in points[name] if (p["axis"], p["value"]) == edge)
        count = point["problems"]
        yield f"model_cards/{name}/README.md", text.format(count * point["right"], count)


def main() -> None:
    """Write the tables, and name the sentences that have to be written by hand."""
    for name in DOCUMENTS:
        path = measure.ROOT / name
        path.write_text(fill(path.read_text(encoding="utf-8")), encoding="utf-8")
    draw_real_model(REAL_PICTURE)
    draw_swapped_tools(SWAP_PICTURE)
    for name, sentence in sentences():
        if sentence not in (measure.ROOT / name).read_text(encoding="utf-8"):
            print(f"{name} should say: {sentence}")


if __name__ == "__main__":
    main()
