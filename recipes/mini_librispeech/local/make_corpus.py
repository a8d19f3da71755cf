"""Write the mini corpus in LibriSpeech's layout.

<out>/LibriSpeech/<set>/<speaker>/<chapter>/<speaker>-<chapter>-<nnnn>.flac
"""

import argparse
import functools
import multiprocessing
from pathlib import Path

import numpy as np
import soundfile
import yaml
from tqdm import tqdm

from local.noise import degrade
from local.own_folder import HEADING, take_folder
from local.sentences import sentences, word_strings
from local.voices import SAMPLE_RATE, check_engines, draw_speakers, speak

PER_CHAPTER = 40


def plan(conf):
    """Speakers and jobs of each set.

    A job is (speaker, chapter, number in the chapter, text, seed of its noise).
    """
    seed = conf["seed"]
    sets = {name: settings for name, settings in conf.items() if name != "seed"}
    speakers = draw_speakers(np.random.default_rng([seed, 0]), sets)
    jobs, taken = {}, frozenset()
    for s, (name, settings) in enumerate(sets.items(), start=1):
        rng = np.random.default_rng([seed, s])
        make = (
            word_strings
            if settings.get("words")
            else functools.partial(sentences, banned=taken)
        )
        texts = make(rng, settings["utterances"])
        taken = taken | set(texts)
        jobs[name] = []
        for i, text in enumerate(texts):
            n, who = divmod(i, len(speakers[name]))
            speaker = speakers[name][who]
            jobs[name].append(
                (
                    speaker,
                    speaker.id * 10 + n // PER_CHAPTER,
                    n % PER_CHAPTER,
                    text,
                    [seed, s, i],
                )
            )
    return speakers, jobs


@functools.lru_cache(maxsize=1)
def babble_pool(seed):
    """Forty waves of speakers and sentences that are in no set."""
    rng = np.random.default_rng([seed, 99])
    sets = {"babble": {"speakers": 40, "rate": [0.95, 1.3]}}
    people = draw_speakers(rng, sets)["babble"]
    return [speak(who, text) for who, text in zip(people, sentences(rng, 40))]


def write_utterance(root, settings, job):
    """Synthesise one job under `root`; returns its seconds."""
    speaker, chapter, number, text, seed = job
    wave = degrade(
        np.random.default_rng(seed),
        speak(speaker, text),
        settings,
        babble_pool(seed[0]),
    )
    path = (
        root
        / str(speaker.id)
        / str(chapter)
        / f"{speaker.id}-{chapter}-{number:04d}.flac"
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, wave, SAMPLE_RATE, subtype="PCM_16")
    return len(wave) / SAMPLE_RATE


def write_transcripts(root, jobs):
    """<speaker>-<chapter>.trans.txt beside the audio of each chapter."""
    lines = {}
    for speaker, chapter, number, text, _ in jobs:
        lines.setdefault((speaker.id, chapter), []).append(
            f"{speaker.id}-{chapter}-{number:04d} {text}\n"
        )
    for (speaker, chapter), rows in lines.items():
        (
            root / str(speaker) / str(chapter) / f"{speaker}-{chapter}.trans.txt"
        ).write_text("".join(sorted(rows)))


def write_speakers(path, speakers, jobs):
    """SPEAKERS.TXT; its fourth column is the number of utterances."""
    rows = [HEADING]
    for name, people in speakers.items():
        for who in people:
            count = sum(job[0].id == who.id for job in jobs[name])
            rows.append(f"{who.id:<5}| {who.sex} | {name:<16} | {count:<8} | {who}\n")
    path.write_text("".join(rows))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", type=Path, default=Path("conf/corpus.yaml"))
    parser.add_argument("--out", type=Path, default=Path("corpus"))
    parser.add_argument("--sets", nargs="*", help="only these sets (all)")
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    check_engines()
    conf = yaml.safe_load(args.config.read_text())
    speakers, jobs = plan(conf)
    unknown = set(args.sets or []) - set(jobs)
    if unknown:
        parser.error(
            f"no such set: {', '.join(sorted(unknown))}; "
            f"{args.config} has {', '.join(jobs)}"
        )
    root = args.out / "LibriSpeech"
    take_folder(root)
    with multiprocessing.Pool(args.jobs) as pool:
        for name in args.sets or jobs:
            work = functools.partial(write_utterance, root / name, conf[name])
            done = tqdm(
                pool.imap_unordered(work, jobs[name], chunksize=8),
                total=len(jobs[name]),
                desc=name,
            )
            seconds = sum(done)
            write_transcripts(root / name, jobs[name])
            counts = f"{len(jobs[name])} utterances, {len(speakers[name])} speakers"
            print(f"{name}: {counts}, {seconds / 3600:.2f} h")
    write_speakers(root / "SPEAKERS.TXT", speakers, jobs)


if __name__ == "__main__":
    main()
