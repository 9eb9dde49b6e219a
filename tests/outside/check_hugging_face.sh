#!/bin/sh
# check_hugging_face.sh SOURCE_DIR BUILD_DIR: folders that transformers saved are trained
# for a step, and from_pretrained loads what came of each. Skipped where neither
# TRANCHE_PEER_PYTHON nor python3 has torch and transformers.
set -eu
source=$1 build=$2
python=${TRANCHE_PEER_PYTHON:-python3}

HF_HUB_OFFLINE=1
export HF_HUB_OFFLINE
if ! "$python" -c 'import numpy, safetensors, torch, transformers' 2>/dev/null; then
    echo "hugging_face: $python has no torch with transformers, skipped"
    exit 77
fi
for model in gpt2 llama3 mistral qwen2 qwen3; do
    echo "$model"
    "$python" "$source/tools/goldens/check_hf.py" \
        "$source/tests/data/goldens/$model/initial" --program "$build/tranche"
done
