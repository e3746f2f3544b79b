"""FOLNet with symbolic segments beside the tokens of one sample, without padding."""

import torch
from reference.folnet import FolnetReference, View
from reference.geometric import Span, relation
from torch import Tensor

from hf_alpha.modeling.segment_relations import RELATIONS


def element_relations(
    spans: list[Span], tokens: int, types: list[int], most: int, cls_atoms: bool
) -> Tensor:
    """Rows of the table for each pair of elements: Appendix A.4, and the paper's relations."""
    table = torch.zeros(len(spans), len(spans), dtype=torch.long)
    for x, one in enumerate(spans):
        for y, two in enumerate(spans):
            name = relation(one, two, x == y, most - 1)
            if name in RELATIONS:
                table[x, y] = 2 * most + 2 + RELATIONS.index(name)
            elif cls_atoms and x != y and 0 in (x, y):
                table[x, y] = 2 * most + (x != 0)
            elif types[one[0]] != types[two[0]]:
                table[x, y] = most
            else:
                distance = int(name)
                table[x, y] = distance if distance >= 0 else 2 * most + distance
    return table


class SegmentsReference(FolnetReference):
    """An encoder whose text has segments: (label's number plus 1, first and last token) each."""

    def encode_with(
        self, ids: Tensor, types: Tensor, segments: list[tuple[int, int, int]]
    ) -> tuple[Tensor, Tensor]:
        """Final atoms of the tokens: (x, d) and (x, y, d)."""
        name, config, length = "folnet.encoder.embeddings", self.config, len(ids)
        spans = [(i, i) for i in range(length)] + [(start, end) for _, start, end in segments]
        labels = torch.tensor([label for label, _, _ in segments], dtype=torch.long)
        u1 = torch.cat(
            (
                self.weights["folnet.shared.weight"][ids],
                self.weights[f"{name}.segment_embeddings.weight"][labels],
            )
        )
        kinds = torch.tensor([int(types[start]) for start, _ in spans])
        u1 = u1 + self.weights[f"{name}.token_type_embeddings.weight"][kinds]
        table = element_relations(
            spans, length, types.tolist(), config.max_distance, config.cls_atoms
        )
        u2 = self.weights[f"{name}.distance_embeddings.weight"][table]
        u1, u2 = self.norm(f"{name}.unary_norm", u1), self.norm(f"{name}.binary_norm", u2)
        view = View(torch.ones(len(spans), len(spans), dtype=torch.bool))
        u1, u2 = self.stack("folnet.encoder", u1, u2, view)
        return u1[:length], u2[:length, :length]
