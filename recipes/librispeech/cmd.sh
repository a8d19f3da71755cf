# Sourced by run.sh, here and in whisper: how decoding jobs run, in options of `espnet-lenbias decode`.
#
# Edit cmd_backend for your site:
#   local                  processes on this machine
#   slurm, sge, pbs, lsf   jobs of a queue, described by conf/<cmd_backend>.yaml beside this file
#   <host>:<port>          the workers of a Dask scheduler that is running already
: "${cmd_backend:=local}"

cluster_config=$(dirname "${BASH_SOURCE[0]}")/conf/$cmd_backend.yaml
case "$cmd_backend" in
    local) decode_cmd=(--nj "$nj") ;;
    *:*)   decode_cmd=(--cluster "$cmd_backend") ;;
    *)
        exists "cmd_backend is $cmd_backend, which it describes" "$cluster_config"
        decode_cmd=(--nj "$nj" --cluster "$cmd_backend" --cluster_config "$cluster_config") ;;
esac
