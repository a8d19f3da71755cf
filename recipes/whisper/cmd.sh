# Sourced by run.sh: how decoding jobs run, in options of `espnet-lenbias decode`.
#
# Edit cmd_backend for your site:
#   local                  processes on this machine
#   slurm, sge, pbs, lsf   jobs of a queue, described by conf/<cmd_backend>.yaml
#   <host>:<port>          the workers of a Dask scheduler that is running already
: "${cmd_backend:=local}"

case "$cmd_backend" in
    local) decode_cmd=(--nj "$nj") ;;
    *:*)   decode_cmd=(--cluster "$cmd_backend") ;;
    *)     decode_cmd=(--nj "$nj" --cluster "$cmd_backend" --cluster_config "conf/$cmd_backend.yaml") ;;
esac
