# Sourced by a recipe's scripts behind their variables, with their arguments: each of these
# variables is an option, --name value. The functions are for the rest of the script.
script=$(basename "$0")
names=$(sed -nE '/options\.sh/q; s/^([a-z_]+)=.*/--\1/p' "$script")
stages=$(sed -nE 's/^    say "stage ([0-9]+: .*)"$/\1/p' "$script")

fail() { echo "$script: $*" >&2; exit 2; }
say() { echo "$(date '+%H:%M:%S') $*"; }
runs() { [ "$stage" -le "$1" ] && [ "$stop_stage" -ge "$1" ]; }

# 1 says that utterances have failed; whatever else fails ends a script with 2.
set -E
trap 'exit 2' ERR

usage() {  # what the script itself says: its comment, its stages, its variables
    printf 'usage: ./%s [--option value]...\n\n' "$script"
    sed -nE '1d; /^#/!q; s/^# ?//p' "$script"
    if [ -n "$stages" ]; then printf '\nstages:\n'; sed 's/^/  /' <<< "$stages"; fi
    printf '\noptions and their defaults; paths count from the folder of %s:\n' "$script"
    sed -nE '/options\.sh/q; s/^([a-z_]+)=/  --\1 /p' "$script"
}

number() {  # number <least> <greatest, empty: none> <option>...: they must be whole numbers
    local name
    for name in "${@:3}"; do
        # digits that [ can compare, and without leading zeros, which would name other folders
        [[ ${!name} =~ ^(0|[1-9][0-9]{0,8})$ ]] && [ "${!name}" -ge "$1" ] && [ "${!name}" -le "${2:-999999999}" ] ||
            fail "--$name ${!name}: must be a whole number from $1 ${2:+to }${2:-on}"
    done
}

words() {  # words <pattern> <what it stands for> <option>...: all their words must be such
    local name word
    for name in "${@:3}"; do
        for word in ${!name}; do
            [[ $word =~ ^($1)$ ]] || fail "--$name ${!name}: $word is not $2"
        done
    done
}

whole_numbers() { words '[1-9][0-9]*' "a whole number from 1 on" "$@"; }  # lists of them
numbers() { words '-?([0-9]+\.?[0-9]*|\.[0-9]+)(e-?[0-9]+)?' "a number" "$@"; }

exists() {  # exists <where it comes from> <file or folder>...
    local path
    for path in "${@:2}"; do [ -e "$path" ] || fail "there is no $path: $1"; done
}

needs() {  # needs <stages> <stage that makes it> <file>...: they must be here unless this run makes them
    local s
    for s in $1; do
        if runs "$s" && [ "$2" -lt "$stage" ]; then exists "stage $2 makes it, stage $s reads it" "${@:3}"; fi
    done
}

may_be_empty() {  # may_be_empty <option>: its default is, or its comment says what that means
    [ -z "${!1}" ] || sed '/options\.sh/q' "$script" | grep -q "^$1=.*#.*empty:"
}

while [ $# -gt 0 ]; do
    case $1 in -h | --help) usage; exit 0 ;; esac
    option=${1#--}; option=${option//-/_}  # as in ESPnet's recipes
    grep -qxF -e "--$option" <<< "$names" && [[ $1 = --* ]] || fail "unknown option $1; --help lists them"
    [ $# -gt 1 ] || fail "$1 needs a value"
    [ -n "${2//[[:space:]]/}" ] || may_be_empty "$option" || fail "$1 must not be empty"
    printf -v "$option" '%s' "$2"; shift 2
done

if [ -n "$stages" ]; then
    number 1 "$(sed -n '$s/:.*//p' <<< "$stages")" stage
    # beyond the last is the last, as in ESPnet's recipes
    number 1 "" stop_stage
    [ "$stop_stage" -ge "$stage" ] ||
        fail "--stop_stage $stop_stage: no stage would run; with --stage $stage it must be a whole number from $stage on"
fi
