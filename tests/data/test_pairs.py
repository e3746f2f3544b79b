"""A user's own pairs, as a recipe names them: held out up to renaming, and looked at."""

import random
import string

import numpy as np
import pytest
from datasets import Dataset, IterableDataset
from row_files import write
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from hf_alpha.data.keys import (
    TRAINED_ROWS_FILE,
    keys_beside,
    pair_key,
    problem_keys,
    rows_seen,
    save_keys,
)
from hf_alpha.data.pairs import (
    PairTexts,
    UserPairs,
    drop_bad,
    evaluation_rows,
    hold_out,
    read_pairs,
)
from hf_alpha.modeling.names_in_text import NameFinder
from hf_alpha.modeling.spans import MarkedText
from hf_alpha.modeling.tokenization_text import TextTokenizer
from hf_alpha.names.first_look import LACKING, TOO_MANY
from hf_alpha.recipe import Data
from hf_alpha.tasks.text import TextTask
from hf_alpha.tasks.text.swapping import SYMBOLS, swapping_pairs

PEOPLE = {"person": {"column": "people"}}
STORIES = [
    {"source": "Ann met Bob.", "target": "Bob", "people": ["Ann", "Bob"]},
    {"source": "Cy met Di Ray.", "target": "Di Ray", "people": ["Cy", "Di Ray"]},
    {"source": "Di Ray met Al.", "target": "Al", "people": ["Di Ray", "Al"]},
]


FINDER = NameFinder({"variable": {"pattern": "[a-z][0-9]*"}})


def data(train: object, **settings: object) -> Data:
    return Data(train=str(train), **settings)


def test_held_out_up_to_renaming_and_looked_at(tmp_path):
    train = write(tmp_path / "train.jsonl", [*swapping_pairs(400)])
    lines: list[str] = []
    settings = data(train, validation=0.25)
    pairs = UserPairs(settings, NameFinder(SYMBOLS), say=lines.append)
    task = TextTask(SYMBOLS)
    sides = [
        {task.canonical(p) for p in side["problem"]} for side in (pairs.train, pairs.validation)
    ]
    assert all(sides) and sides[0].isdisjoint(sides[1])
    other = UserPairs(settings, NameFinder(SYMBOLS), 1, say=lines.append).validation
    assert other["problem"][:] != pairs.validation["problem"][:]
    taken = evaluation_rows(pairs.train, task, 3)
    assert [row["problem"] for row in taken] == pairs.train["problem"][:3]
    assert len(pairs.train) + len(pairs.validation) == 400
    tokenizer = TextTokenizer.from_texts(pairs.texts, SYMBOLS)
    pairs.look(tokenizer)
    assert lines[0].startswith("pairs     400") and "?" not in lines[0]

    again = write(tmp_path / "again.jsonl", [{"source": "swap a b : F a b", "target": "F b a"}] * 3)
    both = write(tmp_path / "both.jsonl", [{"source": "swap x y : G x y", "target": "G y x"}])
    lines.clear()
    UserPairs(data(both, validation=str(again)), NameFinder(SYMBOLS), say=lines.append).look(
        tokenizer
    )
    assert lines[1] == "validation: 3 of its pairs are renamings of training pairs"


def test_pairs_that_cannot_be_learned(tmp_path):
    rows = [*swapping_pairs(30), {"source": "swap x y : F x y", "target": "F y z"}]
    train = write(tmp_path / "train.jsonl", rows)
    pairs = UserPairs(data(train), NameFinder(SYMBOLS), say=lambda _: None)
    tokenizer = TextTokenizer.from_texts(pairs.texts, SYMBOLS)
    with pytest.raises(ValueError, match=r"1 of 31 pairs .* row 30 .*'z'.*data.drop_bad=true"):
        pairs.look(tokenizer)
    lines: list[str] = []
    kept = UserPairs(data(train, drop_bad=True), NameFinder(SYMBOLS), say=lines.append)
    assert len(kept.train) == 30 and lines[0].startswith("train: 1 pair dropped: ")


@pytest.mark.parametrize("streaming", [False, True])
def test_rows_without_a_text_are_dropped_and_counted(tmp_path, streaming):
    rows = [*swapping_pairs(30)]
    file = tmp_path / "train.csv"
    lines = [f"{row['source']},{row['target']}" for row in rows]
    file.write_text("\n".join(["source,target", *lines[:5], "swap a b : F a b,", ",b", *lines[5:]]))
    told = r"row [56]: the column .* nothing: give a text in each row, or .* by data.drop_bad=true"
    for bad in (data(file), data(file, streaming=True)):
        with pytest.raises(ValueError, match=told):
            [*UserPairs(bad, NameFinder(SYMBOLS), say=lambda _: None).train]
    said: list[str] = []
    settings = data(file, drop_bad=True, streaming=streaming)
    kept = UserPairs(settings, NameFinder(SYMBOLS), say=said.append).train
    assert [row["answer"] for row in kept] == [row["target"] for row in rows]
    assert said == [] if streaming else said == [
        "train: 1 pair dropped: the column 'target' holds nothing",
        "train: 1 pair dropped: the column 'source' holds nothing",
    ]  # fmt: skip


@pytest.mark.parametrize("streaming", [False, True])
def test_bad_pairs_are_dropped_and_counted(streaming):
    finder = NameFinder({"variable": {"pattern": "[a-z][0-9]*", "count": 3}})
    pairs = [("x + y", "y"), ("y + z", "w"), ("a b c d", "d"), ("2", ""), ("q", "r")]
    rows = [{"problem": problem, "answer": answer} for problem, answer in pairs]

    def dataset(rows):
        stored = Dataset.from_list(rows)
        return stored.to_iterable_dataset(num_shards=min(2, len(rows))) if streaming else stored

    kept, dropped = drop_bad(dataset(rows), finder)
    assert list(kept) == [rows[0], rows[3]] and dropped == {LACKING: 2, TOO_MANY: 1}
    again, nothing = drop_bad(kept, finder)
    assert list(again) == list(kept) and nothing == {}
    with pytest.raises(ValueError, match=r"no pair is left of the data \(1: the target has a name"):
        drop_bad(dataset(rows[1:2]), finder)
    assert drop_bad(dataset(rows[1:2]), finder, new_names=True)[1] == {}
    spans = [{"start": 0, "stop": 3, "symbol_class": "person"}]
    rows = [{"problem": "Ann met Bob", "answer": answer, "names": spans} for answer in ("Ann", "2")]
    kept, dropped = drop_bad(dataset(rows), NameFinder({"person": {"column": "who"}}))
    assert list(kept) == rows and dropped == {}, "Bob is an ordinary word here"


def test_targets_may_have_names_of_their_own_where_the_model_can_write_them(tmp_path):
    """There are symbols for those too, and they come back from the tokenizer."""
    new = " ".join(f"v{i}" for i in range(12))
    rows = [{"source": "swap x y : F x y", "target": f"F y x {new}"}] * 3
    train, lines = write(tmp_path / "train.jsonl", rows), []
    pairs = UserPairs(data(train), NameFinder(SYMBOLS), say=lines.append, new_names=True)
    rules = {name: {**rule, "count": None} for name, rule in SYMBOLS.items()}
    pairs.finder = NameFinder(rules)
    tokenizer = TextTokenizer.from_texts(pairs.texts, rules)
    tokenizer.extend_symbols(pairs.lacking(tokenizer.symbol_classes))
    assert tokenizer.symbol_classes["variable"] == 14  # of source and target together
    pairs.look(tokenizer)
    assert len(lines) == 1


def test_symbols_that_are_lacking_are_those_of_the_rules_or_of_the_rows(tmp_path):
    rows = [{"source": "a b c 1", "target": "a"}, {"source": "a 1 2", "target": "b x y"}]
    held = [{"source": "a b 1 2 3 4", "target": "a"}]
    rules = {"letter": {"pattern": "[a-z]"}, "digit": {"pattern": "[0-9]", "count": 2}}
    train, validation = write(tmp_path / "a.jsonl", rows), write(tmp_path / "b.jsonl", held)
    settings = data(train, validation=str(validation))
    for new_names, training, letters in [
        (True, True, 4),
        (True, False, 4),
        (False, True, 3),
        (False, False, 2),
    ]:
        pairs = UserPairs(settings, NameFinder(rules), say=lambda _: None, new_names=new_names)
        for there in (0, 1, 9):
            expected = {"letter": max(letters - there, 0), "digit": max(2 - there, 0)}
            assert pairs.lacking({"letter": there, "digit": there}, training) == expected
    tokenizer = pairs.new_tokenizer("words")
    assert tokenizer.symbol_classes == {"letter": 10, "digit": 2}
    tokenizer.extend_symbols({"letter": 5, "digit": 0})  # as models do
    assert pairs.new_tokenizer("words").symbol_classes == {"letter": 10, "digit": 2}


def test_names_that_are_no_symbols_are_told_with_their_row(tmp_path):
    rows = [{"source": f"x + {name}", "target": "x"} for name in "xyz"]
    pairs = UserPairs(data(write(tmp_path / "a.jsonl", rows)), FINDER, say=lambda _: None)
    rules = {"variable": {"tokens": ["x", "y"]}}
    tokenizer = TextTokenizer.from_texts(["x + y", "z"], rules)
    with pytest.raises(ValueError, match=r"pair 2: .* 2 names \(x, z\), but .* are: <variable_0>"):
        pairs.check_symbols(tokenizer)


def test_targets_that_the_tokenizer_changes_are_said(tmp_path):
    rows = [{"source": f"swap x y : {w} x", "target": f"{w} y"} for w in ("F", "G", "ok", "fine")]
    train = write(tmp_path / "train.jsonl", rows * 3)
    rules = {"variable": {"tokens": ["x", "y"]}}
    lower = Tokenizer(models.WordLevel({"[UNK]": 0, "f": 1, "g": 2, "ok": 3, "fine": 4, "swap": 5,
                                        ":": 6}, unk_token="[UNK]"))  # fmt: skip
    lower.normalizer, lower.pre_tokenizer = normalizers.Lowercase(), pre_tokenizers.Whitespace()
    host = PreTrainedTokenizerFast(tokenizer_object=lower, unk_token="[UNK]")
    tokenizer = TextTokenizer.from_tokenizer(host, rules)
    lines: list[str] = []
    UserPairs(data(train), NameFinder(rules), say=lines.append).look(tokenizer)
    assert lines[1].startswith(
        "6 of the first 12 targets do not come back from the tokenizer: 'F y'"
    )
    capital = write(tmp_path / "capital.jsonl", rows[:2])
    pairs = UserPairs(data(capital), NameFinder(rules), say=lines.append)
    with pytest.raises(ValueError, match="2 of the first 2 targets do not come back"):
        pairs.look(tokenizer)
    # A check may take them all the same, and `same` says what is.
    lines.clear()
    checked = UserPairs(data(capital), NameFinder(rules), say=lines.append, has_check=True)
    for _ in range(2):
        checked.look(tokenizer)
    assert [line[:14] for line in lines[1:]] == ["2 of the first"]
    lines.clear()
    settings = {"say": lines.append, "same": lambda one, two: one.lower() == two.lower()}
    UserPairs(data(capital), NameFinder(rules), **settings).look(tokenizer)
    assert len(lines) == 1


def test_names_of_a_column_are_names_in_targets_too(tmp_path):
    train = write(tmp_path / "train.jsonl", STORIES)
    finder = NameFinder(PEOPLE)
    pairs = UserPairs(data(train), finder, say=lambda _: None)
    texts = list(pairs.texts)
    assert texts == list(pairs.texts)  # it is read more than once
    assert all(isinstance(text, MarkedText) for text in texts)
    plain = Dataset.from_list([{"problem": "Ann met Bob", "answer": "An"}])
    by_function = PairTexts(plain, NameFinder({"word": lambda text: [(0, 2)]}))
    assert [[text[s.start : s.stop] for s in text.spans] for text in by_function] == [["An"]] * 2
    assert [text[s.start : s.stop] for text in texts[1::2] for s in text.spans] == [
        "Bob", "Di Ray", "Al",
    ]  # fmt: skip
    tokenizer = TextTokenizer.from_texts(pairs.texts, PEOPLE)
    words = {*tokenizer.get_vocab()}
    assert {"met", "."} <= words and words.isdisjoint({"Ann", "Bob", "Ray", "Di"})
    rows = evaluation_rows(read_pairs(data(train), train, finder, "test"), TextTask(PEOPLE))
    assert [row["num_symbols"] for row in rows] == [2, 2, 2] and rows[1]["size"] == 4
    batch = tokenizer([row["problem"] for row in rows], text_target=["Bob", "Di Ray", "Al"])
    assert tokenizer.batch_decode(batch["labels"], names=batch.names) == ["Bob", "Di Ray", "Al"]


def test_streams_are_read_as_they_come(tmp_path):
    train = write(tmp_path / "train.jsonl", [*swapping_pairs(50)])
    settings = data(train, validation=0.3, streaming=True)
    pairs = UserPairs(settings, NameFinder(SYMBOLS), say=lambda _: None)
    streamed = [row["problem"] for row in pairs.train], [row["problem"] for row in pairs.validation]
    settings = data(train, validation=0.3)
    stored = UserPairs(settings, NameFinder(SYMBOLS), say=lambda _: None)
    assert streamed == (list(stored.train["problem"]), list(stored.validation["problem"]))


def some_pairs(count: int, seed: int = 0) -> Dataset:
    """Texts of one to four variables among ten: many are renamings of others."""
    rng = random.Random(seed)
    texts = [
        " + ".join(rng.choice(string.ascii_lowercase[:10]) for _ in range(rng.randint(1, 4)))
        + f" * {rng.randint(0, 9)}"
        for _ in range(count)
    ]
    return Dataset.from_dict({"problem": texts, "answer": texts})


@pytest.mark.parametrize("seed", [0, 1])
def test_what_is_held_out_is_no_renaming_of_what_is_trained_on(seed):
    dataset = some_pairs(1500)
    train, validation = hold_out(dataset, 0.2, FINDER, seed)
    assert len(train) + len(validation) == 1500 and not rows_seen(
        validation["problem"], FINDER, problem_keys(train["problem"], FINDER)
    )
    sides = [{pair_key(text, FINDER) for text in side["problem"]} for side in (train, validation)]
    assert not sides[0] & sides[1] and 0.05 < len(sides[1]) / sum(map(len, sides)) < 0.4
    # Row by row: other rows, their order and the way they are read do not matter.
    shuffled = hold_out(dataset.shuffle(seed=3), 0.2, FINDER, seed)
    streamed = hold_out(dataset.to_iterable_dataset(num_shards=3), 0.2, FINDER, seed)
    part = hold_out(dataset.select(range(700)), 0.2, FINDER, seed)[1]
    for whole, mixed, streams in zip((train, validation), shuffled, streamed, strict=True):
        assert sorted(mixed["problem"]) == sorted(whole["problem"])
        assert isinstance(streams, IterableDataset)
        assert [row["problem"] for row in streams] == whole["problem"][:]
    assert part["problem"][:] == validation["problem"][: len(part)]
    assert hold_out(dataset, 0.2, FINDER, 7)[1]["problem"][:] != validation["problem"][:]


def test_a_model_says_which_problems_it_was_trained_on_under_any_names(tmp_path):
    train = ["x + y", "x + y", "x - y"]
    texts = ["a + b", "b + c", "a + a", "q - r", "1"]
    keys = problem_keys(train, FINDER)
    assert len(keys) == 2 and rows_seen(texts, FINDER, keys) == [0, 1, 3]
    assert rows_seen([], FINDER, keys) == rows_seen(texts, FINDER, problem_keys([], FINDER)) == []
    assert keys_beside(str(tmp_path)) is None
    save_keys(tmp_path, keys)
    assert (tmp_path / TRAINED_ROWS_FILE).stat().st_size == 128 + 2 * 8
    assert rows_seen(texts, FINDER, keys_beside(str(tmp_path))) == [0, 1, 3]
    (tmp_path / TRAINED_ROWS_FILE).write_bytes(b"no keys")
    with pytest.raises(ValueError, match=r"trained_rows\.npy is damaged"):
        keys_beside(str(tmp_path))
    np.save(tmp_path / TRAINED_ROWS_FILE, np.zeros((2, 2)))
    with pytest.raises(ValueError, match=r"damaged: it holds float64 \(2, 2\)"):
        keys_beside(str(tmp_path))


def test_shares_that_leave_a_side_empty():
    dataset = some_pairs(40)
    for share in (0, 0.001, 0.999, 1, -0.5, 5):
        with pytest.raises(ValueError, match="different problems; give another share"):
            hold_out(dataset, share, FINDER)
    same = Dataset.from_dict({"problem": ["x + y", "b + a"] * 50})
    with pytest.raises(ValueError, match=r"of 100 rows are .* have only 1 different problems"):
        hold_out(same, 0.5, FINDER)


def arrows(path):
    """A kind of file of one's own."""
    for line in path.read_text().splitlines():
        source, target = line.split(" => ")
        yield {"source": source, "target": target}


@pytest.mark.parametrize("streaming", [False, True])
def test_files_of_a_kind_of_ones_own_are_read_by_a_function(tmp_path, streaming):
    file = tmp_path / "pairs.txt"
    file.write_text("keep z => z\nkeep y => y\n")
    settings = data(file, format=f"{__name__}:arrows")
    rows = read_pairs(settings, file, FINDER, "train", streaming=streaming)
    assert [row["answer"] for row in rows] == ["z", "y"]
    file.write_text("keep z\n")
    with pytest.raises(ValueError, match=r"not of the format|not enough values"):
        read_pairs(settings, file, FINDER, "train", streaming=streaming)
