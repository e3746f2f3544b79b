"""Plant bugs in a copy of the repository, one at a time, and see whether the tests notice.

Run by hand: `python tests/mutation.py`, or with words that the places have to contain:
`python tests/mutation.py symbols.py generate.py`. Writes `mutation.json` beside the report on
screen (`--out`). First the tests have to pass without a bug. A bug whose text the code no longer
has exactly once is an error: write it anew.
"""

import argparse
import json
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterable
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import datasets  # noqa: F401  imported once, for all the forks that run tests
import hypothesis  # noqa: F401
import pytest
import torch  # noqa: F401
import transformers.modeling_utils  # noqa: F401

ROOT = Path(__file__).resolve().parents[1]
COPIED = ("hf_alpha", "tests", "tokenizer", "training", "pyproject.toml")
TIMEOUT = 900
"""Seconds for the tests of a bug, after which it counts as noticed: it made something hang."""


class Mutant(NamedTuple):
    """A bug: `old` becomes `new` in a file of the package; `tests` are arguments of pytest."""

    file: str
    old: str
    new: str
    tests: str


def mutants() -> list[Mutant]:
    """Return all bugs."""
    return [Mutant(file, *bug) for (file, bugs) in BUGS.items() for bug in bugs]


SYMBOLS = "tests/modeling/test_symbols.py"
TOKENS = "tests/objectives/test_tokens.py -k 'name_is_one or word_of_a_name'"
SPANS = "tests/objectives/test_spans.py -k 'their_row or is_cut or together'"
NUMBERED = "tests/objectives/test_masked.py -k numbers_its_names"
MASKED = "tests/objectives/test_masked.py -k 'found_by_those or drawn_for_names or no_sentence'"
RENAMED = "tests/objectives/test_masked.py -k same_losses"
POSITIONS = "tests/modeling/test_positions.py"
NUMBERS = "tests/modeling/test_random_numbers.py"
SCALE = "tests/modeling/test_logit_scale.py"
STEPS = "tests/modeling/test_steps.py"
VOCABULARY = "tests/modeling/test_symbol_vocabulary.py"
ENCODINGS = "tests/modeling/test_symbol_encodings.py"
CHECKS = "tests/modeling/test_checks.py"
LAYER = "tests/modeling/test_symbol_layer.py"
ATTENTION = "tests/modeling/test_attention.py"
MODEL = "tests/modeling/test_modeling_alpha.py"
STREAMS = "tests/families/test_alpha_streams.py"
RELATIONS = "tests/modeling/test_relations.py"
REFERENCE = f"{RELATIONS} -k 'equals_reference and two'"
FOLNET = "tests/modeling/test_modeling_folnet.py"
HEADS = "tests/modeling/test_folnet_heads.py"
OPERATORS = "tests/modeling/test_logic_operators.py"
RECOMPUTED = "tests/modeling/test_recomputed.py"
RELATIONAL = "tests/families/test_alpha_relational.py -k caches_change_nothing"
CPU = "tests/modeling/test_cpu.py"
GRAMMAR = "tests/modeling/test_grammar.py"
TOKENIZATION = "tests/modeling/test_tokenization_alpha.py"
COMMUTING = "tests/tasks/test_commuting.py"
PROPOSITIONAL = "tests/tasks/propositional/test_task.py"
TABLES = "tests/tasks/test_truth_table.py"
LTL = "tests/tasks/ltl/test_task.py"
LASSO = "tests/tasks/ltl/test_lasso.py"
TRACE = "tests/tasks/ltl/test_trace.py"
WITNESS = "tests/tasks/ltl/test_witness.py"
FORMULAS = "tests/tasks/propositional/test_sampler.py"
LTL_FORMULAS = "tests/tasks/ltl/test_sampler.py"
REGISTRY = "tests/tasks/test_registry.py"
CIRCUIT = "tests/tasks/test_circuit.py"
SAT = "tests/tasks/propositional/test_sat.py"
COPYING = "tests/tasks/copying/test_task.py"
SOLVER = "tests/tasks/test_solver_process.py"
GENERATE = "tests/data/test_generate.py"
DRAWN = "tests/data/test_drawn.py"
BUCKET = "tests/data/test_bucket.py"
COLLATE = "tests/data/test_collate.py"
PERTURB = "tests/data/test_perturb.py"
READ = "tests/data/test_read.py"
EVALUATE = "tests/evaluation/test_evaluate.py"
REPORT = "tests/evaluation/test_report.py"
INSTRUCTED = "tests/evaluation/test_instructed.py"
SERVICE = "tests/evaluation/test_service.py"
PROMPTS = "tests/tasks/test_prompts.py"
GENERATION = "tests/test_generation.py"
DECODER = "tests/modeling/test_modeling_retrofit_decoder.py"
COVARIANCE = "tests/evaluation/test_covariance.py"
COMPARE = "tests/evaluation/test_compare.py"
RANDOM_PARTS = "tests/evaluation/test_random_parts.py"
AUTO = "tests/test_auto.py"
RECIPE = "tests/test_recipe.py"
TRUST = "tests/test_trust.py"
TRAIN = "tests/test_train.py"
TRANSDUCER = "tests/transduction/test_transducer.py"

BUGS: dict[str, list[tuple[str, str, str]]] = {
    "modeling/symbols.py": [
        ("first = symbol_BL & ~equal.tril(-1)", "first = symbol_BL & ~equal.triu(1)", SYMBOLS),
        ("match.any(1), match", "match.any(1) | True, match", SYMBOLS),
        ("active = active | (first &", "active = active & (first &", SYMBOLS),
        ("symbol = (stream_BL >= 0)", "symbol = (stream_BL > 0)", SYMBOLS),
        ("hidden_BSLD.transpose(1, 2).reshape(b, length, s * d)",
         "hidden_BSLD.reshape(b, length, s * d)", SYMBOLS),
        ("F.pad(index_N + s, (0, 1))", "F.pad(index_N, (0, 1))", SYMBOLS),
        ("mix(mix(ids_N) ^ keys_B[:, None])", "mix(mix(ids_N) ^ keys_B[:1, None])",
         f"{LAYER} -k random_renaming"),
    ],
    "modeling/positions.py": [
        ("(mask_BL.long().cumsum(-1) - 1)", "mask_BL.long().cumsum(-1)", POSITIONS),
        ("torch.cat((-sin, sin), dim=-1)", "torch.cat((sin, -sin), dim=-1)", POSITIONS),
        ("exists = rest > 1", "exists = rest > 0", POSITIONS),
        ("(width + 1) // 2\n    exponent = torch.arange(half", "width // 2\n    exponent = "
         "torch.arange(half", POSITIONS),
    ],
    "modeling/random_numbers.py": [
        ("numbers + (numbers >= last // 2)", "numbers + (numbers > last // 2)", NUMBERS),
        ("mix(key[..., None] + turns)", "mix(key[..., None] + 0 * turns)", NUMBERS),
        ("hashed = mix(mix(positions) + ids_BL)", "hashed = mix(ids_BL)", NUMBERS),
        ("(-2.0 * radius.log()).sqrt()", "(-1.0 * radius.log()).sqrt()", NUMBERS),
    ],
    "modeling/logit_scale.py": [
        ("usable = usable.scatter(1, labels[:, None], False)", "usable = usable", SCALE),
        ("MAX_ANGLE = math.pi / 4", "MAX_ANGLE = math.pi / 3", SCALE),
        ("self.statistics = self.statistics.to(new) + new", "self.statistics = new", SCALE),
        ("losses = (1.0 - smoothing) * losses - smoothing", "losses = losses - smoothing", SCALE),
    ],
    "modeling/relations.py": [
        ("start[: self.starting, : self.num_heads // 2]", "start[: self.starting]",
         f"{RELATIONS} -k begins"),
        ("unflatten(0, (relations[0].shape[0], -1)).flatten(1, 2)",
         "unflatten(0, (-1, relations[0].shape[0])).transpose(0, 1).flatten(1, 2)",
         f"{RELATIONS} -k beams"),
        ("(len(relations), -1, 1)).permute(2, 0, 3, 1, 4)",
         "(-1, len(relations), 1)).permute(3, 0, 2, 1, 4)", f"{RELATIONS} -k beams"),
        ("written, last = self.repeat", "last, written = self.repeat", REFERENCE),
        ("self.output_norm(self.output_proj(", "self.output_norm(self.input_proj(", REFERENCE),
        ("clamp(min=1)", "clamp(min=2)", f"{RELATIONS} -k means"),
        ("first_BS[:, None] <= position_T", "first_BS[:, None] < position_T", REFERENCE),
        ("torch.where(source_BL >= 0, source_BL, none)", "source_BL.clamp(min=0)", REFERENCE),
        (" & (own_BT >= 0)[..., None]", "", f"{RELATIONS} -k where_symbols"),
        ("own_BM, num_symbols + 1)\n", "own_BM, num_symbols)\n", f"{RELATIONS} -k where_symbols"),
    ],
    "modeling/streams.py": [
        ('pointer=getattr(outputs, "symbol_pointer", None)', "pointer=None", REFERENCE),
    ],
    "modeling/configuration_alpha.py": [
        ("self.history_slot + self.encoding.relates", "self.history_slot", RELATIONAL),
        ('{"encoder_position": "tree"} if', "{} if", f"{TRAIN} -k tree"),
    ],
    "modeling/attention.py": [
        ("mask = mask[:, None].expand(-1, r, -1, -1, -1).flatten(0, 1)",
         "mask = mask.repeat(r, 1, 1, 1)", f"{STREAMS} -k depend_on_its_batch"),
        ("self.head_dim**-0.5", "self.head_dim**-0.4", f"{MODEL} -k equals_reference"),
        ("mask = mask.repeat(1, 1, queries, 1)", "mask = mask.repeat_interleave(queries, 2)",
         ATTENTION),
        ("key = rotate(self._heads(self.k_proj(source_NRLD)), key_rope)",
         "key = self._heads(self.k_proj(source_NRLD))", f"{MODEL} -k equals_reference"),
    ],
    "modeling/logic_operators.py": [
        ("scores_CNTM + scope.mask", "scores_CNTM", OPERATORS),
        ("torch.cat(related)", "torch.cat(related[::-1])", f"{FOLNET} -k relational"),
        ("gate_HNT[..., None], relation.to", "gate_HNT[..., None, :], relation.to",
         f"{FOLNET} -k relational_encoders"),
        ("starting=2 if has_source", "starting=1 if has_source", f"{FOLNET} -k begin_with"),
        ("(1, 2, 0, 3).flatten(2))", "(1, 2, 3, 0).flatten(2))", OPERATORS),
        (".clamp(-LARGEST_EXPONENT, LARGEST_EXPONENT)", "", f"{FOLNET} -k finite"),
        ("premise_CNTM * scope.visible(premise_CNTM.dtype)", "premise_CNTM", FOLNET),
        ("deduced[..., :length] + by_source", "deduced[..., :length]", OPERATORS),
    ],
    "modeling/premises.py": [
        ("F.pad(self.values, (0, more))", "F.pad(self.values, (more, 0))", f"{FOLNET} -k cache"),
        ("self.values[..., :-gone]", "self.values[..., gone:]", f"{FOLNET} -k cropped"),
        ("torch.cat((source, present), dim=2)", "torch.cat((present, source), dim=2)", OPERATORS),
        ("return self.keys.shape[-2] if", "return self.keys.shape[-1] if", f"{FOLNET} -k cache"),
        ("if not self.across.is_updated.get(slot):", "if True:", f"{FOLNET} -k cache"),
    ],
    "modeling/modeling_folnet.py": [
        ("2 * limit + 1, ids)", "2 * limit, ids)", f"{FOLNET} -k encoders_equal"),
        ("F.pad(written, (0, behind))", "F.pad(across, (0, behind))",
         f"{FOLNET} -k relational_encoder_decoders"),
        ("F.pad(within, (before, 0))", "F.pad(within, (0, before))",
         f"{FOLNET} -k relational_encoder_decoders"),
        ("number[None] <= number[-rows:, None]", "number[None] <= number[-rows:, None] + 1",
         f"{FOLNET} -k later_tokens"),
        ("self.layers[-1] and not output_binary_states", "self.layers[-1]",
         f"{FOLNET} -k test_encoders"),
        ("**{**outputs, **fields}", "**{**fields, **outputs}", f"{HEADS} -k order"),
        ('"binary_hidden_state": outputs.binary_hidden_state,', "", f"{HEADS} -k asked_for"),
        ("hidden_BSTD[:, :, kept]", "hidden_BSTD[:, :, -1:]", f"{HEADS} -k positions_are"),
        ("check_cached_prefix(kwargs.get", "bool(kwargs.get", f"{HEADS} -k kept_cache"),
    ],
    "modeling/losses.py": [
        ("check_multi_labels(labels)", "pass", f"{HEADS} -k several_classes"),
        ("check_label_shape(labels, samples)", "pass", f"{HEADS} -k another_number"),
    ],
    "modeling/recomputed.py": [
        ("cast = [x.to(dtype) for x", "cast = [x for x", f"{RECOMPUTED} -k autocast"),
        ("by_atom += by_flipped.transpose(1, 2)", "by_atom += by_flipped", RECOMPUTED),
        ("wide = torch.promote_types(atoms.dtype, torch.float32)", "wide = atoms.dtype",
         RECOMPUTED),
        ("by_weight[5] += total", "by_weight[5] += 2 * total", RECOMPUTED),
    ],
    "modeling/steps.py": [
        ("self.count += 1\n        self._seen_by_hook = False", "self.count += 1", STEPS),
        ("if weight.requires_grad", "if True", STEPS),
    ],
    "modeling/masks.py": [
        ("mask_BL.long().argmax(1)", "mask_BL.long().argmin(1)", f"{FOLNET} -k test_encoders"),
    ],
    "modeling/symbol_vocabulary.py": [
        ("(ids - start).clamp(0, stop - start)", "(ids - start).clamp(0, stop)", VOCABULARY),
        ("pieces.append((end, start, 0))", "pieces.append((end, start, 1))", VOCABULARY),
        ("indices + (start - before)", "indices + start", VOCABULARY),
        ("self.is_symbol(ids), self.symbols_before(ids), self.num_symbols)",
         "self.is_symbol(ids), self.symbols_before(ids), 0)", VOCABULARY),
        ("self.num_base_tokens + per_class * (number - 1) + nth",
         "self.num_base_tokens + 0 * number", REFERENCE),
    ],
    "modeling/symbol_encodings.py": [
        ("== stream, actual, placeholder)", "== stream, placeholder, actual)",
         f"{MODEL} -k equals_reference"),
        ("torch.where(ids_BS >= 0, vocabulary.symbols_before(ids_BS), count)",
         "torch.where(ids_BS >= 0, ids_BS - vocabulary.num_base_tokens, count)", VOCABULARY),
        ("_ENCODINGS[encoding.name] = encoding\n    return", "return", ENCODINGS),
    ],
    "modeling/symbol_layer.py": [
        ("if self._seen is not None and self._seen != count:", "if True:",
         f"{LAYER} -k 'once_per_optimiser_step or eight'"),
        ("F.normalize(parts, dim=-1) if self.config.normalize_parts else parts",
         "F.normalize(parts, dim=-1)",
         f"{LAYER} -k 'rows_are or norms'"),
        ("mask = ids_BL != padding if mask_BL is None else mask_BL > 0",
         "mask = ids_BL >= 0", f"{LAYER} -k random_renaming"),
        ("self.random_parts = torch.cat((self.random_parts, new))",
         "self.random_parts = self._draw(0, INFERENCE + 1)", f"{LAYER} -k old_names"),
        ("symbol if mask_BL is None else symbol & (mask_BL > 0)", "symbol", CHECKS),
        ("torch.where(mask_BL > 0, own_BL, -1)", "own_BL", f"{RELATIONS} -k padding"),
        ("device=ids_BT.device) + past", "device=ids_BT.device)", RELATIONAL),
        ("torch.where(shown_tokens(mask, position_T), own_BT, -1)", "own_BT",
         f"{RELATIONS} -k padding"),
        ("if self.config.normalize_embeddings:\n            rows_BSD", "if True:\n            "
         "rows_BSD", f"{RELATIONS} -k other_settings"),
        ("streams.memory[:, :, 0]", "streams.memory[:, :, 1]", REFERENCE),
    ],
    "modeling/cpu.py": [
        ("grad_ME.sum(0) if wants[2]", "grad_ME.mean(0) if wants[2]", CPU),
        ("rest % STEP if rest >= SMALLEST else rest", "rest % STEP", CPU),
    ],
    "modeling/modeling_alpha.py": [
        ("slot = 2 * index\n", "slot = index\n", f"{STREAMS} -k caches_change_nothing"),
        ("cross_weights = found if cross_weights is None else cross_weights",
         "cross_weights = found", f"{RELATIONS} -k all_switches"),
        ("layer is self.layers[-1] and", "layer is self.layers[0] and", REFERENCE),
    ],
    "tasks/ltl/grammar.py": [
        ('"G": "! U 1 ! $1"', '"G": "! U 1 $1"', f"{GRAMMAR} {LTL}"),
        ('"<->": "| & $1 $2 & ! $1 ! $2"', '"<->": "| & $1 $2 & ! $1 $2"', f"{GRAMMAR} {LTL}"),
    ],
    "tasks/commuting.py": [
        ("alike if tried <= MAX_TRIED else alike[:1]:", "alike[:1]:", COMMUTING),
        ("alike = tree.not_exchangeable(alike)", "alike = alike[:1]", COMMUTING),
        ("min(found, key=lambda each: _numbered(each, fixed))", "found[0]", COMMUTING),
        ("3 if arity == 2 and token not in commutative else 1", "1", COMMUTING),
    ],
    "tasks/base.py": [
        ('if equivalence == "commuting" and', "if", COMMUTING),
        ("return self in (Verdict.exact, Verdict.correct)", "return self is Verdict.correct",
         f"{REPORT} {PROPOSITIONAL}"),
    ],
    "tasks/truth_table.py": [
        ("table &= (table >> shift) & mask\n    return", "table |= (table >> shift) & mask\n"
         "    return", TABLES),
        ("for literals in range(fewest, num", "for literals in range(fewest + 1, num", TABLES),
    ],
    "tasks/propositional/assignment.py": [
        ("if len(assignment) != len(names) or not", "if not", PROPOSITIONAL),
    ],
    "tasks/ltl/lasso.py": [
        ("last = self._shifts\n        return table >> second",
         "last = self._shifts\n        return table >> entry", LASSO),
        ("either = a | b", "either = a ^ b", f"{LASSO} {WITNESS}"),
        ("return None if table is None else not table", "return None if table is None else False",
         LTL),
        ("literals += literals[trace.loop :]", "literals += literals[: trace.loop]", LASSO),
    ],
    "tasks/ltl/trace.py": [
        ("return Trace(tuple(steps), len(prefix))", "return Trace(tuple(steps), 0)",
         f"{TRACE} {LTL}"),
    ],
    "tasks/ltl/witness.py": [
        ("return _drop_literals(tokens, num_symbols, shape(steps, loop, 1), word)",
         "return tuple(word)", WITNESS),
        ("for loop in reversed(range(steps))", "for loop in range(steps)", WITNESS),
        ("self.clauses += [starts, *(", "self.clauses += [*(", WITNESS),
    ],
    "tasks/registry.py": [
        ("if _path(known) != _path(task):", "if False:", f"{REGISTRY} -k registered"),
        ("return task.name if _offered_tasks().get(task.name) == path else path", "return path",
         f"{REGISTRY} -k entry_point"),
        ("if task.name in built_in_tasks() and not", "if not", f"{REGISTRY} -k own_from"),
    ],
    "tasks/circuit.py": [
        ("self.clauses += [[-known, x], [-known, y], [known, -x, -y]]",
         "self.clauses += [[-known, x], [-known, y]]", f"{CIRCUIT} {SAT}"),
    ],
    "tasks/ltl/sampler.py": [
        ("if one & other:", "if one == other:", LTL_FORMULAS),
    ],
    "tasks/propositional/sampler.py": [
        ("tokens[node + 1 : middle] == tokens[middle:end]:",
         "tokens[node + 1 : middle] == tokens[middle:end] and left > 1:", FORMULAS),
    ],
    "tasks/copying/task.py": [
        ("return [text] if _NUMBERED.fullmatch(text) else list(text)", "return list(text)",
         COPYING),
    ],
    "tasks/solver_process.py": [
        ("seconds + GRACE)", "1e6)", f"{SOLVER} -k stopped"),
    ],
    "data/plan.py": [
        ("{'few' if self.few else 'samples'}/{settings.seed}/", "{'few' if self.few else "
         "'samples'}/", f"{GENERATE} -k seed"),
        ("new = key not in self.keys", "new = True", f"{GENERATE} -k 'written or overlap'"),
    ],
    "data/generate.py": [
        ('seed=f"grid/{settings.seed}/{count}/{size}"', 'seed=f"grid/{count}/{size}"',
         f"{GENERATE} -k seed"),
        ('split="test" if task.held_out else None', "split=None",
         f"{GENERATE} -k 'test_grid or written'"),
    ],
    "data/chunk.py": [
        ("seen = set(read_keys(chunk.excluded))", "seen = set()", f"{GENERATE} -k clear"),
    ],
    "data/keys.py": [
        ("key_of(task.canonical_form(tokens, equivalence) if",
         'key_of(task.canonical_form(tokens, "renaming") if', f"{GENERATE} -k written"),
    ],
    "data/drawn.py": [
        ('random.Random(f"{self.seed}/{index}")', 'random.Random(f"{index}")', DRAWN),
    ],
    "data/bucket.py": [
        ("default_rng((self.seed, self.epoch))", "default_rng(self.seed)", BUCKET),
    ],
    "data/collate.py": [
        ('.difference(row["input_ids"])', ".difference(row)", COLLATE),
        ("[*[IGNORE] * len(problem), *answer]", "[*problem, *answer]", COLLATE),
        ('[_one_sequence(row) for row in features], "right"',
         "[_one_sequence(row) for row in features], None", COLLATE),
    ],
    "data/perturb.py": [
        ("dict.fromkeys([*symbols, *known])", "dict.fromkeys([*known, *symbols])", PERTURB),
    ],
    "data/read.py": [
        ('for name in splits if name != "test"', "for name in splits", READ),
    ],
    "evaluation/evaluate.py": [
        ('"weights": fingerprint(self.module),', "", EVALUATE),
        ("num_beams = max(num_beams or task.num_beams, top_n)", "num_beams = num_beams or top_n",
         EVALUATE),
    ],
    "evaluation/instructed.py": [
        ("found if reply.ended else CUT_OFF", "found", INSTRUCTED),
        ("if prompt not in self.known]", "]", INSTRUCTED),
    ],
    "evaluation/service.py": [
        ("if error.code == 429 or error.code >= 500:", "if error.code >= 500:", SERVICE),
        ("build_opener(_NoRedirection).open", "build_opener().open", SERVICE),
    ],
    "tasks/prompts.py": [("return readable[-1]", "return readable[0]", PROMPTS)],
    "evaluation/report.py": [
        ('part = self.outcomes["exact"] + self.outcomes["correct"]',
         'part = self.outcomes["correct"]', REPORT),
    ],
    "transduction/lexicon.py": [
        ("(length, (*ids, label_ids[label]))", "(length, (label_ids[label],))", TRANSDUCER),
        ('_UNKNOWN = _WIDTH * "\\uffff"', '_UNKNOWN = ""', TRANSDUCER),
    ],
    "transduction/automaton.py": [
        ("limit = min(start + most, len(edges))", "limit = len(edges)", TRANSDUCER),
        ("if at > start and any(", "if any(", TRANSDUCER),
    ],
    "transduction/gamma.py": [("segment[:2] == last or ", "", TRANSDUCER)],
    "transduction/cascade.py": [("self.begins |= mask", "pass", TRANSDUCER)],
    "transduction/transducer.py": [
        ("key=lambda s: (s[0] - s[1], s[2], s[0])", "key=lambda s: (s[1] - s[0], s[2], s[0])",
         TRANSDUCER),
    ],
    "modeling/modeling_retrofit_decoder.py": [
        ("self.training and learns", "self.training", DECODER),
        ("labels[:, 1:], (0, 1)", "labels[:, :-1], (1, 0)", DECODER),
        ('return {"position_ids": given_BT}', "return {}", DECODER),
        ('kwargs["stream_ids"] = first_occurrence(prompt, symbol)', "pass", GENERATION),
    ],
    "generation.py": [
        ("order.sort(key=lambda index: _cost(encodings[index]), reverse=True)", "pass",
         GENERATION),
        ("    model.eval()\n", "", GENERATION),
        ('side = None if model.config.is_encoder_decoder else "left"', "side = None", GENERATION),
    ],
    "auto.py": [
        ("if module not in sys.modules:", "if module in sys.modules:", AUTO),
        ("ours.register_for_auto_class(auto_name)", "pass", AUTO),
        ("while not self.depth and self.waiting:", "while self.waiting:", AUTO),
    ],
    "recipe/yaml.py": [
        ("merged.pop(key, None)", "merged[key] = None", RECIPE),
        ('base["training"].pop("output_dir", None)', "pass", RECIPE),
        ("if chain[-1] in children:", "if False:", f"{RECIPE} -k circles"),
        ("(folder / f\"{name}.yaml\", folder / name)", "()", RECIPE),
    ],
    "recipe/schema.py": [
        ("if validation == {} else validation", "if False else validation", RECIPE),
        ('return super().code() | {"data.format": self.data.format}', "return super().code()", f"{TRUST} -k known"),
        ("validate_default=True,", "", f"{RECIPE} tests/objectives/test_classes.py"),
    ],
    "settings.py": [
        ('extra="forbid", strict=True', 'extra="forbid"', RECIPE),
        ("for key in filter(content.get, foreign):", "for key in ():", RECIPE),
        ("(value or not self.or_empty)", "value", RECIPE),
    ],
    "evaluation/random_parts.py": [
        ("[len(losses) // 2]", "[0]", RANDOM_PARTS),
        ("draws.random_parts = parts", "pass", RANDOM_PARTS),
    ],
    "objectives/names.py": [
        ("text if finder is None else canonical_text(text, finder)", "text", RENAMED),
    ],
    "objectives/tokens.py": [
        ("word_by_word(text, words) for text in", "text for text in", TOKENS),
    ],
    "objectives/spans.py": [
        ("cut_out(text, 0, spans[most - 1][1])", "text[: spans[most - 1][1]]", SPANS),
        (" and span[0] < span[1]", "", SPANS),
        ("super().key(texts[1:], finder)", "super().key(texts[:1], finder)", SPANS),
    ],
    "objectives/masked.py": [
        ('"_" * len(', '"." * len(', MASKED),
        ("torch.where(symbol_BT, other_BT, base_BT)", "base_BT", MASKED),
        ("(ids_BT != mask_id) & ~random_BT", "(ids_BT != mask_id)", MASKED),
        ("labels_BT.masked_fill(symbol_BT & ~is_shown_BT, IGNORE)", "labels_BT", MASKED),
        ("(ids_BT != mask_id) & (drawn_BT < 0.5)", "(drawn_BT < 0.5)", MASKED),
        ("self.numbering.ids(written)",
         "[i if isinstance(i, int) else min(self.numbering._class_of) for i in written]", NUMBERED),
    ],
}  # fmt: skip


def main() -> int:
    """Run; the exit code is 0 if every bug was noticed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("words", nargs="*", help="only bugs in files whose name holds one of these")
    parser.add_argument("--out", type=Path, default=Path("mutation.json"))
    options = parser.parse_args()
    chosen = [m for m in mutants() if not options.words or any(w in m.file for w in options.words)]
    check_texts(chosen)
    with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
        copy = Path(folder)
        copy_tree(copy)
        for tests in selections(chosen):
            if run_tests(copy, tests) != 0:
                sys.exit(f"the tests fail without any bug: {tests}")
        results: list[dict[str, str]] = []
        for mutant in chosen:
            outcome = try_mutant(copy, mutant)
            results.append({"outcome": outcome, **mutant._asdict()})
            print(f"{outcome:9}{mutant.file}: {mutant.old!r} -> {mutant.new!r}", flush=True)
    killed = sum(result["outcome"] == "killed" for result in results)
    print(f"{killed} of {len(results)} killed")
    options.out.write_text(json.dumps({"killed": killed, "mutants": results}, indent=1) + "\n")
    return int(killed < len(results))


def check_texts(chosen: Iterable[Mutant]) -> None:
    """Say which bugs cannot be planted."""
    lost = [
        f"{mutant.file}: {mutant.old!r} is there {count} times, not once"
        for mutant in chosen
        if (count := (ROOT / "hf_alpha" / mutant.file).read_text().count(mutant.old)) != 1
    ]
    if lost:
        sys.exit("\n".join(lost))


def selections(chosen: Iterable[Mutant]) -> list[str]:
    """Return the arguments for a run without bugs: all whole files go into one."""
    found = dict.fromkeys(mutant.tests for mutant in chosen)
    parts = [tests for tests in found if " -k " in tests]
    files = dict.fromkeys(file for tests in found if tests not in parts for file in tests.split())
    return [*([" ".join(files)] if files else []), *parts]


def copy_tree(copy: Path) -> None:
    """Copy what the tests need; the model cards, which are large, are linked."""
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            ignore = shutil.ignore_patterns("__pycache__")
            shutil.copytree(source, copy / name, symlinks=True, ignore=ignore)
        else:
            shutil.copy(source, copy / name)
    (copy / "model_cards").symlink_to(ROOT / "model_cards")


def try_mutant(copy: Path, mutant: Mutant) -> str:
    """Plant a bug, run its tests, and take it out again."""
    path = copy / "hf_alpha" / mutant.file
    text = path.read_text()
    path.write_text(text.replace(mutant.old, mutant.new))
    try:
        code = run_tests(copy, mutant.tests)
    finally:
        path.write_text(text)
    return {0: "survived", 1: "killed", 2: "killed"}.get(code, f"error {code}")


def run_tests(copy: Path, tests: str) -> int:
    """Return pytest's exit code; 1 where time is up."""
    process = get_context("fork").Process(target=_run_pytest, args=(copy, tests))
    process.start()
    process.join(TIMEOUT)
    if process.is_alive():
        process.kill()
        process.join()
        return 1
    assert process.exitcode is not None
    return process.exitcode


def _run_pytest(copy: Path, tests: str) -> None:
    """Run tests with the package of the copy; this process is a fork that has the heavy imports."""
    with open(os.devnull, "w") as nothing:
        os.dup2(nothing.fileno(), 1)
        os.dup2(nothing.fileno(), 2)
    os.chdir(copy)
    # Bytecode is told from its source by size and time: two bugs may have the same.
    sys.dont_write_bytecode = True
    # For the processes that the tests start:
    os.environ |= {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    sys.path.insert(0, str(copy))
    import hf_alpha

    assert hf_alpha.__file__.startswith(str(copy)), hf_alpha.__file__
    plugins = ["-n", "0", "-p", "no:cacheprovider"]
    sys.exit(pytest.main(["-x", "-q", *plugins, *shlex.split(tests)]))


if __name__ == "__main__":
    sys.exit(main())
