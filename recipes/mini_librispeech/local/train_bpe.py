"""Train a BPE model of sentencepiece on an ESPnet text file; write its token list."""

import argparse
from pathlib import Path

import sentencepiece


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("text", type=Path, help="lines of utterance and text")
    parser.add_argument(
        "out", type=Path, help="folder for bpe.model, bpe.vocab and tokens.txt"
    )
    parser.add_argument(
        "--units",
        type=int,
        default=250,
        help="size of the token list, <blank>, <unk> and <sos/eos> included",
    )
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    texts = [line.split(maxsplit=1)[1] for line in args.text.read_text().splitlines()]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts),
        model_prefix=str(args.out / "bpe"),
        model_type="bpe",
        character_coverage=1.0,
        vocab_size=args.units - 2,
        bos_id=-1,
        eos_id=-1,
        unk_id=0,
        num_threads=1,
        minloglevel=1,
    )
    model = sentencepiece.SentencePieceProcessor(model_file=str(args.out / "bpe.model"))
    pieces = [model.id_to_piece(i) for i in range(1, len(model))]
    tokens = ["<blank>", "<unk>", *pieces, "<sos/eos>"]
    (args.out / "tokens.txt").write_text("".join(token + "\n" for token in tokens))
    print(f"{len(tokens)} tokens in {args.out / 'tokens.txt'}")


if __name__ == "__main__":
    main()
