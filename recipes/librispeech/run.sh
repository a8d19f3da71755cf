#!/usr/bin/env bash
# LibriSpeech, pretrained models: every search of the paper on the same model; its tables.
# Paths count from this folder.
set -euo pipefail
cd "$(dirname "$0")"

stage=1                            # the first to run
stop_stage=4                       # the last
librispeech=download/LibriSpeech   # holds dev-clean, dev-other, test-clean, test-other
sets="dev-clean dev-other test-clean test-other"
utterances=0                       # only so many of each set, evenly spread; 0: all
model=asapp/e_branchformer_librispeech  # tag of the model zoo, packed .zip, or folder of a training
inference_asr_model=valid.acc.ave.pth   # the parameters in that folder
tool=                              # whose model it is: asr, st, s2t (OWSM), slu; empty: what a packed one says, else asr
lm_exp=                            # folder of a language model's training; empty: what the model has
inference_lm=valid.loss.ave.pth    # the parameters in that folder
name=                              # of the results below $exp; empty: the model's
conf=conf                          # holds decode_<row>.yaml
rows="simple:64,5000 simple_heuristics explicit_length optimal:5000"
beams="32 64 128 5000"             # of rows that name none; empty: those of the decode configs
lm_weights=                        # empty: those of the decode configs
nj=1                               # processes or jobs that decode, see cmd.sh
ngpu=0                             # 1: decode on the GPU
batch_size=                        # utterances decoded together; empty: as many of like length as fit
inference_args=                    # further options of the decoder
detail=                            # the set whose errors Table 1 takes apart; empty: dev-other
data=data
exp=exp

. ../options.sh "$@"
number 0 "" utterances
number 0 1 ngpu
number 1 "" nj ${batch_size:+batch_size}
whole_numbers beams
numbers lm_weights
. ./path.sh
. ./cmd.sh
. ../data.sh

name=${name:-$(basename "$model" .zip)}
dir=$exp/$name
used=$data
if [ "$utterances" -gt 0 ]; then
    used=${data}_$utterances
    dir+=_$utterances
fi

# What stages read that others make: a missing file is named before any of them runs.
if runs 1; then for s in $sets; do exists "--librispeech names the folder that holds it" "$librispeech/$s"; done; fi
if runs 3; then check_rows; fi
if [ -n "$detail" ] && [[ " $sets " != *" $detail "* ]]; then exists "--detail names it, and --sets does not" "$used/$detail"; fi
needs 3 2 "$dir/model.yaml"
for s in $sets; do needs 3 1 "$used/$s/wav.scp"; done
needs 4 1 "$used"/*/text
needs 4 3 "$dir"/*/*/1best_recog/text

if runs 1; then
    say "stage 1: data of $librispeech"
    librispeech_data
fi

if runs 2; then
    say "stage 2: model"
    "$PYTHON" -m local.model "$model" "$dir/model.yaml" --asr_model_file "$inference_asr_model" ${tool:+--tool "$tool"} \
        ${lm_exp:+--lm_exp "$lm_exp"} --lm_file "$inference_lm"
fi

decode() {  # decode <folder of a decode config> <set>: what is not decoded yet
    espnet-lenbias decode "${decode_cmd[@]}" --config "$1/decode.yaml" --ngpu "$ngpu" ${batch_size:+--batch_size "$batch_size"} \
        --data_path_and_name_and_type "$used/$2/wav.scp,speech,sound" --output_dir "$1/$2" $inference_args
}

if runs 3; then
    say "stage 3: decode, logs in $dir/<row>_beam<K>_lm<w>/<set>/decode.log"
    tags=$("$PYTHON" -m local.rows "$dir/model.yaml" "$dir" --conf "$conf" --rows $rows --beams $beams --lm_weights $lm_weights)
    # shellcheck disable=SC2086  # a word for each row
    decode_rows $tags
fi

if runs 4; then
    say "stage 4: score and report"
    espnet-lenbias report "$dir" --data "$used" ${detail:+--detail "$detail"}
fi
finish
