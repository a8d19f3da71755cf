"""The recipes' scripts: what they refuse before any work, and what --help says.

They run on copies in folders that are empty otherwise, with a Python that only takes
down what it is asked for.
"""

import re
import shlex
import shutil
import subprocess
import sys
from itertools import chain
from pathlib import Path

import pytest

RECIPES = Path(__file__).parents[2] / "recipes"

MT, MINI, LIBRI = "mini_mt/run.sh", "mini_librispeech/run.sh", "librispeech/run.sh"
TABLES = "librispeech/mini.sh"
WHISPER = "whisper/run.sh"
SCRIPTS = (MT, MINI, LIBRI, TABLES, WHISPER)

STAGES = {MT: 6, MINI: 12, LIBRI: 4, WHISPER: 6}

# The least value of each whole number other than the stages.
NUMBERS = {
    MT: {"sentences": 0},
    MINI: {"utterances": 0, "jobs": 1, "units": 1},
    LIBRI: {"utterances": 0, "ngpu": 0, "nj": 1, "batch_size": 1},
    TABLES: {"utterances": 0, "tuning_utterances": 1, "nj": 1},
    WHISPER: {"utterances": 0, "ngpu": 0, "nj": 1, "batch_size": 1, "speed_clips": 0},
}

# It writes the tables, where a folder for them is named.
PYTHON = """\
#!/bin/bash
echo "$*" >> "$(dirname "$0")/asked"
while [ $# -gt 0 ]; do
    if [ "$1" = --output_dir ]; then
        mkdir -p "$2"; echo new > "$2/comparison.md"; echo new > "$2/comparison.csv"
    fi
    shift
done
"""


# Makes what the stages of recipes that decode ask of it, with an utterance in each set.
DATA_AND_ROWS = """\
#!/bin/bash
case "$*" in
    *data_prep.py*)
        for s in "${@:4}"; do
            mkdir -p "$3/$s"
            echo "u1 $2/$s/u1.flac" > "$3/$s/wav.scp"
            for f in text utt2spk spk2utt; do echo "u1 x" > "$3/$s/$f"; done
        done
        beside=${BESIDE:-}
        unset BESIDE
        $beside ;;
    *local.data*) mkdir -p "$4"; echo "u1 $3/u1.wav" | tee "$4/wav.scp" > "$4/text" ;;
    *local.model*) mkdir -p "$(dirname "$4")"; touch "$4" ;;
    *local.tune*) mkdir -p "$4"; cp conf/* "$4" ;;
    *rows*)
        if [ -n "${NO_ROWS:-}" ]; then exit 1; fi
        while [ "$1" != --rows ]; do shift; done
        while [[ $2 != --* ]]; do echo "${2%%:*}_beam4"; shift; done ;;
esac
"""

# Takes down what it is asked for. "simple" has an utterance of dev-clean that fails,
# "optimal" ends with the status $CRASH.
DECODE = """\
#!/bin/bash
echo "$*" >> "$(dirname "$0")/decoded"
out=$(sed 's/.*--output_dir //; s/ .*//' <<< "$*")
if [ "$1" = decode ]; then mkdir -p "$out/1best_recog"; touch "$out/1best_recog/text"; fi
case "$*" in
    decode*/simple_beam4/dev-clean*)
        echo "1 of 1 utterances failed; their lines are empty. The same command"
        echo "failed: u1: it is broken"
        exit 1 ;;
    decode*/optimal_beam4/*) exit "${CRASH:-0}" ;;
esac
"""

# In the place of options.sh: bash's own variables have capitals.
TELL_VARIABLES = """\
for NAME in $(compgen -v); do
    case $NAME in [a-z]*) echo "$NAME=${!NAME}" ;; esac
done
exit
"""


@pytest.fixture
def recipes(tmp_path) -> Path:
    """Copies of the scripts, and nothing else that a stage could read."""
    for path in [*RECIPES.glob("*.sh"), *RECIPES.glob("*/*.sh")]:
        copy = tmp_path / path.relative_to(RECIPES)
        copy.parent.mkdir(exist_ok=True)
        shutil.copy(path, copy)
    shutil.copytree(RECIPES / "librispeech" / "conf", tmp_path / "librispeech" / "conf")
    _program(tmp_path / "python", PYTHON)
    return tmp_path


def _program(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


def _run(
    recipes: Path,
    script: str,
    *options: object,
    python: Path | None = None,
    **environment: object,
) -> subprocess.CompletedProcess:
    return subprocess.run(
        [recipes / script, *map(str, options)],
        cwd=recipes,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={
            "PATH": "/usr/bin:/bin",
            "PYTHON": str(python or recipes / "python"),
            **{name: str(value) for name, value in environment.items()},
        },
    )


def _make(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def _asked(recipes: Path) -> list[str]:
    """What the Python was asked for, but for whether it has the package."""
    path = recipes / "asked"
    lines = path.read_text().splitlines() if path.exists() else []
    return [line for line in lines if line != "-c import espnet_lenbias"]


def _refused(recipes: Path, run: subprocess.CompletedProcess, message: str) -> None:
    assert run.stderr == message + "\n"
    assert run.stdout == ""
    assert run.returncode == 2
    assert _asked(recipes) == []


def _variables(recipes: Path, script: str) -> dict[str, str]:
    """The variables of a script with defaults, as bash has them at its options."""
    options = recipes / "options.sh"
    text = options.read_text()
    options.write_text(TELL_VARIABLES)
    run = _run(recipes, script)
    options.write_text(text)
    assert (run.returncode, run.stderr) == (0, "")
    return dict(line.split("=", 1) for line in run.stdout.splitlines())


# --- Options --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "option"),
    [
        ("mini_librispeech/run.sh", "test_sets"),
        ("librispeech/run.sh", "sets"),
        ("librispeech/mini.sh", "rows"),
        ("whisper/run.sh", "rival_beams"),
        ("mini_mt/run.sh", "data"),
    ],
)
@pytest.mark.parametrize("nothing", ["", "  "])
def test_nothing_in_the_place_of_something(script, option, nothing, recipes):
    """`rm -r "$data/new"` and lists of nothing to do."""
    run = _run(recipes, script, f"--{option}", nothing)
    message = f"{script.partition('/')[2]}: --{option} must not be empty"
    _refused(recipes, run, message)


def test_options_with_dashes_as_in_espnets_recipes(recipes):
    run = _run(recipes, "librispeech/run.sh", "--stop-stage", "0")
    _refused(recipes, run, "run.sh: --stop_stage 0: must be a whole number from 1 on")


@pytest.mark.parametrize("script", ["librispeech/run.sh", "whisper/run.sh"])
def test_rows_are_verified_before_anything_runs(script, recipes):
    (recipes / "audio").mkdir()
    options = ["--audio", recipes / "audio"] if "whisper" in script else []
    run = _run(recipes, script, "--stage", "3", *options, "--rows", "simple:0")
    what = "a row, or a row with beams such as simple:64,5000"
    _refused(recipes, run, f"run.sh: --rows simple:0: simple:0 is not {what}")
    run = _run(recipes, script, "--stage", "3", *options, "--rows", "nope:8")
    conf = "../librispeech/conf" if "whisper" in script else "conf"
    _refused(
        recipes, run, f"run.sh: there is no {conf}/decode_nope.yaml: --rows names it"
    )


# --- Stages ---------------------------------------------------------------------------


NO_STAGE = ("six", "", "0", "-1", "1.5", "1 2", "08", "9" * 30)
NO_STOP_STAGE = ("all", "0", "-2", "")


@pytest.mark.parametrize(
    ("option", "value"),
    [*(("stage", v) for v in NO_STAGE), *(("stop_stage", v) for v in NO_STOP_STAGE)],
)
@pytest.mark.parametrize("script", STAGES)
def test_a_stage_that_is_none(script, option, value, recipes):
    run = _run(recipes, script, f"--{option}", value)
    # to stop behind the last is to stop there
    allowed = f"1 to {STAGES[script]}" if option == "stage" else "1 on"
    wrong = f"{value}: must be a whole number from {allowed}" if value else ""
    _refused(recipes, run, f"run.sh: --{option} {wrong or 'must not be empty'}")


@pytest.mark.parametrize("script", STAGES)
def test_a_stage_behind_the_last(script, recipes):
    last = STAGES[script]
    run = _run(recipes, script, "--stage", last + 1, "--stop_stage", last + 1)
    expected = f"--stage {last + 1}: must be a whole number from 1 to {last}"
    _refused(recipes, run, f"run.sh: {expected}")


@pytest.mark.parametrize("script", STAGES)
def test_a_stop_stage_before_the_first(script, recipes):
    run = _run(recipes, script, "--stop_stage", 2, "--stage", 3)
    _refused(
        recipes,
        run,
        "run.sh: --stop_stage 2: no stage would run; with --stage 3 it must be a whole "
        "number from 3 on",
    )


# --- Numbers --------------------------------------------------------------------------


@pytest.mark.parametrize("script", SCRIPTS)
def test_all_whole_numbers_are_tested_here(script, recipes):
    variables = _variables(recipes, script)
    numbers = {name for name, value in variables.items() if value.isdigit()}
    left_open = {name for name in NUMBERS[script] if not variables[name]}
    assert numbers - {"stage", "stop_stage"} | left_open == NUMBERS[script].keys()


@pytest.mark.parametrize(
    ("script", "option"), [(s, o) for s in SCRIPTS for o in NUMBERS[s]]
)
def test_a_number_that_is_none(script, option, recipes):
    least = NUMBERS[script][option]
    values = ["-3", str(least - 1), "three", "2.5", "2x", "010", "", "1 2"]
    if not _variables(recipes, script)[option]:
        values.remove("")  # it may be left open
    for value in values:
        run = _run(recipes, script, f"--{option}", value)
        allowed = "0 to 1" if option == "ngpu" else f"{least} on"
        wrong = f"{value}: must be a whole number from {allowed}" if value else ""
        expected = f"--{option} {wrong or 'must not be empty'}"
        _refused(recipes, run, f"{Path(script).name}: {expected}")


@pytest.mark.parametrize(
    ("script", "option", "value", "message"),
    [
        (LIBRI, "beams", "4 x", "x is not a whole number from 1 on"),
        (LIBRI, "beams", "0 4", "0 is not a whole number from 1 on"),
        (LIBRI, "beams", "4,8", "4,8 is not a whole number from 1 on"),
        (LIBRI, "lm_weights", "0.1 much", "much is not a number"),
        (TABLES, "beams", "-4", "-4 is not a whole number from 1 on"),
        (TABLES, "lm_weights", "0.1.2", "0.1.2 is not a number"),
        (TABLES, "without_lm", "no", "no is not true or false"),
        (WHISPER, "rival_beams", "5 x", "x is not a whole number from 1 on"),
        (WHISPER, "rival", "openai me", "me is not openai or faster"),
        (
            WHISPER,
            "language",
            "German",
            "German is not the code of a language, e.g. de",
        ),
        (WHISPER, "task", "sing", "sing is not transcribe or translate"),
        (MINI, "slice_sets", "a=1 b", "b is not <set>=<a whole number from 1 on>"),
        (MINI, "slice_sets", "a=0", "a=0 is not <set>=<a whole number from 1 on>"),
    ],
)
def test_a_word_of_a_list(script, option, value, message, recipes):
    run = _run(recipes, script, f"--{option}", value)
    _refused(recipes, run, f"{Path(script).name}: --{option} {value}: {message}")


@pytest.mark.parametrize(
    "options",
    [
        ("--beams", "4 16", "--lm_weights", "0.0 .5 1. -1 1e-2"),
        ("--beams", "", "--lm_weights", "", "--utterances", "0", "--ngpu", "1"),
    ],
)
def test_numbers_that_are_allowed(options, recipes):
    run = _run(recipes, LIBRI, *options)
    # of what is read first nothing is here
    missing = "there is no download/LibriSpeech/dev-clean"
    where = "--librispeech names the folder that holds it"
    _refused(recipes, run, f"run.sh: {missing}: {where}")


# --- What a stage reads ---------------------------------------------------------------


def _each(pattern: str, *words: str) -> list[str]:
    return [pattern.format(word) for word in words]


SETS = ("dev-clean", "dev-other", "test-clean", "test-other")
MT_TRAIN = _each("data/train/{}", "src_text", "text")
MT_DEV = _each("data/dev/{}", "src_text", "text")
MT_TOKENS = _each("data/tokens/{}", "tokens.txt", "src_tokens.txt")
TRAIN = _each("data/train-clean/{}", "wav.scp", "text")
DEV = _each("data/dev/{}", "wav.scp", "text")
BPE = _each("data/token_list/{}", "bpe.model", "tokens.txt")
NORM = ["exp/asr_stats/train/feats_stats.npz"]
SHAPES = [
    f"exp/asr_stats/{s}/{name}"
    for s in ("train", "valid")
    for name in ("speech_shape", "text_shape.bpe")
]
ASR = _each("exp/asr_transformer/{}", "config.yaml", "valid.acc.ave.pth")
SENTENCES = {2: TRAIN + DEV, 3: BPE, 4: NORM + SHAPES}
AUDIO = _each("corpus/LibriSpeech/{}", *SETS)
ROW = "exp/e_branchformer_librispeech/simple_beam4_lm0.0"

WHISPER_DATA = _each("data/{}/wav.scp", "test-clean", "test-other")

# Script -> stage -> what it reads, by the stage that makes it.
READ = {
    MT: {
        2: {1: MT_TRAIN},
        3: {1: MT_TRAIN + MT_DEV, 2: MT_TOKENS},
        4: {
            1: MT_TRAIN + MT_DEV,
            2: MT_TOKENS,
            3: [
                f"exp/mt_stats/{s}/{text}_shape"
                for s in ("train", "valid")
                for text in ("src_text", "text")
            ],
        },
        5: {4: _each("exp/mt_transformer/{}", "config.yaml", "valid.acc.ave.pth")},
        6: {1: _each("data/test/{}", "src_text", "text"), 5: ["pretrained/mt.zip"]},
    },
    MINI: {
        2: {1: _each("corpus/LibriSpeech/{}", "train-clean", "train-words") + AUDIO},
        3: {2: TRAIN},
        4: {2: TRAIN + DEV, 3: BPE},
        5: {
            2: DEV + _each("data/train-words/{}", "wav.scp", "text"),
            3: BPE,
            4: NORM,
        },
        6: {**SENTENCES, 5: ["exp/asr_words/valid.acc.best.pth"]},
        7: {**SENTENCES, 6: ["exp/asr_sentences/valid.acc.best.pth"]},
        8: {**SENTENCES, 7: ASR},
        9: {2: TRAIN + DEV + _each("data/{}/text", *SETS), 3: BPE},
        10: {
            3: BPE,
            4: NORM,
            7: ASR,
            8: _each("exp/asr_rnn/{}", "config.yaml", "valid.acc.ave.pth"),
            9: _each("exp/lm/{}", "config.yaml", "valid.loss.best.pth"),
        },
        11: {
            1: _each(
                "corpus/LibriSpeech/{}",
                *("SPEAKERS.TXT", "dev-other", "test-other", "dev-clean"),
            )
        },
        12: {1: AUDIO, 10: ["pretrained/asr_transformer.zip"]},
    },
    LIBRI: {
        3: {
            1: _each("data/{}/wav.scp", *SETS),
            2: ["exp/e_branchformer_librispeech/model.yaml"],
        },
    },
    WHISPER: {
        3: {1: WHISPER_DATA, 2: ["exp/tiny.en/model.yaml"]},
        4: {1: WHISPER_DATA},
        6: {1: WHISPER_DATA, 2: ["exp/tiny.en/model.yaml"]},
    },
}


# What the stages read that no stage makes, or makes under a name that nobody can know.
GIVEN = {
    (LIBRI, 1): _each("download/LibriSpeech/{}", *SETS),
    (WHISPER, 1): _each("download/LibriSpeech/{}", "test-clean", "test-other"),
    (WHISPER, 5): [
        *WHISPER_DATA,
        *_each("exp/tiny.en/{}/1best_recog/text", "a/test-clean", "a/test-other"),
    ],
    (LIBRI, 4): ["data/dev-clean/text", f"{ROW}/dev-clean/1best_recog/text"],
}


@pytest.mark.parametrize(
    ("script", "stage"),
    [(script, n) for script in STAGES for n in range(1, STAGES[script] + 1)],
)
def test_a_stage_runs_alone_and_says_what_it_is(script, stage, recipes):
    read = READ[script].get(stage, {}).values()
    _make((recipes / script).parent, *chain(*read), *GIVEN.get((script, stage), ()))
    run = _run(recipes, script, "--stage", stage, "--stop_stage", stage)
    assert re.findall(r" stage (\d+): \w", run.stdout) == [str(stage)]


@pytest.mark.parametrize(
    ("script", "stage"), [(script, stage) for script in READ for stage in READ[script]]
)
def test_a_missing_input_is_named_with_the_stage_that_makes_it(script, stage, recipes):
    """Each in turn, until all are there and the stage begins."""
    makers = {f: maker for maker, files in READ[script][stage].items() for f in files}
    options = ("--stage", stage, "--stop_stage", stage)
    while makers:
        run = _run(recipes, script, *options)
        missing = run.stderr.removeprefix("run.sh: there is no ").partition(":")[0]
        maker = makers.pop(missing, None)
        message = f"stage {maker} makes it, stage {stage} reads it"
        _refused(recipes, run, f"run.sh: there is no {missing}: {message}")
        _make((recipes / script).parent, missing)
    run = _run(recipes, script, *options)
    assert f" stage {stage}: " in run.stdout
    assert "there is no" not in run.stderr


def test_a_report_without_data_or_decodings(recipes):
    folder = recipes / "librispeech"
    for missing, maker, files in [
        ("data/*/text", 1, ["data/dev-clean/text"]),
        (
            "exp/e_branchformer_librispeech/*/*/1best_recog/text",
            3,
            [f"{ROW}/dev-clean/1best_recog/text"],
        ),
    ]:
        run = _run(recipes, LIBRI, "--stage", 4)
        message = f"there is no {missing}: stage {maker} makes it, stage 4 reads it"
        _refused(recipes, run, f"run.sh: {message}")
        _make(folder, *files)
    run = _run(recipes, LIBRI, "--stage", 4)
    assert " stage 4: score and report" in run.stdout


def test_what_a_later_stage_reads_is_looked_for_before_the_first_begins(recipes):
    folder = recipes / "mini_mt"
    _make(folder, *READ[MT][5][4], "data/test/text")
    run = _run(recipes, MT, "--stage", 5)
    message = "data/test/src_text: stage 1 makes it, stage 6 reads it"
    _refused(recipes, run, f"run.sh: there is no {message}")


def test_what_the_run_makes_is_not_looked_for(recipes):
    run = _run(recipes, MT, "--stop_stage", 99)
    assert " stage 1: corpus\n" in run.stdout
    assert "there is no" not in run.stderr
    assert _asked(recipes)[0] == "-m local.make_corpus --out data"


def test_paths_with_spaces(recipes):
    run = _run(recipes, MT, "--stage", 2, "--data", "my data")
    message = "my data/train/src_text: stage 1 makes it, stage 2 reads it"
    _refused(recipes, run, f"run.sh: there is no {message}")


def test_the_tables_need_a_bundled_model_and_the_mini_corpus(recipes):
    run = _run(recipes, TABLES, "--model", "asr_rmm")
    missing = "../mini_librispeech/pretrained/asr_rmm.zip"
    where = "--model is asr_transformer or asr_rnn"
    _refused(recipes, run, f"mini.sh: there is no {missing}: {where}")

    _make(recipes / "mini_librispeech", "pretrained/asr_rnn.zip")
    run = _run(recipes, TABLES, "--model", "asr_rnn")
    missing = "../mini_librispeech/corpus/LibriSpeech/dev-other"
    where = "../mini_librispeech/run.sh --stage 1 --stop_stage 1 makes it"
    _refused(recipes, run, f"mini.sh: there is no {missing}: {where}")


# --- Decoding -------------------------------------------------------------------------


@pytest.fixture
def decoding(recipes) -> Path:
    """The scripts with programs that decode, and audio in the folders a and b."""
    _program(recipes / "python", DATA_AND_ROWS)
    _program(recipes / "espnet-lenbias", DECODE)
    for folder in ("a", "b"):
        _make(recipes / folder, *_each("{}/u1.flac", *SETS))
    return recipes


def _decoded(recipes: Path) -> list[str]:
    """The row and the set of each decoding, in order, and "report"."""
    path = recipes / "decoded"
    lines = path.read_text().splitlines() if path.exists() else []
    path.unlink(missing_ok=True)
    folders = [re.search(r"--output_dir \S*?([^/ ]+/[^/ ]+)( |$)", x) for x in lines]
    return [f[1] if f else x.split()[0] for f, x in zip(folders, lines, strict=True)]


def _libri(recipes: Path, audio: str, *options: object, **environment: object):
    sets = ("--sets", "dev-clean dev-other")
    where = ("--librispeech", recipes / audio, "--model", "m")
    return _run(recipes, LIBRI, *where, *sets, *options, **environment)


def test_a_set_in_detail_that_is_none_of_the_sets(recipes):
    for name in ("dev-clean", "dev-other"):
        (recipes / "a" / name).mkdir(parents=True)
    why = "there is no data/nope: --detail names it, and --sets does not"
    _refused(recipes, _libri(recipes, "a", "--detail", "nope"), f"run.sh: {why}")


def test_whatever_fails_ends_a_script_with_2(decoding):
    """1 says that utterances have failed, and Python ends with it, too."""
    _program(decoding / "python", "#!/bin/bash\ncase $* in *data_prep*) exit 1;; esac")
    assert _libri(decoding, "a").returncode == 2


def test_an_utterance_that_fails_stops_no_other_row_set_or_stage(decoding):
    run = _libri(decoding, "a", "--rows", "simple explicit_length")
    assert _decoded(decoding) == [
        "simple_beam4/dev-clean",
        "simple_beam4/dev-other",
        "explicit_length_beam4/dev-clean",
        "explicit_length_beam4/dev-other",
        "report",
    ]
    assert run.returncode == 1
    assert "failed: u1: it is broken\n" in run.stderr
    last = run.stderr.splitlines()[-1]
    assert last.startswith("run.sh: not all utterances are decoded")
    assert last.endswith(" See exp/m/simple_beam4/dev-clean/decode.log")

    run = _libri(decoding, "a", "--rows", "explicit_length")
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.endswith(" done\n")


@pytest.mark.parametrize(
    ("crash", "status"),
    [(1, 2), (2, 2), (130, 130)],  # a traceback, an option that is wrong, Ctrl-C
)
def test_what_is_no_failed_utterance_ends_the_run(crash, status, decoding):
    log = decoding / "librispeech/exp/m/optimal_beam4/dev-clean/decode.log"
    log.parent.mkdir(parents=True)
    log.write_text(
        "1 of 1 utterances failed; their lines are empty.\n"
    )  # an earlier run
    run = _libri(decoding, "a", "--rows", "optimal:4 simple", CRASH=crash)
    assert _decoded(decoding) == ["optimal_beam4/dev-clean"]
    assert run.returncode == status
    where = "exp/m/optimal_beam4/dev-clean/decode.log"
    said = f"optimal_beam4, dev-clean: decoding ended with status {crash}, see {where}"
    assert run.stderr.splitlines()[-1] == f"run.sh: {said}"


def test_rows_that_cannot_be_made_are_no_failed_utterance(decoding):
    run = _libri(decoding, "a", NO_ROWS=1)
    assert (run.returncode, _decoded(decoding)) == (2, [])


def test_the_tables_go_on_where_an_utterance_has_failed(decoding):
    _make(decoding / "mini_librispeech", "pretrained/asr_rnn.zip")
    options = ("--model", "asr_rnn", "--librispeech", decoding / "a")
    rows = ("--rows", "simple", "--related", "length_norm", "--rivals", "")
    sets = ("--sets", "dev-clean test-clean", "--related_sets", "dev-other")
    run = _run(decoding, TABLES, *options, *rows, *sets, "--lm_weights", "0.1")
    of_a_conf = ["simple_beam4/dev-clean", "simple_beam4/test-clean"]
    related = ["length_norm_beam4/dev-other"]
    assert _decoded(decoding) == [*2 * of_a_conf, *2 * related, "report"]
    assert run.returncode == 1
    log = "exp/mini/asr_rnn_10/simple_beam4/dev-clean/decode.log"
    last = run.stderr.splitlines()[-1]  # without and with LM
    assert last.startswith("mini.sh: not all utterances are decoded")
    assert last.endswith(f" See {log} {log}")

    run = _run(decoding, TABLES, *options, "--rows", "optimal", *sets, CRASH=1)
    assert run.returncode == 2
    assert _decoded(decoding) == []  # tuned with other rows
    run = _run(
        decoding,
        TABLES,
        *(*options, "--rows", "optimal", *sets, "--exp", "other"),
        CRASH=1,
    )
    assert (run.returncode, _decoded(decoding)) == (2, ["optimal_beam4/dev-clean"])


@pytest.mark.parametrize(
    ("options", "times"),
    [
        (("--lm_weights", "0.1"), 2),
        (("--lm_weights", ""), 1),
        (("--lm_weights", "0.1", "--without_lm", "false"), 1),
    ],
)
def test_tables_with_and_without_lm(options, times, decoding):
    _make(decoding / "mini_librispeech", "pretrained/asr_rnn.zip")
    audio = ("--model", "asr_rnn", "--librispeech", decoding / "a")
    rows = ("--rows", "optimal", "--related", "", "--rivals", "", "--sets", "dev-clean")
    run = _run(decoding, TABLES, *audio, *rows, *options)
    assert run.returncode == 0, run.stderr
    assert _decoded(decoding) == [*times * ["optimal_beam4/dev-clean"], "report"]


def test_tables_neither_with_nor_without_lm(recipes):
    run = _run(recipes, TABLES, "--without_lm", "false", "--lm_weights", "")
    message = "--without_lm false needs --lm_weights: else nothing is decoded"
    _refused(recipes, run, f"mini.sh: {message}")


def test_data_of_other_audio_is_neither_used_nor_written_over(decoding):
    few = ("--utterances", 1, "--stop_stage", 1)
    assert _libri(decoding, "a", *few).returncode == 0
    data = decoding / "librispeech" / "data_1" / "dev-clean"
    before = (data / "wav.scp").read_text()
    assert before == f"u1 {decoding}/a/dev-clean/u1.flac\n"

    run = _libri(decoding, "b", *few)
    assert run.returncode == 2
    remedy = "name other folders with --data and --exp, or remove it"
    assert run.stderr == (
        f"run.sh: data/dev-clean is of the audio in {decoding}/a, not in {decoding}/b: "
        f"{remedy}\n"
    )
    assert (data / "wav.scp").read_text() == before
    assert _libri(decoding, "b", *few, "--data", "mine").returncode == 0
    assert _libri(decoding, "a", *few).returncode == 0


def test_two_runs_can_make_the_same_data(decoding):
    """As of two models, one on each core."""
    beside = (
        f"./run.sh --librispeech {decoding}/a --model n --sets dev-other --stop_stage 1"
    )
    run = _libri(decoding, "a", "--stop_stage", 1, BESIDE=beside)
    assert run.returncode == 0, run.stderr
    data = decoding / "librispeech" / "data"
    assert sorted(path.name for path in data.iterdir()) == ["dev-clean", "dev-other"]
    for name in ("dev-clean", "dev-other"):
        wav_scp = (data / name / "wav.scp").read_text()
        assert wav_scp == f"u1 {decoding}/a/{name}/u1.flac\n"


@pytest.mark.parametrize("file", ["wav.scp", "text", "segments"])
@pytest.mark.parametrize("folder", ["own", "own_1"])
def test_data_of_a_persons_own_is_not_written_over(folder, file, decoding):
    few = ("--utterances", 1, "--stop_stage", 1, "--data", "own")
    own = decoding / "librispeech" / folder / "dev-clean" / file
    own.parent.mkdir(parents=True)
    own.write_text("mine\n")
    run = _libri(decoding, "a", *few)
    assert run.returncode == 2
    remedy = "is not of this recipe: name another folder with --data, or move it"
    assert run.stderr == f"run.sh: {folder}/dev-clean/{file} {remedy}\n"
    assert own.read_text() == "mine\n"

    (decoding / "a" / "clips").mkdir()
    own = decoding / "whisper" / "own" / "clips" / file
    own.parent.mkdir(parents=True)
    own.write_text("mine\n")
    options = ("--stop_stage", 1, "--data", "own", "--audio", decoding / "a/clips")
    run = _run(decoding, WHISPER, *options)
    assert run.returncode == 2
    assert run.stderr == f"run.sh: own/clips/{file} {remedy}\n"
    assert own.read_text() == "mine\n"


@pytest.mark.parametrize("folder", ["data", "data_1"])
def test_data_that_a_person_has_changed_is_not_written_over(folder, decoding):
    few = ("--utterances", 1, "--stop_stage", 1, "--sets", "dev-clean")
    assert _libri(decoding, "a", *few).returncode == 0
    text = decoding / "librispeech" / folder / "dev-clean" / "text"
    as_made = text.read_text()
    text.write_text("u1 corrected\n")
    run = _libri(decoding, "a", *few)
    assert run.returncode == 2
    assert run.stderr == (
        f"run.sh: {folder}/dev-clean/text has been changed since this recipe wrote it: "
        "begin with --stage 2 to use it as it is, or remove it to have it written anew\n"
    )
    assert text.read_text() == "u1 corrected\n"
    text.unlink()
    assert _libri(decoding, "a", *few).returncode == 0
    assert text.read_text() == as_made


def test_likewise_of_a_folder_of_audio(decoding):
    (decoding / "a" / "clips").mkdir()
    options = ("--stop_stage", 1, "--audio", decoding / "a/clips")
    for _ in range(2):
        assert _run(decoding, WHISPER, *options).returncode == 0
    path = decoding / "whisper" / "data" / "clips" / "wav.scp"
    path.write_text("corrected\n")
    run = _run(decoding, WHISPER, *options)
    assert run.returncode == 2
    assert "run.sh: data/clips/wav.scp has been changed since this" in run.stderr
    assert path.read_text() == "corrected\n"


def test_audio_is_named_as_a_folder(decoding):
    file = decoding / "a" / "clip.wav"
    file.touch()
    run = _run(decoding, WHISPER, "--audio", file)
    assert run.returncode == 2
    assert run.stderr == f"run.sh: --audio {file}: name the folder that holds it\n"


def test_results_of_other_audio_are_not_mixed(decoding):
    assert _libri(decoding, "a", "--rows", "explicit_length").returncode == 0
    _decoded(decoding)
    run = _libri(decoding, "b", "--rows", "explicit_length", "--data", "mine")
    assert (run.returncode, _decoded(decoding)) == (2, [])
    assert run.stderr.startswith("run.sh: exp/m/explicit_length_beam4/dev-clean is of ")
    run = _libri(
        decoding, "b", "--rows", "explicit_length", "--data", "mine", "--exp", "e"
    )
    assert run.returncode == 0, run.stderr


def test_two_folders_of_audio_with_the_same_name(decoding):
    for folder in ("a", "b"):
        (decoding / folder / "clips").mkdir()
    options = ("--stop_stage", 1, "--audio")
    assert _run(decoding, WHISPER, *options, decoding / "a/clips").returncode == 0
    assert _run(decoding, WHISPER, *options, decoding / "a/clips").returncode == 0
    run = _run(decoding, WHISPER, *options, decoding / "b/clips")
    assert run.returncode == 2
    assert run.stderr.startswith(f"run.sh: data/clips is of the audio in {decoding}/a/")


@pytest.mark.parametrize("script", [LIBRI, WHISPER])
def test_the_config_of_a_queue_is_found_from_both_recipes(script, decoding):
    folder = (decoding / script).parent
    _make(folder, *chain(*READ[script][3].values()))
    options = ("--stage", 3, "--stop_stage", 3, "--rows", "explicit_length:4")
    run = _run(decoding, script, *options, cmd_backend="slurm")
    assert run.returncode == 0, run.stderr
    asked = (decoding / "decoded").read_text()
    for path in re.findall(r"--cluster_config (\S+)", asked):
        assert (folder / path).samefile(decoding / "librispeech/conf/slurm.yaml")
    jobs = asked.count("--nj 1 --cluster slurm --cluster_config ")
    assert jobs == len(_decoded(decoding)) > 0

    run = _run(decoding, script, *options, cmd_backend="slurmm")
    assert run.returncode == 2
    why = "cmd_backend is slurmm, which it describes"
    assert run.stderr.endswith(f"/conf/slurmm.yaml: {why}\n")


# --- The tables of mini_mt ------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ((), "results"),
        (("--sentences", 0), "results"),
        (("--sentences", 3), None),
        (("--sentences", 3, "--results", "mine/few"), "mine/few"),
        (("--results", "mine"), "mine"),
    ],
)
def test_where_tables_are_kept(options, kept, recipes):
    folder = recipes / "mini_mt"
    _make(folder, "data/test/src_text", "data/test/text", "pretrained/mt.zip")
    _make(folder, "results/comparison.md", "results/comparison.csv")  # the bundled ones
    run = _run(recipes, MT, "--stage", 6, *options)
    assert run.returncode == 0, run.stderr
    new = {
        str(path.relative_to(folder))
        for path in folder.rglob("comparison.*")
        if path.read_text() == "new\n"
    }
    folders = ["exp/compare", *([kept] if kept else [])]
    assert new == {f"{f}/comparison.{form}" for f in folders for form in ("md", "csv")}


# --- --help ---------------------------------------------------------------------------


@pytest.mark.parametrize("script", SCRIPTS)
def test_help_has_the_stages_and_the_options_with_their_defaults(script, recipes):
    run = _run(recipes, script, "--help")
    assert (run.returncode, run.stderr) == (0, "")
    assert not (recipes / "asked").exists()
    said = run.stdout.splitlines()
    assert said[0] == f"usage: ./{Path(script).name} [--option value]..."
    stages = [int(n) for n in re.findall(r"^  (\d+): \w", run.stdout, re.MULTILINE)]
    assert stages == list(range(1, STAGES.get(script, 0) + 1))
    options = [line.split(" ", 1) for line in run.stdout.split("\n  --")[1:]]
    defaults = {
        name: "".join(shlex.split(text.splitlines()[0], comments=True))
        for name, text in options
    }
    assert defaults == _variables(recipes, script)


@pytest.mark.parametrize(
    ("script", "lines"),
    [
        (
            MT,
            [
                "Mini MT: make the corpus, train, pack, compare searches.",
                "  4: training, log in $exp/train.log",
                "  --stop_stage 6        # the last",
            ],
        ),
        (
            MINI,
            ["  12: compare searches, in pure attention, logs in $compared/<set>/log"],
        ),
        (LIBRI, ["  2: model", '  --sets "dev-clean dev-other test-clean test-other"']),
        (TABLES, ["    ./mini.sh --model asr_rnn", "  --nj 1"]),
    ],
)
def test_lines_of_help(script, lines, recipes):
    said = _run(recipes, script, "-h").stdout.splitlines()
    assert set(lines) <= set(said)


def test_help_behind_other_options(recipes):
    run = _run(recipes, MT, "--sentences", "-3", "--help")
    assert run.returncode == 0
    assert run.stdout.startswith("usage: ./run.sh")


# --- PYTHON ---------------------------------------------------------------------------

HOW = "make install at the top of the project, or PYTHON=..."


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_python_without_the_package(script, recipes):
    python = _program(
        recipes / "bare", f'#!/bin/sh\nexec "{sys.executable}" -I -S "$@"\n'
    )
    run = _run(recipes, script, python=python)
    cause = "ModuleNotFoundError: No module named 'espnet_lenbias'"
    _refused(recipes, run, f"{python} has no espnet_lenbias ({cause}): {HOW}")


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_python_that_is_not_there(script, recipes):
    run = _run(recipes, script, python=recipes / "gone")
    said = run.stderr.splitlines()
    assert len(said) == 1
    assert said[0].startswith(f"{recipes}/gone has no espnet_lenbias (")
    assert said[0].endswith(f"No such file or directory): {HOW}")
    assert run.returncode == 2
