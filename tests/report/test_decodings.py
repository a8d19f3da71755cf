import math
import shutil

import pytest

from espnet_lenbias.report.decodings import read_decodings
from espnet_lenbias.report.systems import ESPNETS_DEFAULTS
from tests.report.made import REFERENCES, write_lines, write_system

SIMPLE = {"search": "simple", "beam_size": 4, "ctc_weight": 0.0, "lm_weight": 0.0}


@pytest.fixture
def data(tmp_path):
    write_lines(tmp_path / "data" / "dev" / "text", REFERENCES)
    return tmp_path / "data"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "exp").mkdir()
    return tmp_path / "exp"


def read_one(folder, data):
    found = read_decodings(folder, data)
    (decoding,) = found.decodings
    assert found.systems == [decoding.system]
    assert not found.skipped
    return decoding


@pytest.mark.parametrize("place", [".", "1best_recog", "logdir/output.1/1best_recog"])
def test_where_files_may_be(folder, data, place):
    files = {"text": REFERENCES, "score": dict.fromkeys(REFERENCES, -1.5)}
    write_system(folder, "a", SIMPLE, {"dev": files}, place)
    decoding = read_one(folder, data)
    assert decoding.texts == REFERENCES
    assert decoding.score == {"s1-u1": -1.5, "s1-u2": -1.5, "s2-u3": -1.5}
    assert decoding.steps == decoding.original_score == decoding.labels == {}
    assert decoding.stopped == {}


def test_what_asr_sh_joins_is_read_with_what_it_leaves_to_the_jobs(folder, data):
    write_system(folder, "a", SIMPLE, {"dev": {"text": REFERENCES}}, ".")
    logdir = folder / "a" / "dev" / "logdir"
    write_lines(logdir / "output.1" / "1best_recog" / "steps", {"s1-u1": 9})
    write_lines(logdir / "output.2" / "1best_recog" / "steps", {"s1-u2": 4, "s2-u3": 5})
    assert read_one(folder, data).steps == {"s1-u1": 9, "s1-u2": 4, "s2-u3": 5}


def test_scores_labels_and_what_a_failed_utterance_has(folder, data):
    scores = {"s1-u1": "tensor(-2.5)", "s1-u2": "tensor(-3., device='cuda:0')"}
    files = {
        "text": {"s1-u1": "x", "s1-u2": "", "s2-u3": ""},
        "score": {**scores, "s2-u3": "nan"},
        "token_int": {"s1-u1": "7 8 9", "s1-u2": "", "s2-u3": ""},
    }
    write_system(folder, "a", SIMPLE, {"dev": files})
    decoding = read_one(folder, data)
    assert decoding.score["s1-u1"] == -2.5
    assert decoding.score["s1-u2"] == -3.0
    assert math.isnan(decoding.score["s2-u3"])
    assert decoding.labels == {"s1-u1": 4, "s1-u2": 1, "s2-u3": 1}  # the end label too
    assert decoding.texts["s2-u3"] == ""


def test_what_loops_by_labels_or_without_them_by_words(folder, data):
    """Four times in a row; of labels where there are any, whatever the text says."""
    texts = {"s1-u1": "a a a a", "s1-u2": "b c b c b c b c", "s2-u3": "a a a"}
    write_system(folder, "a", SIMPLE, {"dev": {"text": texts}})
    assert read_one(folder, data).loops == {"s1-u1", "s1-u2"}
    ids = {"s1-u1": "7 8 9 10", "s1-u2": "7 8 7 8 7 8 7", "s2-u3": "1 5 5 5 5"}
    stopped = {"s1-u1": "bound", "s1-u2": "", "s2-u3": "limit"}
    files = {"text": texts, "token_int": ids, "stopped": stopped}
    write_system(folder, "b", {**SIMPLE, "beam_size": 9}, {"dev": files})
    decoding = read_decodings(folder, data).decodings[1]
    assert decoding.loops == {"s2-u3"}
    assert decoding.stopped == stopped


def test_speakers_are_those_of_utt2spk_else_of_the_id(folder, data):
    write_system(folder, "a", SIMPLE, {"dev": {"text": REFERENCES}})
    by_id = {"s1-u1": "s1", "s1-u2": "s1", "s2-u3": "s2"}
    assert read_one(folder, data).references.speakers == by_id
    write_lines(data / "dev" / "utt2spk", {"s1-u1": "ann", "s1-u2": "bob"})
    speakers = {"s1-u1": "ann", "s1-u2": "bob", "s2-u3": "s2"}
    assert read_one(folder, data).references.speakers == speakers


def test_a_system_that_has_decoded_nothing_is_there_all_the_same(folder, data):
    write_system(folder, "a", SIMPLE, {"dev": {"text": REFERENCES}})
    write_system(folder, "b", {**SIMPLE, "beam_size": 8}, {})
    (folder / "report" / "a" / "dev").mkdir(parents=True)
    found = read_decodings(folder, data)
    assert [system.tag for system in found.systems] == ["a", "b"]
    assert [decoding.system.tag for decoding in found.decodings] == ["a"]


def test_mean_length_of_the_references(folder, data):
    write_system(folder, "a", SIMPLE, {"dev": {"text": REFERENCES}})
    assert read_one(folder, data).references.mean_words == 4.0  # (6 + 2 + 4) / 3


# --- Folders that are wrong -----------------------------------------------------------


def test_a_hypothesis_without_reference(folder, data):
    texts = {**REFERENCES, "zz-9": "oh"}
    write_system(folder, "a", SIMPLE, {"dev": {"text": texts}})
    message = "a/dev has 1 of 4 hypotheses without a reference, e.g. zz-9"
    with pytest.raises(ValueError, match=message):
        read_decodings(folder, data)


def test_a_set_without_references(folder, data):
    write_system(folder, "a", SIMPLE, {"tests": {"text": REFERENCES}})
    with pytest.raises(FileNotFoundError, match="no references .*tests/text"):
        read_decodings(folder, data)


def test_references_that_are_empty(folder, data):
    (data / "dev" / "text").write_text("")
    write_system(folder, "a", SIMPLE, {"dev": {"text": REFERENCES}})
    with pytest.raises(ValueError, match="dev/text holds no references"):
        read_decodings(folder, data)


def test_an_empty_folder(folder, data):
    with pytest.raises(FileNotFoundError, match="exp holds no decodings"):
        read_decodings(folder, data)


def test_no_folder(folder, data):
    with pytest.raises(FileNotFoundError, match="there is no folder .*gone"):
        read_decodings(folder / "gone", data)


def test_the_folder_of_one_system(folder, data):
    write_system(folder, "a", SIMPLE, {"dev": {"text": REFERENCES}})
    with pytest.raises(
        ValueError, match="the folder of one system: name the one above"
    ):
        read_decodings(folder / "a", data)


def test_decodings_that_nothing_describes_are_left_out(folder, data):
    write_system(folder, "a", SIMPLE, {"dev": {"text": REFERENCES}})
    (folder / "a" / "decode.yaml").unlink()
    with pytest.raises(FileNotFoundError, match="a`, dev: there is neither a journal"):
        read_decodings(folder, data)
    write_system(folder, "b", SIMPLE, {"dev": {"text": REFERENCES}})
    found = read_decodings(folder, data)
    assert [decoding.system.tag for decoding in found.decodings] == ["b"]
    assert [system.tag for system in found.systems] == ["b"]
    (skipped,) = found.skipped
    assert skipped.startswith("`a`, dev: there is neither a journal (decoding.jsonl)")


def test_a_set_within_another_folder_is_named(folder, data):
    """As ``asr.sh --eval_valid_set true`` leaves the validation set."""
    write_system(folder, "a", SIMPLE, {"dev": {"text": REFERENCES}})
    (folder / "a" / "org").mkdir()
    shutil.copytree(folder / "a" / "dev", folder / "a" / "org" / "valid")
    found = read_decodings(folder, data)
    assert [decoding.references.name for decoding in found.decodings] == ["dev"]
    (skipped,) = found.skipped
    assert skipped.startswith("`a`, org/valid: sets within another folder are not read")


def test_two_systems_that_tables_could_not_tell_apart(folder, data):
    write_system(folder, "a", SIMPLE, {})
    write_system(folder, "b", SIMPLE, {})
    with pytest.raises(ValueError, match="a and b in .* are both simple, beam 4"):
        read_decodings(folder, data)


def test_a_value_that_is_none(folder, data):
    files = {"text": REFERENCES, "steps": {"s1-u1": "many"}}
    write_system(folder, "a", SIMPLE, {"dev": files})
    message = "steps: s1-u1 has no steps but 'many'"
    with pytest.raises(ValueError, match=message):
        read_decodings(folder, data)


def test_words_of_owsm_have_what_is_said_of_them_and_not_of_its_symbols(folder, data):
    """Of one whose words cannot be told from symbols nothing is known."""
    confidences = {"s1-u1": "0.9 0.8 0.7 0.6", "s1-u2": "0.5 0.4", "s2-u3": "0.3"}
    files = {
        "text": {
            "s1-u1": "<eng> <asr> a <0.02>b",
            "s1-u2": "<eng> x",
            "s2-u3": "<eng>",
        },
        "text_nospecial": {"s1-u1": " a b", "s1-u2": " y", "s2-u3": ""},
        "word_confidence": confidences,
        "word_times": {"s1-u1": "0-0 0-0 0.1-0.2 0.2-0.3", "s1-u2": "", "s2-u3": "0-0"},
    }
    write_system(folder, "a", SIMPLE, {"dev": files})
    decoding = read_one(folder, data)
    assert decoding.word_confidence == {"s1-u1": [0.7, 0.6], "s2-u3": []}
    assert decoding.word_times == {"s1-u1": [(0.1, 0.2), (0.2, 0.3)], "s2-u3": []}


def test_what_a_config_beside_a_run_without_journal_does_not_say(folder, data):
    """It counts as ESPnet's recogniser takes it, with any search."""
    from espnet2.bin.asr_inference import get_parser

    default = get_parser().get_default
    assert {key: default(key) for key in ESPNETS_DEFAULTS} == ESPNETS_DEFAULTS
    files = {"text": REFERENCES}
    write_system(folder, "a", {"penalty": 0.5}, {"dev": files})
    write_system(folder, "b", {"ctc_weight": 0.3, "lm_weight": 0.0}, {"dev": files})
    write_system(folder, "c", {"search": "simple", "ctc_weight": 0.0}, {"dev": files})
    named = {s.tag: s for s in read_decodings(folder, data).systems}
    assert named["a"].label == "espnet + penalty 0.5 + CTC 0.5, LM 1"
    assert named["b"].label == "espnet + CTC 0.3"
    assert named["c"].label == "simple, LM 1"
    assert [named[tag].beam_size for tag in "abc"] == [20, 20, 20]
