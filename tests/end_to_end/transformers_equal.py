"""Models that huajin wrote, opened by transformers, and the other way round: equal logits to 1e-4.

    python transformers_equal.py PATH/TO/huajin_zoo_test [FOLDER]

huajin_io_test lies beside it: its tokenizers' files, opened by AutoTokenizer, give the same ids.

Needs torch and transformers (PyPI); prints SKIP and exits 0 without them. Exit 1: a difference, a weight missing or left over.
"""
import json, os, random, re, subprocess, sys, tempfile

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


def write_corpus(root):
    """Lines of hostile Unicode between \\x1e: white space of all kinds, combining marks, digits of other scripts, emoji sequences, contractions, controls."""
    rng = random.Random(5)
    pieces = ["the king", " speaks", "'s", "'ll", "'S", "  ", "\t", "\n\n", "\r\n", "1603", "\u0663\u0664", "\u00bd", "caf\u00e9", "e\u0301", "\u65e5\u672c\u8a9e", "\u3000", "\u00a0",
              "\u2028", "\U0001f469\u200d\U0001f4bb", "\U0001f1e9\U0001f1ea", "\u0928\u092e\u0938\u094d\u0924\u0947", "\u0645\u0631\u062d\u0628\u0627", "---", "...", "x=1;", "\u0000", "\u007f", "\ufeff", "\ufffd",
              "\U00010348", "_", "$", "\u20ac", "\u1680", "\u180e", "\u200b", "\u0130", "\u01c5", "\u2160", "\U0001d7d8"]
    lines = ["".join(rng.choice(pieces) + rng.choice(["", " ", ""]) for _ in range(rng.randint(1, 30))) for _ in range(400)]
    with open(f"{root}/tokenizer-corpus.txt", "w", encoding="utf-8", newline="") as file:
        file.write("\x1e".join(lines))


def compare_tokenizers(root):
    for kind in ("bpe", "characters", "bytes"):
        folder = f"{root}/tokenizer-{kind}"
        tokenizer = hf.AutoTokenizer.from_pretrained(folder)
        with open(f"{folder}/expected.json", encoding="utf-8") as file:
            expected = json.load(file)
        assert len(expected) >= 400, kind
        for line in expected:
            ids = tokenizer.encode(line["text"], add_special_tokens=False)
            assert ids == line["ids"], (kind, line["text"], ids, line["ids"])
            text = tokenizer.decode(ids, clean_up_tokenization_spaces=False)
            assert text == line["text"], (kind, line["text"], text)
        print(f"tokenizer {kind}: {sum(len(l['ids']) for l in expected)} ids of {len(expected)} texts are equal")


def main():
    program = sys.argv[1]
    root = sys.argv[2] if len(sys.argv) > 2 else tempfile.mkdtemp(prefix="huajin_hf_")
    hf.logging.set_verbosity_error()
    hf.utils.logging.disable_progress_bar()
    write_theirs(root)
    run = subprocess.run([program, "--gtest_filter=HuggingFace.*"], env=dict(os.environ, HUAJIN_HF_DIR=root))
    worst = read_ours(root)
    write_corpus(root)
    beside = os.path.join(os.path.dirname(os.path.abspath(program)), "huajin_io_test")
    subprocess.run([beside, "--gtest_filter=HuggingFaceTokenizers.*"], env=dict(os.environ, HUAJIN_HF_DIR=root), check=True)
    compare_tokenizers(root)
    if run.returncode != 0 or not worst <= 1e-4:
        sys.exit(f"FAIL: huajin's side exits with {run.returncode}, transformers' side differs by {worst:.2g}")
    print("OK")


main()
