# Sourced by run.sh: the Python to use, with its `espnet-lenbias`, and this recipe's local/.
. ../python.sh
PATH="$(dirname "$(command -v "$PYTHON" || echo "$PYTHON")"):$PATH"
export PATH PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}" PYTHONIOENCODING=UTF-8 LC_ALL=C.UTF-8
# One thread a job, as ESPnet's path.sh has it: jobs are what --nj is for.
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"
