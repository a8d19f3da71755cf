"""How a report scores translations; no torch here, and no sacrebleu."""

# What --metric can be: BLEU and chrF of all decodings, or of none. Where nothing is said
# they are of those that a translation tool has made.
METRICS = ("bleu", "wer")

# Tokenizers of sacrebleu that need nothing more, by its names for them.
TOKENIZERS = ("13a", "intl", "zh", "char", "none")
USUAL_TOKENIZER = "13a"
