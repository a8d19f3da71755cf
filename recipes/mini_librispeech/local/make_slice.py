"""Copy a slice of a set, even over lengths and speakers, in LibriSpeech's layout."""

import argparse
import shutil
from collections import Counter
from pathlib import Path

from local.data_prep import read_transcripts
from local.own_folder import HEADING, take_folder


def choose(texts, count):
    """`count` keys of {key: text}.

    The keys are sorted by number of words and cut into `count` equal runs; of each run
    the utterance is taken whose speaker has been taken least often so far, the first in
    order among equals.
    """
    order = sorted(texts, key=lambda key: (len(texts[key].split()), key))
    taken, used = [], Counter()
    for i in range(min(count, len(order))):
        run = (
            order[i * len(order) // count : (i + 1) * len(order) // count]
            if count < len(order)
            else [order[i]]
        )
        key = min(run, key=lambda k: used[k.split("-")[0]])
        used[key.split("-")[0]] += 1
        taken.append(key)
    return sorted(taken)


def copy(root, out, keys, texts):
    """Copy the audio of `keys` from the set `root` to `out`, with its transcripts."""
    shutil.rmtree(out, ignore_errors=True)
    for key in keys:
        speaker, chapter, _ = key.split("-")
        folder = out / speaker / chapter
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(
            root / speaker / chapter / f"{key}.flac", folder / f"{key}.flac"
        )
        with open(folder / f"{speaker}-{chapter}.trans.txt", "a") as file:
            file.write(f"{key} {texts[key]}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("librispeech", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("sets", nargs="+", help="<set>=<number of utterances>")
    args = parser.parse_args()
    if args.out.resolve() == args.librispeech.resolve():
        raise SystemExit(f"{args.out}: a slice does not replace what it is taken from")
    take_folder(args.out)
    speakers = (args.librispeech / "SPEAKERS.TXT").read_text().splitlines(True)
    rows = [HEADING]
    for item in args.sets:
        name, _, count = item.partition("=")
        texts = read_transcripts(args.librispeech / name)
        keys = choose(texts, int(count))
        copy(args.librispeech / name, args.out / name, keys, texts)
        rows += [
            row
            for row in speakers
            if row.split("|")[0].strip() in {key.split("-")[0] for key in keys}
        ]
        size = sum(path.stat().st_size for path in (args.out / name).rglob("*.flac"))
        words = sum(len(texts[key].split()) for key in keys)
        print(f"{name}: {len(keys)} utterances, {words} words, {size / 1e6:.1f} MB")
    (args.out / "SPEAKERS.TXT").write_text("".join(rows))


if __name__ == "__main__":
    main()
