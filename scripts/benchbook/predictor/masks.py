"""Keep transformers from making the masks that it makes only while a graph is traced.

It takes any fake tensor for a sign of tracing, where values cannot be read (`is_tracing`), and then assumes
the worst: several sequences in one row, and a static cache of unknown length. A real run reads the values and
does without a mask, which decides attention's kernel.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import torch
from transformers import masking_utils


@contextmanager
def masks_of_a_real_run() -> Iterator[None]:
    """Answer as the values would: one sequence per row, and prompts that are read into an empty cache.

    A mask that is given is of samples of several lengths: none could do without it.
    """
    can_ignore = masking_utils._ignore_causal_mask_sdpa

    def with_known_offset(
        padding_mask: Any, q_length: int, kv_length: int, q_offset: Any, *rest: Any
    ) -> bool:
        if padding_mask is not None:
            return False
        # Later passes have one token each, for which the offset is not asked.
        offset = 0 if isinstance(q_offset, torch.Tensor) else q_offset
        return bool(can_ignore(padding_mask, q_length, kv_length, offset, *rest))

    with (
        mock.patch.object(masking_utils, "find_packed_sequence_indices", return_value=None),
        mock.patch.object(masking_utils, "_ignore_causal_mask_sdpa", with_known_offset),
    ):
        yield
