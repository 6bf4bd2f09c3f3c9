# shellcheck shell=bash
# Whether the program for NVIDIA GPUs is the one to build and run. Its wheels are gigabytes: nothing of it is fetched without a GPU.

# HEADSCOPE_CUDA=0 and =1 decide by themselves; 1 serves where the program is built for another machine.
wants_gpu_program() {
  case ${HEADSCOPE_CUDA:-} in
    0) return 1 ;;
    1) torch_is_for_gpus || die 2 "HEADSCOPE_CUDA=1: HEADSCOPE_TORCH=$HEADSCOPE_TORCH is not a torch for CUDA 13" ;;
    '') has_gpu && torch_is_for_gpus ;;
    *) die 2 "HEADSCOPE_CUDA=$HEADSCOPE_CUDA is neither 0 (the program for CPUs) nor 1 (the one for GPUs)" ;;
  esac
}

# The driver brings nvidia-smi. Without a working driver it fails; with one and no GPU it lists none; with a broken one it may never
# end, not even when it is killed. So the last line that we read is our own, and we wait for no other process.
has_gpu() {
  local limit=${HEADSCOPE_GPU_SECONDS:-10} line found='' code=''
  command -v nvidia-smi >/dev/null || return 1
  while [[ -z $code ]] && IFS= read -r -t "$((limit + 3))" line; do
    [[ ! $line =~ ^GPU\ [0-9]+:\  ]] || found=yes
    [[ ! $line =~ ^ended\ ([0-9]+)$ ]] || code=${BASH_REMATCH[1]}
  done < <({ code=0; timeout -k 1 "$limit" nvidia-smi -L || code=$?; printf '\nended %s\n' "$code"; } 2>/dev/null </dev/null)
  [[ -z $code ]] || wait "$!" || true
  case ${code:-124} in
    0) [[ $found ]] ;;
    124 | 137) say "nvidia-smi gave no answer in $limit s: using the CPU (HEADSCOPE_CUDA=0 does not ask, =1 uses the GPU)"; return 1 ;;
    *) return 1 ;;
  esac
}

# The wheel that we fetch is; a torch of the user's may be one for CPUs, or for another CUDA.
torch_is_for_gpus() {
  local torch
  [[ -n ${HEADSCOPE_TORCH:-} ]] || return 0
  torch=$(realpath -ms "$HEADSCOPE_TORCH")
  [[ -e $torch/lib/libtorch_cuda.so && -e ${torch%/*}/nvidia/cu13/lib/libcudart.so.13 ]]
}
