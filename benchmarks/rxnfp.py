"""Does an encoder of reactions need a remedy? To rxnfp, ring digits of SMILES are tokens as others.

    pip download --no-deps -d FOLDER rxnfp==0.1.0 && pip install rdkit
    python benchmarks/rxnfp.py FOLDER --data data/uspto50k --steps 0,60 --out rxnfp

rxnfp (BERT of 12 layers and width 256, MIT) was trained to fill in masked tokens of reactions. Here
the digit that closes a ring is masked, which the one that opened it says, or another token.
Reactions are those of USPTO-50k, of which valid.csv.gz is for training; digits stand as RDKit
writes them, or permuted. After no step or more, the remedies are:

- plain: trained on reactions as RDKit writes them. random: digits permuted, row by row.
- canonical: the model of plain; digits are written by first occurrence. RDKit's are, so whatever
  they are, it reads what `plain` reads with RDKit's.

`relational` is not among them: `hf_alpha.get_symbol_model` takes models that write.
"""

import csv
import gzip
import json
import random
import re
import runpy
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch
from transformers import BertConfig, BertForMaskedLM

import measure
from real_models import DEVICE, finish, minutes_of, options, results_of, tune, wheel

# By its path: a task of examples/ has the same name.
REACTIONS = runpy.run_path(str(Path(__file__).with_name("reactions.py")))
TESTED, written = REACTIONS["TESTED"], REACTIONS["written"]
in_order, permuted = REACTIONS["in_order"], REACTIONS["permuted"]
TOKEN = re.compile(r"\[[^\]]+\]|%\d{2}|Br|Cl|>>|.")
ROWS, LONGEST, MASKED = 16, 150, 0.15  # reactions of a step; tokens of one; share in training
TRAINING, TESTS, OTHERS = 4_000, 100, 6  # OTHERS: tokens of each test that are no digit
MODEL = Path("models") / "transformers" / "bert_pretrained"
SETTINGS = (
    *("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "hidden_act"),
    *("intermediate_size", "max_position_embeddings", "type_vocab_size", "layer_norm_eps"),
)
MEASURES = "closing digits", "other tokens"


class Learner:
    """The model, and how reactions become batches."""

    def __init__(self, folder: Path):
        source = wheel(folder, "rxnfp") / MODEL
        known = json.loads((source / "config.json").read_text(encoding="utf-8"))
        self.model = BertForMaskedLM(BertConfig(**{key: known[key] for key in SETTINGS}))
        state = torch.load(source / "pytorch_model.bin", weights_only=True, map_location="cpu")
        state["cls.predictions.decoder.bias"] = state["cls.predictions.bias"]
        missing, _ = self.model.load_state_dict(state, strict=False)
        assert not missing, f"{source}: weights of another version of rxnfp, without {missing}"
        self.model.eval()
        words = (source / "vocab.txt").read_text(encoding="utf-8").split("\n")
        self.ids = {word: number for number, word in enumerate(words)}

    def batch(self, texts: Sequence[str], masked: Sequence[Sequence[int]]) -> dict[str, Any]:
        """Return texts without the tokens at these places, which are the labels."""
        rows = [TOKEN.findall(text) for text in texts]
        shape = len(rows), 2 + max(map(len, rows))
        ids_BL = torch.full(shape, self.ids["[PAD]"])
        labels_BL = torch.full(shape, -100)
        for number, (row, places) in enumerate(zip(rows, masked, strict=True)):
            ids = [self.ids.get(token, self.ids["[UNK]"]) for token in row]
            ids = [self.ids["[CLS]"], *ids, self.ids["[SEP]"]]
            for place in places:
                labels_BL[number, place + 1] = ids[place + 1]
                ids[place + 1] = self.ids["[MASK]"]
            ids_BL[number, : len(ids)] = torch.tensor(ids)
        mask_BL = (ids_BL != self.ids["[PAD]"]).long()
        rows_of = {"input_ids": ids_BL, "attention_mask": mask_BL, "labels": labels_BL}
        return {name: tensor.to(DEVICE) for name, tensor in rows_of.items()}

    @torch.no_grad()
    def found(self, text: str, places: Sequence[int]) -> list[bool]:
        """Return for each place whether its token, masked alone, is found."""
        rows = self.batch([text] * len(places), [[place] for place in places])
        labels_BL = rows.pop("labels")
        right_BL = self.model(**rows).logits.argmax(-1) == labels_BL
        return right_BL[labels_BL != -100].tolist()


@cache
def reactions(file: Path, count: int, seed: int) -> list[str]:
    """Return so many reactions with a ring in the product, in an order drawn by the seed."""
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    random.Random(seed).shuffle(rows)
    found: list[str] = []
    for row in rows:
        sides = [written(side, False) for side in row["rxn_smiles"].split(">>")]
        text = ">>".join(filter(None, sides))
        fits = all(sides) and len(TOKEN.findall(text)) < LONGEST and "%" not in text
        if fits and closing(text, text.index(">>")):
            found.append(text)
        if len(found) == count:
            return found
    raise ValueError(f"{file} has {len(found)} reactions that fit, not {count}")


def closing(text: str, start: int = 0) -> list[int]:
    """Return which tokens, from a character on, are digits that close a ring."""
    opened: set[str] = set()
    places, at = [], 0
    for place, token in enumerate(TOKEN.findall(text)):
        if token.isdigit():
            opened ^= {token}
            if token not in opened and at >= start:
                places.append(place)
        at += len(token)
    return places


def tests(learner: Learner, texts: Sequence[str], others: Sequence[Sequence[int]]) -> list[int]:
    """Return how many digits that close a ring are found, and of how many; then other tokens."""
    digits = [learner.found(text, closing(text)) for text in texts]
    rest = [learner.found(text, places) for text, places in zip(texts, others, strict=True)]
    return [sum(map(sum, digits)), sum(map(len, digits)), sum(map(sum, rest)), sum(map(len, rest))]


def run(folder: Path, data: Path, name: str, steps: int, seed: int) -> dict[str, Any]:
    """Train the model and test it."""
    torch.manual_seed(seed)
    learner, rng = Learner(folder), random.Random(seed)
    texts = reactions(data / "test.csv.gz", TESTS, seed=0)
    other = [permuted((text, ""), number)[0] for number, text in enumerate(texts)]
    assert [in_order((text, ""))[0] for text in other] == texts, "canonical spelling is not RDKit's"

    def batches() -> Iterator[Any]:
        train = reactions(data / "valid.csv.gz", TRAINING, seed=0)
        while True:
            rows = rng.sample(train, ROWS)
            if name == "random":
                rows = [permuted((text, ""), rng.random())[0] for text in rows]
            lengths = [len(TOKEN.findall(text)) for text in rows]
            masked = [rng.sample(range(n), int(MASKED * n) + 1) for n in lengths]
            yield [learner.batch(rows, masked)]

    start = time.process_time()
    loss = steps and tune(learner.model, batches(), steps, rate=1e-4, warmup=20, floor=0.05)
    minutes = (time.process_time() - start) / 60
    draw = random.Random(1)
    no_digits = [
        [place for place, token in enumerate(TOKEN.findall(text)) if not token.isdigit()]
        for text in texts
    ]
    places = [draw.sample(each, OTHERS) for each in no_digits]
    found = {
        kind: tests(learner, each, places)
        for kind, each in zip(TESTED, (texts, other), strict=True)
    }
    return {"loss": loss, "minutes": minutes, "device": DEVICE, "tests": found}


def table(results: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """Return the tokens that are found, in per cent, by remedy and steps."""
    lines = []
    for run_name, runs in results.items():
        name, steps = run_name.split()
        kinds = {name: TESTED} | ({"canonical": (TESTED[0],) * 2} if name == "plain" else {})
        for shown, tested in kinds.items():
            shares = [
                measure.share_and_spread(
                    [run["tests"][kind][i] / run["tests"][kind][i + 1] for run in runs]
                )
                for i in (0, 2)
                for kind in tested
            ]
            lines.append([shown, steps, str(len(runs)), *shares, minutes_of(runs)])
    columns = [f"{what}{how}" for what in MEASURES for how in ("", ", permuted")]
    return measure.table(("remedy", "steps", "seeds", *columns, "minutes"), lines)


def main(argv: Sequence[str] | None = None) -> None:
    """Run what is asked for, and print the table of all that is there."""
    parser = options(__doc__.split("\n")[0], "plain,random", "0,60")
    parser.add_argument(
        "--data", type=Path, required=True, help="the folder of valid.csv.gz and test.csv.gz"
    )
    args = parser.parse_args(argv)
    results = results_of(args, "rxnfp", partial(run, args.folder, args.data))
    finish(table(results), results, args.out, argv or sys.argv[1:])


if __name__ == "__main__":
    main()
