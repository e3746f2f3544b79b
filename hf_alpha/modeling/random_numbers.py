"""Counter-based random numbers: hashes of seed, optimiser step, symbol and dimension.

A number depends on what it is drawn for and not on what was drawn before it. So the same numbers
come up however a batch is cut into micro-batches and processes, on any device, and a symbol keeps
its vector when others are added. (Salmon et al. 2011 call such generators counter-based.)

Shapes: N symbols, K random dimensions, B batch, L length, V vocabulary.
"""

import math

import torch
from torch.nn import functional as F

RANDOM_METHODS = ("normal", "neighboring_points", "hypercube_vertices")
# Up to here all vectors of a finite set have a number below 2**51, and none is drawn twice
# (2410.17161, Section 4.2); beyond it two equal ones are too unlikely to look for.
UNIQUE_DIMS = 32
ROUNDS = 4


def capacity(method: str, dims: int) -> int | None:
    """Returns how many different vectors there are; None where there are too many to run out."""
    if method == "normal" or dims > UNIQUE_DIMS:
        return None
    return 2**dims if method == "hypercube_vertices" else 3**dims - 1


def symbol_vectors(
    method: str, symbols_N: torch.Tensor, dims: int, key: torch.Tensor
) -> torch.Tensor:
    """Returns the random parts of symbols (2410.17161, Section 4.2): (N, K) in float32.

    Args:
        symbols_N: index of each symbol; its vector depends on nothing else but the key.
        key: see `draw_key`; keys (P, 1) give (P, N, K).
    """
    if method == "normal":
        return _normal(symbols_N, dims, key)
    radix = 2 if method == "hypercube_vertices" else 3
    if dims > UNIQUE_DIMS:
        digits = (_grid(symbols_N, dims, key) & 0x7FFFFFFF) % radix
        if radix == 3:
            zero_vector = (digits == 1).all(-1, keepdim=True)
            digits = torch.where(zero_vector, 2, digits)
    else:
        powers = radix ** torch.arange(dims, device=symbols_N.device)
        digits = _numbers(symbols_N, radix, dims, key)[..., None] // powers % radix
    return (digits * 2 - 1 if radix == 2 else digits - 1).float()


def _numbers(symbols_N: torch.Tensor, radix: int, dims: int, key: torch.Tensor) -> torch.Tensor:
    """Returns a different number below radix ** dims for each symbol, never the zero vector's.

    A keyed permutation of all numbers, at the symbols' indices: the set is never written out.
    """
    if radix == 2:
        return _permuted(symbols_N, 2, dims, key)
    # Numbers 0 .. 3**K - 2 are permuted among themselves: only the last one of all is outside, so
    # one more turn brings what lands there back.
    last = 3**dims - 1
    numbers = _permuted(F.pad(symbols_N, (0, 1), value=last), 3, dims, key)
    numbers = torch.where(numbers == last, numbers[..., -1:], numbers)[..., :-1]
    # The zero vector has the number in the middle.
    return numbers + (numbers >= last // 2)


def _permuted(numbers: torch.Tensor, radix: int, dims: int, key: torch.Tensor) -> torch.Tensor:
    """Permutes 0 .. radix ** dims - 1 by an unbalanced Feistel network; returns the images."""
    low_size, high_size = radix ** (dims // 2), radix ** (dims - dims // 2)
    turns = torch.arange(2 * ROUNDS + 1, device=key.device)
    keys = mix(key[..., None] + turns).unbind(-1)
    # A reflection, half of the time: turns alone only rotate the three digits of one dimension.
    numbers = torch.where(keys[-1] > 0, high_size * low_size - 1 - numbers, numbers)
    high, low = numbers // low_size, numbers % low_size
    for turn in range(ROUNDS):
        low = (low + _turn(high, keys[2 * turn])) % low_size
        high = (high + _turn(low, keys[2 * turn + 1])) % high_size
    return high * low_size + low


def _turn(x: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
    """Returns a shorter hash, of 40 bits and a sign: adding it overflows nothing."""
    x = (x + key) * _signed(0xBF58476D1CE4E5B9)
    return ((x ^ (x >> 32)) * _signed(0x94D049BB133111EB)) >> 23


def _normal(symbols_N: torch.Tensor, dims: int, key: torch.Tensor) -> torch.Tensor:
    """Returns standard normal numbers (Box and Muller)."""
    pairs = _grid(symbols_N, 2 * dims, key) & 0xFFFFFF
    radius, angle = ((pairs + 0.5) / 2**24).float().chunk(2, dim=-1)
    return (-2.0 * radius.log()).sqrt() * (2.0 * math.pi * angle).cos()


def _grid(rows: torch.Tensor, width: int, key: torch.Tensor) -> torch.Tensor:
    """Returns a hash for each row and column: (N, width), for keys (P, 1) each."""
    columns = torch.arange(width, device=rows.device)
    return mix(mix(mix(rows)[:, None] + columns) ^ key[..., None])


def draw_key(seed: int, step: torch.Tensor) -> torch.Tensor:
    """Returns the key of all that is drawn in one optimiser step; step -1 is for inference."""
    return mix(step * _signed(0xD1342543DE82EF95) + _signed(seed * 0x9E3779B97F4A7C15 + 1))


def sample_keys(ids_BL: torch.Tensor, mask_BL: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
    """Returns a key for each sample, (B,), from its tokens, wherever it stands and is padded."""
    positions = mask_BL.long().cumsum(-1)
    hashed = mix(mix(positions) + ids_BL)
    return mix(torch.where(mask_BL, hashed, 0).sum(-1)) ^ key


def mix(x: torch.Tensor) -> torch.Tensor:
    """Hashes 64-bit integers (the finaliser of SplitMix64, Steele et al. 2014)."""
    x = x + _signed(0x9E3779B97F4A7C15)
    x = (x ^ _shift(x, 30)) * _signed(0xBF58476D1CE4E5B9)
    x = (x ^ _shift(x, 27)) * _signed(0x94D049BB133111EB)
    return x ^ _shift(x, 31)


def _shift(x: torch.Tensor, bits: int) -> torch.Tensor:
    """Shift right, filled with zeros."""
    return (x >> bits) & ((1 << (64 - bits)) - 1)


def _signed(number: int) -> int:
    """Returns the signed 64-bit integer that has the same lowest bits."""
    return (number + 2**63) % 2**64 - 2**63
