"""A fast tokenizer with a transducer: tokens of a text, and beside them its symbolic segments.

Segments are found in the text itself and lie over the tokens that have their characters, whatever
the tokenizer. The transducer is part of the package `hf_alpha`, which has to be installed to encode
texts; all else works without.

Shapes: B batch, T tokens, S segments.
"""

import json
import os
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence, Set
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tokenizers import Encoding
from transformers import BatchEncoding, PreTrainedTokenizerFast
from transformers.tokenization_utils_base import TruncationStrategy
from transformers.utils import PaddingStrategy, to_py_obj

from .batches import PadsColumns, copied_backend, rectangle
from .choices import refuse
from .saving import SavesCode

PACKAGE = "hf_alpha"
FILES = {"transducer_file": "transducer.json", "lexicon_file": "lexicon.tsv"}
SEGMENTS = ("segment_ids", "segment_starts", "segment_ends")

Placed = tuple[int, int, int]  # columns of the first and last token, and the id


class GeometricTokenizer(SavesCode, PadsColumns, PreTrainedTokenizerFast):
    """Any fast tokenizer, whose batches also have the segments that a transducer finds.

    Made by `from_tokenizer`. Ids, special tokens, padding and all else are
    those of the tokenizer that it is made from. Beside its keys, a batch has three of (B, S):

    - `segment_ids`: number of the label in `segment_labels` plus 1; 0 is padding;
    - `segment_starts`, `segment_ends`: columns of `input_ids` with the first and the last token
      that has a character of the segment.

    The segments of a row are sorted by start, end and id, each is there once, and 0 fills the row
    on its right, whatever side tokens are padded on. A segment of which truncation cuts a token
    off, or which has no token, is left out. So is one over a special token that the text itself
    writes, such as `[MASK]`: its words are no words of the text. (Unknown words are kept.)

    Args:
        transducer: a `hf_alpha.transduction.Transducer`.
        transducer_file, lexicon_file: its files, in one folder, if it is not given itself. It is
            loaded when the first text is encoded.
        **kwargs: what `PreTrainedTokenizerFast` takes.

    Examples:
        >>> sums = Transducer.compile(rules=[Rule("add /[a-z]/", label="SUM")])
        >>> with_segments = GeometricTokenizer.from_tokenizer(host_tokenizer, sums)
        >>> batch = with_segments("x add y")
        >>> batch["segment_starts"], batch["segment_ends"]
        ([1], [2])
    """

    vocab_files_names = {"tokenizer_file": "tokenizer.json", **FILES}  # noqa: RUF012
    model_input_names = ["input_ids", "token_type_ids", "attention_mask", *SEGMENTS]  # noqa: RUF012
    ragged = dict.fromkeys(SEGMENTS, 0)

    def __init__(
        self,
        *args: Any,
        transducer: Any = None,
        transducer_file: str | None = None,
        lexicon_file: str | None = None,
        **kwargs: Any,
    ):
        self._transducer = transducer
        # Their content until the first text: the folder may be gone by then.
        paths = [path for path in (transducer_file, lexicon_file) if path is not None]
        self._files = {Path(path).name: Path(path).read_bytes() for path in paths}
        for key in ("is_local", "local_files_only"):  # where it was loaded from is not its data
            kwargs.pop(key, None)
        super().__init__(*args, **kwargs)

    @classmethod
    def convert_to_native_format(cls, trust_remote_code: bool = False, **kwargs: Any) -> Any:
        """Leave `tokenizer.json` to the constructor: all of the tokenizer is in there."""
        return kwargs

    @classmethod
    def from_tokenizer(cls, tokenizer: Any, transducer: Any) -> "GeometricTokenizer":
        """Put a transducer on top of a fast tokenizer, which stays as it is.

        Args:
            tokenizer: any fast tokenizer of Transformers.
            transducer: a `hf_alpha.transduction.Transducer`.

        Raises:
            ValueError: it is no fast tokenizer, or has symbols.
        """
        refuse(
            hasattr(tokenizer, "symbol_ranges"),
            f"{type(tokenizer).__name__} has symbols in place of names: a transducer goes on top "
            "of a tokenizer without symbols",
        )
        beneath, settings = copied_backend(tokenizer)
        names = [name for name in tokenizer.model_input_names if name not in SEGMENTS]
        return cls(
            tokenizer_object=beneath,
            transducer=transducer,
            model_input_names=[*names, *SEGMENTS],
            clean_up_tokenization_spaces=tokenizer.clean_up_tokenization_spaces,
            split_special_tokens=tokenizer.split_special_tokens,
            **settings,
        )

    # The transducer

    @property
    def transducer(self) -> Any:
        """The transducer; loaded when it is first used.

        Raises:
            ImportError: hf_alpha is not installed.
            ValueError: there is none.
        """
        if self._transducer is None:
            files = self._saved()
            try:
                transduction = import_module(f"{PACKAGE}.transduction")
            except ModuleNotFoundError as error:
                if f"{error.name}".partition(".")[0] != PACKAGE:
                    raise
                raise ImportError(
                    "segments are found by the package hf_alpha, which is not installed: "
                    "pip install 'hf_alpha[transduction]'"
                ) from error
            with TemporaryDirectory() as folder:
                for name, content in files.items():
                    Path(folder, name).write_bytes(content)
                self.transducer = transduction.Transducer.load(folder)
        return self._transducer

    @transducer.setter
    def transducer(self, transducer: Any) -> None:
        self._transducer, self._files = transducer, {}

    @property
    def segment_labels(self) -> list[str]:
        """The labels of segments; that of number i has the id i + 1."""
        if self._transducer is not None:
            return list(self._transducer.labels)
        return list(json.loads(self._saved()[FILES["transducer_file"]])["labels"])

    def _saved(self) -> dict[str, bytes]:
        """The transducer's files, as long as it is not loaded."""
        if len(self._files) < len(FILES):
            raise ValueError(
                f"the tokenizer has no transducer: {' and '.join(FILES.values())} belong beside "
                "its tokenizer.json, or set `tokenizer.transducer`"
            )
        return self._files

    def _save_pretrained(
        self,
        save_directory: str | os.PathLike,
        file_names: tuple[str, ...],
        legacy_format: bool | None = None,
        filename_prefix: str | None = None,
    ) -> tuple[str, ...]:
        names = super()._save_pretrained(save_directory, file_names, legacy_format, filename_prefix)
        if self._transducer is not None:
            self._transducer.save(save_directory)
        else:
            for name, content in self._saved().items():
                Path(save_directory, name).write_bytes(content)
        return (*names, *(str(Path(save_directory, name)) for name in FILES.values()))

    # Encoding

    def _encode_plus(
        self,
        text: Any,
        text_pair: Any = None,
        *,
        padding_strategy: PaddingStrategy = PaddingStrategy.DO_NOT_PAD,
        is_split_into_words: bool = False,
        return_tensors: Any = None,
        **kwargs: Any,
    ) -> BatchEncoding:
        """Encodes as the base class does, with segments."""
        if is_split_into_words:
            raise ValueError("segments are found in whole texts: leave out is_split_into_words")
        encoding = super()._encode_plus(
            text,
            text_pair,
            padding_strategy=padding_strategy,
            return_tensors=return_tensors,
            **kwargs,
        )
        if not encoding.encodings:  # of a chat's control tokens there are ids only
            return encoding
        rows = _rows(text, text_pair)
        special = kwargs.get("add_special_tokens", True)
        samples = encoding.get("overflow_to_sample_mapping", range(len(rows)))
        segments = self._segments(rows, to_py_obj(samples), encoding.encodings, special)
        padded = padding_strategy != PaddingStrategy.DO_NOT_PAD or return_tensors is not None
        columns: dict[str, Any] = _columns(segments, padded)
        alone = not isinstance(text, list | tuple) and return_tensors is None
        if alone and "overflow_to_sample_mapping" not in encoding:
            columns = {key: column[0] for key, column in columns.items()}
        encoding.update(BatchEncoding(columns, tensor_type=return_tensors))
        return encoding

    def _segments(
        self,
        rows: Sequence[tuple[str, ...]],
        samples: Sequence[int],
        encodings: Sequence[Encoding],
        add_special_tokens: bool,
    ) -> list[list[Placed]]:
        """Returns the segments of each encoding, sorted by first and last column and id.

        Args:
            samples: of which sample each encoding is; some may be parts of one.
        """
        number = {name: index for index, name in enumerate(self.segment_labels, start=1)}
        spans = [
            [[(a, b, number[name]) for a, b, name in self.transducer.spans(t)] for t in texts]
            for texts in rows
        ]
        cut = sorted({s for s, each in zip(samples, encodings, strict=True) if each.overflowing})
        whole = dict(zip(cut, self._whole([rows[s] for s in cut], add_special_tokens), strict=True))
        marks = {*self.all_special_ids} - {self.unk_token_id}
        return [
            sorted(
                {
                    placed
                    for part, some in enumerate(spans[sample])
                    if some
                    for placed in _placed(some, part, each, whole.get(sample, each), marks)
                }
            )
            for sample, each in zip(samples, encodings, strict=True)
        ]

    def _whole(self, rows: list[tuple[str, ...]], add_special_tokens: bool) -> list[Encoding]:
        """Returns the encodings of rows before truncation."""
        if not rows:
            return []
        self.set_truncation_and_padding(
            PaddingStrategy.DO_NOT_PAD, TruncationStrategy.DO_NOT_TRUNCATE, 0, 0, None, None
        )
        inputs = [row if len(row) == 2 else row[0] for row in rows]
        return self._tokenizer.encode_batch(inputs, add_special_tokens=add_special_tokens)

    def _padded(
        self, ragged: dict[str, Any], before: Any, after: Any, left: bool, multiple: int
    ) -> dict[str, Any]:
        """Pad segments; where tokens are padded on the left, they move with them."""
        if not ragged:
            return ragged
        if isinstance(to_py_obj(before[0]), int):  # one row alone
            alone = {key: [row] for key, row in ragged.items()}
            padded = self._padded(alone, [before], [after], left, multiple)
            return {key: column[0] for key, column in padded.items()}
        moved = []
        columns = (ragged[key] for key in SEGMENTS)
        for numbers, starts, ends, short, long in zip(*columns, before, after, strict=True):
            shift = (len(long) - len(short)) * left
            places = zip(starts, ends, numbers, strict=True)
            moved.append([(a + shift, b + shift, number) for a, b, number in places if number])
        return _columns(moved, True)


def _rows(text: Any, text_pair: Any) -> list[tuple[str, ...]]:
    """Returns the one or two texts of each sample; a batch may also be a list of pairs."""
    if not isinstance(text, list | tuple):
        return [(text, text_pair)] if text_pair else [(text,)]
    if text_pair is not None:
        return list(zip(text, text_pair, strict=True))
    return [(each,) if isinstance(each, str) else tuple(each) for each in text]


def _placed(
    spans: Sequence[tuple[int, int, int]],
    part: int,
    truncated: Encoding,
    whole: Encoding,
    marks: Set[int],
) -> Iterator[Placed]:
    """Yields the segments of a text of which all tokens are left, and none is special.

    Args:
        spans: first character, the one after the last, and id of each segment.
        part: which text of the row it is.
        truncated: the tokens that are left of the row.
        marks: ids of special tokens.
    """
    column, tokens = _tokens(truncated, part)
    all_tokens = tokens if whole is truncated else _tokens(whole, part)[1]
    places = range(len(all_tokens) - len(tokens) + 1)
    lost = next(place for place in places if all_tokens[place : place + len(tokens)] == tokens)
    starts, stops = ([offsets[side] for _, offsets in all_tokens] for side in (0, 1))
    for begin, end, number in spans:
        first, last = bisect_right(stops, begin), bisect_left(starts, end) - 1
        if not lost <= first <= last < lost + len(tokens):
            continue
        if marks.isdisjoint(token for token, _ in all_tokens[first : last + 1]):
            yield column + first - lost, column + last - lost, number


def _tokens(encoding: Encoding, part: int) -> tuple[int, list[tuple[int, tuple[int, int]]]]:
    """Returns the first column of a text's tokens, and their ids and characters."""
    columns = [column for column, which in enumerate(encoding.sequence_ids) if which == part]
    if not columns:
        return 0, []
    start, stop = columns[0], columns[-1] + 1
    pairs = zip(encoding.ids[start:stop], encoding.offsets[start:stop], strict=True)
    return start, list(pairs)


def _columns(segments: Sequence[Sequence[Placed]], padded: bool) -> dict[str, list[list[int]]]:
    """Returns the keys of a batch, with 0 on the right if it is padded."""
    columns = {
        key: [[placed[place] for placed in row] for row in segments]
        for key, place in zip(SEGMENTS, (2, 0, 1), strict=True)
    }
    return {key: rectangle(rows, 0) if padded else rows for key, rows in columns.items()}


GeometricTokenizer.register_for_auto_class("AutoTokenizer")
