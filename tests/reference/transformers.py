"""Parameters of published models, from their configurations and papers.

Counts of a whole model from its weights less the gains of its norms, which the toolkit does not
count: Llama 2 7B has 6,738,415,616 parameters, Llama 3 8B 8,030,261,248, each with
``(2 layers + 1) * width`` gains. Mixtral: Jiang et al. 2024, arXiv:2401.04088 ("47B parameters,
13B active"). GPT-2: 124,439,808 with biases and norms, which are 121,344 of them. GPT-3: Brown et
al. 2020, table 2.1.
"""

LLAMA_2_7B = (
    {"layers": 32, "width": 4096, "context": 4096, "vocabulary": 32000, "feed_forward": 11008}
    | {"heads": 32, "gated": True, "tied": False},
    6_738_415_616 - 65 * 4096,
)
LLAMA_3_8B = (
    {"layers": 32, "width": 4096, "context": 8192, "vocabulary": 128256, "feed_forward": 14336}
    | {"heads": 32, "kv_heads": 8, "gated": True, "tied": False},
    8_030_261_248 - 65 * 4096,
)
GPT_2 = (
    {"layers": 12, "width": 768, "context": 1024, "vocabulary": 50257, "heads": 12}
    | {"positions": "learned"},
    124_439_808 - 121_344,
)
MIXTRAL = {"layers": 32, "width": 4096, "context": 32768, "vocabulary": 32000} | {
    "feed_forward": 14336,
    "heads": 32,
    "kv_heads": 8,
    "gated": True,
    "experts": 8,
    "active_experts": 2,
    "tied": False,
}
