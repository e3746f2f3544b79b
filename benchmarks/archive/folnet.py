"""FOLNet: against its original code, against BERT, and its parameters beside the paper's.

    python benchmarks/archive/folnet.py --threads 1 --out folnet              # sets of operators and BERT
    python benchmarks/archive/folnet.py --original FOLNet --threads 1 --out folnet-original
    python benchmarks/archive/folnet.py --count --out folnet-count

- Without an option: FOLNet with each set of operators, as the paper writes them (`jmc.atp` is join,
  mu, cjoin and assoc, trans, prod), against a BERT of Transformers with as many layers, heads and
  units. All batches have the same number of tokens. Then what each operator costs, as a model with
  it alone less one with none; and how time grows with the length, measured and by multiply-adds.
- `--original`: a checkout of github.com/tencent-ailab/FOLNet (it needs scipy). Both sides have the
  same weights, converted and proved, and the same texts; their losses are printed.
- `--count`: the models of Tables 3 and 4, in the code's form of the operators and in the paper's.

Backward is of the loss of pretraining against the original, and of the mean square of the last
states against BERT; where an operator stands alone, of those of both branches. Sides take turns in
one process; times and ratios are printed as minimum / median / maximum over the rounds; operators
and growth are by the fastest round. Memory is that of a process of its own for each figure.
"""

import argparse
import importlib
import itertools
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import BertConfig, BertModel, PreTrainedModel

from hf_alpha.cli.options import integers
from hf_alpha.convert.folnet import convert_state
from hf_alpha.modeling.configuration_folnet import FolnetConfig
from hf_alpha.modeling.modeling_folnet import FolnetForMaskedLM, FolnetModel

sys.path.append(str(Path(__file__).resolve().parents[1]))  # for what benchmarks share
import memory
from measure import add_out, clocked_in_turns, finish, in_turns, ratios, table, three

Step = Callable[[], object]
BERT, ORIGINAL, OURS, NOTHING = "BERT", "original", "ours", "."
WORKS = {"training": "forward and backward", "forward": "forward"}
SETS = ["j.a", "jm.ap", "j.at", "j.atp", "jm.atp", "jmc.atp"]
SINGLE = ["j.", "m.", "c.", ".a", ".t", ".p"]
NAMES = {"j": "join", "m": "mu", "c": "cjoin", "a": "assoc", "t": "trans", "p": "prod"}
FORMS: dict[str, dict[str, Any]] = {
    "code": {"cjoin_premise": "size", "trans_channels": "binary", "transposed_boolean": True},
    "paper": {"cjoin_premise": "heads", "trans_channels": "heads", "transposed_boolean": False},
}
# Line of Table 3 (0: Table 4), operators, positions, D2, and the paper's millions.
PAPER = [
    (3, "j.a", "absolute", 12, 110), (4, "j.a", "relative", 12, 109), (5, "j.a", "shaw", 12, 110),
    (6, "jm.ap", "relative", 12, 123), (7, "j.a", "relative", 16, 109),
    (8, "j.a", "relative", 32, 109), (9, "j.a", "relative", 64, 110),
    (10, "j.at", "relative", 64, 110), (11, "j.atp", "relative", 64, 117),
    (12, "jm.atp", "relative", 64, 124), (13, "jmc.atp", "relative", 64, 138),
    (14, "jmc.atp", "relative", 12, 137), (0, "jmc.atp", "relative", 64, 437),
]  # fmt: skip


# -- models -------------------------------------------------------------------------------------


def folnet_config(args: argparse.Namespace, operators: str, **settings: Any) -> FolnetConfig:
    """A configuration of the sizes that are measured."""
    unary, binary = operators.split(".")
    chosen = {
        "unary_operators": unary,
        "binary_operators": binary,
        "num_hidden_layers": args.layers,
        "hidden_size": args.hidden,
        "binary_hidden_size": args.binary,
        "num_attention_heads": args.heads,
        "head_size": args.hidden // args.heads,
        "intermediate_size": 4 * args.hidden,
        "binary_intermediate_size": 4 * args.binary,
        "hidden_dropout_prob": args.dropout,
        "attention_probs_dropout_prob": args.dropout,
        "vocab_size": args.vocabulary,
    }
    return FolnetConfig(**{**chosen, **settings})


def make_model(args: argparse.Namespace, side: str) -> PreTrainedModel:
    """BERT, or FOLNet with a set of operators, with random weights."""
    torch.manual_seed(0)
    if side != BERT:
        return FolnetModel(folnet_config(args, side)).to(args.device)
    config = BertConfig(
        num_hidden_layers=args.layers, hidden_size=args.hidden, num_attention_heads=args.heads,
        intermediate_size=4 * args.hidden, vocab_size=args.vocabulary,
        hidden_dropout_prob=args.dropout, attention_probs_dropout_prob=args.dropout,
        max_position_embeddings=max(args.lengths),
    )  # fmt: skip
    return BertModel(config).to(args.device)


def original_settings(args: argparse.Namespace) -> dict[str, Any]:
    """As the original's scripts write them to a .cfg file, with all operators."""
    return {
        "hidden_act": "gelu", "hidden_dropout_prob": args.dropout, "layer_norm_eps": 1e-12,
        "initializer_range": 0.02, "max_position_offset": 64, "absolute_position": False,
        "relative_position": True, "vocab_size": args.vocabulary, "type_vocab_size": 2,
        "diag_link": False, "num_layers": args.layers, "boolean_type": "mlp",
        "mixer_ops": {0: None, 1: ("join", "mu", "cjoin"), 2: ("assoc", "trans", "prod")},
        "predicate_dims": (0, args.hidden, args.binary), "num_heads": args.heads,
        "intermediate_dims": (0, 4 * args.hidden, 4 * args.binary),
        "head_size": args.hidden // args.heads, "hidden_size": args.hidden,
        "pretrain_loss": "MLM.NSP",
    }  # fmt: skip


def make_original(args: argparse.Namespace) -> Any:
    """The original's model for pretraining, from its checkout."""
    folder = str(Path(args.original).resolve())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    settings = importlib.import_module("config_folnet").FOLNetConfig(**original_settings(args))
    torch.manual_seed(0)
    return importlib.import_module("folnet").FOLNetForPreTraining(settings).to(args.device)


# -- steps ----------------------------------------------------------------------------------------


def step_of(model: Any, loss: Callable[[], torch.Tensor], work: str) -> Step:
    """One forward pass, or one with its backward pass, of a loss."""

    def forward() -> None:
        with torch.no_grad():
            loss()

    def training() -> None:
        model.zero_grad()
        loss().backward()

    model.train()
    return training if work == "training" else forward


def draw(args: argparse.Namespace, batch: int, length: int) -> dict[str, torch.Tensor]:
    """Pairs of texts with the words and the labels of pretraining."""
    generator = torch.Generator().manual_seed(0)

    def numbers(most: int, *shape: int) -> torch.Tensor:
        return torch.randint(most, shape, generator=generator).to(args.device)

    types = (torch.arange(length) >= length // 2).long().expand(batch, -1)
    return {
        "input_ids": numbers(args.vocabulary, batch, length),
        "token_type_ids": types.to(args.device),
        "labels": numbers(args.vocabulary, batch, length),
        "next_sentence_label": numbers(2, batch),
    }


def set_step(
    args: argparse.Namespace, side: str, work: str, batch: int, length: int, model: Any = None
) -> Step:
    """A step of BERT or of FOLNet with a set of operators; without a model, of a new one."""
    model = make_model(args, side) if model is None else model
    drawn = draw(args, batch, length)
    texts: dict[str, Any] = {name: drawn[name] for name in ("input_ids", "token_type_ids")}
    if side in (NOTHING, *SINGLE):
        return step_of(model, lambda: of_both_branches(model(**texts)), work)
    if side != BERT:
        texts["output_binary_states"] = False  # as in heads, which do not read them
    return step_of(model, lambda: model(**texts).last_hidden_state.square().mean(), work)


def of_both_branches(outputs: Any) -> torch.Tensor:
    """A loss that reaches all weights: with one operator, a branch may not depend on the other."""
    parts = (outputs.last_hidden_state, outputs.binary_hidden_state)
    return torch.stack([part.square().mean() for part in parts]).sum()


def pair(args: argparse.Namespace) -> dict[str, Any]:
    """The original's model and ours with the same weights."""
    original = make_original(args)
    ours = convert_state(original.state_dict(), original_settings(args))
    return {ORIGINAL: original, OURS: ours.to(args.device)}


def pretraining_loss(
    args: argparse.Namespace, side: str, model: Any, batch: int, length: int
) -> Callable[[], torch.Tensor]:
    """The loss of masked words and of the next sentence."""
    drawn = draw(args, batch, length)
    if side == OURS:
        return lambda: model(**drawn).loss
    names = ("tok_seq", "token_type_ids", "mlm_labels", "nsp_label")
    theirs = dict(zip(names, drawn.values(), strict=True))
    return lambda: model(**theirs)[0].sum()


# -- measuring ------------------------------------------------------------------------------------


def measure_memory(args: argparse.Namespace, side: str, work: str, length: int) -> float:
    """Megabytes of a kind of work, in this process, which has done nothing else."""
    if args.original:
        model = pair(args)[side]
        steps = [
            step_of(model, pretraining_loss(args, side, model, *sizes), work)
            for sizes in ((1, 8), (args.batch, length))
        ]
    else:
        model = make_model(args, side)
        steps = [
            set_step(args, side, work, *sizes, model)
            for sizes in ((1, 8), (batch_of(args, length), length))
        ]
    steps[0]()  # what libraries load at first use is none of the work's
    model.zero_grad()
    return memory.most_held(steps[1], args.device)["work"]


def batch_of(args: argparse.Namespace, length: int) -> int:
    return max(1, args.tokens // length)


def megabytes(command_line: Sequence[str], side: str, work: str, length: int) -> float:
    return memory.in_own_process(__file__, [*command_line, "--child", side, work, str(length)])


def run_original(args: argparse.Namespace, command_line: Sequence[str]) -> dict[str, Any]:
    """Ours and the original's: losses, seconds and megabytes."""
    models = pair(args)
    losses = {
        side: pretraining_loss(args, side, model, args.batch, args.length)
        for side, model in models.items()
    }
    results: dict[str, Any] = {"losses": {}, "works": []}
    with torch.no_grad():
        results["losses"] = {
            side: float(loss()) for side, loss in losses.items() if models[side].eval()
        }
    for work in args.works:
        steps = {side: step_of(models[side], losses[side], work) for side in models}
        seconds, processor = clocked_in_turns(steps, args.rounds, args.device)
        row: dict[str, Any] = {"work": work, "seconds": seconds, "processor seconds": processor}
        if not args.no_memory:
            row["megabytes"] = {
                side: megabytes(command_line, side, work, args.length) for side in models
            }
        results["works"].append(row)
    return results


def run_sets(args: argparse.Namespace, command_line: Sequence[str]) -> list[dict[str, Any]]:
    """All sets, single operators and BERT: an entry for each kind of work and length."""
    rows = []
    measured = [BERT, *args.sets]
    for work in args.works:
        for length in args.lengths:
            sizes = (batch_of(args, length), length)
            sides = [*measured, NOTHING, *SINGLE]
            steps = {side: set_step(args, side, work, *sizes) for side in sides}
            row: dict[str, Any] = {"work": work, "length": length, "batch": sizes[0]}
            row["seconds"] = in_turns(steps, args.rounds, args.device)
            del steps
            if not args.no_memory:
                row["megabytes"] = {
                    side: megabytes(command_line, side, work, length) for side in measured
                }
            rows.append(row)
            print(f"{WORKS[work]}, {length} tokens: done", file=sys.stderr, flush=True)
    return rows


# -- on paper -------------------------------------------------------------------------------------


def multiply_adds(args: argparse.Namespace, side: str, length: int) -> int:
    """Multiplications of all layers for one text, forward."""
    wide, narrow, width, pairs = args.hidden, args.binary, args.hidden, length**2
    heads, size = args.heads, args.hidden // args.heads
    if side == BERT:
        return args.layers * (length * 12 * wide**2 + 2 * pairs * width)
    config = folnet_config(args, side)
    channels = narrow if config.trans_channels == "binary" else heads
    premise = size if config.cjoin_premise == "size" else heads
    projected = length * wide * width  # unary atoms to or from all heads
    costs = {
        "j": 2 * projected + pairs * (narrow * heads + width),
        "m": projected + pairs * (narrow * (heads + size) + width),
        "c": 2 * projected + pairs * (narrow * premise + width),
        "a": 2 * projected + pairs * (width + heads * narrow),
        "p": projected + pairs * (narrow * size + width + heads * narrow),
        "t": pairs * (3 * narrow * channels) + length**3 * channels,
    }
    turned = 2 * 4 * narrow**2 + narrow**2 if config.transposed_boolean else 4 * narrow**2
    booleans = length * 8 * wide**2 + pairs * (turned + 4 * narrow**2)
    return args.layers * (booleans + sum(costs[letter] for letter in side if letter != "."))


def parameters(operators: str, large: bool, **settings: Any) -> int:
    """Parameters of a masked language model, base or large, without pooler; none is allocated."""
    unary, binary = operators.split(".")
    config_of = FolnetConfig.large if large else FolnetConfig  # the defaults are the base model
    config = config_of(unary_operators=unary, binary_operators=binary, **settings)
    with torch.device("meta"):
        model = FolnetForMaskedLM(config)
    return sum(x.numel() for name, x in model.named_parameters() if ".pooler." not in name)


def count(args: argparse.Namespace) -> tuple[str, list[dict[str, Any]]]:
    """The table of parameters, in millions, and its numbers."""
    forms = [(form, words) for words in args.vocabularies for form in FORMS]
    lines, rows = [], []
    for line, operators, scheme, narrow, paper in PAPER:
        counts = {}
        for form, words in forms:
            settings = {
                "position_scheme": scheme, "binary_hidden_size": narrow, "vocab_size": words,
                "binary_intermediate_size": 4 * narrow, **FORMS[form],
            }  # fmt: skip
            number = parameters(operators, large=line == 0, **settings)
            counts[f"{form}, {words:,}"] = number
        cells = [
            f"{x / 1e6:.2f}{'' if round(x / 1e6) == paper else ' no'}" for x in counts.values()
        ]
        name = f"Table 3, {line}" if line else "Table 4, large"
        lines.append([name, operators, scheme, str(narrow), str(paper), *cells])
        rows.append({"line": name, "operators": operators, "paper": paper, "counts": counts})
    num_fitting = [
        str(sum(round(row["counts"][column] / 1e6) == row["paper"] for row in rows))
        for column in counts
    ]
    lines.append(["counts that fit", "", "", "", str(len(PAPER)), *num_fitting])
    columns = ["model", "operators", "positions", "D2", "paper", *counts]
    words = ["operators", "positions"]
    head = "Millions of parameters of a masked language model; `no`: other than the paper's\n\n"
    return head + table(columns, lines, words), rows


# -- tables ---------------------------------------------------------------------------------------


def original_tables(args: argparse.Namespace, results: dict[str, Any]) -> str:
    """Times and memory beside the original's."""
    lines = []
    for row in results["works"]:
        seconds = row["seconds"]
        cells = [WORKS[row["work"]]]
        cells += [three([1e3 * x for x in seconds[side]], 0) for side in (ORIGINAL, OURS)]
        for clock in (seconds, row["processor seconds"]):
            cells.append(three(ratios(clock[ORIGINAL], clock[OURS])))
        if megabytes := row.get("megabytes"):
            cells += [f"{megabytes[ORIGINAL]:,.0f}", f"{megabytes[OURS]:,.0f}"]
            cells.append(f"{megabytes[OURS] / megabytes[ORIGINAL]:.2f}")
        lines.append(cells)
    columns = ["work", "original: ms", "ours: ms", "times faster", "by processor time"]
    if not args.no_memory:
        columns += ["original: MB", "ours: MB", "of the original's"]
    losses = ", ".join(f"{side} {loss:.7f}" for side, loss in results["losses"].items())
    head = f"{sizes_of(args)}; all operators, batch {args.batch}, {args.length} tokens; "
    return f"{head}losses: {losses}\n\n{table(columns, lines)}"


def sizes_of(args: argparse.Namespace) -> str:
    return (
        f"{args.layers} layers, D1 {args.hidden}, D2 {args.binary}, {args.heads} heads, "
        f"vocabulary {args.vocabulary:,}, dropout {args.dropout:g}, {args.rounds} rounds on "
        f"{args.device}"
    )


def set_tables(args: argparse.Namespace, rows: Sequence[dict[str, Any]]) -> str:
    """Sets against BERT, operators one by one, growth."""
    parts = [f"{sizes_of(args)}; {args.tokens:,} tokens in a batch"]
    parts.append(f"Time by BERT's\n\n{against_bert(args, rows)}")
    if not args.no_memory:
        lines = []
        for row in rows:
            megabytes = row["megabytes"]
            cells = [
                f"{megabytes[side]:,.0f} ({megabytes[side] / megabytes[BERT]:.1f})"
                for side in args.sets
            ]
            lines.append(
                [WORKS[row["work"]], str(row["length"]), f"{megabytes[BERT]:,.0f}", *cells]
            )
        columns = ["work", "tokens", "BERT: MB", *(f"{side}: MB" for side in args.sets)]
        parts.append(f"Memory of the work, in brackets by BERT's\n\n{table(columns, lines)}")
    parts.append(f"What an operator adds, ms of the batch\n\n{one_by_one(rows)}")
    parts.append(f"Growth with the length, of one text\n\n{growth(args, rows)}")
    return "\n\n".join(parts)


def against_bert(args: argparse.Namespace, rows: Sequence[dict[str, Any]]) -> str:
    lines = []
    for row in rows:
        bert = row["seconds"][BERT]
        cells = [three(ratios(row["seconds"][side], bert), 1) for side in args.sets]
        head = [WORKS[row["work"]], str(row["length"]), three([1e3 * x for x in bert], 0)]
        lines.append([*head, *cells])
    return table(["work", "tokens", "BERT: ms", *args.sets], lines)


def one_by_one(rows: Sequence[dict[str, Any]]) -> str:
    """A model with one operator less that with none: of the fastest rounds, the least disturbed."""
    lines = []
    for row in rows:
        least = {side: 1e3 * min(x) for side, x in row["seconds"].items()}
        cells = [f"{least[side] - least[NOTHING]:,.1f}" for side in SINGLE]
        lines.append([WORKS[row["work"]], str(row["length"]), f"{least[NOTHING]:,.1f}", *cells])
    names = [NAMES[side.strip(".")] for side in SINGLE]
    return table(["work", "tokens", "the rest: ms", *names], lines)


def growth(args: argparse.Namespace, rows: Sequence[dict[str, Any]]) -> str:
    """Least time of a text by that of one of the length before: measured, and by multiply-adds."""
    lines = []
    for work, before, after in steps_of_length(rows):
        cells = []
        for side in (BERT, *args.sets):
            times = [min(row["seconds"][side]) / row["batch"] for row in (before, after)]
            paper = [multiply_adds(args, side, row["length"]) for row in (before, after)]
            cells.append(f"{times[1] / times[0]:.1f} ({paper[1] / paper[0]:.1f})")
        lines.append([WORKS[work], f"{before['length']} to {after['length']}", *cells])
    return table(["work", "tokens", BERT, *args.sets], lines, ["tokens"])


def steps_of_length(
    rows: Sequence[dict[str, Any]],
) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    for before, after in itertools.pairwise(rows):
        if before["work"] == after["work"]:
            yield before["work"], before, after


# -- the command ----------------------------------------------------------------------------------


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--original", metavar="FOLDER", help="a checkout of the original code, as the peer")
    add("--count", action="store_true", help="parameters beside the paper's, nothing is run")
    add("--sets", nargs="+", default=SETS, help=f"of operators ({' '.join(SETS)})")
    add("--lengths", type=integers, default=[128, 256, 512], help="tokens (128,256,512)")
    add("--tokens", type=int, default=1024, help="of a batch (1024)")
    add("--batch", type=int, default=8, help="texts, against the original (8)")
    add("--length", type=int, default=64, help="tokens, against the original (64)")
    add("--vocabularies", type=integers, default=[30522, 32768], help="of --count (30522,32768)")
    for name, size in {"hidden": 128, "binary": 32, "heads": 4, "layers": 3}.items():
        add(f"--{name}", type=int, default=size, help=f"({size})")
    add("--vocabulary", type=int, default=1000, help="words (1000)")
    add("--dropout", type=float, default=0.0, help="(0)")
    add("--works", nargs="+", choices=WORKS, default=list(WORKS))
    add("--rounds", type=int, default=5, help="(5)")
    add("--no-memory", action="store_true", help="measure times only")
    add("--device", default="cpu", help="cpu or cuda")
    add("--threads", type=int, help="CPU threads of torch")
    add("--child", nargs=3, help=argparse.SUPPRESS)
    add_out(parser)
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print."""
    args = parse(argv)
    command_line = list(sys.argv[1:] if argv is None else argv)
    if args.threads:
        torch.set_num_threads(args.threads)
    if args.child:
        side, work, length = args.child
        print(json.dumps(measure_memory(args, side, work, int(length))))
        return
    text, results = "", None
    if args.count:
        text, results = count(args)
    elif args.original:
        results = run_original(args, command_line)
        text = original_tables(args, results)
    else:
        results = run_sets(args, command_line)
        text = set_tables(args, results)
    finish(text, {"settings": vars(args), "rows": results}, args.out, argv, args.device)


if __name__ == "__main__":
    main()
