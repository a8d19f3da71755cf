"""What a journal says of a run, and what of it a report shows."""

import json
import zipfile

import pytest
import yaml

from espnet_lenbias.options.decoding import get_parser, parse
from espnet_lenbias.options.espnet_tools import ASR
from espnet_lenbias.options.run_journal import JOURNAL
from espnet_lenbias.options.run_options import run_options
from espnet_lenbias.report.command import main
from espnet_lenbias.report.decodings import read_decodings
from espnet_lenbias.report.ran import config_that_ran, contradictions
from tests.report.made import REFERENCES, write_lines, write_system

# The options of a run as a journal has them.
RAN = {
    "search": "simple",
    "search_conf": "{'length_norm': True, 'coverage': {'weight': 0.1}}",
    "beam_size": "20",
    "ctc_weight": "0.3",
    "lm_weight": "1.0",
    "lm_train_config": "None",
    "model_tag": "None",
    "penalty": "0.0",
    "normalize_length": "False",
}


def write_journal(folder, **options):
    folder.mkdir(parents=True, exist_ok=True)
    row = {"1best_recog/text": "the cat"}
    lines = [{**RAN, **options}, ["s1-u1", row, ""]]
    (folder / JOURNAL).write_text("".join(json.dumps(x) + "\n" for x in lines))
    return folder / JOURNAL


def packed(path, **yaml_files):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(
            "meta.yaml", yaml.safe_dump({"yaml_files": yaml_files, "files": {}})
        )
    return f"{path} (123 bytes, sha256 00ff)"


@pytest.fixture
def data(tmp_path):
    for name in ("dev", "test"):
        write_lines(tmp_path / "data" / name / "text", REFERENCES)
    return tmp_path / "data"


def test_the_config_that_ran(tmp_path):
    config = config_that_ran(write_journal(tmp_path))
    assert config == {
        "search": "simple",
        "search_conf": {"length_norm": True, "coverage": {"weight": 0.1}},
        "beam_size": 20,
        "ctc_weight": 0.3,
        "lm_weight": 0.0,  # there is no model that it could weigh
        "penalty": 0.0,
        "normalize_length": False,
    }


def test_whether_there_is_a_language_model(tmp_path):
    with_lm = packed(tmp_path / "a.zip", asr_train_config="x", lm_train_config="y")
    without = packed(tmp_path / "b.zip", asr_train_config="x")
    weights = {
        "lm_train_config": ("lm/config.yaml (9 bytes, sha256 00)", 1.0),
        "model_tag": (with_lm, 1.0),
    }
    for option, (value, weight) in weights.items():
        journal = write_journal(tmp_path, **{option: value})
        assert config_that_ran(journal)["lm_weight"] == weight
    journal = write_journal(tmp_path, model_tag=without)
    assert config_that_ran(journal)["lm_weight"] == 0.0
    # of what the model zoo holds, or held, the weight is all that is known
    journal = write_journal(tmp_path, model_tag="someone/a_model", lm_weight="0.6")
    assert config_that_ran(journal)["lm_weight"] == 0.6
    # of one that is cut off, likewise
    whole = (tmp_path / "b.zip").read_bytes()
    damaged = whole.replace(b"yaml_files", b"yaml_filth", 1)
    for content in (whole[: len(whole) // 2], damaged):
        (tmp_path / "b.zip").write_bytes(content)
        journal = write_journal(tmp_path, model_tag=without, lm_weight="0.6")
        assert config_that_ran(journal)["lm_weight"] == 0.6


def test_it_is_what_decoding_writes(tmp_path):
    (tmp_path / "wav.scp").write_text("u a.wav\n")
    command = ["--output_dir", str(tmp_path), "--search", "simple"]
    command += ["--search_conf", "eos_threshold=15e-1", "--beam_size", "8"]
    data = f"{tmp_path}/wav.scp,speech,sound"
    args = parse(
        get_parser(ASR.module), [*command, "--data_path_and_name_and_type", data]
    )
    journal = tmp_path / JOURNAL
    journal.write_text(json.dumps(run_options(args)) + "\n")
    ran = config_that_ran(journal)
    assert (ran["search"], ran["beam_size"]) == ("simple", 8)
    assert ran["search_conf"] == {"eos_threshold": 1.5}
    assert (ran["ctc_weight"], ran["lm_weight"]) == (0.5, 0.0)


def test_contradictions():
    ran = {"beam_size": 20, "search_conf": {"length_norm": True}, "lm_weight": 0.0}
    same = {"beam_size": "20", "search_conf": {"length_norm": True, "nbest": None}}
    assert list(contradictions({**same, "lm_weight": "0", "nbest": 7}, ran)) == []
    assert list(contradictions({"search_conf": None}, {"search_conf": {}})) == []
    assert list(contradictions({"search_conf": None}, ran)) == [
        "search_conf None (it was {'length_norm': True})"
    ]
    defaults = {"label_smoothing": "0.0", "keep_ended": "joint", "length_norm": True}
    ran_simple = {**ran, "search": "simple"}
    assert list(contradictions({"search_conf": defaults}, ran_simple)) == []
    other = {"beam_size": 60, "search_conf": {"length_norm": False}}
    assert list(contradictions(other, ran)) == [
        "search_conf {'length_norm': False} (it was {'length_norm': True})",
        "beam_size 60 (it was 20)",
    ]


@pytest.mark.parametrize("place", [".", "logdir/output.1"])
def test_what_ran_is_reported_not_the_yaml(tmp_path, data, place, capsys):
    exp = tmp_path / "exp"
    config = {"search": "simple", "beam_size": 60, "row": "mine"}
    beside = "1best_recog" if place == "." else "."  # as decode and asr.sh leave it
    write_system(exp, "a", config, {"dev": {"text": REFERENCES}}, beside)
    write_journal(exp / "a" / "dev" / place)
    found = read_decodings(exp, data)
    (system,) = found.systems
    assert (system.beam_size, system.ctc_weight, system.name) == (20, 0.3, "mine")
    assert system.options == {"length_norm", "coverage"}
    assert found.contradicted == [
        "`a/decode.yaml` says beam_size 60 (it was 20) in dev"
    ]

    assert main([str(exp), "--data", str(data)]) == 0
    summary = "WARNING: decode configs that do not say what ran, which is what the "
    assert summary + "tables show: 1" in capsys.readouterr().out
    report = (exp / "report" / "report.md").read_text()
    assert summary in report
    assert "- `a/decode.yaml` says beam_size 60 (it was 20) in dev" in report
    assert "beam 20" in report
    assert "beam 60" not in report


def test_a_journal_does_without_a_yaml(tmp_path, data):
    exp = tmp_path / "exp"
    write_system(exp, "a", {}, {"dev": {"text": REFERENCES}})
    (exp / "a" / "decode.yaml").unlink()
    write_journal(exp / "a" / "dev")
    (system,) = read_decodings(exp, data).systems
    name = "simple + length_norm + coverage (weight 0.1) + CTC 0.3"
    assert (system.tag, system.name, system.beam_size) == ("a", name, 20)


def test_sets_that_were_decoded_differently_are_rows_of_their_own(tmp_path, data):
    exp = tmp_path / "exp"
    files = {"text": REFERENCES}
    write_system(exp, "a", {"beam_size": 20}, {"dev": files, "test": files})
    write_journal(exp / "a" / "dev")
    write_journal(exp / "a" / "test", beam_size="8")
    found = read_decodings(exp, data)
    assert [(d.system.beam_size, d.references.name) for d in found.decodings] == [
        (8, "test"),
        (20, "dev"),
    ]
    assert main([str(exp), "--data", str(data)]) == 0
    rows = (exp / "report" / "report.md").read_text().replace(" ", "").splitlines()
    name = "|simple+length_norm+coverage(weight0.1)+CTC0.3|0|"
    assert f"{name}8|-|**0.0**|-|-|-|-|" in rows
    assert f"{name}20|**0.0**|-|0|0|0|4.0|" in rows


def test_jobs_that_differ_are_no_row(tmp_path, data):
    exp = tmp_path / "exp"
    files = {"text": REFERENCES}
    write_system(exp, "a", {"beam_size": 20}, {"dev": files, "test": files})
    write_journal(exp / "a" / "dev" / "logdir" / "output.1")
    write_journal(exp / "a" / "dev" / "logdir" / "output.2", beam_size="8")
    found = read_decodings(exp, data)
    assert [d.references.name for d in found.decodings] == ["test"]  # by its yaml
    assert found.skipped == ["`a`, dev: its jobs differ: beam_size 8 (it was 20)"]


@pytest.mark.parametrize("line", ["", "{", "[1]", '{"beam_size": 20}', "{}"])
def test_a_journal_that_says_nothing(tmp_path, data, line):
    exp = tmp_path / "exp"
    files = {"text": REFERENCES}
    write_system(exp, "a", {"beam_size": 20}, {"dev": files, "test": files})
    (exp / "a" / "dev" / JOURNAL).write_text(f"{line}\nmore\n")
    found = read_decodings(exp, data)
    assert [d.references.name for d in found.decodings] == ["test"]
    (skipped,) = found.skipped
    assert skipped.endswith("dev/decoding.jsonl, line 1 holds no options of a run")


def test_sets_of_a_row_with_and_without_confidence(tmp_path, data):
    """As where a temperature is fitted on one of them."""
    exp, files = tmp_path / "exp", {"text": REFERENCES}
    write_system(exp, "a", {"beam_size": 20}, {"dev": files, "test": files})
    write_journal(exp / "a" / "dev", confidence="True")
    write_journal(exp / "a" / "test", confidence="False")
    found = read_decodings(exp, data)
    assert len(found.systems) == 1
    measures = {d.references.name: d.system.confidence for d in found.decodings}
    assert measures == {"dev": "label_probability", "test": ""}
    assert main([str(exp), "--data", str(data)]) == 0


@pytest.mark.parametrize(
    "option, value, other",
    [
        ("asr_model_file", "a.pth (9 bytes, sha256 0a)", "a.pth (9 bytes, sha256 0b)"),
        ("model_tag", "someone/a_model", "someone/another"),
        ("quantize_asr_model", "False", "True"),
        ("lm_file", "None", "lm.pth (9 bytes, sha256 0a)"),
        ("dtype", "float32", "float64"),
    ],
)
def test_sets_of_a_row_with_different_models_are_named(
    option, value, other, tmp_path, data, capsys
):
    exp, files = tmp_path / "exp", {"text": REFERENCES}
    write_system(exp, "a", {"beam_size": 20}, {"dev": files, "test": files})
    write_journal(exp / "a" / "dev", **{option: value})
    write_journal(exp / "a" / "test", **{option: other})
    assert read_decodings(exp, data).mixed == [f"`a`: dev and test differ in {option}"]
    assert main([str(exp), "--data", str(data)]) == 0
    warning = "WARNING: rows whose sets were decoded with different models, or with mod"
    assert warning in capsys.readouterr().out
    write_journal(exp / "a" / "test", **{option: value.replace("a.pth", "moved/a.pth")})
    assert read_decodings(exp, data).mixed == []
