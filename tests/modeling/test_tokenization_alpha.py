"""The tokenizer: names in and out, batches, extension, saving and loading, and bad input."""

import copy
import json
import pickle
import string
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer, DataCollatorForSeq2Seq

from hf_alpha.checkpoints.code_links import LINK
from hf_alpha.logic.propositional.notation import PROPOSITIONAL
from hf_alpha.modeling import tokenization_alpha
from hf_alpha.modeling.grammar import FormulaError
from hf_alpha.modeling.tokenization_alpha import AlphaTokenizer
from hf_alpha.modeling.tokenization_text import TextTokenizer
from hf_alpha.tasks.build_tokenizer import build_tokenizer

COMMITTED = Path(__file__).parents[2] / "tokenizer"
BASE = ("0", "1", "!", "&", "|", "=", "^")
NAMES = st.from_regex(r"[a-z_][A-Za-z0-9_]{0,8}", fullmatch=True).filter(PROPOSITIONAL.is_name)


def make(symbols: int = 10, **kwargs) -> AlphaTokenizer:
    classes = kwargs.pop("symbol_classes", {"proposition": symbols})
    grammar = kwargs.pop("grammar", PROPOSITIONAL)
    return AlphaTokenizer(base_tokens=BASE, symbol_classes=classes, grammar=grammar, **kwargs)


TOKENIZER = make()


@st.composite
def problems(draw: st.DrawFn, names: st.SearchStrategy[str] = NAMES) -> tuple[list[str], list[str]]:
    """A formula's prefix tokens over at most ten names, and an answer's tokens over the same."""
    pool = draw(st.lists(names, min_size=1, max_size=10, unique=True))
    leaf = st.sampled_from([*pool, "0", "1"])
    tokens, missing = [], 1
    for operator in draw(st.lists(st.sampled_from("!&|=^"), max_size=12)):
        tokens.append(operator)
        missing += PROPOSITIONAL.operators[operator] - 1
    tokens += [draw(leaf) for _ in range(missing)]
    used = [token for token in dict.fromkeys(tokens) if token in pool]
    answer = [part for name in used for part in (name, draw(st.sampled_from("01")))]
    return tokens, answer


# Names


@given(st.lists(problems(), min_size=1, max_size=4), st.integers(1, 3), st.booleans())
def test_names_come_back(rows: list, repeats: int, infix: bool) -> None:
    notation = "infix" if infix else "prefix"
    texts = [PROPOSITIONAL.format(tokens, notation) for tokens, _ in rows]
    answers = [" ".join(answer) for _, answer in rows]
    batch = TOKENIZER(texts, text_target=answers, padding=True, return_tensors="pt")
    out = batch["labels"].repeat_interleave(repeats, dim=0)
    decoded = TOKENIZER.batch_decode(out, names=batch.names)
    for row, (_, answer) in enumerate(rows):
        for text in decoded[row * repeats : (row + 1) * repeats]:
            compact = all(len(token) == 1 for token in answer)
            assert text == ("" if compact else " ").join(answer)
    inputs = TOKENIZER.batch_decode(batch["input_ids"], names=batch.names)
    assert [PROPOSITIONAL.parse(text) for text in inputs] == [tokens for tokens, _ in rows]


@given(problems())
def test_a_row_is_the_same_up_to_names(row: tuple[list[str], list[str]]) -> None:
    """Streams are the symbols by first occurrence; literal symbols keep their ids."""
    tokens, _ = row
    encoding = TOKENIZER(" ".join(tokens), notation="prefix")
    ids = encoding["input_ids"]
    symbols = [i for i in ids if i >= TOKENIZER.num_base_tokens]
    assert encoding["stream_ids"] == list(dict.fromkeys(symbols))
    assert len(encoding.names) == len(encoding["stream_ids"])
    for token, name in encoding.names.items():
        assert token == name or name not in TOKENIZER.symbol_tokens
    for position, token in enumerate(tokens):
        written = TOKENIZER.convert_ids_to_tokens(ids[position])
        assert encoding.names.get(written, written) == token
    assert encoding["tree_paths"] == [*PROPOSITIONAL.tree_paths(tokens), 0]
    assert encoding["attention_mask"] == [1] * len(ids)
    assert ids[-1] == TOKENIZER.eos_token_id


def test_literal_symbols_are_never_taken_by_other_names() -> None:
    batch = TOKENIZER(["& request & b & grant a"])
    assert batch.names == [{"c": "request", "b": "b", "d": "grant", "a": "a"}]
    names = batch.names
    assert TOKENIZER(text_target=["request 1 a 0"], names=names)["input_ids"] == [
        TOKENIZER.convert_tokens_to_ids(["c", "1", "a", "0", "</s>"])
    ]
    # a foreign symbol, as a model may emit it, is written as it is
    foreign = TOKENIZER.convert_tokens_to_ids(["c", "1", "j", "0"])
    assert TOKENIZER.decode(foreign, names=names[0]) == "request 1 j 0"


def test_the_old_name_of_from_texts_of_texts_warns():
    rules = {"variable": {"pattern": "[xy]", "count": 2}}
    with pytest.warns(FutureWarning, match=r"call TextTokenizer\.from_texts"):
        made = AlphaTokenizer.from_texts(["f x y"], rules)
    assert type(made) is TextTokenizer
    assert made.settings() == TextTokenizer.from_texts(["f x y"], rules).settings()


def test_several_classes_and_their_patterns(monkeypatch) -> None:
    monkeypatch.setattr(tokenization_alpha, "TIME_LIMIT", 0.1)
    classes = {"proposition": 5, "function": 2}
    tokenizer = make(symbol_classes=classes, name_patterns={"function": "f_.*"})
    assert tokenizer.symbol_classes == classes
    assert tokenizer.symbol_ranges == {"proposition": [[10, 15]], "function": [[15, 17]]}
    assert tokenizer.symbol_tokens == list("abcdefg")
    batch = tokenizer("& f_x & y f_z")
    assert batch.names == {"f": "f_x", "a": "y", "g": "f_z"}
    with pytest.raises(FormulaError, match=r"3 names of class 'function'.*has 2.*'function': 1"):
        tokenizer("& f_x & f_y f_z")
    both = make(symbol_classes=classes, name_patterns={"function": "f_.*", "proposition": "p_.*"})
    with pytest.raises(FormulaError, match=r"name 'other', token 3 .* belongs to no class"):
        both("& p_1 other")
    with pytest.raises(ValueError, match="no class colour"):
        make(name_patterns={"colour": "c"})
    slow = make(symbol_classes=classes, name_patterns={"function": "(a|aa)+c"})
    with pytest.raises(
        ValueError, match=r"of 'function': the pattern '\(a\|aa\)\+c' takes more than"
    ):
        slow("a" * 60)


def test_extension_keeps_every_id_and_name() -> None:
    tokenizer = make(symbol_classes={"proposition": 3, "function": 2})
    before = tokenizer.get_vocab()
    assert tokenizer.extend_symbols({"proposition": 20}) == list(range(15, 35))
    assert tokenizer.extend_symbols({"function": 10}) == list(range(35, 45))
    assert before.items() <= tokenizer.get_vocab().items()
    assert len(tokenizer) == tokenizer.vocab_size == len(tokenizer.get_vocab()) == 45
    assert tokenizer.symbol_ranges == {
        "proposition": [[10, 13], [15, 35]],
        "function": [[13, 15], [35, 45]],
    }
    assert tokenizer.symbol_tokens[:26] == list(string.ascii_lowercase)
    assert tokenizer.symbol_tokens[26:28] == ["f26", "f27"]
    assert tokenizer.symbol_ids == list(range(10, 45))
    assert tokenizer("& f26 ! a")["input_ids"] == [6, 36, 5, 10, 2]
    assert tokenizer.extend_symbols({"function": 0}) == []


# Batches


def test_batch_of_the_readme() -> None:
    batch = TOKENIZER(["& request ! grant", "&a!b", "1"], return_tensors="pt", padding=True)
    assert set(batch) == set(TOKENIZER.model_input_names)
    ids = [[6, 10, 5, 11, 2], [6, 10, 5, 11, 2], [4, 2, 0, 0, 0]]
    assert batch["input_ids"].tolist() == ids
    assert batch["tree_paths"].tolist() == [[1, 2, 3, 6, 0], [1, 2, 3, 6, 0], [1, 0, 0, 0, 0]]
    assert batch["stream_ids"].tolist() == [[10, 11], [10, 11], [-1, -1]]
    assert batch["attention_mask"].tolist()[2] == [1, 1, 0, 0, 0]
    assert all(tensor.dtype == torch.int64 for tensor in batch.values())
    names = [{"a": "request", "b": "grant"}, {"a": "a", "b": "b"}, {}]
    assert batch.names == names
    assert batch.to("cpu").names == names
    assert pickle.loads(pickle.dumps(batch)).names == copy.deepcopy(batch).names == names


def test_single_string_is_not_batched() -> None:
    assert TOKENIZER("!grant", text_target="grant 0") == {
        "input_ids": [5, 10, 2],
        "attention_mask": [1, 1, 1],
        "stream_ids": [10],
        "tree_paths": [1, 2, 0],
        "labels": [10, 3, 2],
    }
    batch = TOKENIZER("!grant", return_tensors="pt")
    assert batch.names == {"a": "grant"}
    assert {key: value.shape[0] for key, value in batch.items()} == dict.fromkeys(batch, 1)
    assert TOKENIZER.batch_decode(batch["input_ids"], names=batch.names) == ["! grant"]
    assert TOKENIZER("0", return_tensors="pt")["stream_ids"].tolist() == [[-1]]


@pytest.mark.parametrize("side", ["right", "left"])
def test_padding_side_and_multiples(side: str) -> None:
    rows = [TOKENIZER.encode_pair("&ab", "a1b1"), TOKENIZER.encode_pair("!a", "a0")]
    batch = TOKENIZER.pad(rows, padding_side=side, pad_to_multiple_of=8, return_tensors="pt")
    lengths = [4, 3]
    for key, filler in {"input_ids": 0, "attention_mask": 0, "tree_paths": 0}.items():
        expected = [row.get(key, [1] * n) for row, n in zip(rows, lengths, strict=True)]
        for row, values in enumerate(expected):
            fill = [filler] * (8 - len(values))
            got = batch[key][row].tolist()
            assert got == (fill + values if side == "left" else values + fill)
    assert batch["labels"].tolist()[1] == [10, 3, 2] + [-100] * 5
    assert batch["stream_ids"].tolist() == [[10, 11], [10, -1]]


def test_pad_takes_what_the_collators_give() -> None:
    rows = [TOKENIZER("&ab", text_target="a1b1"), TOKENIZER("& x !b", text_target="x 1 b 0")]
    assert TOKENIZER.pad(rows)["labels"] == [[10, 4, 11, 4, 2], [10, 4, 11, 3, 2]]
    assert TOKENIZER.pad(rows).names == [{"a": "a", "b": "b"}, {"a": "x", "b": "b"}]
    collated = DataCollatorForSeq2Seq(TOKENIZER)([dict(row) for row in rows])
    assert collated["tree_paths"].shape == collated["input_ids"].shape == (2, 5)
    tensors = [{k: torch.tensor(v) for k, v in row.items()} for row in rows]
    assert torch.equal(TOKENIZER.pad(tensors)["stream_ids"], torch.tensor([[10, 11], [10, 11]]))
    longest = TOKENIZER(["a", "!a"], padding="max_length", max_length=6)
    assert [len(row) for row in longest["tree_paths"]] == [6, 6]


def test_without_grammar_it_splits() -> None:
    tokenizer = AlphaTokenizer(base_tokens=["0", "<>"], symbol_classes={"character": 5})
    batch = tokenizer(["abca", "x<>0y", "left right left 0"], padding=True, return_tensors="pt")
    assert "tree_paths" not in batch
    assert "tree_paths" not in tokenizer.model_input_names
    assert tokenizer.batch_decode(batch["input_ids"], names=batch.names) == [
        "a b c a",
        "x <> 0 y",
        "left right left 0",
    ]
    with pytest.raises(FormulaError, match=r"row 0: unknown token '#', token 2"):
        tokenizer(["a#b"])
    with pytest.raises(FormulaError, match="row 1: the input is empty"):
        tokenizer(["a", " "])


# One spelling

WORDS = AlphaTokenizer(base_tokens=["0", "+", "<>"], symbol_classes={"variable": 12})
STRINGS = AlphaTokenizer(symbol_classes={"character": 12})
TEMPORAL = build_tokenizer("ltl", 12)
WITHOUT_GRAMMAR = st.sampled_from([WORDS, STRINGS])
WITH_GRAMMAR = st.sampled_from([TOKENIZER, TEMPORAL])
SHORT_NAMES = st.from_regex(r"[xyzXYFab_é][xyaX01]{0,2}(\.1)?", fullmatch=True)


@given(WITHOUT_GRAMMAR, st.data())
def test_decoding_without_grammar_is_read_back(tokenizer: AlphaTokenizer, data) -> None:
    """Text -> ids -> text, with a row's own names or without; the names' lengths do not matter."""
    names = data.draw(st.lists(SHORT_NAMES, min_size=1, max_size=6))
    tokens = data.draw(st.lists(st.sampled_from([*names, *tokenizer.base_tokens]), min_size=2))
    spaced = " ".join(tokens)
    batch = tokenizer([spaced])
    (text,) = tokenizer.batch_decode(batch["input_ids"], names=batch.names)
    again = tokenizer([text])
    assert (again["input_ids"], again.names) == (batch["input_ids"], batch.names)
    assert text.split() == tokens or (tokenizer is STRINGS and text == "".join(tokens))
    plain = tokenizer.decode(batch["input_ids"][0])
    assert tokenizer.decode(tokenizer(plain)["input_ids"]) == plain


@given(WITH_GRAMMAR, st.data())
def test_decoding_with_a_grammar_is_read_back(tokenizer: AlphaTokenizer, data) -> None:
    """Formulas, and answers as any tokens; a name may be quoted or look like tokens."""
    grammar = tokenizer.grammar
    odd = st.sampled_from(["a1", "ab", "X1", "Xa", "Grant", "a b", "true", '"', "p.q", "a;{b}"])
    names = data.draw(st.lists(SHORT_NAMES | odd, min_size=1, max_size=6, unique=True))
    leaves = st.sampled_from(list(map(grammar.token_of, names)))
    operators = data.draw(st.lists(st.sampled_from([*grammar.operators]), max_size=6))
    missing = 1 + sum(grammar.operators[token] - 1 for token in operators)
    tokens = operators + data.draw(st.lists(leaves, min_size=missing, max_size=missing))
    batch = tokenizer([grammar.format(tokens)])
    (text,) = tokenizer.batch_decode(batch["input_ids"], names=batch.names)
    again = tokenizer([text])
    assert grammar.parse(text) == tokens
    assert (again["input_ids"], again.names) == (batch["input_ids"], batch.names)

    pieces = st.sampled_from([*batch.names[0], *tokenizer.base_tokens])
    answer = tokenizer.convert_tokens_to_ids(data.draw(st.lists(pieces, min_size=1, max_size=5)))
    text = tokenizer.decode(answer, names=batch.names[0])
    given_names = tokenizer(text_target=[text], names=batch.names, add_special_tokens=False)
    assert given_names["input_ids"] == [answer]


def test_the_answers_of_tasks_are_spelt_as_ever() -> None:
    for tokenizer, formula, answer in (
        (TOKENIZER, "&a!b", "a1b0"),
        (TOKENIZER, "& request ! grant", "request 1 grant 0"),
        (TOKENIZER, '"req 1" & größe & p.q', '"req 1" 1 größe 0 p.q 1'),
        (TEMPORAL, "a & X b", "a;&ab;{b}"),
        (TEMPORAL, "G(request -> F grant)", "request ; { grant }"),
        (TEMPORAL, '"a;b" U "{" & "Grant"', '"a;b" ; { & "{" Grant }'),
        (STRINGS, "abca", "abca"),
    ):
        batch = tokenizer(formula, text_target=answer)
        assert tokenizer.decode(batch["labels"], names=batch.names) == answer


ANY_TEXT = st.text(max_size=30) | st.text(
    'ab01!&|=^()<-> ~XFU_[{}";\\/.é\u0301\n\ud800', max_size=25
)


@settings(max_examples=200)
@given(st.sampled_from([TOKENIZER, TEMPORAL, WORDS, STRINGS]), ANY_TEXT, ANY_TEXT)
def test_any_text_is_refused_or_comes_back(tokenizer: AlphaTokenizer, text: str, answer: str):
    try:
        batch = tokenizer([text], text_target=[answer])
    except FormulaError:
        return
    for key in ("input_ids", "labels"):
        (shown,) = tokenizer.batch_decode(batch[key], names=batch.names)
        side = {"text": shown} if key == "input_ids" else {"text_target": shown}
        names = None if key == "input_ids" else batch.names
        assert [tokenizer(**side, names=names)["input_ids"]] == batch[key]


def test_an_answer_that_reads_in_two_ways_is_refused() -> None:
    """`a1` is a name of the row, and a with the value 1."""
    with pytest.raises(FormulaError, match="'a1' is a name of its input and can be read"):
        TOKENIZER(["a | a1"], text_target=["a1"])
    label = {text: TOKENIZER("a | a1", text_target=text)["labels"] for text in ("a 1", '"a1"')}
    assert label == {"a 1": [10, 4, 2], '"a1"': [11, 2]}


# The interface of every tokenizer


ABSENT = r"row 1: the answer 'b1' has the proposition 'b', which the input lacks.*allow_absent_"


def test_answers_with_symbols_that_the_input_lacks() -> None:
    with pytest.raises(FormulaError, match=ABSENT):
        TOKENIZER(["a", "!a"], text_target=["a1", "b1"])
    with pytest.raises(FormulaError, match="'b', which the input lacks"):
        TOKENIZER.encode_pair("x", "x 1 b 1")
    allowed = TOKENIZER(["!a"], text_target=["b1"], allow_absent_symbols=True)
    assert allowed["labels"] == [[11, 4, 2]]
    assert TOKENIZER.encode_pair("!a", "b1", allow_absent_symbols=True)["labels"] == [11, 4, 2]
    names = TOKENIZER(["a", "!a"]).names
    with pytest.raises(FormulaError, match=ABSENT):
        TOKENIZER(text_target=["a1", "b1"], names=names)
    assert TOKENIZER(text_target=["b1"], names=names[:1], allow_absent_symbols=True)
    assert TOKENIZER(text_target=["b1"])["input_ids"] == [[11, 4, 2]]  # nothing is known
    assert TOKENIZER(["1"], text_target=[""])["labels"] == [[2]]


def state(tokenizer: AlphaTokenizer) -> dict[str, str]:
    """All that a tokenizer keeps, but for an object without a readable form."""
    return {key: repr(value) for key, value in vars(tokenizer).items() if key != "tokens_trie"}


def test_special_tokens_are_fixed(tmp_path: Path) -> None:
    """What is refused changes nothing: the tokenizer still saves and loads."""
    tokenizer = make()
    before = state(tokenizer)
    attempts = [
        lambda: setattr(tokenizer, "pad_token", tokenizer.eos_token),
        lambda: setattr(tokenizer, "pad_token", None),
        lambda: setattr(tokenizer, "pad_token_id", 2),
        lambda: setattr(tokenizer, "unk_token", "<unk>"),
        lambda: setattr(tokenizer, "extra_special_tokens", ["<x>"]),
        lambda: tokenizer.add_special_tokens({"pad_token": "<pad>", "mask_token": "<mask>"}),
        lambda: tokenizer.add_special_tokens({"pad_token": "a"}),
        lambda: tokenizer.add_special_tokens({"additional_special_tokens": ["<x>"]}),
        lambda: tokenizer.add_tokens(["a", "<x>"]),
        lambda: tokenizer.add_tokens("<x>", special_tokens=True),
        lambda: make(unk_token="<unk>"),
        lambda: make(extra_special_tokens=["a"]),
    ]
    for attempt in attempts:
        with pytest.raises(ValueError, match="extend_symbols"):
            attempt()
    tokenizer.pad_token, tokenizer.eos_token_id = "<pad>", 2  # as they are
    assert tokenizer.add_special_tokens({"pad_token": "<pad>", "eos_token": "</s>"}) == 0
    assert tokenizer.add_tokens(["a", "<pad>"]) == tokenizer.add_tokens("a", True) == 0
    assert state(tokenizer) == before
    tokenizer.save_pretrained(tmp_path)
    assert AutoTokenizer.from_pretrained(tmp_path)("!a") == tokenizer("!a")


def test_common_interface() -> None:
    assert (TOKENIZER.pad_token_id, TOKENIZER.bos_token_id, TOKENIZER.eos_token_id) == (0, 1, 2)
    assert TOKENIZER.all_special_ids == [1, 2, 0]
    assert TOKENIZER.convert_ids_to_tokens([0, 6, 10]) == ["<pad>", "&", "a"]
    assert TOKENIZER.convert_tokens_to_ids(["<s>", "^", "j", "nothing"]) == [1, 9, 19, None]
    assert TOKENIZER.tokenize("request -> grant") == ["|", "!", "a", "b"]
    assert TOKENIZER.encode("!a", add_special_tokens=False) == [5, 10]
    assert TOKENIZER.decode(torch.tensor([1, 10, 4, 2, 0, -100])) == "a1"
    assert TOKENIZER.decode([10, 4, 2], skip_special_tokens=False) == "a 1 </s>"
    assert TOKENIZER.batch_decode([[-100, -100], []]) == ["", ""]
    assert TOKENIZER.batch_decode([]) == []
    assert copy.deepcopy(TOKENIZER).get_vocab() == TOKENIZER.get_vocab()
    assert pickle.loads(pickle.dumps(TOKENIZER))("!a") == TOKENIZER("!a")


@given(problems(st.sampled_from("abcdefghij")))
def test_encode_pair_is_the_call_without_its_comfort(row: tuple[list[str], list[str]]) -> None:
    formula, answer = "".join(row[0]), "".join(row[1])
    features = TOKENIZER.encode_pair(formula, answer)
    full = dict(TOKENIZER(formula, text_target=answer))
    full.pop("attention_mask")
    assert features == full


# Bad input


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"text": ["a", "&ab!"]}, "row 1: '!' at character 4"),
        ({"text": ["a", ""]}, "row 1: the formula is empty"),
        ({"text": ["&a"]}, "row 0: .* 1 operand is missing"),
        ({"text": ["a", "& a ? b"]}, r"row 1: '\?' at character 5 has no meaning"),
        (
            {"text": ["a", " & ".join(f"n{i}" for i in range(12))]},
            r"row 1: 12 names of class 'proposition'.* has 10 .*extend_symbols\({'proposition': 2}",
        ),
        ({"text": ["a"], "text_target": ["a2"]}, "row 0: unknown token '2' at character 2"),
        ({"text": ["& x y"], "text_target": ["x 1 z 0"]}, r"'z' at character 5.*names: .*x y"),
        ({"text": ["& x y"], "text_target": ["x 1 a 0"]}, "stands for another name"),
        ({"text": ["a", "&ab"], "max_length": 3}, "row 1 has 4 tokens in `input_ids`.*=3"),
        ({"text": ["a"], "text_target": ["a1"], "max_target_length": 2}, "row 0 .* `labels`"),
        ({"text": ["a"], "text_pair": ["b"]}, "does not support text_pair"),
        ({"text": ["a"], "return_offsets_mapping": True}, "does not support return_offsets"),
        ({"text": ["&ab", "!a"], "return_tensors": "pt"}, "padding=True"),
    ],
)
def test_errors_name_thing_place_and_way_out(arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TOKENIZER(**arguments)


# Saving and loading


@pytest.mark.parametrize("task", ["copying", "ltl", "propositional"])
def test_committed_folder_is_current(tmp_path: Path, task: str) -> None:
    """To renew it: python -m hf_alpha.tasks.build_tokenizer TASK tokenizer/TASK."""
    build_tokenizer(task).save_pretrained(tmp_path)
    built, committed = (
        {path.name: json.loads(path.read_text()) for path in folder.glob("*.json")}
        for folder in (tmp_path, COMMITTED / task)
    )
    named = built["tokenizer_config.json"].pop("auto_map")["AutoTokenizer"]
    there = committed["tokenizer_config.json"].pop("auto_map")["AutoTokenizer"]
    assert there == [name and f"{LINK}/{name}" for name in named] and built == committed
    assert {path.name for path in (COMMITTED / task).iterdir()} == {*committed, LINK}


def test_loading_with_the_package_needs_no_trust(tmp_path: Path) -> None:
    import hf_alpha

    TOKENIZER.save_pretrained(tmp_path)
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    assert type(loaded) is hf_alpha.AlphaTokenizer
    assert loaded.get_vocab() == TOKENIZER.get_vocab()
    vocabulary = {**TOKENIZER.get_vocab(), "k": 20}
    (tmp_path / "vocab.json").write_text(json.dumps(vocabulary))
    with pytest.raises(ValueError, match=r"vocab.json and tokenizer_config.json .* disagree"):
        AlphaTokenizer.from_pretrained(tmp_path)


def config_with(**changes: object):
    def change(folder: Path) -> None:
        path = folder / "tokenizer_config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))

    return change


def grammar_with(**changes: object):
    return config_with(grammar=PROPOSITIONAL.to_dict() | changes)


def text_in(name: str, text: str | bytes):
    return lambda folder: (folder / name).write_bytes(
        text if isinstance(text, bytes) else text.encode()
    )


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (text_in("vocab.json", "garbage"), "holds no tokenizer: Expecting value"),
        (text_in("vocab.json", "[" * 100_000), "holds no tokenizer: maximum recursion"),
        (text_in("tokenizer_config.json", "3"), "holds no tokenizer"),
        (lambda f: (f / "tokenizer_config.json").unlink(), "config.json beside it disagree"),
        (config_with(grammar="ltl"), "holds no tokenizer: `grammar` is a str"),
        (config_with(grammar={}), "a grammar has the entries .* this one is empty"),
        (grammar_with(operators={"!": "1"}), "`operators` of a grammar maps tokens to 1 or 2"),
        (grammar_with(constants=[1]), "`constants` of a grammar are tokens"),
        (grammar_with(infix={"&": [4, "up"]}), "`infix` of a grammar maps operators to"),
        (grammar_with(spellings=["a"]), "`spellings` of a grammar maps spellings to tokens"),
        (grammar_with(derived={"->": 3}), "`derived` of a grammar maps tokens to templates"),
        (grammar_with(derived={"->": "$3"}), "'\\$3' of '->' is not one basic formula"),
        (grammar_with(glued=3), "`glued` of a grammar is a string, not 3"),
        (grammar_with(refused=[]), "`refused` of a grammar maps signs to advice"),
        (config_with(base_tokens=3), "`base_tokens` is 3: give tokens"),
        (config_with(base_tokens=BASE[:5]), r"lack tokens of the grammar: = \^"),
        (config_with(symbol_tokens=None), "`symbol_tokens` is None"),
        (config_with(symbol_tokens=[*"abcdefghi", "true"]), "token 'true' could not be written"),
        (config_with(symbol_ranges={"p": [[10, "20"]]}), "`symbol_ranges` is"),
        (config_with(symbol_ranges={"p": [[10, 21], [12, 20]]}), "do not cover the ids"),
        (config_with(name_patterns={"proposition": "("}), "`name_patterns` of 'proposition'"),
        (config_with(pad_token=None), "pad_token, bos_token, eos_token` is"),
        (config_with(pad_token="</s>"), "twice in the vocabulary"),
        (config_with(unk_token="a"), "`unk_token` 'a': a model knows"),
        (config_with(symbol_classes={"p": 10**12}), "cannot add 1000000000000 symbols"),
        (config_with(added_tokens_decoder=3), "holds no tokenizer"),
    ],
)
def test_damaged_files_are_named_with_the_way_out(tmp_path: Path, damage, message: str) -> None:
    TOKENIZER.save_pretrained(tmp_path)
    damage(tmp_path)
    with pytest.raises(ValueError, match=message) as error:
        AlphaTokenizer.from_pretrained(tmp_path)
    assert str(tmp_path) in str(error.value)
    assert "save the tokenizer there again" in str(error.value)
