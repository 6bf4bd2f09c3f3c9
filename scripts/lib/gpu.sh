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

# The driver brings nvidia-smi. Without a working driver it fails; with one and no GPU it lists none.
has_gpu() {
  local listed
  listed=$(nvidia-smi -L 2>/dev/null </dev/null) && [[ $listed == *'GPU '[0-9]*:* ]]
}

# The wheel that we fetch is; a torch of the user's may be one for CPUs, or for another CUDA.
torch_is_for_gpus() {
  local torch
  [[ -n ${HEADSCOPE_TORCH:-} ]] || return 0
  torch=$(realpath -ms "$HEADSCOPE_TORCH")
  [[ -e $torch/lib/libtorch_cuda.so && -e ${torch%/*}/nvidia/cu13/lib/libcudart.so.13 ]]
}
