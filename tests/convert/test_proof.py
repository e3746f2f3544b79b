"""The proof of a conversion: what counts as the same logits, and what does not."""

from contextlib import nullcontext

import pytest
import torch
from hosts import make_host
from small_tokenizers import unigram
from tokenizers import AddedToken, pre_tokenizers

from hf_alpha import SymbolConfig, get_symbol_model
from hf_alpha.convert import ConversionError
from hf_alpha.convert.proof import SavingProof, prove_growth
from hf_alpha.convert.shared import check_gap


def test_rows_that_are_added_may_change_the_rounding_of_old_logits_and_no_more():
    before = torch.randn(2, 3, 5, generator=torch.Generator().manual_seed(0))
    more = torch.cat((before, torch.zeros(2, 3, 4)), dim=-1)
    prove_growth(before, more + 4e-7, list(range(5)))
    before[0, 0, 0], before[0, 0, 1] = -1e4, -torch.inf  # a column that is never wanted
    more[..., :5] = before
    for dtype, gap in ((torch.float32, 1e-4), (torch.bfloat16, 0.1)):
        prove_growth(before.to(dtype), more.to(dtype), list(range(5)))
        with pytest.raises(ConversionError, match="rows added"):
            prove_growth(before.to(dtype), (more + gap).to(dtype), list(range(5)))


def test_a_folder_that_holds_another_model_is_found(tmp_path):
    tokenizer = unigram(end=True)
    ids = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    host = make_host("llama", vocab_size=len(tokenizer), **ids)
    model, symbols = get_symbol_model(host, tokenizer, SymbolConfig())
    for part in (model, symbols):
        part.save_pretrained(tmp_path)
    SavingProof(model).load(tmp_path)
    layer = model.backbone.model.layers[0]
    layer.self_attn.v_proj.register_forward_hook(lambda module, args, output: 1.1 * output)
    with pytest.raises(ConversionError, match="loaded from what was written"):
        SavingProof(model).load(tmp_path)


def test_texts_that_are_other_tokens_are_found():
    """A space that is written behind a token, as the host does, is lost to one that takes it."""
    for token, fault in (AddedToken("<a>"), ""), (AddedToken("<a>", rstrip=True), "the <a> end"):
        host = unigram()
        steps = [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]
        host.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(steps)
        host.add_tokens([token])
        model = make_host("llama", vocab_size=len(host), pad_token_id=0)
        with pytest.raises(ConversionError, match=fault) if fault else nullcontext():
            get_symbol_model(model, host, SymbolConfig())


def test_a_gap_beyond_the_tolerance_fails_a_proof_and_so_does_nan():
    check_gap("logits differ", 0.5, 0.5)
    for gap in (0.51, float("nan")):
        with pytest.raises(ConversionError, match=r"^proof failed: logits differ by up to"):
            check_gap("logits differ", gap, 0.5)
