#!/usr/bin/env bash
# Mini LibriSpeech: synthesise, prepare, train, pack, compare searches.
set -euo pipefail
cd "$(dirname "$0")"

stage=1             # the first to run
stop_stage=12       # the last
jobs=2              # processes of corpus synthesis; sets decoded side by side
corpus=corpus
exp=exp/asr_transformer
words_exp=exp/asr_words
sentences_exp=exp/asr_sentences
anneal_exp=exp/asr_anneal
rnn_exp=exp/asr_rnn
lm_exp=exp/lm
stats=exp/asr_stats
bpe=data/token_list
units=300
words_config=conf/train_words.yaml
train_config=conf/train_asr.yaml
anneal_config=conf/train_anneal.yaml
last_config=conf/train_last.yaml
rnn_config=conf/train_rnn.yaml
lm_config=conf/train_lm.yaml
inference_model=valid.acc.ave.pth
pretrained=pretrained/asr_transformer.zip
pretrained_rnn=pretrained/asr_rnn.zip
compared=exp/compare
slice=slice
slice_sets="dev-other=60 test-other=60 dev-clean=10"
test_sets="dev-clean dev-other test-clean test-other"
utterances=0        # of each set, when searches are compared; 0: all

. ../options.sh "$@"
number 0 "" utterances
number 1 "" jobs units
words '[^ =]+=[1-9][0-9]*' "<set>=<a whole number from 1 on>" slice_sets
. ./path.sh

# What stages read that others make: a missing file is named before any of them runs.
needs 2 1 "$corpus/LibriSpeech"/train-{clean,words}
for s in $test_sets; do needs "2 12" 1 "$corpus/LibriSpeech/$s"; needs 9 2 "data/$s/text"; done
needs "3 4 6 7 8 9" 2 data/train-clean/{wav.scp,text}
needs "4 5 6 7 8 9" 2 data/dev/{wav.scp,text}
needs 5 2 data/train-words/{wav.scp,text}
needs "4 5 6 7 8 9 10" 3 "$bpe"/{bpe.model,tokens.txt}
needs "5 6 7 8 10" 4 "$stats/train/feats_stats.npz"
needs "6 7 8" 4 "$stats"/{train,valid}/{speech_shape,text_shape.bpe}
needs 6 5 "$words_exp/valid.acc.best.pth"
needs 7 6 "$sentences_exp/valid.acc.best.pth"
needs "8 10" 7 "$exp"/{config.yaml,"$inference_model"}
needs 10 8 "$rnn_exp"/{config.yaml,"$inference_model"}
needs 10 9 "$lm_exp"/{config.yaml,valid.loss.best.pth}
needs 11 1 "$corpus/LibriSpeech/SPEAKERS.TXT"
for s in $slice_sets; do needs 11 1 "$corpus/LibriSpeech/${s%%=*}"; done
needs 12 10 "$pretrained"

asr_train() {  # asr_train <config> <training set> <options of espnet2.bin.asr_train>
    local config=$1 set=$2
    shift 2
    "$PYTHON" -m espnet2.bin.asr_train --config "$config" --ngpu 0 --use_preprocessor true \
        --token_type bpe --bpemodel "$bpe/bpe.model" --token_list "$bpe/tokens.txt" \
        --train_data_path_and_name_and_type "data/$set/wav.scp,speech,sound" \
        --train_data_path_and_name_and_type "data/$set/text,text,text" \
        --valid_data_path_and_name_and_type data/dev/wav.scp,speech,sound \
        --valid_data_path_and_name_and_type data/dev/text,text,text "$@"
}

if runs 1; then
    say "stage 1: synthesise the corpus"
    "$PYTHON" -m local.make_corpus --config conf/corpus.yaml --out "$corpus" --jobs "$jobs"
fi

if runs 2; then
    say "stage 2: data directories"
    "$PYTHON" -m local.data_prep "$corpus/LibriSpeech" data train-clean train-words $test_sets
    mkdir -p data/dev
    for f in wav.scp text utt2spk spk2utt; do sort data/dev-clean/$f data/dev-other/$f > data/dev/$f; done
fi

if runs 3; then
    say "stage 3: BPE"
    "$PYTHON" -m local.train_bpe data/train-clean/text "$bpe" --units "$units"
fi

if runs 4; then
    say "stage 4: shapes and feature statistics"
    mkdir -p "$stats"
    for s in train-clean dev; do cut -d' ' -f1 data/$s/text > "$stats/$s.keys"; done
    asr_train "$train_config" train-clean --collect_stats true --output_dir "$stats" --batch_type unsorted --batch_size 16 \
        --train_shape_file "$stats/train-clean.keys" --valid_shape_file "$stats/dev.keys" > "$stats/log" 2>&1
    for s in train valid; do
        awk -v n="$(wc -l < "$bpe/tokens.txt")" '{ print $0 "," n }' "$stats/$s/text_shape" > "$stats/$s/text_shape.bpe"
    done
fi

if runs 5; then
    say "stage 5: training on random words, log in $words_exp/train.log"
    mkdir -p "$words_exp"
    cut -d' ' -f1 data/train-words/text > "$stats/train-words.keys"
    awk 'NF <= 7 { print $1 }' data/dev/text > "$stats/dev-short.keys"
    asr_train "$words_config" train-words --output_dir "$words_exp" --resume true --normalize global_mvn \
        --normalize_conf stats_file="$stats/train/feats_stats.npz" \
        --train_shape_file "$stats/train-words.keys" --valid_shape_file "$stats/dev-short.keys" >> "$words_exp/train.log" 2>&1
fi

train_sentences() {  # train_sentences <config> <model to start from> <output folder> <options>
    local config=$1 start=$2 out=$3
    shift 3
    mkdir -p "$out"
    asr_train "$config" train-clean --output_dir "$out" --resume true --normalize global_mvn \
        --normalize_conf stats_file="$stats/train/feats_stats.npz" --init_param "$start" \
        --train_shape_file "$stats/train/speech_shape" --train_shape_file "$stats/train/text_shape.bpe" \
        --valid_shape_file "$stats/valid/speech_shape" --valid_shape_file "$stats/valid/text_shape.bpe" \
        "$@" >> "$out/train.log" 2>&1
}

if runs 6; then
    say "stage 6: training on sentences from there, log in $sentences_exp/train.log"
    train_sentences "$train_config" "$words_exp/valid.acc.best.pth" "$sentences_exp"
fi

if runs 7; then
    say "stage 7: the learning rate down, up and down twice again, logs in $anneal_exp, ${anneal_exp}2 and $exp"
    train_sentences "$anneal_config" "$sentences_exp/valid.acc.best.pth" "$anneal_exp"
    train_sentences "$last_config" "$anneal_exp/valid.acc.ave.pth" "${anneal_exp}2"
    train_sentences "$last_config" "${anneal_exp}2/valid.acc.ave.pth" "$exp" --max_epoch 10 \
        --scheduler_conf max_lr=0.001 --scheduler_conf min_lr=0.00002 --scheduler_conf warmup_steps=100 \
        --scheduler_conf warm_from_zero=true --scheduler_conf total_steps=4550
fi

if runs 8; then
    say "stage 8: a recurrent decoder on the same encoder, log in $rnn_exp/train.log"
    train_sentences "$rnn_config" "$exp/$inference_model:encoder:encoder" "$rnn_exp"
fi

lm_train() {  # lm_train <options of espnet2.bin.lm_train>
    "$PYTHON" -m espnet2.bin.lm_train --config "$lm_config" --ngpu 0 --use_preprocessor true \
        --token_type bpe --bpemodel "$bpe/bpe.model" --token_list "$bpe/tokens.txt" \
        --train_data_path_and_name_and_type data/lm-train/text,text,text \
        --valid_data_path_and_name_and_type data/dev/text,text,text "$@"
}

if runs 9; then
    say "stage 9: a language model, log in $lm_exp/train.log"
    mkdir -p "$lm_exp/stats"
    "$PYTHON" -m local.lm_text data data/lm-train/text --sets $test_sets
    for s in lm-train dev; do cut -d' ' -f1 data/$s/text > "$lm_exp/stats/$s.keys"; done
    lm_train --collect_stats true --output_dir "$lm_exp/stats" --batch_type unsorted --batch_size 64 \
        --train_shape_file "$lm_exp/stats/lm-train.keys" --valid_shape_file "$lm_exp/stats/dev.keys" > "$lm_exp/stats/log" 2>&1
    for s in train valid; do
        awk -v n="$(wc -l < "$bpe/tokens.txt")" '{ print $0 "," n }' "$lm_exp/stats/$s/text_shape" > "$lm_exp/stats/$s/text_shape.bpe"
    done
    lm_train --output_dir "$lm_exp" --resume true --fold_length 150 \
        --train_shape_file "$lm_exp/stats/train/text_shape.bpe" --valid_shape_file "$lm_exp/stats/valid/text_shape.bpe" \
        >> "$lm_exp/train.log" 2>&1
fi

pack() {  # pack <folder of the acoustic model> <zip>: with the language model
    mkdir -p "$(dirname "$2")"
    "$PYTHON" -m local.halve "$1/$inference_model" "$1/packed.pth"
    "$PYTHON" -m local.halve "$lm_exp/valid.loss.best.pth" "$lm_exp/packed.pth"
    "$PYTHON" -m espnet2.bin.pack asr --asr_train_config "$1/config.yaml" --asr_model_file "$1/packed.pth" \
        --lm_train_config "$lm_exp/config.yaml" --lm_file "$lm_exp/packed.pth" \
        --option "$bpe/bpe.model" --option "$stats/train/feats_stats.npz" --outpath "$2"
    ls -l "$2"
}

if runs 10; then
    say "stage 10: pack the models"
    pack "$exp" "$pretrained"
    pack "$rnn_exp" "$pretrained_rnn"
fi

if runs 11; then
    say "stage 11: bundled slice of audio"
    "$PYTHON" -m local.make_slice "$corpus/LibriSpeech" "$slice/LibriSpeech" $slice_sets
fi

compare_set() {  # every search on one set; tables and plots in $compared/<set>
    mkdir -p "$compared/$1"
    OMP_NUM_THREADS=1 "$PYTHON" demo.py --model "$pretrained" --audio "$corpus/LibriSpeech" --sets "$1" --utterances "$utterances" \
        --output_dir "$compared/$1" > "$compared/$1/log" 2>&1
}

if runs 12; then
    say "stage 12: compare searches, in pure attention, logs in $compared/<set>/log"
    export -f compare_set
    export PYTHON pretrained corpus compared utterances
    printf '%s\n' $test_sets | xargs -P "$jobs" -I{} bash -c 'compare_set {} || { echo "comparing {} failed, see its log" >&2; exit 255; }'
    for s in $test_sets; do cat "$compared/$s/comparison.md"; done
fi
say "done"
