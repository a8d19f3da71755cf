"""From a LibriSpeech folder to ESPnet's data/<set>/{wav.scp,text,utt2spk,spk2utt}."""

import argparse
import os
from collections import defaultdict
from pathlib import Path

import soundfile
from tqdm import tqdm

from espnet_lenbias.report.scoring import read_text


def files_below(root, ending):
    """All files under `root` whose names end so, sorted; OSError: a folder is closed."""

    def stop(error):
        raise error

    found = []
    for place, _, names in os.walk(root, onerror=stop):
        found += [Path(place, name) for name in names if name.endswith(ending)]
    return sorted(found)


def read_transcripts(root):
    """{utterance: text} of all *.trans.txt under `root`."""
    texts = {}
    for path in files_below(root, ".trans.txt"):
        found = read_text(path)
        for key in found.keys() & texts.keys():
            raise ValueError(f"{path} has a line for {key}, and so has another file")
        texts |= found
    return texts


def find_audio(root):
    """{utterance: path} of all *.flac under `root`."""
    audio = {}
    for path in files_below(root, ".flac"):
        if path.stem in audio:
            raise ValueError(f"{path} is called as {audio[path.stem]} is")
        audio[path.stem] = path
    return audio


def fault(path):
    """What is wrong with an audio file, "" if nothing; it is read to its end."""
    try:
        expected = soundfile.info(str(path)).frames
        samples, _ = soundfile.read(str(path), dtype="int16")
    except RuntimeError as error:
        return f"unreadable audio: {path} ({error})"
    if len(samples) < expected:
        return f"truncated audio: {path} ({len(samples)} of {expected} samples)"
    return "" if expected else f"empty audio: {path}"


def faults(texts, audio):
    """What is wrong with a set, one line for each missing or broken file."""
    found = [
        f"no transcript: {path}"
        for key, path in sorted(audio.items())
        if key not in texts
    ]
    found += [f"no audio: {key}" for key in sorted(texts) if key not in audio]
    # a bar for a person, none in a log
    for key in tqdm(sorted(texts.keys() & audio.keys()), unit="file", disable=None):
        found += filter(None, [fault(audio[key])])
    return found


def write_set(texts, audio, out):
    """Write the four files of one set, sorted by utterance."""
    out.mkdir(parents=True, exist_ok=True)
    speakers = defaultdict(list)
    keys = sorted(texts)
    for key in keys:
        speakers[key.split("-")[0]].append(key)
    files = {
        "wav.scp": [f"{key} {audio[key]}" for key in keys],
        "text": [f"{key} {texts[key]}" for key in keys],
        "utt2spk": [f"{key} {key.split('-')[0]}" for key in keys],
        "spk2utt": [
            f"{speaker} {' '.join(speakers[speaker])}" for speaker in sorted(speakers)
        ],
    }
    for name, lines in files.items():
        (out / name).write_text("".join(line + "\n" for line in lines), "utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "librispeech",
        type=Path,
        help="the folder that holds train-clean, dev-clean, ...",
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("sets", nargs="+")
    args = parser.parse_args()
    for name in args.sets:
        root = args.librispeech / name
        if not root.is_dir():
            raise SystemExit(
                f"there is no folder {root}: name the one that holds the sets, each as "
                "<set>/<speaker>/<chapter>/{*.flac,*.trans.txt}"
            )
        try:
            texts, audio = read_transcripts(root), find_audio(root)
        except (OSError, ValueError) as e:
            raise SystemExit(f"data_prep.py: {e}") from e
        wrong = faults(texts, audio)
        if wrong or not texts:
            raise SystemExit(
                "\n".join(
                    [
                        f"{root}: {len(wrong)} faults, {len(texts)} transcripts",
                        *wrong[:20],
                    ]
                )
            )
        write_set(texts, audio, args.out / name)
        words = sum(len(text.split()) for text in texts.values())
        print(f"{name}: {len(texts)} utterances, {words} words")


if __name__ == "__main__":
    main()
