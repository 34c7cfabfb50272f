"""Models that huajin wrote, opened by transformers, and the other way round: equal logits to 1e-4.

    python transformers_equal.py PATH/TO/huajin_zoo_test [FOLDER]

Needs torch and transformers (PyPI); prints SKIP and exits 0 without them. Exit 1: a difference, a weight missing or left over.
"""
import os, re, subprocess, sys, tempfile

try:
    import torch
    import transformers as hf
    from safetensors.torch import load_file, save_file
except ImportError as missing:
    print("SKIP:", missing)
    sys.exit(0)

TINY = dict(vocab_size=31, bos_token_id=None, eos_token_id=None)
ROPE = dict(rope_type="default", rope_theta=700.0)
THEIRS = {
    "gpt2": hf.GPT2Config(n_positions=24, n_embd=24, n_layer=2, n_head=2, **TINY),
    "llama": hf.LlamaConfig(hidden_size=24, intermediate_size=40, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, rope_parameters=ROPE, **TINY),
    "llama-tied": hf.LlamaConfig(hidden_size=24, intermediate_size=40, num_hidden_layers=2, num_attention_heads=2, tie_word_embeddings=True, **TINY),
    "qwen3": hf.Qwen3Config(hidden_size=24, intermediate_size=40, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=8, **TINY),
}


def probe(model, folder):
    ids = torch.randint(31, (2, 19))
    with torch.no_grad():
        logits = model(input_ids=ids).logits
    save_file({"ids": ids, "logits": logits.contiguous()}, os.path.join(folder, "probe.safetensors"))


def write_theirs(root):
    for number, (name, config) in enumerate(THEIRS.items()):
        torch.manual_seed(number)
        model = hf.AutoModelForCausalLM.from_config(config).eval()
        with torch.no_grad():
            for p in model.parameters():
                p.add_(0.1 * torch.randn_like(p))
        for variant, options in (("", {}), ("-sharded", dict(max_shard_size="8KB"))):
            folder = f"{root}/theirs-{name}{variant}"
            model.save_pretrained(folder, **options)
            shards = [f for f in os.listdir(folder) if f.endswith(".safetensors")]
            assert (len(shards) > 1) == bool(variant), shards
            probe(model, folder)
        if name == "gpt2":  # as the first GPT-2 files: no prefix, masks stored, the tied head stored again
            folder = f"{root}/theirs-gpt2-old"
            model.save_pretrained(folder)
            old = {re.sub("^transformer[.]", "", k): v for k, v in load_file(folder + "/model.safetensors").items()}
            old.update({f"h.{l}.attn.bias": torch.ones(24, 24).tril().view(1, 1, 24, 24) for l in range(2)})
            old["lm_head.weight"] = old["wte.weight"].clone()
            save_file(old, folder + "/model.safetensors", metadata={"format": "pt"})
            probe(model, folder)


def read_ours(root):
    worst = 0.0
    folders = sorted(f for f in os.listdir(root) if f.startswith("ours-"))
    assert folders, "huajin wrote no folder"
    for name in folders:
        model, info = hf.AutoModelForCausalLM.from_pretrained(f"{root}/{name}", output_loading_info=True)
        problems = {k: v for k, v in info.items() if v and k in ("missing_keys", "unexpected_keys", "mismatched_keys")}
        assert not problems, (name, problems)
        expected = load_file(f"{root}/{name}/probe.safetensors")
        with torch.no_grad():
            difference = (model.eval()(input_ids=expected["ids"]).logits - expected["logits"]).abs().max().item()
        print(f"{name} ({type(model).__name__}): largest difference {difference:.2g}")
        worst = max(worst, difference)
    return worst


def main():
    program = sys.argv[1]
    root = sys.argv[2] if len(sys.argv) > 2 else tempfile.mkdtemp(prefix="huajin_hf_")
    hf.logging.set_verbosity_error()
    hf.utils.logging.disable_progress_bar()
    write_theirs(root)
    run = subprocess.run([program, "--gtest_filter=HuggingFace.*"], env=dict(os.environ, HUAJIN_HF_DIR=root))
    worst = read_ours(root)
    if run.returncode != 0 or not worst <= 1e-4:
        sys.exit(f"FAIL: huajin's side exits with {run.returncode}, transformers' side differs by {worst:.2g}")
    print("OK")


main()
