import re

import pytest
import torch
import transformers
from commands import hf_alpha
from datasets import load_dataset
from file_trees import files_of
from own_process import run_in_two
from row_files import write
from small_objectives import recipe, relations, write_rows
from small_tokenizers import word_piece
from transformers import BertConfig

from hf_alpha.resources import released_model
from hf_alpha.train import train


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["answers", "classes"])
def test_two_processes_write_the_report_of_one(tmp_path, kind):
    """Of a model that answers formulas that are drawn, and of one that tells classes of rows."""
    tested = ["--symbols", "1-3", "--sizes", "3-9", "--samples", 9, "--renamed", 1]
    model = released_model("propositional-relational-small")
    if kind == "classes":
        file = write_rows(tmp_path / "rows.jsonl", relations(41))
        data = {"train": file, "source": "story", "target": "kind"}
        train(recipe(tmp_path, "class", data))
        model, tested = tmp_path / "out", ["--data", file]
    alone = hf_alpha("evaluate", model, "--out", tmp_path / "one", *tested)
    assert alone.code == 0, alone.err
    script = tmp_path / "script.py"
    script.write_text("from hf_alpha.cli import main\n\nmain()\n")
    done = run_in_two(script, "evaluate", model, "--out", tmp_path / "two", *tested)
    assert done.returncode == 0, done.stderr
    assert done.stdout.replace("/two", "/one") == alone.out
    assert files_of(tmp_path / "two") == files_of(tmp_path / "one")


def test_evaluate_on_given_data(tmp_path, vanilla, data):
    pairs = {"&ab": "a1b1", "|a!c": "a1", "1": "", "&a&b&cd": "a1b1c1d1"}
    write(tmp_path / "pairs.csv", [{"problem": x, "answer": y} for x, y in pairs.items()])
    shared = ["evaluate", vanilla, "--beams", 1]
    one = [*shared, "--covariance", 2, "--out", tmp_path / "one", "--data", tmp_path / "pairs.csv"]
    done = hf_alpha(*one, "--renamed", 2)
    assert done.code == 0, done.err
    assert re.search(r"symbols: +0 +2 +4 +all\n", done.out)
    line = "alpha-covariance: 2 problems a column, "
    assert f"{line}at most 24 renamings each (seed 0); vanilla skipped 1 of 3\n" in done.out
    told = r"\nvanilla: .* right as they are, .* under other names; \d of 6 answers changed, "
    assert re.search(told, done.out) and (tmp_path / "one/vanilla/renamed/records.jsonl").is_file()
    load_dataset(str(data))["test"].to_parquet(str(tmp_path / "some.parquet"))
    for name in ("some.parquet", "missing.parquet"):
        done = hf_alpha(*shared, "--out", tmp_path / name[:4], "--data", tmp_path / name,
                        "--covariance", 0)  # fmt: skip
        assert done.code == (0 if name == "some.parquet" else 2), done.err
    done = hf_alpha(*shared, "--out", tmp_path / "two", "--data", data, "--covariance", 0)
    assert done.code == 0 and "alpha_covariance" not in done.out
    assert "no split 'dev'" in (
        hf_alpha(*shared, "--out", tmp_path / "x", "--data", data, "--split", "dev").error
    )
    assert "no file or folder" in (
        hf_alpha(*shared, "--out", tmp_path / "x", "--data", "nothing/at/all").error
    )


def test_evaluate_without_symbols(tmp_path, vanilla):
    write(tmp_path / "pairs.csv", [{"problem": x, "answer": ""} for x in ("1", "|10")])
    done = hf_alpha("evaluate", vanilla, "--out", tmp_path / "out", "--beams", 1,
                    "--data", tmp_path / "pairs.csv", "--split", "train")  # fmt: skip
    assert done.code == 0, done.err
    done = hf_alpha("evaluate", vanilla, "--out", tmp_path / "more", "--renamed", 1,
                    "--data", tmp_path / "pairs.csv")  # fmt: skip
    assert "no row has a name that could have another one: --renamed" in done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--symbols", "three"], "'three' is no range of numbers"),
        (["--task", "chess"], "unknown task 'chess'"),
        (["--beams", "0"], "Invalid value for '--beams'"),
        (
            ["--license", "mit"],
            "--license is what a card says, and there is no --card: leave it out",
        ),
    ],
)
def test_evaluations_that_cannot_be_run(tmp_path, vanilla, arguments, message):
    done = hf_alpha("evaluate", vanilla, "--out", tmp_path / "out", *arguments)
    assert message in done.error


@pytest.mark.slow
@pytest.mark.parametrize("head", ["SequenceClassification", "MaskedLM"])
def test_an_encoder_with_canonical_spelling_is_evaluated_as_it_is(tmp_path, monkeypatch, head):
    """Without a recipe: its head says what is measured. Renaming changes no prediction of it."""
    monkeypatch.chdir(tmp_path)
    tokenizer = word_piece()
    tokenizer.add_special_tokens({"mask_token": "[MASK]", "cls_token": "[CLS]"})
    torch.manual_seed(0)
    sizes = {"hidden_size": 24, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = BertConfig(**sizes, intermediate_size=32, vocab_size=len(tokenizer))
    host = getattr(transformers, f"BertFor{head}")(config)
    for saved in (host, tokenizer):
        saved.save_pretrained("host")
    rule = "person=[A-Z][a-z]+"
    done = hf_alpha("convert", "host", "out", "--to", "canonical", "--names", rule)
    assert done.code == 0 and "'bert' model as it was" in done.out
    names = ["Alice", "Bob", "Carol", "Dora"]
    pairs = [(one, two) for one in names for two in names if one != two]
    texts = [f"{one} sees {two} and {two} sees" for one, two in pairs]
    others = [text.translate(str.maketrans("ABCD", "NRTZ")) for text in texts]
    assert others[0].startswith("Nlice sees Rob")
    found = {}
    for kind, told in (("own", texts), ("other", others)):
        rows = [{"text": text, "label": f"LABEL_{i % 2}"} for i, text in enumerate(told)]
        write(tmp_path / f"{kind}.jsonl", rows)
        columns = ["--source", "text", *(["--target", "label"] if head[0] == "S" else [])]
        done = hf_alpha(
            "evaluate", "out", "host", "--data", f"{kind}.jsonl", *columns, "--out", kind
        )
        assert done.code == 0, done.err
        lines = [line.split() for line in done.out.splitlines()]
        found[kind] = {
            words[-2]: words[-1] for words in lines if words[-2:-1] in (["out"], ["host"])
        }
        predictions = (tmp_path / kind / "out" / "predictions.jsonl").read_text().splitlines()
        found[kind]["predicted"] = predictions
    assert found["own"]["out"] == found["other"]["out"] and found["own"].keys() >= {"host", "out"}
    assert found["own"]["predicted"] == found["other"]["predicted"]
