# Sourced by run.sh of recipes that decode data sets, behind options.sh and its options.
renew() {  # renew <new file> <file>: what has not changed keeps its date, which decoding goes by
    if cmp -s "$1" "$2"; then rm "$1"; else mkdir -p "$(dirname "$2")"; mv "$1" "$2"; fi
}

check_made_of() {  # check_made_of <audio> <folder>...: data and results of other audio are neither used nor written over
    local folder was
    for folder in "${@:2}"; do
        if [ ! -f "$folder/made_of" ]; then continue; fi
        was=$(cat "$folder/made_of")
        [ "$was" = "$1" ] || fail "$folder is of the audio in $was, not in $1: name other folders with --data and --exp, or remove it"
    done
}

check_data_of() {  # check_data_of <audio> <data folder>...: likewise of a person's own data
    local folder file
    for folder in "${@:2}"; do
        for file in "$folder"/{wav.scp,text,utt2spk,spk2utt,segments}; do
            [ ! -e "$file" ] || [ -f "$folder/made_of" ] || fail "$file is not of this recipe: name another folder with --data, or move it"
        done
        if [ -f "$folder/wav.scp" ]; then check_made_of "$1" "$folder"; fi
        check_unchanged "$folder"
    done
}

check_unchanged() {  # check_unchanged <data folder>: and of what a person has changed there
    local sum size file
    if [ ! -f "$1/.sums" ]; then return; fi
    while read -r sum size file; do
        if [ -f "$1/$file" ] && [ "$(cksum < "$1/$file")" != "$sum $size" ]; then
            fail "$1/$file has been changed since this recipe wrote it: begin with --stage 2 to use it as it is, or remove it to have it written anew"
        fi
    done < "$1/.sums"
}

note_made_of() {  # note_made_of <audio> <folder>...
    local folder
    for folder in "${@:2}"; do
        mkdir -p "$folder"
        rm -f "$folder/.sums" # of what is there before
        echo "$1" > "$folder/made_of"
    done
}

note_sums() {  # note_sums <data folder>: what is there is as this recipe has written it
    local file
    for file in wav.scp text utt2spk spk2utt; do
        if [ -f "$1/$file" ]; then echo "$(cksum < "$1/$file") $file"; fi
    done > "$1/.sums.$$"
    mv "$1/.sums.$$" "$1/.sums"
}

take() {  # take <count> <set>: so many utterances of a set in $data, evenly spread, into $used
    local n=$1 set=$2 f
    mkdir -p "$used/$set"
    for f in wav.scp text utt2spk spk2utt; do
        if [ $f = spk2utt ]; then
            awk '{ utts[$2] = utts[$2] " " $1 } END { for (s in utts) print s utts[s] }' "$used/$set/utt2spk" | sort
        else
            awk -v n="$n" '{ line[NR] = $0 }
                END { if (n > NR) n = NR; for (i = 0; i < n; i++) print line[int(i * NR / n) + 1] }' "$data/$set/$f"
        fi > "$used/$set/.new.$$"
        renew "$used/$set/.new.$$" "$used/$set/$f"
    done
    say "$set: only $(wc -l < "$used/$set/text") of its $(wc -l < "$data/$set/text") utterances, evenly spread, in $used"
}

librispeech_data() {  # librispeech_data: the sets of $librispeech in $data, and $utterances of each in $used
    local s f audio
    # shellcheck disable=SC2154  # variables of run.sh
    audio=$(realpath -m "$librispeech")
    for s in $sets; do check_data_of "$audio" {"$data","$used"}/"$s"; done
    # a folder of this run: another one, of another model, may write the same data
    trap 'rm -rf "$data/.new.$$"' EXIT
    "$PYTHON" ../mini_librispeech/local/data_prep.py "$audio" "$data/.new.$$" $sets
    for s in $sets; do
        note_made_of "$audio" {"$data","$used"}/"$s"
        for f in wav.scp text utt2spk spk2utt; do renew "$data/.new.$$/$s/$f" "$data/$s/$f"; done
        # shellcheck disable=SC2154
        if [ "$utterances" -gt 0 ]; then take "$utterances" "$s"; fi
        note_sums "$data/$s"
        if [ "$used" != "$data" ]; then note_sums "$used/$s"; fi
    done
}

check_rows() {  # check_rows: that there are decode configs of the $rows, before anything runs
    local row
    words '[a-z0-9_]+(:[1-9][0-9]*(,[1-9][0-9]*)*)?' "a row, or a row with beams such as simple:64,5000" rows
    # shellcheck disable=SC2154  # variables of run.sh
    for row in $rows; do exists "--rows names it" "$conf/decode_${row%%:*}.yaml"; done
}

failed_logs=()  # of decodings with utterances that have failed

decode_rows() {  # decode_rows <row>...: all sets by each row, as `decode <folder> <set>` of run.sh does
    local tag s log status size
    # shellcheck disable=SC2154  # variables of run.sh
    for s in $sets; do
        if [ ! -f "$used/$s/made_of" ]; then continue; fi
        for tag in "$@"; do check_made_of "$(cat "$used/$s/made_of")" "$dir/$tag/$s"; done
    done
    rm -f "$dir/failed_logs"
    for tag in "$@"; do
        for s in $sets; do
            say "$tag, $s"
            log=$dir/$tag/$s/decode.log status=0
            mkdir -p "$dir/$tag/$s"
            if [ -f "$used/$s/made_of" ]; then cp "$used/$s/made_of" "$dir/$tag/$s"; fi
            : >> "$log"
            size=$(wc -c < "$log")
            decode "$dir/$tag" "$s" >> "$log" 2>&1 || status=$?
            if [ $status -eq 0 ]; then continue; fi
            tail -n 5 "$log" >&2
            # its 1 says that all is written and some utterances have failed; Python's own 1 is a crash
            if [ $status -eq 1 ] && tail -c "+$((size + 1))" "$log" | grep 'utterances failed; their lines are empty' > /dev/null; then
                failed_logs+=("$log")
                continue
            fi
            echo "$script: $tag, $s: decoding ended with status $status, see $log" >&2
            if [ $status -gt 128 ]; then exit $status; fi  # a signal: Ctrl-C
            exit 2
        done
    done
    # for a script that has called this one
    if [ ${#failed_logs[@]} -gt 0 ]; then printf '%s\n' "${failed_logs[@]}" > "$dir/failed_logs"; fi
}

finish() {  # finish: the last line; status 1 where utterances have failed
    if [ ${#failed_logs[@]} -eq 0 ]; then say "done"; return; fi
    echo "$script: not all utterances are decoded, and those count as empty; the same command tries them again. See ${failed_logs[*]}" >&2
    exit 1
}
