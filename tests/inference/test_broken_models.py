"""What a model's files hold that is no model of the tool: one line, from every tool."""

import logging
import os
import pickle
import shutil
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import yaml
from espnet2.text.sentencepiece_tokenizer import SentencepiecesTokenizer

from espnet_lenbias import OptionError, Speech2Text, use_search
from espnet_lenbias.bin import asr_inference, mt_inference
from espnet_lenbias.inference.model_checks import check_quantisation, warn_of_integers
from espnet_lenbias.inference.word_pieces import check_word_pieces
from espnet_lenbias.options.espnet_tools import ASR, ASR_STREAMING, MT, S2T, SLU, ST
from espnet_lenbias.options.train_config import task_of
from tests.bundled import bundled
from tests.conftest import TOKENS

SIMPLE = {"search": "simple", "ctc_weight": 0.0}
TOOLS = {"asr": ASR, "st": ST, "mt": MT, "s2t": S2T, "slu": SLU}


@pytest.fixture
def spoilt(transformer_model, tmp_path):
    """Return a model's two files, copied."""
    shutil.copy(transformer_model.config, tmp_path / "config.yaml")
    shutil.copy(transformer_model.weights, tmp_path / "model.pth")
    return {
        "asr_train_config": str(tmp_path / "config.yaml"),
        "asr_model_file": str(tmp_path / "model.pth"),
    }


def says(call, *args, **options) -> str:
    """Return the one line that ends a call."""
    with pytest.raises(OptionError) as e:
        call(*args, **options)
    assert "\n" not in str(e.value)
    return str(e.value)


def changed(path: str, **changes) -> None:
    """Change options of a training config; None: take one out."""
    config = {**yaml.safe_load(Path(path).read_text()), **changes}
    config = {key: value for key, value in config.items() if value != "taken out"}
    Path(path).write_text(yaml.safe_dump(config))


@pytest.mark.parametrize(
    "text, message",
    [
        ("", ": {} is empty: give the config.yaml that lies beside"),
        ("[1, 2]", ": {} holds no `option: value` lines"),
        ("5", ": {} holds no `option: value` lines"),
        ("hello", ": {} holds no `option: value` lines"),
        ("token_list:\n- a\nencoder: [\n", ": {} is no yaml file: "),
        ("token_list:\n- a\n- \0\n", ": {} is no yaml file: "),
        ("date: 2021-13-45\n", ": {} is no yaml file: month must be in 1..12"),
        ("encoder: rnn\n", ": {} is not the training config of a model: it has no tok"),
        ("token_list: []\n", ": {} is not the training config of a model: it has no"),
        ("token_list: 5\n", ": {} is not the training config of a model: it has no"),
        ("token_list: [a, 1]\n", ": {}: label 1 of its token_list is 1, which is no"),
        ("token_list: [a, no]\n", ": {}: label 1 of its token_list is False, which is"),
        ("token_list: [a]\n1: 2\n", " {}: ESPnet cannot build the model that it desc"),
    ],
)
@pytest.mark.parametrize("search", ["espnet", "simple"])
def test_a_config_that_is_none(text, message, search, spoilt):
    path = spoilt["asr_train_config"]
    Path(path).write_text(text)
    said = says(Speech2Text, **spoilt, **{**SIMPLE, "search": search})
    assert said.startswith(f"asr_train_config{message.format(path)}")


def test_a_config_of_bytes(spoilt):
    Path(spoilt["asr_train_config"]).write_bytes(b"\x80\xff\0")
    said = says(Speech2Text, **spoilt, **SIMPLE)
    assert "config.yaml is no yaml file: 'utf-8' codec can't decode" in said


@pytest.mark.parametrize(
    "changes, message",
    [
        (
            {"encoder": "foo"},
            "build the model that it describes (ValueError: --encoder",
        ),
        ({"encoder": 5}, "build the model that it describes (TypeCheckError: argument"),
        (
            {"decoder": "foo"},
            "build the model that it describes (ValueError: --decoder",
        ),
        ({"decoder": None}, "build the model that it describes (AssertionError: deco"),
        ({"frontend": "foo"}, "build the model that it describes (ValueError: --front"),
        ({"normalize": "taken out"}, "build the model that it describes (AttributeErr"),
        ({"encoder_conf": [1]}, "build the model that it describes (TypeError: "),
        ({"encoder_conf": None}, "build the model that it describes (TypeError: "),
        ({"encoder_conf": {"nope": 1}}, "build the model that it describes (TypeErr"),
        (
            {"encoder_conf": {"attention_heads": 0}},
            "build the model that it describes (ZeroDivisionError: ",
        ),
        ({"model_conf": "x"}, "build the model that it describes (AttributeError: "),
        ({"frontend_conf": {"fs": None}}, "build the model that it describes (TypeCh"),
        ({"token_type": "foo"}, "decode with the model that it describes (ValueError"),
        (
            {"token_list": [*TOKENS[:3], "B", *TOKENS[4:]]},
            'decode with the model that it describes (RuntimeError: Symbol "B" is dup',
        ),
    ],
)
def test_a_model_that_espnet_cannot_build(changes, message, spoilt):
    changed(spoilt["asr_train_config"], **changes)
    said = says(Speech2Text, **spoilt, **SIMPLE)
    start = f"asr_train_config {spoilt['asr_train_config']}: ESPnet cannot {message}"
    assert said.startswith(start)


@pytest.mark.parametrize("name", TOOLS)
@pytest.mark.parametrize("conf", [{"decoder": "foo"}, {"model_conf": [1]}])
def test_every_tool_says_so(name, conf, model_of, tmp_path):
    files = {**model_of(name).files}
    config = files[f"{name}_train_config"] = shutil.copy(
        files[f"{name}_train_config"], tmp_path / "config.yaml"
    )
    changed(config, **conf)
    said = says(TOOLS[name].inference_class(), **files, **SIMPLE)
    assert f"{name}_train_config {config}: ESPnet cannot build the model" in said


def test_a_language_model_that_espnet_cannot_build(spoilt, tmp_path):
    lm = tmp_path / "lm.yaml"
    lm.write_text(yaml.safe_dump({"token_list": TOKENS, "lm": "foo", "lm_conf": {}}))
    options = {"lm_train_config": str(lm), "lm_file": spoilt["asr_model_file"]}
    said = says(Speech2Text, **spoilt, **options, **SIMPLE)
    assert said.startswith(f"lm_train_config {lm}: ESPnet cannot build the model that")


@pytest.mark.parametrize(
    "saved, kind",
    [
        ([1, 2], "list"),
        ("hello", "str"),
        (5, "int"),
        (None, "NoneType"),
        (torch.zeros(2), "Tensor"),
        ({1: torch.zeros(2)}, "dict"),
        ({"module": "x"}, "str"),
    ],
)
@pytest.mark.parametrize("search", ["espnet", "simple"])
def test_a_checkpoint_that_holds_something_else(saved, kind, search, spoilt):
    path = spoilt["asr_model_file"]
    torch.save(saved, path)
    assert says(Speech2Text, **spoilt, **{**SIMPLE, "search": search}) == (
        f"asr_model_file: {path} holds no parameters by name, but an object of type "
        f"{kind}: give the state_dict() of a model"
    )


# Tool, model, and which tool a message names; a recogniser can understand, too.
OTHERS = [
    (tool, model, model if model != "slu_transcript" else "slu")
    for tool in TOOLS
    for model in ("asr", "st", "mt", "s2t", "slu_transcript")
    if model.partition("_")[0] != tool and (tool, model) != ("slu", "asr")
]


@pytest.mark.parametrize("tool, model, owner", OTHERS)
def test_a_model_of_another_tool(tool, model, owner, model_of):
    _, config = next(iter(model_of(model).files.items()))
    _, weights = list(model_of(model).files.items())[1]
    files = {f"{tool}_train_config": config, f"{tool}_model_file": weights}
    assert says(TOOLS[tool].inference_class(), **files, **SIMPLE) == (
        f"{tool}_train_config: {config} is the training config of a model of "
        f"{owner}_inference, not of {tool}_inference: decode it with {owner}_inference"
    )


def test_a_stream_of_a_model_of_another_tool(model_of):
    config, weights = model_of("st").files.values()
    streaming = ASR_STREAMING.inference_class()
    said = says(streaming, config, weights, search="explicit_length")
    assert "is the training config of a model of st_inference, not of asr_inf" in said


def test_old_configs_belong_to_any_tool():
    assert task_of({"token_list": ["a"], "encoder": "rnn"}) == ""


@pytest.mark.parametrize("name", TOOLS)
def test_no_model(name):
    tool = TOOLS[name].inference_class()
    message = f"no model is named: give {name}_train_config and {name}_model_file, or"
    assert says(tool, **SIMPLE).startswith(message)
    assert says(tool.from_pretrained, **SIMPLE).startswith(message)


@pytest.mark.parametrize("key", ["asr_train_config", "asr_model_file"])
@pytest.mark.parametrize("search", ["espnet", "simple"])
def test_what_is_given_in_place_of_a_file(key, search, spoilt, tmp_path):
    options = {**SIMPLE, "search": search}
    packed = {**spoilt, key: str(bundled("asr_transformer"))}
    assert says(Speech2Text, **packed, **options) == (
        f"{key}: {bundled('asr_transformer')} is a packed model: give it as model_tag, "
        "or in Python to from_pretrained()"
    )
    alone = {key: str(bundled("asr_transformer"))}
    assert "is a packed model: " in says(Speech2Text, **alone, **options)
    gone = says(Speech2Text, **{**spoilt, key: "gone"}, **options)
    assert gone in (
        f"{key}: there is no file gone",
        f"{key}: gone cannot be read: No such file or directory",
    )
    folder = says(Speech2Text, **{**spoilt, key: str(tmp_path)}, **options)
    assert folder in (
        f"{key}: {tmp_path} is a folder: give the file in it",
        f"{key}: {tmp_path} cannot be read: Is a directory",
    )


def test_a_model_without_config(spoilt):
    Path(spoilt.pop("asr_train_config")).unlink()
    assert says(Speech2Text, **spoilt, **SIMPLE) == (
        f"asr_model_file: there is no config.yaml beside {spoilt['asr_model_file']}: "
        "name its training config with asr_train_config"
    )


def test_the_config_beside_a_model_is_named(spoilt):
    config = spoilt.pop("asr_train_config")
    mvn = {"normalize": "global_mvn", "normalize_conf": {"stats_file": "gone.npz"}}
    changed(config, **mvn)
    assert f"(named in {config}?): gone.npz" in says(Speech2Text, **spoilt, **SIMPLE)


@pytest.mark.parametrize(
    "option, value, message",
    [
        ("multi_asr", True, "the model of {} hears one speaker: leave it out"),
        ("enh_s2t_task", True, "the model of {} does not enhance speech: leave it out"),
        ("transducer_conf", {"a": 1}, "the model of {} is no transducer: leave it out"),
        (
            "token_type",
            "bpe",
            "the model of {} has no bpemodel: name one with bpemodel",
        ),
        (
            "token_type",
            "word",
            "the model of {} was trained with char, and not word: leave it out",
        ),
        ("quantize_modules", ["Foo"], "torch.nn has no module 'Foo': name such as Lin"),
        ("quantize_modules", ["functional"], "torch.nn has no module 'functional': na"),
        ("quantize_modules", ["Parameter"], "torch.nn has no module 'Parameter': name"),
        ("quantize_modules", ["Linear", "Embedding"], "does not quantise Embedding so"),
        (
            "quantize_modules",
            ["LayerNorm"],
            "does not quantise LayerNorm so: name such",
        ),
        ("quantize_asr_model", 1, "ESPnet does not take 1 (int) is not an instance"),
        ("hugging_face_decoder_conf", None, "ESPnet does not take None (None) is not"),
        ("transducer_conf", [], "ESPnet does not take [] (list) did not match any el"),
        ("quantize_dtype", "float32", "must be qint8 or float16, not 'float32'"),
    ],
)
def test_options_that_ask_for_another_model(option, value, message, spoilt):
    said = says(Speech2Text, **spoilt, **{**SIMPLE, option: value})
    assert said.startswith(option)
    assert message.format(spoilt["asr_train_config"]) in said


@pytest.mark.parametrize("key", ["quantize_asr_model", "quantize_lm"])
def test_nothing_to_quantise(key):
    with pytest.raises(OptionError, match="quantize_modules is empty, so that nothing"):
        check_quantisation({"quantize_modules": [], key: True})
    check_quantisation({"quantize_modules": [], key: False})


@pytest.mark.parametrize("conf", [0, "", [], "nbest: 2"])
def test_a_search_conf_that_is_no_mapping(conf, spoilt):
    with pytest.raises(ValueError, match="search_conf must be a mapping of options"):
        Speech2Text(**spoilt, search="simple", search_conf=conf)


@pytest.mark.parametrize(
    "options, warns",
    [
        ({"quantize_asr_model": True, "batch_size": 2}, True),
        ({"quantize_lm": True, "batch_size": 8, "quantize_dtype": "qint8"}, True),
        ({"quantize_lm": True, "batch_size": 8, "quantize_dtype": "float16"}, False),
        ({"quantize_lm": True, "batch_size": 1}, False),
        ({"quantize_lm": True}, False),
        ({"quantize_lm": False, "batch_size": 8}, False),
    ],
)
def test_integers_have_one_scale_for_a_batch(options, warns, caplog):
    warn_of_integers(options)
    assert ("set batch_size to 1" in caplog.text) == warns


@pytest.mark.parametrize("dtype", [torch.int8, torch.complex64])
def test_parameters_that_are_no_floats(dtype, spoilt):
    weights = torch.load(spoilt["asr_model_file"])
    name = "decoder.output_layer.weight"
    weights[name] = weights[name].to(dtype)
    torch.save(weights, spoilt["asr_model_file"])
    said = says(Speech2Text, **spoilt, **SIMPLE)
    assert said.startswith(
        f"asr_model_file: {spoilt['asr_model_file']} is damaged, or "
    )
    assert f"1 are no floats ({name}, of {dtype})" in said


@pytest.mark.parametrize("number", [float("nan"), float("-inf")])
def test_parameters_that_are_no_numbers(number, spoilt):
    weights = torch.load(spoilt["asr_model_file"])
    name = "encoder.after_norm.bias"
    weights[name][0] = number
    torch.save(weights, spoilt["asr_model_file"])
    said = says(Speech2Text, **spoilt, **SIMPLE)
    assert said.startswith(
        f"asr_model_file: {spoilt['asr_model_file']} is damaged, or "
    )
    assert f"1 of its parameters hold NaN or infinity ({name})" in said


def test_torchs_advice_to_run_a_file_is_not_passed_on(spoilt):
    with open(spoilt["asr_model_file"], "wb") as f:
        pickle.dump({"a": print}, f, protocol=2)
    said = says(Speech2Text, **spoilt, **SIMPLE)
    assert "is no checkpoint of torch, or a damaged one" in said
    assert "weights_only" not in said


def test_files_beside_a_packed_model_that_has_them(spoilt):
    given = {"asr_model_file": spoilt["asr_model_file"]}
    said = says(Speech2Text.from_pretrained, bundled("asr_transformer"), **given)
    assert said.startswith("asr_model_file: the model of model_tag ")
    assert "brings its own: leave one of the two out" in said


def test_a_model_that_enhances(spoilt):
    changed(spoilt["asr_train_config"], subtask_series=["enh", "asr"])
    assert says(Speech2Text, **spoilt, **SIMPLE) == (
        f"enh_s2t_task: the model of {spoilt['asr_train_config']} enhances speech: set "
        "it to true"
    )


def test_a_file_of_prompts_is_no_checkpoint(spoilt, tmp_path):
    (tmp_path / "prompts.txt").write_text("<en>\n")
    Speech2Text(**spoilt, **SIMPLE, prompt_token_file=str(tmp_path / "prompts.txt"))


def test_random_parameters_are_no_secret(spoilt, caplog):
    Speech2Text(spoilt["asr_train_config"], **SIMPLE)
    assert "asr_model_file is not given: the model of asr_train_config" in caplog.text


def test_no_memory(spoilt, monkeypatch):
    def build(*_, **__):
        raise MemoryError

    monkeypatch.setattr("espnet2.tasks.asr.ASRTask.build_model_from_file", build)
    said = says(Speech2Text, **spoilt, **SIMPLE)
    assert said.startswith("device: cpu has no memory for the model asr_model_file ")


def test_a_search_in_place_of_the_model(spoilt):
    model = Speech2Text(**spoilt, **SIMPLE)
    message = r"takes the inference object, .* not its beam_search \(SimpleBeamSearch\)"
    with pytest.raises(TypeError, match=message):
        use_search(model.beam_search, "explicit_length")


@pytest.mark.parametrize("key", ["asr_train_config", "asr_model_file", "lm_file"])
@pytest.mark.parametrize("value", [5, ["a"], {"a": 1}])
def test_a_decode_config_that_names_no_file(
    key, value, spoilt, wav_scp, tmp_path, capsys
):
    spoilt.pop(key, None)
    (tmp_path / "decode.yaml").write_text(yaml.safe_dump({key: value}))
    options = ["--config", str(tmp_path / "decode.yaml")]
    assert _run(spoilt, f"{wav_scp},speech,sound", tmp_path / "out", *options) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert f"decode.yaml: {key}: {value!r} is no name of a file" in last


def _run(spoilt, data: str, out: Path, *options: str, tool=asr_inference) -> int:
    words = [word for key, value in spoilt.items() for word in (f"--{key}", value)]
    words += ["--data_path_and_name_and_type", data, "--output_dir", str(out)]
    words += ["--search", "simple", "--ctc_weight", "0.0", "--num_workers", "0"]
    with pytest.raises(SystemExit) as stop:
        tool.main([*words, *options])
    return stop.value.code


@pytest.mark.parametrize(
    "options, message",
    [
        (
            ["--lm_file", "{model}"],
            "lm_file: a language model takes two files: name its lm_train_config, too",
        ),
        (["--asr_train_config", "{folder}"], "asr_train_config: {folder} is a folder"),
        (["--bpemodel", "gone.model"], "bpemodel: there is no file gone.model"),
        (
            ["--lm_train_config", "{config}"],
            "lm_train_config: {config} is the training",
        ),
        (["--multi_asr", "true"], "multi_asr: the model of {config} hears one speaker"),
        (
            ["--transducer_conf", "a"],
            "transducer_conf: the model of {config} is no tra",
        ),
        (
            ["--quantize_modules", "Foo"],
            "quantize_modules: torch.nn has no module 'Foo",
        ),
    ],
)
def test_the_tool_ends_with_one_line(
    options, message, spoilt, wav_scp, tmp_path, capsys
):
    names = {
        "config": spoilt["asr_train_config"],
        "model": spoilt["asr_model_file"],
        "folder": str(tmp_path),
    }
    options = [option.format(**names) for option in options]
    assert _run(spoilt, f"{wav_scp},speech,sound", tmp_path / "out", *options) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert f": error: {message.format(**names)}" in last


@pytest.mark.parametrize("said_by", ["option", "training config"])
@pytest.mark.parametrize("name", ["bpemodel", "src_bpemodel"])
def test_word_pieces_that_are_a_folder(name, said_by, spoilt, tmp_path):
    options = {name: str(tmp_path)} if (name, said_by) == ("bpemodel", "option") else {}
    if not options:
        changed(spoilt["asr_train_config"], token_type="bpe", **{name: str(tmp_path)})
    said = says(Speech2Text, **spoilt, **SIMPLE, **options)
    assert said == f"{name}: {tmp_path} is a folder: give the file in it"


@pytest.mark.parametrize("said_by", ["option", "bpemodel", "stats_file"])
def test_a_pipe_in_the_place_of_a_file_of_the_model(said_by, spoilt, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    pipe, options = str(tmp_path / "pipe"), {}
    name = {"stats_file": "normalize_conf: stats_file"}.get(said_by, "bpemodel")
    if said_by == "option":
        options = {"bpemodel": pipe}
    elif said_by == "bpemodel":
        changed(spoilt["asr_train_config"], token_type="bpe", bpemodel=pipe)
    else:
        conf = {"stats_file": pipe}
        changed(spoilt["asr_train_config"], normalize="global_mvn", normalize_conf=conf)
    said = says(Speech2Text, **spoilt, **SIMPLE, **options)
    assert said.startswith(f"{name}: {pipe} is a pipe or a device")


@pytest.mark.parametrize("where", ["command line", "decode config"])
def test_what_shows_with_the_model_names_the_decode_config_that_says_it(
    where, spoilt, wav_scp, tmp_path, capsys
):
    config = tmp_path / "decode.yaml"
    config.write_text("quantize_modules: [Foo]\nbeam_size: 2\n")
    options, begins = ["--config", str(config)], f"{config}: "
    if where == "command line":
        options += ["--quantize_modules", "Tensor"]
        begins = ""
    data = f"{wav_scp},speech,sound"
    assert _run(spoilt, data, tmp_path / "out", *options) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert f": error: {begins}quantize_modules: torch.nn has no module '" in last


@pytest.mark.parametrize("level, shown", [("INFO", False), ("DEBUG", True)])
def test_the_log_can_show_the_cause(level, shown, spoilt, wav_scp, tmp_path, capsys):
    changed(spoilt["asr_train_config"], encoder="foo")
    data = f"{wav_scp},speech,sound"
    before = logging.root.level
    try:
        code = _run(spoilt, data, tmp_path / "out", "--log_level", level)
    finally:
        logging.root.setLevel(before)
    assert code == 2
    written = capsys.readouterr().err
    assert (("build_model_from_file" in written), "Traceback" in written) == (
        shown,
    ) * 2
    assert "ESPnet cannot build the model" in written.splitlines()[-1]


@pytest.mark.parametrize("conf", [{"preprocessor": "foo"}, {"g2p": "foo"}])
def test_a_preprocessing_that_espnet_cannot_build(
    conf, spoilt, wav_scp, tmp_path, capsys
):
    if "g2p" in conf:
        conf = {**conf, "token_type": "phn"}
    changed(spoilt["asr_train_config"], **conf)
    assert _run(spoilt, f"{wav_scp},speech,sound", tmp_path / "out") == 2
    assert (
        f": error: asr_train_config {spoilt['asr_train_config']}: ESPnet cannot build the "
        "preprocessing that it describes ("
    ) in capsys.readouterr().err.splitlines()[-1]


def test_a_packed_model_of_another_tool(tmp_path, capsys, data):
    asr = {"model_tag": str(bundled("asr_transformer"))}
    source = f"{data}/text,src_text,text"
    assert _run(asr, source, tmp_path / "out", tool=mt_inference) == 2
    assert (
        f"error: model_tag: {asr['model_tag']} is a model of asr_inference, not of "
        "mt_inference: decode it with asr_inference"
    ) in capsys.readouterr().err.splitlines()[-1]


@pytest.fixture(scope="module")
def pieces(tmp_path_factory):
    """Return the bundled model of word pieces and the token list that goes with it."""
    folder = tmp_path_factory.mktemp("bpe")
    with zipfile.ZipFile(bundled("asr_transformer")) as packed:
        config = yaml.safe_load(packed.read("exp/asr_transformer/config.yaml"))
        return packed.extract(config["bpemodel"], folder), config["token_list"]


@pytest.mark.parametrize(
    "change, warned",
    [
        (lambda tokens: tokens, False),
        (lambda tokens: [tokens[0], *sorted(tokens[1:-1]), tokens[-1]], False),
        (lambda tokens: ["<blank>", "<unk>", "<en>", *tokens[2:]], False),
        (lambda tokens: [*tokens[:9], tokens[10], tokens[9], *tokens[11:]], True),
        (lambda tokens: tokens[::-1], True),
    ],
    ids=["as it is", "sorted", "one more symbol", "two exchanged", "reversed"],
)
def test_the_order_of_word_pieces(change, warned, pieces, caplog):
    path, tokens = pieces
    tokenizer = SentencepiecesTokenizer(path)
    converter = SimpleNamespace(token_list=change(tokens))
    check_word_pieces(SimpleNamespace(tokenizer=tokenizer, converter=converter))
    assert (f"the pieces of bpemodel {path} in another order" in caplog.text) == warned


@pytest.mark.parametrize("n", [0, 1, 5])
def test_labels_that_are_no_word_pieces(n, pieces, caplog):
    """As with the bpemodel of another model; symbols in brackets are no pieces anyway."""
    path, tokens = pieces
    labels = ["<blank>", "<en>", "[noise]", *tokens[1:]]
    labels[-1 - n : -1] = [f"\u2581NO{i}" for i in range(n)]
    converter = SimpleNamespace(token_list=labels)
    tokenizer = SentencepiecesTokenizer(path)
    check_word_pieces(SimpleNamespace(tokenizer=tokenizer, converter=converter))
    said = f"{n} of the {len(labels)} labels are no pieces of bpemodel {path} (first '▁NO0'"
    assert (said in caplog.text) == (n > 0)
    assert ("are no pieces" in caplog.text) == (n > 0)


def test_a_model_without_a_type_of_tokens_has_no_text(caplog):
    check_word_pieces(SimpleNamespace(tokenizer=None))
    assert "names no token_type, so there are tokens, and no text" in caplog.text
