"""`relational` encoding for one sample, loop by loop; what is no part of it is as in `streams`.

There is one stream. "Own" of a position is the number of the symbol there, by first occurrence in
the input, None for a base token and for a symbol that the input has not got.
"""

import math

import torch

from .streams import ReferenceModel


def same(one: int | None, other: int | None) -> bool:
    return one is not None and one == other


class RelationalReferenceModel(ReferenceModel):
    """The encoder-decoder with relations from a state dict and a configuration."""

    # -- symbols ---------------------------------------------------------------------------------
    def row_of(self, token: int) -> torch.Tensor:
        """All symbols of a class share the row behind those of the base tokens."""
        cls = self.class_of(token)
        return self.rows()[token if cls is None else self.config.num_base_tokens + cls]

    def unit_rms(self, name: str, x: torch.Tensor) -> torch.Tensor:
        mean_square = sum(number * number for number in x) / len(x)
        return x / torch.sqrt(mean_square + torch.finfo(x.dtype).eps) * self.w(name + ".weight")

    def remember(self, encoded, own: list[int | None], symbols: list[int]):
        """For each symbol, what its row in the decoder's input gets, and what the head sees."""
        entered, rows = [], []
        for number, symbol in enumerate(symbols):
            states = [x for x, other in zip(encoded, own, strict=True) if other == number]
            mean, vectors = sum(states) / len(states), []
            for side in ("input", "output"):
                name = f"model.symbol_memory.{side}"
                vectors.append(self.unit_rms(name + "_norm", self.w(name + "_proj.weight") @ mean))
            row = self.row_of(symbol) + vectors[1]
            entered.append(vectors[0])
            rows.append(row / row.norm() if self.config.normalize_embeddings else row)
        return entered, rows

    # -- projection ------------------------------------------------------------------------------
    def pointer(self, t: int, number: int, own, encoder_own, weights) -> torch.Tensor:
        """What the head adds to the score of a symbol at a position."""
        written, last = self.w("model.symbol_memory.pointer.repeat")
        score = torch.zeros(())
        for h, share in enumerate(self.w("model.symbol_memory.pointer.attention")):
            for m, other in enumerate(encoder_own):
                if other == number:
                    score = score + share * weights[h][t][m]
        if number in own[: t + 1]:
            score = score + written
        if own[t] == number:
            score = score + last
        return score

    def __call__(self, ids: list[int], paths: list[int], decoder_ids: list[int]) -> torch.Tensor:
        """Logits (T, V) of one sample; columns of symbols that it has not got are NaN."""
        config = self.config
        symbols = self.symbols_of(ids)

        def own(tokens):
            return [symbols.index(token) if token in symbols else None for token in tokens]

        def equal(ones, others):
            return [[same(one, other) for other in others] for one in ones]

        encoder_own, decoder_own = own(ids), own(decoder_ids)
        written = [
            [any(same(number, before) for before in decoder_own[: t + 1]) for number in encoder_own]
            for t in range(len(decoder_own))
        ]
        across = [equal(decoder_own, encoder_own), written]
        factor = math.sqrt(config.d_model) if config.scale_embedding else 1.0
        source, none = [self.row_of(token) * factor for token in ids], [[False] * len(ids)]
        (encoded,) = self.encode([source], none, paths, [equal(encoder_own, encoder_own)])
        entered, rows = self.remember(encoded, encoder_own, symbols)
        answer = [
            (self.row_of(token) + (0 if number is None else entered[number])) * factor
            for token, number in zip(decoder_ids, decoder_own, strict=True)
        ]
        (hidden,), (weights,) = self.decode(
            [answer], [[False] * len(answer)], [encoded], none,
            [equal(decoder_own, decoder_own)], across,
        )  # fmt: skip
        scale, out = self.w("logit_scale.scale"), []
        for t, feature in enumerate(hidden):
            if config.normalize_features:
                feature = feature / feature.norm()
            logits = [torch.tensor(float("nan"))] * config.vocab_size
            for token in range(config.num_base_tokens):
                logits[token] = scale * (feature @ self.rows()[token])
            for number, symbol in enumerate(symbols):
                score = feature @ rows[number]
                score = score + self.pointer(t, number, decoder_own, encoder_own, weights)
                logits[symbol] = scale * score
            out.append(torch.stack(logits))
        return torch.stack(out)
