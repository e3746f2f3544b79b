import pytest
from chat_server import serving
from commands import hf_alpha
from pictures import is_picture
from small_tokenizers import byte_level
from transformers import GPT2Config, GPT2LMHeadModel

from hf_alpha.cli.names_benchmark import SUITES as SHOWN
from hf_alpha.names_benchmark.suites import SUITES


@pytest.mark.slow
def test_names_benchmark(tmp_path, vanilla):
    """A model here beside a service; what is refused is refused before anything is asked."""
    assert SHOWN.split(", ") == list(SUITES)
    tokenizer, place = byte_level(), tmp_path / "small"
    config = GPT2Config(n_embd=16, n_layer=1, n_head=2, n_positions=1024, bos_token_id=None,
                        eos_token_id=tokenizer.eos_token_id, vocab_size=len(tokenizer))  # fmt: skip
    for saved in (GPT2LMHeadModel(config), tokenizer):
        saved.save_pretrained(place)
    few = ["--suites", "people,programs", "--questions", 1, "--namings", 1, "--examples", 1]
    with serving(lambda prompt: "Answer: 1") as server:
        served, out = f"it@{server.address}", tmp_path / "out"
        done = hf_alpha("names-benchmark", place, served, *few, "--out", out, "--quiet")
        assert done.code == 0, done.err
        assert f"report, picture and card are in {out}" in done.out
        assert len(server.requests) == 8
        refused = ["names-benchmark", served, "--out", out]
        assert "no suite 'x'" in hf_alpha(*refused, "--suites", "x").error
        assert (
            "questions of proofs have names for 1 to 5"
            in hf_alpha(*refused, "--difficulty", 6).error
        )
        assert "two models are called 'it'" in hf_alpha(*refused, served).error
        assert "reads no texts with names" in hf_alpha("names-benchmark", vanilla).error
        assert len(server.requests) == 8
    card = (out / "card.md").read_text()
    assert "| small | seen | unseen | nonsense | misleading |" in card and "| it |" in card
    assert "hf-alpha" in card and is_picture(out / "names.png")
