r"""Bindings: texts that differ in the spelling of bindings only are one text to a model.

Lambda terms are checked against de Bruijn indices, Python against its own symbol tables and by
running it, molecules against RDKit.
"""

import ast
import json
import os
import pickle
import random
import re
import symtable
from collections import Counter
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

import own_process
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lambda_terms import TERMS, indices, lambda_names, spelled
from molecules import MOLECULES, renumbered
from small_tokenizers import byte_level, smiles
from transformers import AutoTokenizer

from hf_alpha import CanonicalTokenizer, MarkedText, TextTokenizer
from hf_alpha.checkpoints.code_links import code_files
from hf_alpha.modeling.grammar import FormulaError
from hf_alpha.modeling.name_rules import NameRule, ReadyRule
from hf_alpha.modeling.names_in_text import NameFinder
from hf_alpha.modeling.ready_rules import READY_RULES

DATA = Path(__file__).parents[1] / "data_files"


def with_rule(rule: Any) -> TextTokenizer:
    """A tokenizer with a rule of the user's own."""
    names = {"name": {"function": "somewhere:rule", "count": 40}}
    tokenizer = TextTokenizer.from_tokenizer(byte_level(), names)
    tokenizer.finder.functions["name"] = rule
    return tokenizer


def ids_of(tokenizer: TextTokenizer, text: str) -> list[int]:
    return tokenizer([text])["input_ids"][0]


def back(tokenizer: TextTokenizer, text: str) -> str:
    batch = tokenizer([text])
    return tokenizer.batch_decode(batch["input_ids"], names=batch.names)[0]


# -- lambda terms ---------------------------------------------------------------------------------


LAMBDA, NAIVE = with_rule(ReadyRule(lambda_names)), with_rule(None)


@settings(max_examples=60)
@given(TERMS, TERMS, st.randoms(use_true_random=False))
def test_lambda_terms_have_the_ids_of_their_de_bruijn_terms(term, other, rng) -> None:
    texts = [spelled(term, rng), spelled(term, rng), spelled(other, rng)]
    assert indices(texts[0]) == indices(texts[1])
    for text in texts:
        assert back(LAMBDA, text) == text
    first, second, third = (ids_of(LAMBDA, text) for text in texts)
    assert first == second
    assert (first == third) == (indices(texts[0]) == indices(texts[2]))


@settings(max_examples=60)
@given(TERMS, st.randoms(use_true_random=False))
def test_old_names_are_kept_unless_they_capture(term, rng) -> None:
    """Whatever the names of symbols were in the problem, an answer has the bindings it has."""
    text = spelled(term, random.Random(0))
    batch = LAMBDA([text])
    symbols, distinct = batch.names[0], iter("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    plain = LAMBDA.decode(batch["input_ids"][0], names=dict(zip(symbols, distinct, strict=False)))
    assert indices(plain) == indices(text)
    drawn = {symbol: rng.choice("xyz") for symbol in symbols}
    answer = LAMBDA.decode(batch["input_ids"][0], names=drawn)
    assert indices(answer) == indices(text)
    naive = NAIVE.decode(batch["input_ids"][0], names=drawn)
    assert (answer == naive) == (indices(naive) == indices(text))


def test_an_answer_refers_to_the_names_of_its_problem() -> None:
    """By its bindings, else by spelling, and first to what is spelled so without one."""
    problem = r"(y (\x x (\y y)))"
    batch = LAMBDA([problem], text_target=[r"(z (\z z))"], allow_absent_symbols=True)
    first, binder, _ = batch.names[0]
    assert list(batch.names[0].values()) == ["y", "x", "y"]
    asked = {"names": batch.names, "allow_absent_symbols": True}

    def symbols(answer: str) -> list[str]:
        ids = LAMBDA(text_target=[answer], **asked)["input_ids"][0]
        assert (
            ids == LAMBDA([problem], text_target=[answer], allow_absent_symbols=True)["labels"][0]
        )
        return [token for token in LAMBDA.convert_ids_to_tokens(ids) if "name" in token]

    assert symbols("(y y)") == [first, first]
    assert symbols("(x y)") == [binder, first]
    assert symbols(r"(y (\u u))") == [first, binder, binder]  # a binder at the same place
    assert symbols(r"(\u u)") == ["<name_3>", "<name_3>"]  # no binder of the problem is there
    with pytest.raises(FormulaError, match="has the name 'u', which the input lacks"):
        LAMBDA([problem], text_target=[r"(\u u)"])
    assert pickle.loads(pickle.dumps(batch)).names[0]["<name_1>"].key == batch.names[0][binder].key


def test_a_plain_function_and_spans_by_hand_have_bindings_too() -> None:
    problem = r"(\x x (\x x))"
    plain = with_rule(lambda_names)
    batch = plain([problem], text_target=["x"])
    assert batch["input_ids"] == LAMBDA([problem])["input_ids"]
    assert batch["labels"][0][0] == plain.convert_tokens_to_ids("<name_0>")  # by spelling
    ids = plain.convert_tokens_to_ids(["<name_1>", "<join>", "<name_0>"])
    assert plain.decode(ids, names=batch.names[0]) == "x x1"
    by_hand = TextTokenizer.from_tokenizer(byte_level(), {"name": {"count": 4}})
    text = MarkedText(problem, [(i, j, "name", *key) for i, j, *key in lambda_names(problem)])
    assert ids_of(by_hand, text) == ids_of(LAMBDA, problem)
    assert back(by_hand, text) == problem and by_hand([text], text_target=[text])["labels"]


# -- Python ---------------------------------------------------------------------------------------


def local_names(text: str) -> list[tuple[int, int, str]]:
    """Find the local names of functions; the scope of each is what `symtable` says."""
    try:
        top = symtable.symtable(text, "text", "exec")
    except SyntaxError:
        return []
    starts = [0, *accumulate(len(line) for line in text.splitlines(keepends=True))]

    def visit(node: ast.AST, scopes: list[Any]) -> Iterator[tuple[int, int, str]]:
        for child in ast.iter_child_nodes(node):
            inner, shift = scopes, 0
            name = getattr(child, "id", None) or getattr(child, "arg", None)
            if isinstance(child, ast.FunctionDef | ast.Lambda):
                # Python 3.14 has scopes of annotations, too
                own = [c for c in scopes[-1].get_children() if c.get_type() == "function"]
                inner = [*scopes, own[done[scopes[-1].get_id()]]]
                done[scopes[-1].get_id()] += 1
                name, shift = getattr(child, "name", None), len("def ")
            for scope in reversed(scopes if name else ()):
                if scope.get_type() == "function" and scope.lookup(name).is_local():
                    start = starts[child.lineno - 1] + child.col_offset + shift
                    yield start, start + len(name), f"{scope.get_id()} {name}"
                    break
            yield from visit(child, inner)

    done = Counter[int]()
    return sorted(visit(ast.parse(text), [top]))


PROGRAM = """\
def f({0}, {1}):
    {2} = {0} * 10 + {1}
    g = lambda {3}: {3} + {2}
    def h({4}):
        return g({4}) * {0}
    return h({1}) - {2}
"""
PYTHON = with_rule(ReadyRule(local_names))


@settings(max_examples=30)
@given(st.lists(st.sampled_from("abcde"), min_size=5, max_size=5))
def test_python_functions_by_scopes(letters: list[str]) -> None:
    """A name that is used twice is captured, or it is not; `f` computes the same if it is not."""
    plain, drawn = PROGRAM.format(*"vwxyz"), PROGRAM.format(*letters)
    batch = PYTHON([plain])
    names = dict(
        zip(batch.names[0], [*letters[:3], "g", letters[3], "h", letters[4]], strict=False)
    )
    answer = PYTHON.decode(batch["input_ids"][0], names=names)
    assert ids_of(PYTHON, answer) == batch["input_ids"][0]
    assert outcome(answer) == outcome(plain)
    is_same = ids_of(PYTHON, drawn) == batch["input_ids"][0]
    assert (answer == drawn) == is_same
    if is_same:
        assert back(PYTHON, drawn) == drawn and outcome(drawn) == outcome(plain)


def test_an_answer_of_whole_words_that_no_rule_reads_has_the_names_of_its_problem() -> None:
    plain = PROGRAM.format(*"vwxyz")
    batch = PYTHON([plain], text_target=["v w (+ y"])
    tokens = PYTHON.convert_ids_to_tokens(batch["labels"][0])
    assert [token for token in tokens if "name" in token] == [
        token for token, name in batch.names[0].items() if name in "vwy"
    ]
    finder = NameFinder({"ring": {"rule": "smiles"}})  # a digit may be anything
    assert not finder.find("in 1 step", {"1": "ring"})


def outcome(program: str) -> list[int]:
    scope: dict[str, Any] = {}
    exec(program, scope)
    return [scope["f"](a, b) for a, b in [(2, 3), (5, 1)]]


# -- molecules ------------------------------------------------------------------------------------

SMILES = TextTokenizer.from_tokenizer(smiles(), {"ring": {"rule": "smiles", "count": 20}})


@pytest.mark.parametrize("molecule", MOLECULES)
def test_molecules_are_what_they_are_under_other_ring_numbers(molecule: str) -> None:
    chem = pytest.importorskip("rdkit.Chem")

    def canonical(text: str) -> str:
        return ">>".join(chem.CanonSmiles(side) for side in text.split(">>"))

    rng = random.Random(0)
    ids = ids_of(SMILES, molecule)
    assert SMILES.unk_token_id not in ids
    for _ in range(10):
        text = renumbered(molecule, rng)
        assert canonical(text) == canonical(molecule)
        assert ids_of(SMILES, text) == ids
        assert canonical(back(SMILES, text)) == canonical(molecule)
    written = canonical(molecule)
    assert back(SMILES, written) == written  # RDKit's numbers are the lowest ones too


READERS = {
    "c1ccn(->[Fe])cc1": "MolFromSmiles",
    "C1CN(->[Fe])CC1C1CC1": "MolFromSmiles",
    "C1CN->[Cu+2]<-N1": "MolFromSmiles",
    "N->1CCN->[Pt]1": "MolFromSmiles",
    "C1CC[NH](->[Pt])C2CCCC12": "MolFromSmiles",
    "C1CN(->[Fe])CC1C1CC1 |C:2.2|": "MolFromSmiles",
    "C1CC1C1CCC1 |$_AP1;;;C1CC1;;;$|": "MolFromSmiles",
    "[#6]1~[#6]-,=[C;R1]~1": "MolFromSmarts",
    "[$(c1ccccc1),$(C1CC1),D2]1CC[CX4;$(C(C)C)]1": "MolFromSmarts",
    "a1aaa2a(a1)-;!@CC2": "MolFromSmarts",
}
"""Dative bonds, SMARTS and CXSMILES, and what reads them."""
RINGS = TextTokenizer.from_tokenizer(byte_level(), {"ring": {"rule": "smiles", "count": 20}})


@pytest.mark.parametrize("molecule", READERS)
def test_dative_bonds_smarts_and_extended_smiles_under_other_ring_numbers(molecule: str) -> None:
    chem = pytest.importorskip("rdkit.Chem")
    read, write = getattr(chem, READERS[molecule]), chem.MolToCXSmarts
    if READERS[molecule] == "MolFromSmiles":
        write = chem.MolToCXSmiles
    ids = ids_of(RINGS, molecule)
    assert RINGS([molecule]).names[0]
    rng = random.Random(0)
    for _ in range(10):
        text = renumbered(molecule, rng)
        assert write(read(text)) == write(read(molecule))
        assert ids_of(RINGS, text) == ids
        assert write(read(back(RINGS, text))) == write(read(molecule))


PLACES = [
    "{}", '"{}"', "'{}'", "see ({}).", "`{}`", "[{}]", "smiles={};", "{}: a ring", "**{}**!",
    "1,{},0.3", '{{"smiles": "{}", "id": "C1"}}', '["{}","C"]', "| a | {} | C1 |", "|a|{}|C1|",
    "<td>{}</td>", "- {}, not CO2?", "环{}、", "{{{}}}",
]  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
def test_molecules_in_prose_tables_json_and_markdown(place: str) -> None:
    start = place.format("\0").index("\0")
    for molecule in MOLECULES:
        found = READY_RULES["smiles"](place.format(molecule))
        alone = READY_RULES["smiles"](molecule)
        assert alone
        assert found == [(first + start, last + start, ring) for first, last, ring in alone]


def test_what_is_no_molecule_has_no_rings() -> None:
    for text in (
        "I saw CO2 (1) in B12, P25-S507 and c0c0c0, as 12 of 22 did (C1) (C1).",
        "ids baa956b6-1a14-473c-b458-88a3c9464112 C1C1 C11 x_C1CC1 fC1CC1 C1CC1x C1CC1_2",
        "the prompt C1CC.C2CC2 of words; p[:5], s[1:3], [see:12], [Fig:2], [12]",
        "[C][=C][Branch1][C][O][Ring1][Branch1]",  # SELFIES counts, and names nothing
    ):
        assert not READY_RULES["smiles"](text), text
        assert not READY_RULES["atom_maps"](text), text
    root = Path(__file__).parents[2]
    files = [root / "docs" / "results.md", *(root / "hf_alpha").glob("*.py")]
    for file in [*files, *DATA.glob("*.tsv"), *DATA.glob("*.conll")]:
        assert not READY_RULES["smiles"](file.read_text()), file
        assert not READY_RULES["atom_maps"](file.read_text()), file


def test_rings_of_polymers_in_bigsmiles() -> None:
    for text, rings in {
        "{[$]CC(c1ccccc1)[$]}": 1,
        "{[$]CC1CCC1[$],[$]CC(c1ccccc1)[$];[$]C}": 2,
        "C1CC({[>][<]CCOC2CC2[>][<]})CC1": 2,
    }.items():
        assert len(READY_RULES["smiles"](text)) == 2 * rings
        other = renumbered(text, random.Random(0))
        assert ids_of(RINGS, other) == ids_of(RINGS, text) and back(RINGS, other) == back(
            RINGS, text
        )


def test_reactions_have_the_same_ids_under_other_numbers_of_rings_and_atoms() -> None:
    chem = pytest.importorskip("rdkit.Chem")
    rules = {"ring": {"rule": "smiles", "count": 9}, "atom": {"rule": "atom_maps", "count": 60}}
    tokenizer = TextTokenizer.from_tokenizer(byte_level(), rules)
    lines = (DATA / "uspto_mit" / "test.txt").read_text().splitlines()
    rng = random.Random(0)
    atoms = rng.sample(range(1, 999), 400)
    for reaction in (line.split(" ")[0] for line in lines):
        other = re.sub(r":(\d+)(?=])", lambda found: f":{atoms[int(found[1])]}", reaction)
        other = renumbered(other, rng)
        source, target = reaction.split(">>")
        batch = tokenizer([source], text_target=[target])
        renamed = tokenizer([other.split(">>")[0]], text_target=[other.split(">>")[1]])
        assert dict(batch) == dict(renamed)
        product = tokenizer.batch_decode(batch["labels"], names=renamed.names)[0]
        assert chem.CanonSmiles(product) == chem.CanonSmiles(other.split(">>")[1])
        assert back(tokenizer, source) == source


def test_rings_of_many_and_of_none() -> None:
    chain = "C" + "".join(f"%{n}" if n > 9 else str(n) for n in range(1, 13)) + "C" * 3
    ladder = chain + "".join(f"C%{n:02d}" for n in range(12, 0, -1))
    assert back(SMILES, ladder) == ladder.replace("%0", "")
    for text in ("I saw 12 of 22 at B12", "C1CC", "CO2 [13C] [Na+]", "1C1", "C(1", "B11", "H2O2"):
        assert not NameFinder({"ring": {"rule": "smiles"}}).find(text), text
    assert len(NameFinder({"ring": {"rule": "smiles"}}).find("C(CC1)1")) == 2
    found = NameFinder({"ring": {"rule": "smiles"}}).find("is C1CC1 (10 g) in C%01CC1?")
    assert [(s.start, s.stop, s.binding) for s in found[:2]] == [(4, 5, "0"), (7, 8, "0")]


def test_rings_keep_clear_of_numbers_that_a_molecule_has_as_text() -> None:
    """Of that molecule, and of rings alone: `1` of an isotope, or of the prose around, is none."""
    texts = TextTokenizer.from_tokenizer(byte_level(), {"ring": {"rule": "smiles"}})
    written = [
        ("C<ring_0>CC1C<ring_0>C1", "C2CC1C2C1"),
        ("C<ring_0>CC<ring_0>.C1CC", "C2CC2.C1CC"),
        ("C <ring_0> 1 C C <ring_0> C 1", "C 2 1 C C 2 C 1"),
        ("12 of [13CH2]<ring_0>CC<ring_0> and C1CC1", "12 of [13CH2]1CC1 and C1CC1"),
    ]
    for text, expected in written:
        ids = texts.backend_tokenizer.encode(text, add_special_tokens=False).ids
        assert texts.decode(ids, names={"<ring_0>": "5"}) == expected
    text = "C1CC.C2CC2"  # one that is not closed
    assert back(texts, text) == text


def test_spaced_molecules_and_atom_maps() -> None:
    rules = {"ring": {"rule": "smiles", "count": 4}, "map": {"rule": "atom_maps", "count": 4}}
    finder = NameFinder(rules)
    text = "[CH3:12][C:2]1CC[CH:1]1>>[CH3:12][C:2]"
    found = [(text[s.start : s.stop], s.symbol_class, s.binding) for s in finder.find(text)]
    assert found == [
        ("12", "map", ""), ("2", "map", ""), ("1", "ring", "0"), ("1", "map", ""),
        ("1", "ring", "0"), ("12", "map", ""), ("2", "map", ""),
    ]  # fmt: skip
    spans = finder.find("C N 1 C C [C@H] 1 c 1 c c 1 >> C C")
    assert [s.binding for s in spans] == ["0", "0", "1", "1"]
    # an answer's names are those that the rule finds in it, and no other digit is one
    known = {"1": "ring", "2": "map"}
    assert [s.start for s in finder.find("[12CH2]C1CC1", known)] == [8, 11]


def test_a_rule_travels_with_the_tokenizer(tmp_path) -> None:
    SMILES.save_pretrained(tmp_path)
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    assert loaded.finder.rules == SMILES.finder.rules and loaded.settings() == SMILES.settings()
    assert back(loaded, "C3CC3") == "C1CC1"
    labels = loaded("C3CC3C1CC1", text_target="C5CC5")["labels"]
    assert loaded.decode(labels) == "C1CC1"  # no names are needed
    assert "<join>" not in loaded.get_vocab()
    with pytest.raises(ValueError, match="'keep' is 'undescribed': there is"):
        NameRule.of("x", {"rule": "python", "keep": "undescribed"})
    with pytest.raises(ValueError, match="no ready-made rule 'smile': there are"):
        NameRule.of("ring", {"rule": "smile"})


# Without the package: encodes a text with each tokenizer, and asks the last one for a rule.
ALONE = """
import json, sys
sys.modules["hf_alpha"] = None  # importing it is an error
from transformers import AutoTokenizer
for folder, text in json.loads(sys.argv[1]):
    tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=True)
    batch = tokenizer([text], return_tensors="pt")
    tokenizer.save_pretrained(folder + "-again")
    print(json.dumps([batch["input_ids"].tolist(), tokenizer.batch_decode(batch["input_ids"],
                                                                          names=batch.names)]))
try:
    tokenizer.use_rules({"name": {"rule": "python"}})
except ImportError as error:
    print(error)
"""


@pytest.mark.slow  # Transformers is imported anew
def test_ready_made_rules_travel_only_with_what_uses_one(tmp_path) -> None:
    """What is saved is saved again by its own code, and either has the files that it needs."""
    python, pattern = {"name": {"rule": "python", "count": 9}}, {"name": "[a-z]"}
    script = {"name": {"rule": "javascript", "count": 9}}
    texts = ["let = 1", "C2CC2", "let = 1", "let b = 1", "let b = 1", "a = 1", "a = 1"]
    tokenizers = [
        TextTokenizer.from_tokenizer(byte_level(), python),
        SMILES,
        CanonicalTokenizer.from_tokenizer(byte_level(), python, words=["b", "c"]),
        TextTokenizer.from_tokenizer(byte_level(), script),
        CanonicalTokenizer.from_tokenizer(byte_level(), script, words=["c", "d"]),
        CanonicalTokenizer.from_tokenizer(byte_level(), pattern, words=["b", "c"]),
        TextTokenizer.from_tokenizer(byte_level(), pattern),
    ]
    folders = [str(tmp_path / f"{number}") for number in range(len(tokenizers))]
    for tokenizer, folder in zip(tokenizers, folders, strict=True):
        tokenizer.save_pretrained(folder)
    told = json.dumps([*zip(folders, texts, strict=True)])
    cache = {"HF_MODULES_CACHE": str(tmp_path / "modules")}
    done = own_process.run("-I", "-c", ALONE, told, env={**os.environ, **cache})
    assert done.returncode == 0, done.stderr
    *lines, error = done.stdout.splitlines()
    for tokenizer, text, line in zip(tokenizers, texts, lines, strict=True):
        batch = tokenizer([text])
        decoded = tokenizer.batch_decode(batch["input_ids"], names=batch.names)
        assert json.loads(line) == [batch["input_ids"], decoded]
    assert "install hf_alpha" in error
    ready = {"ready_rules.py", "names_in_code.py", "names_in_python.py", "names_in_sql.py"}
    ready |= {"python_code.py", "python_fragments.py", "python_reading.py"}
    languages = {"names_in_languages.py", "languages.py"}
    for number, folder in enumerate(folders):
        code = {path.name for path in Path(folder).glob("*.py")}
        readers = [ready, ready | languages, set()][(number > 2) + (number > 4)]
        assert code & (ready | languages) == readers
        assert code == {path.name for path in Path(f"{folder}-again").glob("*.py")}
        assert code_files(Path(folder)) == code_files(Path(f"{folder}-again")) == code
