import copy
from collections import defaultdict

import pytest
import torch
from hosts import HOSTS, HOSTS_OF_TWO_VOCABULARIES, VOCABULARY, make_host
from hypothesis import given, settings
from hypothesis import strategies as st
from promises import seeds
from small_tokenizers import unigram
from transformers import AutoModelForSeq2SeqLM

from hf_alpha import SymbolConfig, get_symbol_model
from hf_alpha.convert import ConversionError
from hf_alpha.convert.host_tables import draw_rows, fill_row, resize_tables, row_length, table_rows
from hf_alpha.convert.proof import SavingProof

NEW = VOCABULARY + 7
hosts = pytest.mark.parametrize("name", HOSTS)


def draw_ids(seed: int = 0) -> dict[str, torch.Tensor]:
    """Ordinary tokens of the old vocabulary, the last of the first row padding."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(4, VOCABULARY - 1, (3, 7), generator=generator)
    decoder_ids = torch.randint(4, VOCABULARY - 1, (3, 5), generator=generator)
    mask = torch.ones_like(ids)
    mask[0, -1] = 0
    return {"input_ids": ids, "attention_mask": mask, "decoder_input_ids": decoder_ids}


@torch.no_grad()
def run(host, batch):
    return host(**batch, output_hidden_states=True)


def ties(host):
    """The sets of names that are one parameter."""
    names = defaultdict(set)
    for name, parameter in host.named_parameters(remove_duplicate=False):
        names[id(parameter)].add(name)
    return sorted(map(sorted, names.values()))


@hosts
def test_old_tokens_stay_as_they_are(name, tmp_path):
    host, batch = make_host(name), draw_ids()
    logits, tied = run(host, batch).logits, ties(host)
    old = {key: value.clone() for key, value in host.state_dict().items()}
    resize_tables(host, NEW)
    assert table_rows(host) == NEW and ties(host) == tied
    for key, value in host.state_dict().items():
        kept = value[tuple(slice(size) for size in old[key].shape)]
        assert torch.equal(kept, old[key]), key
        if value.shape != old[key].shape:
            dim = value.shape.index(NEW)
            new = value.narrow(dim, VOCABULARY, NEW - VOCABULARY)
            assert torch.equal(new, old[key].mean(dim, keepdim=True).expand_as(new)), key
    grown = run(host, batch).logits
    assert grown.shape[-1] == NEW
    assert torch.equal(grown[..., :VOCABULARY], logits)
    host.save_pretrained(tmp_path)
    loaded, report = AutoModelForSeq2SeqLM.from_pretrained(tmp_path, output_loading_info=True)
    assert not any(report.values()) and ties(loaded) == tied
    assert torch.equal(run(loaded, batch).logits, grown)


@pytest.mark.filterwarnings("ignore:Version v4.12.0 introduces:FutureWarning")  # BERT's loss
@hosts
def test_everything_that_states_the_number_of_tokens_agrees(name):
    host = make_host(name)
    resize_tables(host, NEW)
    assert f'vocab_size": {NEW}' in host.config.to_json_string()
    assert f'vocab_size": {VOCABULARY}' not in host.config.to_json_string()
    assert host.config.get_text_config(decoder=True).vocab_size == NEW
    for module in host.modules():
        stated = {"num_embeddings", "out_features", "vocab_size"} & vars(module).keys()
        assert VOCABULARY not in [vars(module)[key] for key in stated], module
        if hasattr(module, "config"):
            assert getattr(module.config, "vocab_size", NEW) == NEW, type(module)
    labels = draw_ids(1)["decoder_input_ids"]
    host(**draw_ids(), labels=labels).loss.backward()  # it folds logits by a number of tokens


@hosts
@settings(max_examples=5)
@given(seed=seeds, row=st.integers(VOCABULARY, NEW - 1), source=st.integers(4, VOCABULARY - 2))
def test_a_filled_row_behaves_as_its_source(name, seed, row, source):
    host, batch = make_host(name), draw_ids(seed)
    resize_tables(host, NEW)
    batch["input_ids"][:, 2] = batch["decoder_input_ids"][1:, 3] = source
    expected = run(host, batch)
    fill_row(host, row, [source])
    for key in ("input_ids", "decoder_input_ids"):
        batch[key] = torch.where(batch[key] == source, row, batch[key])
    found = run(host, batch)
    for part in ("encoder_hidden_states", "decoder_hidden_states"):
        for mine, theirs in zip(found[part], expected[part], strict=True):
            assert torch.equal(mine, theirs)
    assert torch.equal(found.logits[..., row], found.logits[..., source])
    others = torch.arange(NEW) != row
    assert torch.equal(found.logits[..., others], expected.logits[..., others])


@hosts
def test_a_row_is_the_mean_of_its_sources(name):
    host = make_host(name)
    resize_tables(host, NEW)
    before = {key: value.clone() for key, value in host.state_dict().items()}
    fill_row(host, NEW - 2, [5, 9, 11])
    changed = []
    for key, value in host.state_dict().items():
        if value.shape != before[key].shape or not torch.equal(value, before[key]):
            dim = value.shape.index(NEW)
            mean = before[key].index_select(dim, torch.tensor([5, 9, 11])).mean(dim)
            assert torch.equal(value.select(dim, NEW - 2), mean), key
            changed.append(key)
    with_tokens = [key for key, value in before.items() if NEW in value.shape]
    assert changed == with_tokens


@hosts
def test_rows_are_drawn_as_those_of_the_vocabulary_are(name):
    """One after the other or all at once: each row has a draw of its own, in every table."""
    host, like = make_host(name), range(4, VOCABULARY)
    resize_tables(host, NEW)
    apart = copy.deepcopy(host)
    before = {key: value.clone() for key, value in host.state_dict().items()}
    draw_rows(host, [VOCABULARY, NEW - 1], like)
    for row in (NEW - 1, VOCABULARY):
        draw_rows(apart, [row], like)
    draw_rows(apart, [], like)
    for key, value in host.state_dict().items():
        assert torch.equal(value, apart.state_dict()[key]), key
        if NEW not in value.shape:
            assert torch.equal(value, before[key])
        elif value.dim() == 2 and value.shape[0] == NEW:  # a table, as it was made before
            chosen, generator = before[key][list(like)], torch.Generator().manual_seed(NEW - 1)
            spread, size = chosen.std(0), value.shape[1]
            draws = [spread * torch.randn(size, generator=generator) for _ in range(4)]
            assert any(torch.equal(value[NEW - 1], chosen.mean(0) + draw) for draw in draws), key
    with pytest.raises(ConversionError, match="no row"):
        draw_rows(host, [VOCABULARY, NEW], like)


@pytest.mark.parametrize("name", HOSTS_OF_TWO_VOCABULARIES)
def test_one_vocabulary_is_needed(name):
    host = make_host(name)
    before = {key: value.clone() for key, value in host.state_dict().items()}
    reason = "input embeddings of its encoder" if name == "fsmt" else "rows: model 40, encoder 40"
    with pytest.raises(ConversionError, match=f"(?s){reason}.*: take a model"):
        resize_tables(host, NEW)
    with pytest.raises(ConversionError, match=reason):
        fill_row(host, 5, [6])
    assert all(torch.equal(value, before[key]) for key, value in host.state_dict().items())


def test_two_tables_of_one_size_are_of_one_vocabulary(tmp_path):
    """Marian's configuration has a size for each side always, and ANNalog a table, too."""
    tokenizer = unigram(end=True)
    size = len(tokenizer)
    host = make_host("marian_apart", vocab_size=size, decoder_vocab_size=size, pad_token_id=0)
    encoder, decoder = host.get_encoder().embed_tokens, host.get_decoder().embed_tokens
    assert encoder is not decoder and host.config.decoder_vocab_size == len(tokenizer)
    assert not encoder.weight.equal(decoder.weight)
    model, symbols = get_symbol_model(host, tokenizer, SymbolConfig())
    assert len(encoder.weight) == len(decoder.weight) > len(tokenizer)
    for part in (model, symbols):
        part.save_pretrained(tmp_path)
    SavingProof(model).load(tmp_path)


@torch.no_grad()
@pytest.mark.parametrize("name", [*HOSTS, "marian_apart"])
def test_rows_have_the_length_with_which_they_are_read_and_written(name):
    sizes = {"decoder_vocab_size": VOCABULARY} if name == "marian_apart" else {}
    host, rows = make_host(name, **sizes), [5, 30, 8]
    pair = host.config.is_encoder_decoder
    reader = host.get_encoder() if pair else host.get_decoder()
    read = reader.get_input_embeddings()(torch.tensor(rows))
    written = host.get_output_embeddings().weight[rows]
    expected = [sum(float(row.norm()) for row in each) / 3 for each in (read, written)]
    assert row_length(host, rows) == pytest.approx(expected)


def test_bad_requests_change_nothing():
    host = make_host("bart")
    before = {key: value.clone() for key, value in host.state_dict().items()}
    with pytest.raises(ConversionError, match="rows for 40 tokens; 39 would remove some"):
        resize_tables(host, VOCABULARY - 1)
    with pytest.raises(ConversionError, match="no row 40: its rows are 0 to 39"):
        fill_row(host, 5, [VOCABULARY])
    with pytest.raises(ConversionError, match="no row -1"):
        fill_row(host, -1, [5])
    with pytest.raises(ConversionError, match="row 5 is to be the mean of no rows"):
        fill_row(host, 5, [])
    resize_tables(host, VOCABULARY)
    assert all(torch.equal(value, before[key]) for key, value in host.state_dict().items())


def test_tables_that_are_not_there():
    with pytest.raises(ConversionError, match=r"BartModel .* output projection .* gives nothing"):
        resize_tables(make_host("bart").model, NEW)
    with pytest.raises(ConversionError, match="not in memory: load the model without offloading"):
        resize_tables(make_host("bart").to("meta"), NEW)
