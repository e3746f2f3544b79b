"""Recipes with a transducer: from its lexicon to what the model sees, and to its checkpoints."""

import random

import pytest
import torch
from datasets import Dataset
from small_objectives import BERT, evaluated, recipe, relations, write_rows
from transformers import AutoConfig, AutoTokenizer, BertConfig

from hf_alpha.geometric import GeometricTokenizer
from hf_alpha.hub.release import release
from hf_alpha.loading import load_parts
from hf_alpha.modeling import tokenization_geometric
from hf_alpha.objectives.base import SEGMENTS
from hf_alpha.objectives.classes import Classes
from hf_alpha.objectives.tokenizers import make_tokenizer
from hf_alpha.objectives.tokens import Tokens
from hf_alpha.recipe import Data, RecipeError, read_recipe
from hf_alpha.train import train
from hf_alpha.transduction import Transducer
from hf_alpha.transduction.segments import with_transducer

GRAPH = {**BERT, "model_type": "geometric", "hidden_dropout_prob": 0.0, "num_hidden_layers": 2}
GRAPH |= {"attention_probs_dropout_prob": 0.0, "initializer_range": 0.1}


def nonsense(count: int, seed: int, folder) -> tuple[str, list[str]]:
    """Texts of words that occur once; half of the pairs are expressions, and in the lexicon."""
    rng, rows, known = random.Random(seed), [], []
    for row in range(count):
        words, tags = [], []
        for place in range(rng.randint(2, 5)):
            pair = [f"w{seed}r{row}p{place}{end}" for end in "ab"]
            words += pair
            listed = rng.random() < 0.5
            tags += ["B", "I"] if listed else ["O", "O"]
            known += [" ".join(pair)] * listed
        rows.append({"source": words, "target": tags})
    return write_rows(folder / f"{seed}.jsonl", rows), known


@pytest.fixture
def expressions(tmp_path):
    """Data for `token`, and the recipe's transducer."""
    (train_file, one), (test_file, two) = (nonsense(60, seed, tmp_path) for seed in (1, 2))
    lexicon = tmp_path / "lexicon.tsv"
    lexicon.write_text("".join(f"{phrase}\tMWE\n" for phrase in one + two))
    data = {"train": train_file, "validation": test_file, "test": test_file}
    return data, {"lexicon": str(lexicon), "max_per_position": 3}


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("attention", ["graph", "two_layer_rotary", "none"])
def test_a_model_learns_what_only_the_lexicon_tells_and_keeps_it(expressions, tmp_path, attention):
    """All words are unknown to the tokenizer; without segments a model cannot tell them."""
    data, transducer = expressions
    make_tokenizer("words", ["nothing"]).save_pretrained(tmp_path / "empty")
    steps = {"max_steps": 100, "learning_rate": 0.003, "per_device_train_batch_size": 12}
    model, said = {**GRAPH, "relation_attention": attention}, []
    told = {"model": model, "transducer": transducer, "tokenizer": str(tmp_path / "empty")}
    made = recipe(tmp_path, "token", data, steps, **told)
    train(made, say=said.append)
    assert "segments: 1 labels: MWE" in said
    (tmp_path / "lexicon.tsv").unlink()  # the checkpoint has it
    found, _ = evaluated(tmp_path / "out")
    f1 = found["metrics"]["all"]["f1"]
    assert f1 < 0.75 if attention == "none" else f1 > 0.95
    assert AutoConfig.from_pretrained(tmp_path / "out").segment_labels == ["MWE"]
    assert read_recipe(tmp_path / "out" / "recipe.yaml").transducer == transducer
    done = train(made, say=said.append)  # finished: nothing is read but the run itself
    assert done.processing_class.segment_labels == ["MWE"]


def test_a_run_goes_on_with_its_own_transducer(expressions, tmp_path):
    data, transducer = expressions
    steps = {"max_steps": 2, "save_strategy": "steps", "save_steps": 2}
    train(recipe(tmp_path, "token", data, steps, model=GRAPH, transducer=transducer))
    (tmp_path / "lexicon.tsv").unlink()
    longer = recipe(
        tmp_path, "token", data, {**steps, "max_steps": 4}, model=GRAPH, transducer=transducer
    )
    trainer = train(longer, allow_changes=True)
    assert trainer.state.global_step == 4
    assert sum(map(len, trainer.train_dataset["segment_ids"])) > 50


@pytest.mark.parametrize("objective", ["class", {"name": "masked", "sentences": "none"}])
def test_a_saved_transducer_stays_with_its_model(tmp_path, objective):
    """Checkpoints go on with the same labels, others are refused; BERT gets no segments."""
    (tmp_path / "names.tsv").write_text("Ann\tPERSON\nBea\tPERSON\nit is\tSAID\n")
    (tmp_path / "other.tsv").write_text("Ann\tPERSON\nBea\tWOMAN\n")
    saved = Transducer.from_settings({"lexicon": str(tmp_path / "names.tsv")})
    saved.save(tmp_path / "fst")
    data = {"train": write_rows(tmp_path / "train.jsonl", relations(20))}
    data |= {"source": "story", **({"target": "kind"} if objective == "class" else {})}
    told = {"objective": objective, "data": data}
    said = []
    fst = str(tmp_path / "fst")
    train(recipe(tmp_path, **told, model=GRAPH, transducer=fst), say=said.append)
    assert "segments: 2 labels: PERSON, SAID" in said
    release(tmp_path / "out", tmp_path / "shared")
    shared = AutoTokenizer.from_pretrained(tmp_path / "shared")
    assert isinstance(shared, GeometricTokenizer) and shared.segment_labels == ["PERSON", "SAID"]
    assert shared("it is Ann")["segment_starts"] == [1, 3]

    plain = {"output_dir": str(tmp_path / "bert")}
    trainer = train(recipe(tmp_path, **told, training=plain, transducer=fst), say=said.append)
    assert (
        said.count("segments: a 'bert' model takes none: those of the transducer are left out") == 1
    )
    assert "segment_ids" not in trainer.data_collator([trainer.train_dataset[0]])

    again = {"output_dir": str(tmp_path / "again"), "max_steps": 1}
    checkpoint = {"checkpoint": str(tmp_path / "out"), "training": again}
    for more in ({}, {"transducer": fst}):
        train(recipe(tmp_path, **told, **checkpoint, **more), say=said.append, allow_changes=True)
    changed = {"transducer": {"lexicon": str(tmp_path / "other.tsv")}}
    checkpoint["training"] = {"output_dir": str(tmp_path / "third")}
    with pytest.raises(
        RecipeError, match=r"PERSON, SAID in the model, in the tokenizer PERSON, WOMAN"
    ):
        train(recipe(tmp_path, **told, **checkpoint, **changed))
    Transducer.from_settings(changed["transducer"]).save(tmp_path / "out")
    with pytest.raises(
        ValueError, match="out: model and tokenizer disagree: the labels of segments"
    ):
        load_parts(tmp_path / "out", answers=False)


@pytest.mark.parametrize("objective", ["class", {"name": "masked", "sentences": "none"}])
def test_models_read_the_segments_of_a_batch(tmp_path, objective):
    (tmp_path / "names.tsv").write_text("Ann\tPERSON\nBea\tPERSON\nit is\tSAID\n")
    data = {"train": write_rows(tmp_path / "train.jsonl", relations(20)), "source": "story"}
    data |= {"target": "kind"} if objective == "class" else {}
    told = {"model": GRAPH, "transducer": {"lexicon": str(tmp_path / "names.tsv")}}
    trainer = train(recipe(tmp_path, objective, data, {"max_steps": 1}, **told))
    trained = trainer.model.eval()
    assert trained.config.segment_labels == ["PERSON", "SAID"]
    batch = trainer.data_collator([trainer.train_dataset[i] for i in range(8)])
    assert SEGMENTS == tokenization_geometric.SEGMENTS  # said twice: neither imports the other
    assert int(batch["segment_ids"].max()) == 2 and batch["segment_ids"].shape[0] == 8
    plain = {key: value for key, value in batch.items() if key not in SEGMENTS}
    assert not torch.equal(trained(**batch).logits, trained(**plain).logits)


def test_rows_without_segments_may_come_first(tmp_path):
    """A thousand of them are one batch, which does not say what segments are."""
    (tmp_path / "names.tsv").write_text("Ann\tPERSON\n")
    tokenizer = make_tokenizer("words", ["Ann is here", "it is"])
    tokenizer = with_transducer(tokenizer, {"lexicon": str(tmp_path / "names.tsv")})
    texts = ["it is"] * 1000 + ["it is Ann"]
    rows = Dataset.from_dict({"source": texts, "target": ["a", "b"] * 500 + ["a"]})
    aim, config = Classes(), BertConfig(id2label={0: "a", 1: "b"}, label2id={"a": 0, "b": 1})
    made = aim.features(rows, Data(train="rows.jsonl"), tokenizer, config)
    assert made[1000]["segment_starts"] == [3] and made[999]["segment_starts"] == []
    tagged = {
        "source": [text.split() for text in texts],
        "target": [["a"] * len(t.split()) for t in texts],
    }
    made = Tokens(spans=False).features(
        Dataset.from_dict(tagged), Data(train="rows.jsonl"), tokenizer, config
    )
    assert made[1000]["segment_starts"] == [3] and made[999]["segment_starts"] == []


@pytest.mark.parametrize(
    ("objective", "more", "message"),
    [
        ("span", {"transducer": "fst"}, "the objective 'span' does not take a 'transducer'"),
        ("answer", {"transducer": "fst", "model": {}}, "'transducer' is for an objective that doe"),
        ("class", {"transducer": {"lexicon": "nowhere.tsv"}}, "transducer: .*nowhere.tsv"),
        ("class", {"transducer": "nowhere"}, "transducer: .*nowhere"),
        ("class", {"transducer": {"lexicons": "a"}}, "transducer: .*unknown key 'lexicons'"),
        ("class", {"model": {**GRAPH, "segment_labels": ["A"]}},
         "model: 'segment_labels' follows from the key 'transducer'; drop it"),
        ("class", {"transducer": "fst", "symbols": {"person": {"column": "people"}}},
         "give either 'symbols' or a 'transducer', not both"),
    ],
)  # fmt: skip
def test_transducers_that_cannot_be_used_are_refused(tmp_path, objective, more, message):
    file = write_rows(tmp_path / "train.jsonl", relations(9))
    data = {"train": file, "source": "story", "target": "kind"}
    with pytest.raises(RecipeError, match=message):
        train(recipe(tmp_path, objective, data, **more))
