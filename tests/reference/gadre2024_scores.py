"""Predicted losses and mean top-1 errors of Gadre et al. 2024 for models trained on RedPajama.

Source: arXiv:2403.08540 and the notebook published with it (mlfoundations/scaling at commit
a003c49, scaling_explorer.ipynb), which prints the relative errors below; loss on C4, mean error
of 17 tasks.
"""

LOSS_ERRORS = {"rpj-open_lm_1b-32.0": 0.007103, "rpj-open_lm_7b-1.0": 0.007320}
SCORE_ERRORS = {"rpj-open_lm_1b-32.0": 0.036365, "rpj-open_lm_7b-1.0": 0.000464}
TASKS = [
    *("bigbench_operators", "pubmed_qa_labeled", "hellaswag_zeroshot", "boolq", "arc_easy"),
    *("coqa", "bigbench_dyck_languages", "lambada_openai", "bigbench_novel_concepts"),
    *("winograd", "bigbench_cs_algorithms", "commonsense_qa", "bigbench_qa_wikidata"),
    *("hellaswag", "copa", "squad", "piqa"),
]
