"""Writes zoo_models.safetensors: tiny GPT-2, Llama, Qwen3 and ViT models of transformers in float64, with logits and the gradient of every weight.

    python zoo_models.py [FILE]        # made with torch 2.15.0, transformers 5.24.0, safetensors 0.8.0

transformers rounds norms and rotary angles to float32 whatever the model's type; here both are replaced by their formula in float64. Gradients are of
sum(logits * probe). Names: MODEL/weight/NAME, MODEL/grad/NAME, MODEL/{ids,pixels,probe,logits}; configurations: metadata.
"""
import json, os, sys
import torch
import transformers as hf
from safetensors.torch import save_file
from transformers.models.llama import modeling_llama
from transformers.models.qwen3 import modeling_qwen3


def norm(self, x):
    return self.weight * x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.variance_epsilon)


def angles(self, x, position_ids):
    base, size = self.config.rope_parameters["rope_theta"], self.config.head_dim
    frequency = base ** (-torch.arange(0, size, 2, dtype=torch.float64) / size)
    angle = position_ids[..., None].double() * frequency
    angle = torch.cat([angle, angle], -1)
    return angle.cos(), angle.sin()


modeling_llama.LlamaRMSNorm.forward = modeling_qwen3.Qwen3RMSNorm.forward = norm
modeling_llama.LlamaRotaryEmbedding.forward = modeling_qwen3.Qwen3RotaryEmbedding.forward = angles
rope = dict(rope_type="default", rope_theta=100.0)
common = dict(bos_token_id=None, eos_token_id=None, attn_implementation="sdpa")
MODELS = {
    "gpt2": (hf.GPT2LMHeadModel, hf.GPT2Config(vocab_size=19, n_positions=12, n_embd=12, n_layer=2, n_head=3, n_inner=20, resid_pdrop=0.0, embd_pdrop=0.0,
                                               attn_pdrop=0.0, **common)),
    "llama": (hf.LlamaForCausalLM, hf.LlamaConfig(vocab_size=19, hidden_size=16, intermediate_size=22, num_hidden_layers=2, num_attention_heads=4,
                                                  num_key_value_heads=2, max_position_embeddings=12, rms_norm_eps=1e-5, rope_parameters=rope, **common)),
    "qwen3": (hf.Qwen3ForCausalLM, hf.Qwen3Config(vocab_size=19, hidden_size=16, intermediate_size=22, num_hidden_layers=2, num_attention_heads=4,
                                                  num_key_value_heads=1, head_dim=6, max_position_embeddings=12, tie_word_embeddings=True, rope_parameters=rope, **common)),
    "vit": (hf.ViTForImageClassification, hf.ViTConfig(hidden_size=12, num_hidden_layers=2, num_attention_heads=3, intermediate_size=20, image_size=8, patch_size=4,
                                                       num_channels=3, num_labels=5, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, hidden_act="gelu",
                                                       attn_implementation="sdpa")),
}


def old_names(name):
    """The names of ViT's weights in files; transformers 5 renames them while loading."""
    for new, old in ((".layers.", ".layer."), ("attention.q_proj", "attention.attention.query"), ("attention.k_proj", "attention.attention.key"),
                     ("attention.v_proj", "attention.attention.value"), ("attention.o_proj", "attention.output.dense"), ("mlp.fc1", "intermediate.dense"),
                     ("mlp.fc2", "output.dense"), ("vit.layer.", "vit.encoder.layer.")):
        name = name.replace(new, old)
    return name


def main():
    tensors, configs = {}, {}
    for kind, (model_class, config) in MODELS.items():
        torch.manual_seed(sorted(MODELS).index(kind))
        model = model_class(config).double().eval()
        with torch.no_grad():
            for p in model.parameters():
                p.add_(0.1 * torch.randn_like(p))  # norms and biases too
        if kind == "vit":
            inputs = torch.randn(2, 3, 8, 8, dtype=torch.float64)
            logits = model(pixel_values=inputs).logits
        else:
            inputs = torch.randint(19, (2, 9))
            logits = model(input_ids=inputs, use_cache=False).logits
        probe = torch.randn_like(logits)
        (logits * probe).sum().backward()
        tensors[kind + "/inputs"], tensors[kind + "/probe"], tensors[kind + "/logits"] = inputs, probe, logits.detach()
        for name, p in model.named_parameters():
            name = old_names(name) if kind == "vit" else name
            tensors[f"{kind}/weight/{name}"], tensors[f"{kind}/grad/{name}"] = p.detach(), p.grad
        configs[kind] = json.dumps(config.to_dict(), sort_keys=True, default=str)
    path = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "zoo_models.safetensors")
    save_file({k: v.contiguous().clone() for k, v in tensors.items()}, path, metadata=configs)
    print(path, os.path.getsize(path), "bytes")


main()
