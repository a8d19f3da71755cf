import pytest
import yaml

from espnet_lenbias.report.systems import System, read_system, system_of
from tests.report.made import system


def read(tmp_path, config):
    path = tmp_path / "tag" / "decode.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(yaml.safe_dump(config, sort_keys=False))
    return system_of("tag", read_system(path))


def test_a_name_that_would_steer_a_terminal(tmp_path):
    row = read(tmp_path, {"beam_size": 4, "row": "red \x1b[31m\n\u9577"})
    assert row.name == "red  [31m \u9577"


def test_everything_that_a_decode_config_tells(tmp_path):
    config = {"beam_size": 64, "search": "simple", "lm_weight": 0.6, "ctc_weight": 0.3}
    config["search_conf"] = {"length_norm": True, "eos_threshold": 1.5}
    name = "simple + length_norm + eos_threshold 1.5 + CTC 0.3"
    row = read(tmp_path, config)
    options = frozenset({"length_norm", "eos_threshold"})
    assert row == System("tag", name, "simple", 64, 0.6, 0.3, options)
    assert row.label == f"{name}, LM 0.6"
    assert row.models == (True, True)


@pytest.mark.parametrize(
    "config, name",
    [
        ({}, "espnet"),
        ({"search": "explicit_length"}, "explicit_length"),
        (
            {"search": "explicit_length", "decoder_dtype": "bfloat16"},
            "explicit_length + bfloat16",
        ),
        (
            {"search": "explicit_length", "decoder_dtype": "float32"},
            "explicit_length",
        ),
        (
            {"search": "explicit_length", "search_conf": {"score_threshold": 8.0}},
            "explicit_length + score_threshold 8",
        ),
        (
            {
                "search": "simple",
                "search_conf": {"coverage": {"weight": 0.2, "threshold": 0.3}},
            },
            "simple + coverage (weight 0.2, threshold 0.3)",
        ),
        (
            {"search": "simple", "search_conf": {"keep_ended": "separate"}},
            "simple + keep_ended separate",
        ),
        (
            {"search": "simple", "search_conf": {"length_norm": False}},
            "simple",
        ),
        (
            {
                "search": "simple",
                "search_conf": {"keep_ended": "joint", "label_smoothing": 0},
            },
            "simple",
        ),
        (
            {"penalty": 0.1, "maxlenratio": 0.0, "normalize_length": True},
            "espnet + penalty 0.1 + normalize_length",
        ),
        ({"search": "simple", "row": "the baseline"}, "the baseline"),
        # of ESPnet's, and of nobody
        ({"ngram_weight": 0.1, "nbest": 2, "ours": 1}, "espnet"),
        (
            {
                "search": "simple",
                "penalty": "1e-1",
                "search_conf": {"length_reward": "5e-1", "coverage": {"weight": "1"}},
            },
            "simple + penalty 0.1 + length_reward 0.5 + coverage (weight 1)",
        ),
    ],
)
def test_names(tmp_path, config, name):
    assert read(tmp_path, {"beam_size": 4, **config}).name == name


@pytest.mark.parametrize(
    "config, message",
    [
        ({"search": "simple"}, "beam_size must say the beam"),
        ({"beam_size": 0}, "beam_size must be a whole number of 1 or more, not 0"),
        ({"beam_size": True}, "beam_size must be a whole number .* not True"),
        (
            {"beam_size": 4, "lm_weight": "much"},
            "lm_weight must be a number, not 'much",
        ),
        ({"beam_size": 4, "search_conf": [1]}, "search_conf must be a mapping"),
        (["beam_size"], "a decode config holds `option: value` lines"),
        ({"beamsize": 4}, "unknown option beamsize; did you mean beam_size?"),
        ({"beam_size": 4, "search_con": {}}, "search_con; did you mean search_conf?"),
    ],
)
def test_configs_that_are_wrong(tmp_path, config, message):
    with pytest.raises(ValueError, match=message):
        read(tmp_path, config)


@pytest.mark.parametrize(
    "text",
    ["beam_size: [", "[" * 100_000, "row: 2024-02-30"],
    ids=["half", "deep", "date"],
)
def test_a_file_that_is_no_yaml(text, tmp_path):
    path = tmp_path / "decode.yaml"
    path.write_text(text)
    with pytest.raises(ValueError, match="decode.yaml: not a yaml file"):
        read_system(path)


def test_an_option_twice(tmp_path):
    path = tmp_path / "decode.yaml"
    path.write_text("row: a\nbeam_size: 4\nrow: b\n")
    with pytest.raises(ValueError, match="decode.yaml: lines 1 and 3 have row: leave"):
        read_system(path)


def test_baselines_come_first_and_the_proposed_search_last():
    plain, tuned = (
        system("simple"),
        system("simple + x", search="simple", options=frozenset("x")),
    )
    rows = [
        system("explicit_length", 4),
        system("another", 4),
        tuned,
        system("simple", 64),
        plain,
        system("espnet", 4),
    ]
    assert [(s.name, s.beam_size) for s in sorted(rows, key=lambda s: s.order)] == [
        ("espnet", 4),
        ("simple", 4),
        ("simple", 64),
        ("simple + x", 4),
        ("another", 4),
        ("explicit_length", 4),
    ]
