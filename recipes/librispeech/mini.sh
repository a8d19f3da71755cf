#!/usr/bin/env bash
# The tables of this recipe's README: both bundled models on the mini corpus, with and without LM.
#
#     ../mini_librispeech/run.sh --stage 1 --stop_stage 2     # makes the corpus
#     ./mini.sh --model asr_transformer
#     ./mini.sh --model asr_rnn
#
# Started again, it decodes what is missing.
set -euo pipefail
cd "$(dirname "$0")"

model=asr_transformer                     # bundled: asr_transformer or asr_rnn
utterances=10                             # decoded of each set; 0: all
tuning_utterances=16                      # of dev-other, to tune on at beam 64
lm_weights="0.1 0.2 0.4"                  # tried; empty: nothing with LM
without_lm=true                           # false: nothing without LM
rows="simple simple_heuristics explicit_length optimal:5000"
related="length_norm eos_threshold length_reward coverage_frames coverage_log length_reward_coverage separate separate_heuristics"  # of the paper; empty: none
rivals="patience length_penalty patience_length_penalty simple_rectified explicit_length_rectified simple_mbr explicit_length_mbr"  # since the paper; empty: none
beams="32 64 128 5000"
sets="dev-clean dev-other test-clean test-other"
related_sets=dev-other                    # what related and rivals decode
nj=1
librispeech=../mini_librispeech/corpus/LibriSpeech
data=data_mini
exp=exp/mini

. ../options.sh "$@"
number 0 "" utterances
number 1 "" tuning_utterances nj
whole_numbers beams
numbers lm_weights
words 'true|false' "true or false" without_lm
if [ "$without_lm" = false ] && [ -z "${lm_weights// }" ]; then fail "--without_lm false needs --lm_weights: else nothing is decoded"; fi
. ./path.sh
. ../data.sh

dir=$exp/$model
if [ "$utterances" -gt 0 ]; then dir+=_$utterances; fi
exists "--model is asr_transformer or asr_rnn" "../mini_librispeech/pretrained/$model.zip"
every_set=$(printf '%s\n' $sets $related_sets | awk '!seen[$0]++')
for s in dev-other $every_set; do exists "../mini_librispeech/run.sh --stage 1 --stop_stage 1 makes it" "$librispeech/$s"; done

decoded=" $sets "
if [ -n "${related// }${rivals// }" ]; then decoded+="$related_sets "; fi
detail=dev-other # or else the first set
if [[ $decoded != *" dev-other "* ]]; then detail=$(awk '{ print $1 }' <<< "$decoded"); fi

run() {  # run <options of run.sh>
    ./run.sh --librispeech "$librispeech" --model "../mini_librispeech/pretrained/$model.zip" \
        --data "$data" --exp "$exp" --nj "$nj" --utterances "$utterances" --detail "$detail" "$@"
}

decode_all() {  # decode_all <options of run.sh>: stage 3; where utterances have failed, it goes on with the rest
    local status=0
    run --stage 3 --stop_stage 3 "$@" || status=$?
    if [ $status -eq 1 ]; then
        mapfile -t -O "${#failed_logs[@]}" failed_logs < "$dir/failed_logs"
    elif [ $status -ne 0 ]; then
        exit $status
    fi
}

tune() {  # tune <folder for the configs> <LM scale>...: every row at its best at beam 64
    local out=$dir/$1 how; shift
    how="$tuning_utterances utterances, LM $*, rows $rows $related $rivals"
    if [ -f "$out/tuned" ]; then
        [ "$(cat "$out/tuned")" = "$how" ] || fail "$out is tuned with $(cat "$out/tuned"), not with $how: remove $dir, or name another --exp"
        return
    fi
    # shellcheck disable=SC2046  # a word for each row
    "$PYTHON" -m local.tune "$dir/model.yaml" "$out" --data "${data}_$tuning_utterances" --sets dev-other --lm_weight "$@" \
        --rows $(sed -E 's/:[0-9,]+//g' <<< "$rows $related $rivals")
    echo "$how" > "$out/tuned"
}

./run.sh --stage 1 --stop_stage 1 --librispeech "$librispeech" --data "$data" \
    --utterances "$tuning_utterances" --sets dev-other
run --stage 1 --stop_stage 2 --sets "${every_set//$'\n'/ }"
confs=
if [ "$without_lm" = true ]; then
    confs=without_lm
    tune without_lm 0.0
fi
if [ -n "${lm_weights// }" ]; then
    confs+=" with_lm"
    tune with_lm $lm_weights
fi
for conf in $confs; do
    decode_all --conf "$dir/$conf" --sets "$sets" --beams "$beams" --rows "$rows"
done
for conf in $confs; do
    if [ -n "${related// }${rivals// }" ]; then
        decode_all --conf "$dir/$conf" --sets "$related_sets" --beams "$beams" --rows "$related $rivals"
    fi
done
run --stage 4 --stop_stage 4
finish
