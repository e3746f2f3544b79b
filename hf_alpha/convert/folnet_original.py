"""What a checkpoint of FOLNet's original code computes, written out plainly from its own names.

Conversions are proved against it. It has no dropout, and as the original no mask: padding takes
part in everything.

B: batch; T: tokens; x, y, a: a token; h: head; s: place in a head; d: an atom's dimension.
"""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"gelu": F.gelu, "relu": F.relu}


class OriginalFolnet:
    """The original's outputs from its weights and settings.

    Args:
        settings: what the original's .cfg file says; `mixer_ops` by number.
    """

    def __init__(self, state: Mapping[str, Tensor], settings: Mapping[str, Any]) -> None:
        self.state, self.settings = state, settings

    def outputs(self, ids_BT: Tensor, types_BT: Tensor) -> dict[str, Tensor]:
        """Return final atoms, the pooled state and logits, by the names of our outputs.

        Logits of several choices are those of single sequences, (B, 1).
        """
        unary, binary = self._base_atoms(ids_BT, types_BT)
        for number in range(self.settings["num_layers"]):
            unary, binary = self._layer(f"folnet.reasoner.layers.{number}", unary, binary)
        unary, binary = self._norm(unary), self._norm(binary)
        pooled = torch.tanh(self._linear("folnet.dense", unary[:, 0]))
        atoms = {"last_hidden_state": unary, "binary_hidden_state": binary, "pooler_output": pooled}
        return atoms | self._logits(unary, pooled)

    def _logits(self, unary: Tensor, pooled: Tensor) -> dict[str, Tensor]:
        if "classifier.weight" in self.state:
            return {"logits": self._linear("classifier", pooled)}
        if "classifier.start_logits.dense.weight" in self.state:
            return {
                f"{side}_logits": self._linear(f"classifier.{side}_logits.dense", unary)[..., 0]
                for side in ("start", "end")
            }
        name = "cls.heads.predictions"
        words = self._norm(self._activation(self._linear(f"{name}.transform.dense", unary)))
        table = self.state["folnet.encoder.word_embd.weight"]
        return {
            "logits": words @ table.T + self.state[f"{name}.bias"],
            "seq_relationship_logits": self._linear("cls.heads.seq_relationship", pooled),
        }

    # -- parts ---------------------------------------------------------------------------------

    def _on(self, name: str, default: bool = False) -> bool:
        return bool(self.settings.get(name, default))

    def _linear(self, name: str, x: Tensor) -> Tensor:
        return F.linear(x, self.state[f"{name}.weight"], self.state.get(f"{name}.bias"))

    def _norm(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, x.shape[-1:], eps=self.settings["layer_norm_eps"])

    def _activation(self, x: Tensor) -> Tensor:
        return ACTIVATIONS[self.settings["hidden_act"]](x)

    def _base_atoms(self, ids_BT: Tensor, types_BT: Tensor) -> tuple[Tensor, Tensor]:
        name = "folnet.encoder"
        unary = self.state[f"{name}.word_embd.weight"][ids_BT]
        unary = unary + self.state[f"{name}.type_embd.weight"][types_BT]
        if self._on("absolute_position"):
            unary = unary + self.state[f"{name}.abs_pos_embd.weight"][: ids_BT.shape[1]]
        if self._on("relative_position", default=True):
            binary = self.state[f"{name}.rel_pos_embd.weight"][self._distances(types_BT)]
        else:
            binary = unary.new_zeros(
                *ids_BT.shape, ids_BT.shape[1], self.settings["predicate_dims"][2]
            )
        return self._norm(unary), self._norm(binary)

    def _distances(self, types_BT: Tensor) -> Tensor:
        """Return the rows of the table of distances, (B, T, T)."""
        limit = self.settings["max_position_offset"]
        places = torch.arange(types_BT.shape[1])
        ahead = (places[None, :] - places[:, None]).clamp(1 - limit, limit - 1)
        rows = torch.where(ahead < 0, ahead + 2 * limit, ahead)
        same_type = types_BT[:, :, None] == types_BT[:, None, :]
        rows = torch.where(same_type, rows, limit)
        rows[:, 0, 1:] = 2 * limit
        rows[:, 1:, 0] = 2 * limit + 1
        return rows

    def _layer(self, name: str, unary: Tensor, binary: Tensor) -> tuple[Tensor, Tensor]:
        """Apply the operators of both branches, then the boolean ones."""
        one, two = self._norm(unary), self._norm(binary)
        for arity in (1, 2):
            for place, operator in enumerate(self.settings["mixer_ops"][arity]):
                update = getattr(self, f"_{operator}")(
                    f"{name}.deducers.0.operators.{arity}.{place}", one, two
                )
                unary, binary = (unary + update, binary) if arity == 1 else (unary, binary + update)
        one, two = self._norm(unary), self._norm(binary)
        boolean = f"{name}.deducers.1.operators"
        turned = two.transpose(1, 2)
        clauses = self._boolean(f"{boolean}.2.0", torch.cat((two, turned), -1))
        skipped = self._linear(f"{boolean}.2.0.clause_skip", turned)
        return unary + self._boolean(f"{boolean}.1.0", one), binary + clauses + skipped

    def _boolean(self, name: str, x: Tensor) -> Tensor:
        hidden = self._activation(self._linear(f"{name}.clause_in", x))
        return self._linear(f"{name}.clause_out", hidden)

    def _heads(self, x: Tensor, swapped: bool = False) -> Tensor:
        """Split the last dimension into heads and places, or into places and heads."""
        sizes = (self.settings["num_heads"], self.settings["head_size"])
        return x.unflatten(-1, sizes[::-1] if swapped else sizes)

    # -- operators -------------------------------------------------------------------------------

    def _join(self, name: str, one: Tensor, two: Tensor) -> Tensor:
        kernel = self._linear(f"{name}.reader.2", two).softmax(2)
        premise = self._heads(self._linear(f"{name}.reader.1", one))
        atoms = torch.einsum("bxah,bahs->bxhs", kernel, premise)
        return self._linear(f"{name}.writer", atoms.flatten(2))

    def _mu(self, name: str, one: Tensor, two: Tensor) -> Tensor:
        sizes = [self.settings["num_heads"], self.settings["head_size"]]
        kernel, premise = self._linear(f"{name}.reader.2", two).split(sizes, dim=-1)
        atoms = torch.einsum("bxah,bxas->bxhs", kernel.softmax(2), premise)
        return self._linear(f"{name}.writer", atoms.flatten(2))

    def _cjoin(self, name: str, one: Tensor, two: Tensor) -> Tensor:
        kernel = self._heads(self._linear(f"{name}.kernel", one), swapped=True).softmax(1)
        premise = self._linear(f"{name}.premise", two)
        atoms = torch.einsum("bash,baxs->bxsh", kernel, premise)
        return self._linear(f"{name}.output", atoms.flatten(2))

    def _assoc(self, name: str, one: Tensor, two: Tensor) -> Tensor:
        kernel, premise = self._linear(f"{name}.reader.1", one).chunk(2, dim=-1)
        atoms = torch.einsum("bxhw,byhw->bxyh", self._heads(kernel), self._heads(premise))
        return self._linear(f"{name}.writer", atoms / self.settings["head_size"] ** 0.5)

    def _prod(self, name: str, one: Tensor, two: Tensor) -> Tensor:
        kernel = self._heads(self._linear(f"{name}.reader.1", one))
        premise = self._linear(f"{name}.reader.2", two)
        atoms = torch.einsum("bxhw,bxyw->bxyh", kernel, premise)
        return self._linear(f"{name}.writer", atoms / self.settings["head_size"] ** 0.5)

    def _trans(self, name: str, one: Tensor, two: Tensor) -> Tensor:
        kernel, premise = self._linear(f"{name}.reader.2", two).chunk(2, dim=-1)
        atoms = torch.einsum("bxad,bayd->bxyd", kernel.softmax(2), premise)
        return self._linear(f"{name}.writer", atoms)
