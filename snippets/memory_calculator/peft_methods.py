"""Fine-tuning Llama-3.2-3B by each method that PEFT's own comparison measures: what a step of its longest batch takes.

The settings are those of `method_comparison/MetaMathQA` in `github.com/huggingface/peft` (Apache-2.0) at commit
5d602fdbf; so is the loop: weights in bf16, adapters in fp32, no autocast, padded batches of 4, the cache of keys and
values left on. Weights are random: bytes do not depend on them.
"""
# /// script
# requires-python = ">=3.11"
# # Prefix tuning hands over what 5.24.0 deprecates.
# dependencies = ["torch>=2.11", "transformers>=5.23,!=5.24.0", "peft>=0.21", "scikit-learn>=1.5"]
#
# [tool.benchbook]
# needs = ["accelerator", "cpu"]
# meters = ["cpu_allocator"]
# inputs = ["peft_methods.json"]
# timeout = 300
# [tool.benchbook.metrics]
# trainable_parameters = { unit = "count" }
# [tool.benchbook.matrix]
# method = [
#     "adalora_rank32", "adamss_rank32", "adaptionprompt_lr_0_0005", "adaptionprompt_lr_5e_3",
#     "beft_target_v_proj", "boft", "c3a", "deft_rank32", "deft_rank32_para", "delora_rank32", "fourierft",
#     "fourierft_n_frequency_5000", "frod", "frod_sparse0_02_lr_0_001", "full_finetuning_lr_0_00001",
#     "glora", "glora_vector_paths", "gralora_rank32", "hira_rank32_lr4_5e_3", "ia3_all_attn_5k_lr0_005",
#     "ia3", "ia3_lr_0_001", "lily_rank140_mlp_a2_b2_s8_0", "lily_rank896_a2_b2_s2_0", "ln_tuning",
#     "loha_rank32", "lokr_rank32_factor4_lr0_003", "lora_rank10_target_mlp",
#     "lora_rank14_target_mlp_bdlora", "lora_rank32", "lora_rank32_dora", "lora_rank32_kasa",
#     "lora_rank32_lorafa", "lora_rank32_mica", "lora_rank32_riemannian", "lora_rank64",
#     "lora_rank64_rslora", "miss_bat", "miss", "miss_mini", "oft_rank32", "osf_rank128",
#     "peanut_rank1_relu_depth0_s32_0", "peanut_rank32_relu_depth0_s2_0", "prefixtuning_lr_0_001",
#     "prefixtuning_lr_0_005_zero_init", "prefixtuning_tokens50_init_prefix_lr_0_005", "prompt_tuning",
#     "prompt_tuning_lr_0_001", "prompt_tuning_sample_vocab_lr_0_001", "psoft", "psoft_fast", "ptuning",
#     "pvera", "pvera_rank64", "randlora", "road_lr_0_001", "shira_lr_0_0003_random_seed_42",
#     "supertuning_s974_topk", "supertuning_s99_supra_r32", "supertuning_s99_supra_r8",
#     "supertuning_s9935_bottomk", "supertuning_s9935_topk", "tinylora", "tinylora_weight_tying",
#     "trainable_tokens_sos_eos", "unilora", "vblora_bank1024_lr5e4", "vblora", "vera",
#     "waveft_n_frequency_5000",
# ]
# # What a CPU shows of it: that each method trains, and what its tensors come to in one layer.
# [tool.benchbook.on.cpu]
# layers = 1
# width = 768
# vocabulary = 4096
# sequence_length = 64
# [tool.benchbook.smallest]
# layers = 1
# width = 768
# vocabulary = 256
# sequence_length = 8
# [tool.benchbook.work]
# bf16 = "3 * 4 * sequence_length * 3.2e9 * 6"
# seconds = 10
# ///

# %% parameters
method = "lora_rank32"
layers = 28
width = 3072
vocabulary = 128256
sequence_length = 768  # the limit of the longest; batches of the comparison are shorter for the most part

# %% settings
import json
from pathlib import Path

known = Path(__file__).with_name("peft_methods.json").read_text("utf-8")
described = json.loads(known)[method]
adapters = described.get("adapters", {})
settings = dict(adapters.get("config", {}))
# What the model is made of, where it is made smaller than the comparison's.
smaller = {"num_layers": layers, "adapter_layers": layers, "token_dim": width}
smaller |= {"encoder_hidden_size": width, "num_attention_heads": width // 128}
smaller |= {
    name: width // 3 for name in ("r", "init_r") if settings.get(name, 0) > width // 3
}
settings |= {name: value for name, value in smaller.items() if name in settings}
if "rank_pattern" in settings:
    most = {
        name: min(rank, width // 6) for name, rank in settings["rank_pattern"].items()
    }
    settings["rank_pattern"] = most
if "token_indices" in settings:
    settings["token_indices"] = [
        index % vocabulary for index in settings["token_indices"]
    ]

# %% model
import torch
from transformers import LlamaConfig, LlamaForCausalLM

device = torch.accelerator.current_accelerator(check_available=True) or torch.device(
    "cpu"
)
torch.manual_seed(0)
config = LlamaConfig(
    vocab_size=vocabulary,
    hidden_size=width,
    intermediate_size=8192 * width // 3072,
    num_hidden_layers=layers,
    num_attention_heads=width // 128,
    num_key_value_heads=max(1, width // 384),
    head_dim=128,
    tie_word_embeddings=True,
    dtype=torch.bfloat16,
)
with device:
    model = LlamaForCausalLM(config).to(torch.bfloat16)

# %% adapters
import warnings

# PEFT asks for it by the name that it had until transformers 5.23.
warnings.filterwarnings("ignore", "`is_gradient_checkpointing`", FutureWarning)
from peft import PeftConfig, get_peft_model

if settings:
    model = get_peft_model(
        model,
        PeftConfig.from_peft_type(**settings),
        autocast_adapter_dtype=adapters.get("fp32", True),
    )
model.train()
trainable = [weight for weight in model.parameters() if weight.requires_grad]
trainable_parameters = sum(weight.numel() for weight in trainable)

# %% optimizer
from peft.optimizers import create_lorafa_optimizer, create_riemannian_optimizer

if described.get("optimizer") == "lora-fa":
    optimizer = create_lorafa_optimizer(model, r=32, lora_alpha=64, lr=1e-4)
elif described.get("optimizer") == "riemannian":
    optimizer = create_riemannian_optimizer(
        model, optimizer_cls=torch.optim.AdamW, lr=1e-4, reg=1e-2
    )
else:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

# %% data
tokens = torch.randint(0, vocabulary, (4, sequence_length), device=device)
mask = torch.ones_like(tokens)
mask[1:, sequence_length // 2 :] = 0
labels = tokens.masked_fill(mask == 0, -100)
batch = {"input_ids": tokens, "attention_mask": mask, "labels": labels}

# %% train
losses = []
for _ in range(3):
    optimizer.zero_grad()
    loss = model(**batch).loss
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    losses.append(loss.item())
    if device.type == "cuda":
        torch.cuda.empty_cache()
print(f"{method}: {trainable_parameters:,} of {model.num_parameters():,} are trained")

# %% checks
import math

assert {weight.device.type for weight in model.parameters()} == {device.type}
assert trainable_parameters > 0 and all(math.isfinite(loss) for loss in losses)
if settings:
    assert trainable_parameters < model.num_parameters()
