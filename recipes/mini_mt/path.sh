# Sourced by run.sh: the Python to use, and this recipe's local/ as a package.
. ../python.sh
export PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}" PYTHONIOENCODING=UTF-8 LC_ALL=C.UTF-8
# Threads that wait asleep: two that spin stall each other as soon as anything else runs.
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-2}" OMP_WAIT_POLICY="${OMP_WAIT_POLICY:-passive}"
