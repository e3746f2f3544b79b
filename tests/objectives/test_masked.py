import copy
import random

import pytest
import torch
from datasets import Dataset
from hypothesis import given, settings
from hypothesis import strategies as st
from small_objectives import (
    BERT,
    FOLNET,
    SIZES,
    cut_off,
    evaluated,
    recipe,
    same_weights,
    write_rows,
)
from transformers import (
    AutoModelForMaskedLM,
    AutoModelForPreTraining,
    BertConfig,
    BertForPreTraining,
)

from hf_alpha.folnet import FolnetConfig
from hf_alpha.geometric import GeometricConfig, GeometricTokenizer
from hf_alpha.modeling.modeling_geometric import GeometricForMaskedLM
from hf_alpha.objectives.base import Texts
from hf_alpha.objectives.masked import Masked, MaskingCollator
from hf_alpha.objectives.names import find_names, marked
from hf_alpha.objectives.optimizers import FusedLamb
from hf_alpha.objectives.tokenizers import make_tokenizer
from hf_alpha.recipe import Data, RecipeError
from hf_alpha.train import train
from hf_alpha.transduction import Lexicon, Transducer


def documents(count: int, seed: int = 0) -> list[str]:
    """Texts of numbered sentences: d3s1 is sentence 1 of document 3."""
    rng = random.Random(seed)
    return [
        " ".join(
            f"{' '.join([f'd{d}s{s}'] * rng.randint(1, 6))}." for s in range(rng.randint(2, 9))
        )
        for d in range(count)
    ]


TEXTS = documents(40)
TOKENIZER = make_tokenizer("words", TEXTS)
DATA = Data(train="rows.jsonl", source="text")


def sequences(aim: Masked, texts=TEXTS, seed=0, data=DATA) -> Dataset:
    return aim.features(Dataset.from_dict({"text": texts}), data, TOKENIZER, None, seed=seed)


def parts(row) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Both texts of a sequence, as (document, sentence) of their words."""
    found: tuple[list, list] = ([], [])
    tokens = TOKENIZER.convert_ids_to_tokens(row["input_ids"])
    assert tokens[0] == "[CLS]" and tokens[-1] == "[SEP]"
    for token, kind, special in zip(
        tokens, row["token_type_ids"], row["special_tokens_mask"], strict=True
    ):
        assert (token in ("[CLS]", "[SEP]")) == special
        if token.startswith("d"):
            document, sentence = token[1:].split("s")
            found[kind].append((int(document), int(sentence)))
    return found


@settings(max_examples=10)
@given(st.sampled_from(["nsp", "sop"]), st.integers(8, 40), st.integers(0, 99))
def test_pairs_are_what_their_label_says(sentences, length, seed):
    """Half of NSP's second parts are of another document, half of SOP's pairs are swapped.

    More of NSP's in short sequences: one sentence that fills its chunk is followed by another
    document, as BERT has it.
    """
    made = sequences(Masked(length, sentences=sentences), seed=seed)
    for row in made:
        assert len(row["input_ids"]) <= length
        first, second = parts(row)
        if not (first and second):
            continue  # a part that is signs only
        same = {document for document, _ in first} == {document for document, _ in second}
        assert len({document for document, _ in first}) == 1
        if sentences == "nsp":
            assert same == (row["sentence_label"] == 0)
            assert not same or max(first) <= min(second)
        else:
            assert same and (max(second) < min(first) if row["sentence_label"] else first < second)
    labels = made["sentence_label"]
    assert 0.15 < sum(labels) / len(labels) < (0.85 if length >= 12 else 0.95)  # of 40 or more


def test_sequences_are_filled_and_nothing_is_lost_without_pairs():
    made = sequences(Masked(16, sentences="none"))
    words = [token for row in made for token in row["input_ids"][1:-1]]
    assert words == [
        i for ids in TOKENIZER(TEXTS, add_special_tokens=False)["input_ids"] for i in ids
    ]
    full = [row for row in sequences(Masked(24, short_share=0.0)) if len(row["input_ids"]) == 24]
    assert len(full) > 20
    assert "sentence_label" not in made.column_names


def test_sequences_do_not_depend_on_workers_and_lines_make_documents(monkeypatch):
    monkeypatch.setattr("hf_alpha.objectives.masked.PART", 10)
    aim = Masked(24)
    alone = sequences(aim)
    many = sequences(aim, data=Data(train="rows.jsonl", source="text", num_workers=3))
    assert alone[:] == many[:] and len(set(alone["place"])) == len(alone)
    monkeypatch.undo()
    lines = [line for text in TEXTS for line in [*text.split(". "), "", None]]
    again = sequences(Masked(24, documents="blank_lines"), lines)
    assert {d for row in again for d, _ in parts(row)[0]} == set(range(40))


PHRASES = [("{0} {0}", "TWO"), ("{0} {0} {0}", "THREE"), ("{0} .", "END"), ("{0}", "ONE")]
WORDS = [f"d{d}s{s}" for d in range(40) for s in range(0, 9, 2)]
ENTRIES = [(phrase.format(word), label) for word in WORDS for phrase, label in PHRASES]
TRANSDUCER = Transducer.compile(Lexicon.from_entries(ENTRIES), max_per_position=9)
SEGMENTED = GeometricTokenizer.from_tokenizer(TOKENIZER, TRANSDUCER)


def places_of_phrases(tokens: list[str]) -> set[tuple[int, int, str]]:
    """Where phrases of the lexicon stand, word by word."""
    labels = {tuple(phrase.split()): label for phrase, label in ENTRIES}
    spans = [(a, b) for a in range(len(tokens)) for b in range(a, min(a + 3, len(tokens)))]
    return {
        (a, b, labels[words]) for a, b in spans if (words := tuple(tokens[a : b + 1])) in labels
    }


@settings(max_examples=5)
@given(st.sampled_from(["none", "nsp", "sop"]), st.integers(8, 40), st.integers(0, 99))
def test_segments_travel_with_their_tokens(sentences, length, seed):
    """Wherever a sentence is put and cut, its segments are those of the words that are left."""
    aim, rows = Masked(length, sentences=sentences), Dataset.from_dict({"text": TEXTS})
    made = aim.features(rows, DATA, SEGMENTED, None, seed=seed)
    plain = sequences(aim, seed=seed)
    assert made["input_ids"][:] == plain["input_ids"][:]
    found = 0
    for row in made:
        columns = (row[key] for key in ("segment_starts", "segment_ends", "segment_ids"))
        shown = [(a, b, TRANSDUCER.labels[i - 1]) for a, b, i in zip(*columns, strict=True)]
        assert set(shown) == places_of_phrases(TOKENIZER.convert_ids_to_tokens(row["input_ids"]))
        assert len(set(shown)) == len(shown)
        found += len(shown)
    assert found > 100


@settings(max_examples=10)
@given(st.integers(0, 99), st.booleans(), st.sampled_from(["left", "right"]))
def test_segments_over_masked_tokens_are_left_out(seed, keep, side):
    """What is left of a row's segments closes up; `keep` leaves all."""
    tokenizer = copy.deepcopy(SEGMENTED)
    tokenizer.padding_side = side
    aim = Masked(40, sentences="none", covered_segments="keep" if keep else "drop")
    made = aim.features(Dataset.from_dict({"text": TEXTS}), DATA, tokenizer, None)
    rows = [made[place] for place in random.Random(seed).sample(range(len(made)), 6)]
    batch = aim.collator(tokenizer, GEOMETRIC, seed)(rows)
    wanted = []
    for row, labels in zip(rows, batch["labels"].tolist(), strict=True):
        moved = (len(labels) - len(row["input_ids"])) * (side == "left")
        columns = (row[key] for key in ("segment_starts", "segment_ends", "segment_ids"))
        every = [(a + moved, b + moved, i) for a, b, i in zip(*columns, strict=True)]
        wanted.append([(a, b, i) for a, b, i in every if keep or set(labels[a : b + 1]) == {-100}])
    width = max([1, *map(len, wanted)])
    for key, place in (("segment_starts", 0), ("segment_ends", 1), ("segment_ids", 2)):
        filled = [[t[place] for t in row] + [0] * (width - len(row)) for row in wanted]
        assert batch[key].tolist() == filled


GEOMETRIC = GeometricForMaskedLM(GeometricConfig.for_tokenizer(SEGMENTED, **SIZES))
MODEL = BertForPreTraining(BertConfig(**SIZES, vocab_size=len(TOKENIZER)))


@settings(max_examples=8)
@given(st.integers(0, 1000), st.integers(0, 3))
def test_masks_are_drawn_anew_in_each_epoch_but_not_in_validation(seed, epoch):
    rows = list(sequences(Masked(24)))[:8]
    collate = MaskingCollator(Masked(24), TOKENIZER, MODEL, seed)
    collate.epoch = epoch
    one, two = collate(rows), collate(rows)
    assert all(torch.equal(one[name], two[name]) for name in one)
    assert one["next_sentence_label"].tolist() == [row["sentence_label"] for row in rows]
    collate.epoch += 1
    assert not torch.equal(collate(rows)["labels"], one["labels"])
    held = [{**row, "place": -1 - row["place"]} for row in rows]
    first = collate(held)
    collate.epoch += 1
    assert torch.equal(collate(held)["labels"], first["labels"])
    special = torch.isin(one["labels"], torch.tensor(TOKENIZER.all_special_ids))
    assert not special.any()


NAMES = ["Ann", "Dr. Who", "J. R. Fox!", "O'Neil", "x-9", "Ünal", "McX2", "Li Wu"]
SYMBOLS = {"person": {"column": "names", "count": 6}}


def named_documents(names: list[str], count: int = 12) -> list[dict]:
    """Documents with four names; behind each one stands a word that says which of them it is."""
    rng, rows = random.Random(0), []
    for _ in range(count):
        told = [[rng.randrange(4) for _ in range(rng.randint(1, 4))] for _ in range(5)]
        sentences = [" ".join(f"{names[i]} n{i} met" for i in some) for some in told]
        rows.append({"text": " ".join(f"{x} one." for x in sentences), "names": names[:4]})
    return rows


def named_tokenizer(kind: str = "words"):
    texts = [marked([row["text"]], row, 0, find_names(SYMBOLS)) for row in named_documents(NAMES)]
    return make_tokenizer(kind, [text for (text,) in texts], SYMBOLS)


NAMED = named_tokenizer()


@pytest.mark.slow
@settings(max_examples=20)
@given(
    st.sampled_from(["none", "nsp", "sop"]),
    st.integers(20, 60),
    st.integers(0, 99),
    st.permutations(NAMES),
)
def test_each_sequence_numbers_its_names_and_no_renaming_changes_it(sentences, length, seed, names):
    """Not even to names in which a sentence could end; a name is one symbol in both parts."""
    aim = Masked(length, sentences=sentences)
    one, two = (
        aim.features(Dataset.from_list(named_documents(some)), DATA, NAMED, None, seed=seed)
        for some in (NAMES, names)
    )
    assert one[:] == two[:]
    for ids in one["input_ids"]:
        symbols = list(dict.fromkeys(i for i in ids if i in NAMED.symbol_ids))
        assert symbols == NAMED.symbol_ids[: len(symbols)]
        tokens = NAMED.convert_ids_to_tokens(ids)
        told = {(i, token) for i, token in zip(ids, [*tokens[1:], ""], strict=True) if i in symbols}
        told = {(i, token) for i, token in told if token.startswith("n")}
        assert len(told) == len(dict(told)) == len({token for _, token in told})
    sizes = {i for row in one["input_ids"] for i in row if i in NAMED.symbol_ids}
    assert len(sizes) == 4 or length < 30


def test_no_sentence_ends_within_a_name():
    rows = Dataset.from_list(named_documents(NAMES))
    sentences = list(Texts(Masked(), rows, DATA, find_names(SYMBOLS)))
    assert len(sentences) == 5 * len(rows) and all(x.endswith(" one.") for x in sentences)


@settings(max_examples=10)
@given(st.integers(0, 999), st.permutations(NAMED.symbol_ids), st.sampled_from(["none", "nsp"]))
def test_masked_names_are_found_by_those_that_are_shown(seed, ids, sentences):
    """Whatever symbols are called: base tokens become base tokens, names those of the sequence."""
    aim = Masked(40, sentences=sentences, masked_share=0.4)
    made = list(aim.features(Dataset.from_list(named_documents(NAMES)), DATA, NAMED, None))[:9]
    called = dict(zip(NAMED.symbol_ids, ids, strict=True))
    renamed = [{**row, "input_ids": [called.get(i, i) for i in row["input_ids"]]} for row in made]
    collate = MaskingCollator(aim, NAMED, FOLNET_MODELS[sentences], seed)
    one, two = collate(made), collate(renamed)
    for key in ("input_ids", "labels", "stream_ids"):
        assert [[called.get(i, i) for i in row] for row in one[key].tolist()] == two[key].tolist()
    for row, shown, labels, streams in zip(
        made, *(one[key].tolist() for key in ("input_ids", "labels", "stream_ids")), strict=True
    ):
        symbols = dict.fromkeys(i for i in shown if i in called)
        assert [i for i in streams if i >= 0] == list(symbols)
        true = row["input_ids"] + [0] * (len(shown) - len(row["input_ids"]))
        where_they_stood = {i for i, was in zip(shown, true, strict=True) if i == was}
        assert set(symbols) <= where_they_stood
        for now, was, label in zip(shown, true, labels, strict=True):
            assert now in (was, NAMED.mask_token_id) or (now in called) == (was in called)
            assert label in (-100, was) and (label not in called or label in symbols)


def test_random_tokens_are_drawn_for_names_too():
    made = list(Masked(40).features(Dataset.from_list(named_documents(NAMES)), DATA, NAMED, None))
    batch = MaskingCollator(Masked(40), NAMED, FOLNET_MODELS["nsp"], 0)(made * 40)
    asked = torch.isin(batch["labels"], torch.tensor(NAMED.symbol_ids))
    now, was = batch["input_ids"][asked], batch["labels"][asked]
    shares = [float(x.float().mean()) for x in (now == NAMED.mask_token_id, now == was)]
    assert 0.7 < shares[0] < 0.85 and 0.08 < shares[1] < 0.25 and sum(shares) < 0.97


FOLNET_MODELS = {
    key: auto.from_config(
        FolnetConfig.for_tokenizer(NAMED, **{k: v for k, v in FOLNET.items() if k != "model_type"})
    )
    for key, auto in (("none", AutoModelForMaskedLM), ("nsp", AutoModelForPreTraining))
}


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize(
    ("encoding", "objective"),
    [
        ("relational", {"sentences": "nsp"}),
        ("streams", {"sentences": "sop"}),
        ("dual_part", {"sentences": "none"}),
        ("relational", {"sentences": "none", "documents": "blank_lines"}),
    ],
)
def test_renamed_documents_have_the_same_losses_and_metrics(tmp_path, encoding, objective):
    """In training, going on, and evaluation; what is held out is the same, too."""
    files = []
    for number, names in enumerate((NAMES, NAMES[::-1])):
        rows = named_documents(names, 16)
        if "documents" in objective:
            rows = [{**row, "text": text} for row in rows for text in (row["text"], None)]
        files.append(write_rows(tmp_path / f"{number}.jsonl", rows))
    logs, model = [], {**FOLNET, "symbol_encoding": encoding}
    for number, file in enumerate(files):
        folder = tmp_path / f"run-{number}"
        folder.mkdir()
        data = {"train": file, "source": "text", "validation": 0.3}
        told = {"eval_strategy": "steps", "eval_steps": 2, "save_strategy": "steps"}
        told |= {"save_steps": 2, "logging_steps": 1}
        aim = {"name": "masked", "max_length": 40, "masked_share": 0.3, **objective}
        made = recipe(folder, aim, data, told, model=model, symbols=SYMBOLS)
        trainer = train(made)
        keys = {"loss", "eval_loss", "eval_masked_accuracy", "eval_nsp_accuracy"}
        logs.append([{k: v for k, v in x.items() if k in keys} for x in trainer.state.log_history])
    assert logs[0] == logs[1] and any("eval_loss" in each for each in logs[0])
    out = tmp_path / "run-0" / "out"
    weights = cut_off(out, 4)
    made.data.train = files[0]
    made.training["output_dir"] = str(out)
    train(made)
    assert same_weights(weights, out)
    one, two = (
        evaluated(out, "--data", file, into=tmp_path / f"found-{number}")
        for number, file in enumerate(files)
    )
    assert one == two and "masked_accuracy" in one[0]["metrics"]["all"]


def test_sequences_with_too_many_names_are_refused():
    rows = Dataset.from_list(named_documents(NAMES))
    few = {"person": {"column": "names", "count": 2}}
    row = {"text": "Ann met one.", "names": ["Ann"]}
    (text,) = marked([row["text"]], row, 0, find_names(few))
    tokenizer = make_tokenizer("words", [text], few)
    with pytest.raises(
        ValueError, match=r"row 0, in its sentences: .* 3 names of class 'person', "
    ):
        Masked(40, sentences="none").features(rows, DATA, tokenizer, None)
    single = [{"text": f"{name} n0 met.", "names": [name]} for name in NAMES[:3]]
    aim = Masked(40, sentences="none", documents="blank_lines")
    for lines in (single, [*single[:1], {"text": "", "names": []}, *single]):  # the second one
        with pytest.raises(ValueError, match=r"in a sequence: 3 names of .* 2 symbols .*`count`"):
            aim.features(Dataset.from_list(lines), DATA, tokenizer, None)


def pretrain(folder, sentences="nsp", **training):
    folder.mkdir(exist_ok=True)
    file = write_rows(folder / "text.jsonl", [{"text": text} for text in TEXTS])
    aim = {"name": "masked", "sentences": sentences, "max_length": 32}
    data = {"train": file, "source": "text", "validation": 0.2}
    told = {"eval_strategy": "steps", "eval_steps": 2, "weight_decay": 0.01, **training}
    return recipe(folder, aim, data, told, tokenizer="words", optimizer="fused_lamb")


def test_pretraining_goes_on_to_the_same_weights_and_is_evaluated(tmp_path):
    """With LAMB, its state included."""
    steps = {"max_steps": 6, "save_strategy": "steps", "save_steps": 3}
    trainer = train(pretrain(tmp_path, **steps))
    optimizer = trainer.optimizer.optimizer
    assert type(optimizer) is FusedLamb and optimizer.max_grad_norm == 1.0
    assert {group["weight_decay"] for group in optimizer.param_groups} == {0.0, 0.01}
    logged = {key for row in trainer.state.log_history for key in row}
    assert {"eval_loss", "eval_masked_accuracy", "eval_nsp_accuracy"} <= logged
    weights = cut_off(tmp_path / "out", 6)
    train(pretrain(tmp_path, **steps))
    assert same_weights(weights, tmp_path / "out")
    found, _ = evaluated(tmp_path / "out", "--data", tmp_path / "text.jsonl")
    assert "nsp_accuracy" in found["metrics"]["all"]


@pytest.mark.parametrize(
    ("aim", "texts", "message"),
    [
        ({"sentences": "nps"}, TEXTS, "sentences must be one of nsp, sop, none; not"),
        ({"masked_share": 1.5}, TEXTS, r"masked_share must lie in \[0, 1\), not 1.5"),
        ({}, TEXTS[:1], "with sentences: nsp .nsp needs two documents"),
        ({"sentences": "sop"}, ["one sentence."] * 3, "with sentences: sop"),
        ({"max_length": 4}, TEXTS, "max_length 4 leaves no room"),
    ],
)
def test_what_cannot_be_pretrained_is_said(tmp_path, aim, texts, message):
    file = write_rows(tmp_path / "t.jsonl", [{"source": text} for text in texts])
    with pytest.raises(RecipeError, match=message):
        train(recipe(tmp_path, {"name": "masked", **aim}, {"train": file}))


def test_models_without_a_head_for_pairs_need_no_sentences(tmp_path):
    for saved in (GEOMETRIC, SEGMENTED):
        saved.save_pretrained(tmp_path / "saved")
    file = write_rows(tmp_path / "texts.jsonl", [{"text": text} for text in TEXTS])
    message = r"'geometric' .* AutoModelForPreTraining \(with sentences: none, AutoModelForMaskedLM"
    for more in ({"model": {**BERT, "model_type": "geometric"}},
                 {"model": {}, "checkpoint": str(tmp_path / "saved")}):  # fmt: skip
        with pytest.raises(RecipeError, match=message):
            train(recipe(tmp_path, "masked", {"train": file, "source": "text"}, **more))


def test_plain_texts(tmp_path):
    file = tmp_path / "book.txt"
    file.write_text("\n\n".join(TEXTS), encoding="utf-8")
    aim = {"name": "masked", "documents": "blank_lines"}
    assert train(recipe(tmp_path, aim, {"train": str(file)})).state.global_step == 4
