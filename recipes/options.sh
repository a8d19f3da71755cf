# Sourced by a recipe's scripts behind their variables, with their arguments: each of these
# variables is an option, --name value.
script=$(basename "$0")
names=$(sed -n '/options\.sh/q; s/^\([a-z_]*\)=.*/--\1/p' "$script")
while [ $# -gt 0 ]; do
    grep -qxF -e "$1" <<< "$names" || { echo "$script: unknown option $1; see the variables at its top" >&2; exit 2; }
    [ $# -gt 1 ] || { echo "$script: $1 needs a value" >&2; exit 2; }
    printf -v "${1#--}" '%s' "$2"; shift 2
done
