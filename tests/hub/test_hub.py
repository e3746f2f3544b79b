"""Sharing: what is pushed to the Hub loads in a process that does not have this package.

The Hub is the loopback stub of `hub_stub.py`, which the clients in this process talk to as well.
"""

import os
from pathlib import Path

import own_process
import pytest
import torch
from hub_stub import HubStub
from transformers import AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from hf_alpha import AlphaConfig, AlphaForConditionalGeneration, load_checkpoint
from hf_alpha.hub.push import push
from hf_alpha.resources import released_models

TOKENIZER = Path(__file__).resolve().parents[2] / "tokenizer" / "propositional"
FORMULAS = ["& request ! grant", "& request ! go", "&a!b", "|^a=cb&a!d"]

# What a user without the package does. It starts by making sure that there is no package.
FRESH_PROCESS = """
import sys

class NoPackage:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "hf_alpha":
            raise ModuleNotFoundError(f"{name} is hidden")

sys.meta_path.insert(0, NoPackage())
try:
    import hf_alpha
except ModuleNotFoundError:
    pass
else:
    raise SystemExit("hf_alpha can be imported here")

import torch
from transformers import AutoModel, AutoModelForSeq2SeqLM, AutoTokenizer

result, formulas, *repos = sys.argv[1:]
formulas, remote = formulas.splitlines(), {"trust_remote_code": True}
found = []
for repo in repos:
    if found:
        model.push_to_hub(repo)
        tokenizer.push_to_hub(repo)
    tokenizer = AutoTokenizer.from_pretrained(repo, **remote)
    model = AutoModelForSeq2SeqLM.from_pretrained(repo, **remote).eval()
    trunk = AutoModel.from_pretrained(repo, **remote).eval()
    batch = tokenizer(formulas, return_tensors="pt", padding=True)
    start = torch.full((len(formulas), 1), model.config.decoder_start_token_id)
    with torch.no_grad():
        logits = model(**batch, decoder_input_ids=start).logits
        hidden = trunk(**batch, decoder_input_ids=start).last_hidden_state
        tokens = model.generate(**batch, num_beams=2, max_new_tokens=6, do_sample=False)
    text = tokenizer.batch_decode(tokens, names=batch.names)
    found.append({"logits": logits, "hidden": hidden, "tokens": tokens, "text": text})
torch.save(found, result)
"""


@pytest.fixture
def tokenizer() -> PreTrainedTokenizerBase:
    return AutoTokenizer.from_pretrained(TOKENIZER, trust_remote_code=True)


@pytest.fixture(params=["streams", pytest.param("dual_part", marks=pytest.mark.slow)])
def model(request: pytest.FixtureRequest) -> PreTrainedModel:
    torch.manual_seed(0)
    config = AlphaConfig(
        encoder_position="tree",
        symbol_encoding=request.param,
        symbol_renaming="first_occurrence",  # which `streams` skips
        symbol_seed=3,
        num_base_tokens=10,
        symbol_classes={"proposition": 5},
        d_model=32,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
    )
    return AlphaForConditionalGeneration(config).eval()


def outputs(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> dict[str, object]:
    """What `FRESH_PROCESS` has to reproduce."""
    batch = tokenizer(FORMULAS, return_tensors="pt", padding=True)
    start = torch.full((len(FORMULAS), 1), model.config.decoder_start_token_id)
    with torch.no_grad():
        logits = model(**batch, decoder_input_ids=start).logits
        hidden = model.model(**batch, decoder_input_ids=start).last_hidden_state
        tokens = model.generate(**batch, num_beams=2, max_new_tokens=6, do_sample=False)
    text = tokenizer.batch_decode(tokens, names=batch.names)
    return {"logits": logits, "hidden": hidden, "tokens": tokens, "text": text}


def outputs_in_fresh_process(hub: HubStub, folder: Path, *repos: str) -> list[dict[str, object]]:
    """Loads a repo with a fresh cache and without the package; pushes it on to each next one, and
    loads that."""
    folder.mkdir()
    result = folder / "result.pt"
    environment = {**os.environ, **hub.environment(str(folder / "hf_home"))}
    told = [FRESH_PROCESS, result, "\n".join(FORMULAS), *repos]
    done = own_process.run("-I", "-c", *told, env=environment, cwd=folder)
    assert done.returncode == 0, done.stderr
    return torch.load(result)


def assert_identical(left: dict[str, object], right: dict[str, object]) -> None:
    for key in ("logits", "hidden", "tokens"):
        assert torch.equal(left[key], right[key]), key
    assert left["text"] == right["text"]


@pytest.mark.slow
def test_pushed_model_loads_without_the_package(
    hub: HubStub, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, tmp_path: Path
):
    model.push_to_hub("me/alpha")
    tokenizer.push_to_hub("me/alpha")
    expected = outputs(model, tokenizer)

    for loaded in outputs_in_fresh_process(hub, tmp_path / "fresh", "me/alpha", "me/again"):
        assert_identical(loaded, expected)
    # What was loaded from a repo is pushed as a whole repo, code included.
    code = {path for path in hub.files("me/alpha") if path.endswith(".py")}
    assert code and code <= set(hub.files("me/again"))


@pytest.mark.slow
def test_a_folder_of_the_checkout_is_pushed_whole(hub: HubStub, tmp_path: Path):
    """Its code is a link; on the Hub there are files, which load without the package."""
    folder = released_models()["propositional-relational-small"]
    push(folder, "me/released")
    expected = outputs(*load_checkpoint(folder))
    for loaded in outputs_in_fresh_process(hub, tmp_path / "fresh", "me/released", "me/again"):
        assert_identical(loaded, expected)
    flat = {path for path in hub.files("me/again") if path.endswith(".py")}
    assert {f"code/{path}" for path in flat} <= hub.files("me/released").keys()
