"""What models promise (docs/promises.md), each promise stated once for every family of models.

A family is a class that says how its small models and batches are made. A test class names a
family and, as further bases, the promises that it makes:

    class TestMine(MyFamily, Renaming, ExactExtension, Batching, Caching, RoundTrip, Training):
        pass

The promises use what any Transformers model has: its configuration, `forward`, `generate`,
`save_pretrained`, `from_pretrained`, and `extend_symbols`.
"""

import copy
import functools
import inspect
import itertools
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import own_process
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from transformers import PreTrainedConfig, PreTrainedModel

Batch = dict[str, torch.Tensor]
Sizes = list[tuple[int, int]]
"""Length of each sample, and how many symbols it has at most."""

CLOSE = {"atol": 1e-5, "rtol": 1e-5}
TIE = 1e-4
"""Candidates whose scores differ by less are equally good."""
UNUSABLE = -1e3
"""Columns that a sample cannot use hold logits below this."""

seeds = st.integers(0, 2**31 - 1)
batch_sizes = st.lists(st.tuples(st.integers(2, 9), st.integers(0, 5)), min_size=1, max_size=4)
sides = st.sampled_from(["left", "right"])


PLACE: dict[str, Any] = {"device": os.environ.get("HF_ALPHA_TEST_DEVICE", "cpu")}
"""Where the promises are checked, as `to` takes it; benchmarks/gpu.py adds a `dtype`."""
MADE = ("make_model", "make_batch", "renaming", "converted")
"""Methods of a family that make what has to lie there."""


def placed(made: Any) -> Any:
    """Models and tensors, also in a batch or a tuple, at `PLACE`; anything else as it is."""
    if isinstance(made, dict):
        return {name: placed(value) for name, value in made.items()}
    if isinstance(made, tuple):
        return tuple(map(placed, made))
    if isinstance(made, torch.Tensor):
        return made.to(PLACE["device"])
    return made.to(**PLACE) if isinstance(made, torch.nn.Module) else made


def placing(make: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose results are put there."""

    @functools.wraps(make)
    def make_there(*args: Any, **settings: Any) -> Any:
        return placed(make(*args, **settings))

    return make_there


class Family:
    """How small models of a family are made, and batches for them.

    Attributes:
        variants: settings of models that the properties draw from.
        saved: settings of models that are saved and loaded.
        trained: settings of models that are trained, without dropout.
        auto_class: the Auto class that loads a saved model with its head.
        answers_are_names_of_the_input: whether symbols that a sample has not got are unusable.
        scores_are_of_ids: whether there is a score for each id; else none is moved by a renaming.
        writes: whether the models generate.
        in_double: whether they run in double precision.
    """

    variants: st.SearchStrategy[dict[str, Any]] = st.just({})
    saved: Sequence[dict[str, Any]] = ({},)
    trained: Sequence[dict[str, Any]] = ({"dropout": 0.0},)
    auto_class = "AutoModelForSeq2SeqLM"
    answers_are_names_of_the_input = True
    scores_are_of_ids = True
    writes = True
    in_double = True

    def __init_subclass__(cls) -> None:
        for name in MADE:
            if name in vars(cls):
                setattr(cls, name, placing(vars(cls)[name]))

    def make_model(self, seed: int = 0, **settings: Any) -> PreTrainedModel:
        """A small model with random weights, in evaluation mode."""
        raise NotImplementedError

    def shared_model(
        self, seed: int = 0, dtype: torch.dtype | None = None, **settings: Any
    ) -> PreTrainedModel:
        """A model for checks that leave it as it is: made once for each of a few seeds."""
        return _shared_model(type(self), seed % 2, dtype, json.dumps(settings))

    def make_batch(
        self, seed: int, config: PreTrainedConfig, sizes: Sizes, side: str = "right"
    ) -> Batch:
        """What `forward` gets: a batch of samples, padded on this side."""
        raise NotImplementedError

    def labelled(self, seed: int, config: PreTrainedConfig, sizes: Sizes) -> Batch:
        """What `forward` gets in training; some labels are -100."""
        batch = self.make_batch(seed, config, sizes)
        labels = batch.pop("decoder_input_ids")[:, 1:].clone()
        labels[::2, -1] = -100
        return {**batch, "labels": labels}

    def prompt(self, batch: Batch) -> Batch:
        """What `generate` gets of a batch."""
        return {name: value for name, value in batch.items() if name != "decoder_input_ids"}

    def alone(self, batch: Batch, row: int) -> Batch:
        """One sample without its padding."""
        real = batch["attention_mask"][row].bool()
        return {
            name: value[row : row + 1] if name.startswith("decoder") else value[row : row + 1, real]
            for name, value in batch.items()
        }

    def scores(self, outputs: Any) -> torch.Tensor:
        """What the promises are about, from a model's outputs: a row for each sample."""
        return outputs.logits

    def positions(self, batch: Batch, row: int) -> Any:
        """Index of the positions of a sample's scores that have a meaning."""
        return slice(None)

    def renaming(self, seed: int, config: PreTrainedConfig) -> torch.Tensor:
        """A random renaming as a table id -> id: each class of symbols is permuted in itself."""
        generator = torch.Generator().manual_seed(seed)
        table = torch.arange(config.vocab_size)
        for ranges in config.symbol_ranges.values():
            ids = torch.cat([torch.arange(start, stop) for start, stop in ranges])
            table[ids] = ids[torch.randperm(len(ids), generator=generator)]
        return table

    def renamed(self, batch: Batch, tables: Sequence[torch.Tensor]) -> Batch:
        """Rename row i of a batch by table i."""
        return {
            name: torch.stack(
                [table.to(row.device)[row] for table, row in zip(tables, value, strict=True)]
            )
            if name.endswith("input_ids")
            else value
            for name, value in batch.items()
        }

    def symbols_may_tie(self, config: PreTrainedConfig) -> bool:
        """Whether two symbols may have equal scores, so that search has to choose by id."""
        return False

    def score(self, model: PreTrainedModel, batch: Batch) -> torch.Tensor:
        """The scores of a batch."""
        with torch.no_grad():
            return self.scores(model(**batch))


class TextFamily(Family):
    """Decoders alone: a text is its own answer, and padding on the left has no scores."""

    auto_class = "AutoModelForCausalLM"

    def labelled(self, seed: int, config: PreTrainedConfig, sizes: Sizes) -> Batch:
        batch = self.make_batch(seed, config, sizes, "right")
        padding = batch["attention_mask"] == 0
        return {**batch, "labels": batch["input_ids"].masked_fill(padding, -100)}

    def positions(self, batch: Batch, row: int) -> Any:
        return batch["attention_mask"][row].bool()


@functools.lru_cache(maxsize=100)
def _shared_model(
    family: type[Family], seed: int, dtype: torch.dtype | None, settings: str
) -> PreTrainedModel:
    return family().make_model(seed, **json.loads(settings)).to(dtype=dtype)


def assert_identical(one: torch.Tensor, two: torch.Tensor) -> None:
    """Equal bit for bit; otherwise the error says by how much not."""
    torch.testing.assert_close(one, two, atol=0.0, rtol=0.0)


def logits(model: PreTrainedModel, batch: Batch) -> torch.Tensor:
    return Family().score(model, batch)


def holds(examples: int, check: Callable[..., None], **strategies: st.SearchStrategy[Any]) -> None:
    """Check a property of so many random cases; of ten times as many in the profile "long"."""
    if settings.get_current_profile_name() == "long":
        examples *= 10
    settings(max_examples=examples, deadline=None)(given(**strategies)(check))()


SEARCHES = ({}, {"num_beams": 3, "num_return_sequences": 3})


class Renaming(Family):
    """1. A renamed input gives the same logits in renamed columns, and the renamed answers."""

    renamings, generated_renamings, most_renamings = 6, 2, 2_000

    def check_renaming(
        self, seed: int, sizes: Sizes, variant: dict[str, Any], generate: bool
    ) -> None:
        model = self.shared_model(seed, **variant)
        batch = self.make_batch(seed, model.config, sizes)
        tables = [self.renaming(seed + row, model.config) for row in range(len(sizes))]
        renamed = self.renamed(batch, tables)
        before, after = self.score(model, batch), self.score(model, renamed)
        for row, table in enumerate(tables):
            columns = table if self.scores_are_of_ids else slice(None)
            assert_identical(after[row][..., columns], before[row])
        if not generate or self.symbols_may_tie(model.config):
            return
        kept = {"max_new_tokens": 5, "return_dict_in_generate": True, "output_scores": True}
        for search in SEARCHES:
            one = model.generate(**self.prompt(batch), **kept, **search)
            two = model.generate(**self.prompt(renamed), **kept, **search)
            repeats = len(one.sequences) // len(tables)
            for i, (x, y) in enumerate(zip(one.sequences, two.sequences, strict=True)):
                assert torch.equal(tables[i // repeats].to(x.device)[x], y)
            if search:
                torch.testing.assert_close(
                    one.sequences_scores, two.sequences_scores, atol=1e-6, rtol=0
                )

    def renaming_holds(self, examples: int, generate: bool) -> None:
        def check(seed: int, sizes: Sizes, variant: dict[str, Any]) -> None:
            self.check_renaming(seed, sizes, variant, generate)

        holds(examples, check, seed=seeds, sizes=batch_sizes, variant=self.variants)

    def test_renaming_moves_columns_and_nothing_else(self):
        self.renaming_holds(self.renamings, generate=False)

    def test_renaming_renames_what_is_generated(self):
        if self.writes:
            self.renaming_holds(self.generated_renamings, generate=True)

    def test_renaming_of_a_large_batch(self):
        """Large enough for the blocks in which layers work on a CPU."""
        self.check_renaming(0, [(40, 5)] * 16, {}, generate=False)

    @pytest.mark.slow
    def test_renaming_many_times(self):
        self.check_renaming(0, [(40, 5)] * 16, {}, generate=self.writes)
        self.renaming_holds(self.most_renamings, generate=False)
        self.renaming_holds(self.most_renamings // 10, generate=self.writes)


class Extension(Family):
    """2. New symbols change no logit of an old one."""

    extensions = 3
    extension_atol = 1e-5

    def test_extension_changes_no_old_logit(self):
        def check(seed: int, sizes: Sizes, variant: dict[str, Any], count: int, data: Any) -> None:
            model = self.make_model(seed % 7, **variant)
            batch = self.make_batch(seed, model.config, sizes)
            before, old = self.score(model, batch), model.config.vocab_size
            names = st.sampled_from(sorted(model.config.symbol_classes))
            counts = data.draw(st.dictionaries(names, st.integers(1, count)), label="counts")
            model.extend_symbols(counts)
            assert model.config.vocab_size == old + sum(counts.values())
            after = self.score(model, batch)
            atol = self.extension_atol
            columns = slice(old if self.scores_are_of_ids else None)
            torch.testing.assert_close(after[..., columns], before, atol=atol, rtol=atol)
            if self.scores_are_of_ids:
                assert after.shape[-1] == model.config.vocab_size
            if self.scores_are_of_ids and self.answers_are_names_of_the_input:
                assert (after[..., old:] < UNUSABLE).all()

        kinds = {"variant": self.variants, "count": st.sampled_from([20, 40]), "data": st.data()}
        holds(self.extensions, check, seed=seeds, sizes=batch_sizes, **kinds)

    def test_the_vocabulary_grows_by_symbols_only(self):
        model = self.shared_model()
        name = next(iter(model.config.symbol_classes))
        with pytest.raises(ValueError, match="no symbol class 'person'"):
            model.extend_symbols({"person": 1})
        with pytest.raises(NotImplementedError, match=f"extend_symbols.*{name}"):
            model.resize_token_embeddings(model.config.vocab_size + 5)


class ExactExtension(Extension, Renaming):
    """2. and 1. Logits of old symbols are identical, and new symbols work like old ones."""

    extension_atol = 0.0

    def test_new_symbols_work_like_old_ones(self):
        model = self.make_model()
        old = model.config.vocab_size
        name = next(iter(model.config.symbol_classes))
        model.extend_symbols({name: model.config.symbol_classes[name]})
        batch = self.make_batch(3, model.config, [(8, 5), (6, 4)])
        table = self.renaming(4, model.config)
        renamed = self.renamed(batch, [table, table])
        assert (renamed["input_ids"] >= old).any()
        columns = table if self.scores_are_of_ids else slice(None)
        assert_identical(self.score(model, renamed)[..., columns], self.score(model, batch))


class NoExtension(Family):
    """2. A model that cannot have new symbols says so, and what to do."""

    def test_extension_and_resizing_are_refused(self):
        model = self.shared_model()
        name = next(iter(model.config.symbol_classes))
        with pytest.raises(ValueError, match="convert"):
            model.extend_symbols({name: 1})
        with pytest.raises(NotImplementedError, match="convert"):
            model.resize_token_embeddings(model.config.vocab_size + 5)


class Batching(Family):
    """3. A sample gives what it gives alone, whatever its neighbours and its padding."""

    batches = 5
    padded: st.SearchStrategy[str] = sides

    def test_a_sample_does_not_depend_on_its_batch(self):
        def check(seed: int, sizes: Sizes, variant: dict[str, Any], side: str) -> None:
            # There rounding can neither hide an influence nor look like one, but for norms and
            # routers that some hosts have in float32 whatever their weights are.
            close = {"atol": 2e-6, "rtol": 2e-6} if self.in_double else CLOSE
            dtype = torch.float64 if self.in_double else None
            model = self.shared_model(seed, dtype, **variant)
            batch = self.make_batch(seed, model.config, sizes, side)
            together = self.score(model, batch)
            for row in range(len(sizes)):
                alone = self.score(model, self.alone(batch, row))[0]
                expected = together[row][self.positions(batch, row)]
                torch.testing.assert_close(alone, expected, **close)

        kinds = {"variant": self.variants, "side": self.padded}
        holds(self.batches, check, seed=seeds, sizes=batch_sizes, **kinds)

    def test_ids_of_32_bits_are_ids(self):
        """As NumPy makes them on some systems; of many names, too."""
        model = self.shared_model()
        for sizes in ([(6, 3), (4, 2)], [(40, 5)] * 2):
            batch = self.make_batch(3, model.config, sizes)
            short = {name: x.int() if name.endswith("ids") else x for name, x in batch.items()}
            assert_identical(self.score(model, short), self.score(model, batch))

    def test_inputs_without_tokens_and_masks_that_do_not_fit_are_refused(self):
        model = self.shared_model()
        batch = self.make_batch(3, model.config, [(6, 3), (4, 2)])
        others = {name: batch[name] for name in batch.keys() - {"input_ids", "attention_mask"}}
        ids, mask = batch["input_ids"], batch["attention_mask"]
        for part in (np.s_[:0], np.s_[:, :0]):
            with pytest.raises(ValueError, match=r"input_ids are .*, without a token"):
                model(**others, input_ids=ids[part], attention_mask=mask[part])
        for part in (np.s_[:1], np.s_[:, :-1]):
            with pytest.raises(ValueError, match=r"attention_mask is .*, and there are 2 rows"):
                model(**others, input_ids=ids, attention_mask=mask[part])

    def test_shortest_inputs(self):
        model = self.shared_model()
        for sizes in itertools.product([1, 2], [0, 1]):
            assert self.score(model, self.make_batch(2, model.config, [sizes])).isfinite().all()


class DecoderPrompts(Family):
    """3. So do prompts of a decoder beside an encoder that are padded on the left."""

    @pytest.mark.parametrize("side", ["left", "right"])
    def test_decoder_prompts_padded_on_the_left(self, side):
        model = self.shared_model()
        batch = self.make_batch(5, model.config, [(6, 2), (7, 3)], side)
        ids = batch["decoder_input_ids"]
        ids[0, 2:] = ids[0, :2].clone()
        ids[0, :2] = model.config.pad_token_id
        mask = torch.ones_like(ids)
        mask[0, :2] = 0
        padded = self.score(model, {**batch, "decoder_attention_mask": mask})
        alone = {name: value[:1] for name, value in batch.items()}
        alone["decoder_input_ids"] = ids[:1, 2:]
        torch.testing.assert_close(padded[0, 2:], self.score(model, alone)[0], **CLOSE)


class Caching(Family):
    """4. With and without a cache, whatever its kind and the number of beams."""

    caches: Sequence[str | None] = (None, "static")  # the usual one is dynamic
    attentions: Sequence[str] = ("sdpa", "eager")
    search: ClassVar[dict[str, Any]] = {}
    """Further arguments of `generate`."""
    cached = 2

    def test_caches_change_nothing(self):
        def check(seed: int, sizes: Sizes, variant: dict[str, Any], attention: str) -> None:
            model = self.make_model(seed % 7, **variant)
            model.set_attn_implementation(attention)
            batch = self.prompt(self.make_batch(seed, model.config, sizes))
            greedy = {"max_new_tokens": 5, "output_logits": True, "return_dict_in_generate": True}
            greedy |= {"disable_compile": True, **self.search}
            beams = {**greedy, "num_beams": 3, "num_return_sequences": 3}
            one = model.generate(**batch, **greedy, use_cache=False)
            three = model.generate(**batch, **beams, use_cache=False)
            for cache in self.caches:
                cached = model.generate(**batch, **greedy, cache_implementation=cache)
                assert_same_tokens(one, cached, model.generation_config.eos_token_id)
                cached = model.generate(**batch, **beams, cache_implementation=cache)
                # Not the tokens: candidates whose scores tie (symmetric symbols) change places.
                torch.testing.assert_close(cached.sequences_scores, three.sequences_scores, **CLOSE)

        kinds = {"variant": self.variants, "attention": st.sampled_from(self.attentions)}
        holds(self.cached, check, seed=seeds, sizes=batch_sizes, **kinds)


def assert_same_tokens(one: Any, two: Any, end: int) -> None:
    """Rows have the same tokens up to the first step where two candidates tie."""
    start = one.sequences.shape[1] - len(one.logits)
    for row in range(len(one.sequences)):
        for step, (x, y) in enumerate(zip(one.logits, two.logits, strict=True), start):
            torch.testing.assert_close(x[row], y[row], **CLOSE)
            ours, theirs = one.sequences[row, step], two.sequences[row, step]
            if ours != theirs:
                assert (x[row, ours] - x[row, theirs]).abs() < TIE
                break
            if ours == end:
                break


class Conversion(Family):
    """5. On inputs without symbols, or with the actual one alone, a converted model is its origin.

    The vector of one symbol of the origin became the actual one, and perhaps that of another the
    placeholder; those of the others are gone.
    """

    conversions = 4
    conversion_atol = 0.0

    def converted(self, seed: int, data: Any) -> tuple[PreTrainedModel, PreTrainedModel, int]:
        """A vanilla model, what it is converted into, and the id of the actual symbol."""
        raise NotImplementedError

    def test_converted_model_agrees_with_its_origin(self):
        def check(seed: int, sizes: Sizes, data: Any) -> None:
            origin, converted, actual = self.converted(seed, data)
            assume(actual < min(origin.config.vocab_size, converted.config.vocab_size))
            symbols = symbol_ids(origin.config)
            batch = self.make_batch(seed, origin.config, sizes)
            base = [i for i in range(origin.config.vocab_size) if i not in symbols]
            replaced = torch.arange(origin.config.vocab_size)
            for new, same in ((base[-1], base), (actual, [*base, actual])):
                replaced[sorted(symbols)] = new
                inputs = self.renamed(batch, [replaced] * len(sizes))
                one, two = logits(origin, inputs), logits(converted, inputs)
                close = {"atol": self.conversion_atol, "rtol": self.conversion_atol}
                torch.testing.assert_close(two[..., base], one[..., base], **close)
                rows = (inputs["input_ids"] == actual).any(1)
                torch.testing.assert_close(two[rows][..., same], one[rows][..., same], **close)

        holds(self.conversions, check, seed=seeds, sizes=batch_sizes, data=st.data())


def symbol_ids(config: PreTrainedConfig) -> set[int]:
    return {i for ranges in config.symbol_ranges.values() for r in ranges for i in range(*r)}


# A user without the package: loads folders by the code in them and says what the models give.
FRESH_PROCESS = """
import sys
sys.modules["hf_alpha"] = None  # importing it is an error
import torch, transformers
for folder in sys.argv[1:]:
    auto_class, batch, prompt = torch.load(f"{folder}/inputs")
    auto_class = getattr(transformers, auto_class)
    model = auto_class.from_pretrained(folder, trust_remote_code=True).eval()
    with torch.no_grad():
        outputs = model(**batch)
    given = {name: x for name, x in outputs.items() if isinstance(x, torch.Tensor)}
    if prompt is not None:
        given["tokens"] = model.generate(**prompt, num_beams=2, max_new_tokens=6, do_sample=False)
    torch.save(given, f"{folder}/outputs")
"""


class RoundTrip(Family):
    """6. Saved and loaded, here and in a process without the package: identical logits.

    Attributes:
        quick: how many of `saved`, the first, a quick run saves and loads.
    """

    quick = 4

    def test_saved_and_loaded_models_are_identical(self, tmp_path):
        self.save_and_load(self.saved[: self.quick], tmp_path)

    @pytest.mark.slow  # test_model_cards.py loads one of each type in such a process
    def test_all_saved_models_are_loaded_without_the_package(self, tmp_path):
        self.load_elsewhere(self.save_and_load(self.saved, tmp_path), tmp_path)

    def save_and_load(
        self, saved: Sequence[dict], tmp_path: Path
    ) -> dict[Path, dict[str, torch.Tensor]]:
        """The folder of each saved model, and what the model gives."""
        folders = {}
        for number, variant in enumerate(saved):
            model = self.make_model(**variant)
            if isinstance(self, Extension):
                model.extend_symbols(dict.fromkeys(model.config.symbol_classes, 2))
            batch = self.make_batch(9, model.config, [(6, 3), (4, 0)])
            prompt = self.prompt(batch) if self.writes else None
            with torch.no_grad():
                outputs = model(**batch)
            expected = {name: x for name, x in outputs.items() if isinstance(x, torch.Tensor)}
            if prompt is not None:
                expected["tokens"] = model.generate(**prompt, num_beams=2, max_new_tokens=6)
            folder = tmp_path / str(number)
            folders[folder] = expected
            model.save_pretrained(folder)
            torch.save((self.auto_class, batch, prompt), folder / "inputs")
            loaded, report = type(model).from_pretrained(folder, output_loading_info=True)
            assert not report["missing_keys"] and not report["unexpected_keys"]
            placed(loaded.eval())
            assert_identical(self.score(loaded, batch), self.score(model, batch))
        return folders

    def load_elsewhere(self, folders: dict[Path, dict[str, torch.Tensor]], tmp_path: Path) -> None:
        """Compare what folders give in a process without the package."""
        cache = {"HF_MODULES_CACHE": str(tmp_path / "modules")}
        done = own_process.run("-I", "-c", FRESH_PROCESS, *folders, env={**os.environ, **cache})
        assert done.returncode == 0, done.stderr
        for folder, expected in folders.items():
            found = torch.load(folder / "outputs")
            assert found.keys() == expected.keys() and expected
            assert all(torch.equal(found[name], x) for name, x in expected.items())


class Training(Family):
    """How a step's samples are cut into micro-batches, or recomputed, makes no difference."""

    def test_micro_batches_add_up(self):
        """1 x 4 and 4 x 1 over two optimiser steps, told the number of items, as `Trainer` does."""
        for variant in self.trained:
            start = self.make_model(**variant).train()
            taken = inspect.signature(start.forward).parameters.values()
            assert any(parameter.kind is parameter.VAR_KEYWORD for parameter in taken)
            assert getattr(start, "accepts_loss_kwargs", True)
            sizes = [(5, 2), (7, 3)] * 2
            batches = [self.labelled(seed, start.config, sizes) for seed in (1, 2)]
            whole = train(copy.deepcopy(start), batches, 4)
            parts = train(start, batches, 1)
            assert parts[0] == pytest.approx(whole[0], rel=1e-5)
            torch.testing.assert_close(parts[1], whole[1], atol=1e-6, rtol=1e-4)
            torch.testing.assert_close(parts[2], whole[2], atol=1e-5, rtol=1e-4)

    def test_gradient_checkpointing_changes_no_gradient(self):
        model = self.make_model(**self.trained[0]).train()
        checkpointed = copy.deepcopy(model)
        checkpointed.activation_checkpointing_enable()
        batch = self.labelled(2, model.config, [(6, 3), (4, 2)])
        for each in (model, checkpointed):
            each(**batch).loss.backward()
        for (name, one), two in zip(
            model.named_parameters(), checkpointed.parameters(), strict=True
        ):
            torch.testing.assert_close(two.grad, one.grad, msg=name)

    def test_gradient_checkpointing_changes_no_answer(self):
        """Of a model in training; layers that are computed again keep no cache."""
        if not self.writes:
            return
        model = self.make_model(**self.trained[0]).train()
        batch = self.prompt(self.make_batch(2, model.config, [(6, 3), (4, 2)]))
        search = {"max_new_tokens": 4, "return_dict_in_generate": True, "num_beams": 2}
        expected = model.generate(**batch, **search)
        model.activation_checkpointing_enable()
        found = model.generate(**batch, **search)
        assert found.sequences.equal(expected.sequences)
        assert expected.past_key_values is not None and found.past_key_values is None

    def test_batches_without_labels_have_no_loss_and_no_nan(self):
        model = self.make_model().train()
        batch = self.labelled(2, model.config, [(6, 3), (4, 2)])
        batch["labels"] = torch.full_like(batch["labels"], -100)
        for items in (None, torch.tensor(0)):
            loss = model(**batch, num_items_in_batch=items).loss
            loss.backward()
            assert float(loss.detach()) == 0.0


def train(
    model: PreTrainedModel, batches: Sequence[Batch], size: int
) -> tuple[list[float], torch.Tensor, torch.Tensor]:
    """Train by steps of SGD in micro-batches of this size.

    Returns:
        The loss of each step, the gradients of the first step, and the weights at the end.
    """
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses, first = [], None
    for batch in batches:
        items, rows = (batch["labels"] != -100).sum(), len(batch["labels"])
        losses.append(0.0)
        for start in range(0, rows, size):
            part = {name: value[start : start + size] for name, value in batch.items()}
            loss = model(**part, num_items_in_batch=items).loss
            loss.backward()
            losses[-1] += float(loss.detach())
        if first is None:
            found = [p.grad for p in model.parameters() if p.grad is not None]
            first = torch.cat([gradient.flatten() for gradient in found])
        optimizer.step()
        optimizer.zero_grad()
    return losses, first, torch.cat([p.detach().flatten() for p in model.parameters()])
