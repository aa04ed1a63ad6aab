"""Let torch code of yours run where its attention would fail: `app.compat` alone, from the folder that holds `app`."""

import torch
from torch.nn.functional import scaled_dot_product_attention

from app.compat import applied, decide, probe

hardware = probe()
plan = decide(hardware)
print(f"{hardware.name}: {plan.device}, {plan.dtype}")

# As Dia asks: sixteen heads share four pairs of keys and values, which Metal's attention does not take.
queries, keys, values = (torch.randn(1, heads, 256, 64, device=plan.device) for heads in (16, 4, 4))
with applied(plan) as seam:
    heard = scaled_dot_product_attention(queries, keys, values, enable_gqa=True)
print(f"{tuple(heard.shape)} in {seam.calls} call, by {seam.paths}")
