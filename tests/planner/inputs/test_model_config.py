"""`config.json` of the architectures that people train: parameters as published, odd files refused with a reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from planner.errors import InputError
from planner.inputs.load import load_workload
from planner.inputs.model_config import model_of_config, parse_json
from planner.inputs.model_config.read import READERS, load_model_types
from planner.inputs.presets import load_presets
from tests.conftest import ROOT

LLAMA_8B = {
    "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256, "tie_word_embeddings": False,
}  # fmt: skip
LATENT = {
    "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "moe_layer_freq": 1,
    "tie_word_embeddings": False,
}  # fmt: skip
GEMMA_4 = ["sliding_attention"] * 5 + ["full_attention"]
NEMOTRON = "M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-"
QFORMER = {"hidden_size": 768, "num_hidden_layers": 12, "intermediate_size": 3072, "vocab_size": 30522,
           "max_position_embeddings": 512, "cross_attention_frequency": 2, "encoder_hidden_size": 1408}  # fmt: skip
EVA = {"hidden_size": 1408, "intermediate_size": 6144, "num_hidden_layers": 39, "num_attention_heads": 16,
       "image_size": 224, "patch_size": 14}  # fmt: skip
LATENT_EXPERTS = {
    "model_type": "nemotron_h", "hidden_size": 4096, "intermediate_size": 2688, "vocab_size": 131072,
    "hybrid_override_pattern": "MEMEMEM*" + "EMEMEMEM*" * 2 + "EMEMEMEMEM*" * 4 + "EMEMEMEM*EMEMEMEME",
    "num_attention_heads": 32, "num_key_value_heads": 2, "head_dim": 128, "mamba_num_heads": 128,
    "mamba_head_dim": 64, "n_groups": 8, "ssm_state_size": 128, "expand": 2, "conv_kernel": 4,
    "n_routed_experts": 512, "num_experts_per_tok": 22, "n_shared_experts": 1, "moe_intermediate_size": 2688,
    "moe_shared_expert_intermediate_size": 5376, "moe_latent_size": 1024, "tie_word_embeddings": False,
}  # fmt: skip
OPT_125M = {"model_type": "opt", "hidden_size": 768, "num_hidden_layers": 12, "ffn_dim": 3072,
            "num_attention_heads": 12, "vocab_size": 50272, "max_position_embeddings": 2048}  # fmt: skip


# published parameters in billions, and the documented keys of the published configuration
PUBLISHED: list[tuple[float, dict[str, Any]]] = [
    (8.030, LLAMA_8B),
    (3.213, {**LLAMA_8B, "hidden_size": 3072, "intermediate_size": 8192, "num_hidden_layers": 28, "head_dim": 128,
             "num_attention_heads": 24, "tie_word_embeddings": True}),
    (671.026, {**LATENT, "model_type": "deepseek_v3", "hidden_size": 7168, "num_hidden_layers": 61,
               "num_attention_heads": 128, "num_key_value_heads": 128, "q_lora_rank": 1536, "n_routed_experts": 256,
               "num_experts_per_tok": 8, "n_shared_experts": 1, "moe_intermediate_size": 2048, "vocab_size": 129280,
               "intermediate_size": 18432, "first_k_dense_replace": 3}),
    (15.706, {**LATENT, "model_type": "deepseek_v2", "hidden_size": 2048, "num_hidden_layers": 27,
              "num_attention_heads": 16, "num_key_value_heads": 16, "q_lora_rank": None, "n_routed_experts": 64,
              "num_experts_per_tok": 6, "n_shared_experts": 2, "moe_intermediate_size": 1408, "vocab_size": 102400,
              "intermediate_size": 10944, "first_k_dense_replace": 1}),
    (51.570, {"model_type": "jamba", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
              "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 65536, "attn_layer_period": 8,
              "attn_layer_offset": 4, "expert_layer_period": 2, "expert_layer_offset": 1, "num_experts": 16,
              "num_experts_per_tok": 2, "mamba_d_state": 16, "mamba_d_conv": 4, "mamba_expand": 2,
              "mamba_dt_rank": 256, "tie_word_embeddings": False}),
    (79.67, {"model_type": "qwen3_next", "hidden_size": 2048, "num_hidden_layers": 48, "num_attention_heads": 16,
             "num_key_value_heads": 2, "head_dim": 256, "intermediate_size": 5120, "vocab_size": 151936,
             "num_experts": 512, "num_experts_per_tok": 10, "moe_intermediate_size": 512,
             "shared_expert_intermediate_size": 512, "linear_num_value_heads": 32, "linear_num_key_heads": 16,
             "linear_key_head_dim": 128, "linear_value_head_dim": 128, "tie_word_embeddings": False}),
    (2.703, {"model_type": "mamba2", "hidden_size": 2560, "num_hidden_layers": 64, "num_heads": 80, "head_dim": 64,
             "state_size": 128, "n_groups": 1, "expand": 2, "conv_kernel": 4, "vocab_size": 50288}),
    (8.101, {"model_type": "nemotron_h", "hidden_size": 4096, "hybrid_override_pattern": NEMOTRON,
             "num_attention_heads": 32, "num_key_value_heads": 8, "attention_head_dim": 128, "n_groups": 8,
             "intermediate_size": 21504, "vocab_size": 131072, "mamba_num_heads": 128, "mamba_head_dim": 64,
             "ssm_state_size": 128, "tie_word_embeddings": False}),
    (20.91, {"model_type": "gpt_oss", "hidden_size": 2880, "num_hidden_layers": 24, "num_attention_heads": 64,
             "num_key_value_heads": 8, "head_dim": 64, "intermediate_size": 2880, "num_local_experts": 32,
             "num_experts_per_tok": 4, "vocab_size": 201088, "tie_word_embeddings": False}),
    (14.316, {"model_type": "qwen2_moe", "hidden_size": 2048, "num_hidden_layers": 24, "num_attention_heads": 16,
              "num_key_value_heads": 16, "intermediate_size": 5632, "moe_intermediate_size": 1408,
              "shared_expert_intermediate_size": 5632, "num_experts": 60, "num_experts_per_tok": 4,
              "vocab_size": 151936, "tie_word_embeddings": False}),
    (107.77, {"model_type": "llama4", "text_config": {
        "model_type": "llama4_text", "hidden_size": 5120, "num_hidden_layers": 48, "num_attention_heads": 40,
        "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 8192, "intermediate_size_mlp": 16384,
        "num_local_experts": 16, "num_experts_per_tok": 1, "interleave_moe_layer_step": 1, "vocab_size": 202048,
        "tie_word_embeddings": False}}),
    (4.30, {"model_type": "gemma3", "text_config": {
        "hidden_size": 2560, "intermediate_size": 10240, "model_type": "gemma3_text", "num_hidden_layers": 34,
        "sliding_window": 1024}, "vision_config": {
        "hidden_size": 1152, "image_size": 896, "intermediate_size": 4304, "num_attention_heads": 16,
        "num_hidden_layers": 27, "patch_size": 14}}),
    (1.170, {"model_type": "lfm2", "hidden_size": 2048, "num_hidden_layers": 16, "num_attention_heads": 32,
             "num_key_value_heads": 8, "block_ff_dim": 12288, "block_auto_adjust_ff_dim": True,
             "block_multiple_of": 256, "conv_L_cache": 3, "vocab_size": 65536,
             "layer_types": ["full_attention" if at in (2, 5, 8, 10, 12, 14) else "conv" for at in range(16)]}),
    (131.6, {"model_type": "dbrx", "d_model": 6144, "n_layers": 40, "n_heads": 48, "vocab_size": 100352,
             "attn_config": {"kv_n_heads": 8}, "tie_word_embeddings": False,
             "ffn_config": {"ffn_hidden_size": 10752, "moe_num_experts": 16, "moe_top_k": 4}}),
    (6.92, {"model_type": "falcon", "hidden_size": 4544, "num_hidden_layers": 32, "num_attention_heads": 71,
            "multi_query": True, "new_decoder_architecture": False, "vocab_size": 65024}),
    (0.1244, {"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "n_positions": 1024,
              "vocab_size": 50257}),
    (0.1094, {"model_type": "bert", "hidden_size": 768, "num_hidden_layers": 12, "vocab_size": 30522}),
    (0.149, {"model_type": "modernbert", "hidden_size": 768, "num_hidden_layers": 22, "num_attention_heads": 12,
             "intermediate_size": 1152, "vocab_size": 50368}),
    (0.2229, {"model_type": "t5", "d_model": 768, "num_layers": 12, "num_heads": 12, "d_kv": 64, "d_ff": 3072,
              "vocab_size": 32128, "feed_forward_proj": "relu"}),
    (0.4063, {"model_type": "bart", "d_model": 1024, "encoder_layers": 12, "decoder_layers": 12,
              "encoder_attention_heads": 16, "encoder_ffn_dim": 4096, "vocab_size": 50265,
              "max_position_embeddings": 1024}),
    (1.5435, {"model_type": "whisper", "d_model": 1280, "encoder_layers": 32, "decoder_layers": 32,
              "encoder_attention_heads": 20, "decoder_attention_heads": 20, "encoder_ffn_dim": 5120,
              "decoder_ffn_dim": 5120, "num_mel_bins": 128, "vocab_size": 51866}),
    (0.0944, {"model_type": "wav2vec2", "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
              "intermediate_size": 3072}),
    (0.1513, {"model_type": "clip", "text_config": {}, "vision_config": {"patch_size": 32}, "projection_dim": 512}),
    (0.2032, {"model_type": "siglip", "vision_config": {"patch_size": 16}, "text_config": {
        "hidden_size": 768, "intermediate_size": 3072, "num_attention_heads": 12, "vocab_size": 32000,
        "max_position_embeddings": 64}}),
    (1.1365, {"model_type": "dinov2", "hidden_size": 1536, "num_hidden_layers": 40, "num_attention_heads": 24,
              "patch_size": 14, "image_size": 518, "use_swiglu_ffn": True}),
    (6.2436, {"model_type": "chatglm", "hidden_size": 4096, "num_layers": 28, "num_attention_heads": 32,
              "multi_query_attention": True, "multi_query_group_num": 2, "kv_channels": 128,
              "ffn_hidden_size": 13696, "padded_vocab_size": 65024}),
    (8.05, {**LLAMA_8B, "model_type": "apertus", "intermediate_size": 21504, "vocab_size": 131072}),
    (34.98, {**LLAMA_8B, "model_type": "cohere", "hidden_size": 8192, "intermediate_size": 22528,
             "num_hidden_layers": 40, "num_attention_heads": 64, "num_key_value_heads": 64, "vocab_size": 256000,
             "tie_word_embeddings": None}),
    (6.919, {**LLAMA_8B, "model_type": "olmoe", "hidden_size": 2048, "intermediate_size": 1024,
             "num_hidden_layers": 16, "num_attention_heads": 16, "num_key_value_heads": 16, "vocab_size": 50304,
             "num_experts": 64, "num_experts_per_tok": 8}),
    (7.586, {**LLAMA_8B, "model_type": "falcon_h1", "hidden_size": 3072, "intermediate_size": 12288,
             "num_hidden_layers": 44, "num_attention_heads": 12, "num_key_value_heads": 2, "head_dim": 128,
             "vocab_size": 130048, "mamba_d_ssm": 3072, "mamba_n_heads": 24, "mamba_d_head": 128,
             "mamba_n_groups": 1, "mamba_d_state": 256}),
    (32.2, {**LLAMA_8B, "model_type": "granitemoehybrid", "intermediate_size": 768, "num_hidden_layers": 40,
            "vocab_size": 100352, "tie_word_embeddings": True, "num_local_experts": 72, "num_experts_per_tok": 10,
            "shared_intermediate_size": 1536, "mamba_n_heads": 128, "mamba_d_head": 64, "mamba_n_groups": 1,
            "mamba_d_state": 128,
            "layer_types": ["attention" if at in (5, 15, 25, 35) else "mamba" for at in range(40)]}),
    (106.85, {**LLAMA_8B, "model_type": "glm4_moe", "intermediate_size": 10944, "num_hidden_layers": 46,
              "num_attention_heads": 96, "head_dim": 128, "vocab_size": 151552, "n_routed_experts": 128,
              "num_experts_per_tok": 8, "n_shared_experts": 1, "moe_intermediate_size": 1408,
              "first_k_dense_replace": 1}),
    (228.7, {**LLAMA_8B, "model_type": "minimax_m2", "hidden_size": 3072, "intermediate_size": 1536,
             "num_hidden_layers": 62, "num_attention_heads": 48, "head_dim": 128, "vocab_size": 200064,
             "num_local_experts": 256, "num_experts_per_tok": 8}),
    (21.83, {**LLAMA_8B, "model_type": "ernie4_5_moe", "hidden_size": 2560, "intermediate_size": 12288,
             "num_hidden_layers": 28, "num_attention_heads": 20, "num_key_value_heads": 4, "vocab_size": 103424,
             "tie_word_embeddings": True, "moe_num_experts": 64, "moe_k": 6, "moe_intermediate_size": 1536,
             "moe_num_shared_experts": 2, "moe_layer_start_index": 1}),
    (80.4, {**LLAMA_8B, "model_type": "hunyuan_v1_moe", "intermediate_size": 3072, "head_dim": 128,
            "vocab_size": 128167, "tie_word_embeddings": True, "num_experts": 64, "moe_topk": [8] * 32,
            "num_shared_expert": [1] * 32, "moe_intermediate_size": [3072] * 32}),
    (4.07, {**LLAMA_8B, "model_type": "minicpm3", "hidden_size": 2560, "intermediate_size": 6400,
            "num_hidden_layers": 62, "num_attention_heads": 40, "vocab_size": 73448, "tie_word_embeddings": None,
            "q_lora_rank": 768, "kv_lora_rank": 256, "qk_nope_head_dim": 64, "qk_rope_head_dim": 32,
            "v_head_dim": 64}),
    (8.291, {**LLAMA_8B, "model_type": "qwen2_vl", "hidden_size": 3584, "intermediate_size": 18944,
             "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4, "vocab_size": 152064,
             "vision_config": {"depth": 32, "embed_dim": 1280, "hidden_size": 3584, "mlp_ratio": 4,
                               "num_heads": 16, "patch_size": 14, "temporal_patch_size": 2}}),
    (8.34, {"model_type": "lfm2_moe", "hidden_size": 2048, "intermediate_size": 7168, "moe_intermediate_size": 1792,
            "num_hidden_layers": 24, "num_attention_heads": 32, "num_key_value_heads": 8, "num_experts": 32,
            "num_experts_per_tok": 4, "num_dense_layers": 2, "conv_L_cache": 3, "vocab_size": 65536,
            "layer_types": ["full_attention" if at in (2, 6, 10, 14, 18, 21) else "conv" for at in range(24)]}),
    (30.0, {"model_type": "glm4_moe_lite", "hidden_size": 2048, "intermediate_size": 10240, "num_hidden_layers": 47,
            "moe_intermediate_size": 1536, "num_attention_heads": 20, "num_key_value_heads": 20, "q_lora_rank": 768,
            "kv_lora_rank": 512, "qk_nope_head_dim": 192, "qk_rope_head_dim": 64, "v_head_dim": 256,
            "n_routed_experts": 64, "n_shared_experts": 1, "num_experts_per_tok": 4, "vocab_size": 154880,
            "tie_word_embeddings": False}),
    (0.305, {"model_type": "gte", "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12,
             "num_attention_heads": 12, "vocab_size": 250048}),
    (6.716, {"model_type": "dinov3_vit", "hidden_size": 4096, "intermediate_size": 8192, "num_hidden_layers": 40,
             "num_attention_heads": 32, "patch_size": 16, "use_gated_mlp": True}),
    (10.6, {"model_type": "mllama", "text_config": {
        "model_type": "mllama_text_model", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 40,
        "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256}, "vision_config": {
        "hidden_size": 1280, "intermediate_size": 5120, "num_hidden_layers": 32, "num_global_layers": 8,
        "attention_heads": 16, "image_size": 560, "patch_size": 14}}),
    (4.68, {"model_type": "voxtral", "text_config": {
        "model_type": "llama", "hidden_size": 3072, "head_dim": 128, "intermediate_size": 8192, "vocab_size": 131072,
        "num_hidden_layers": 30, "num_attention_heads": 32, "num_key_value_heads": 8}, "audio_config": {
        "hidden_size": 1280, "intermediate_size": 5120, "num_attention_heads": 20, "num_hidden_layers": 32}}),
    (7.063, {"model_type": "llava", "text_config": {"model_type": "llama", "vocab_size": 32064}, "vision_config": {
        "hidden_size": 1024, "image_size": 336, "intermediate_size": 4096, "num_attention_heads": 16,
        "num_hidden_layers": 24, "patch_size": 14}, "tie_word_embeddings": False}),
    # parameters of the model that Transformers 5.24 builds from these keys (`torch.device("meta")`)
    (30.70, {"model_type": "gemma4_text", "hidden_size": 5376, "num_hidden_layers": 60, "num_attention_heads": 32,
             "num_key_value_heads": 16, "head_dim": 256, "global_head_dim": 512, "num_global_key_value_heads": 4,
             "attention_k_eq_v": True, "intermediate_size": 21504, "vocab_size": 262144, "layer_types": GEMMA_4 * 10}),
    (25.23, {"model_type": "gemma4_text", "hidden_size": 2816, "num_hidden_layers": 30, "num_attention_heads": 16,
             "num_key_value_heads": 8, "head_dim": 256, "global_head_dim": 512, "num_global_key_value_heads": 2,
             "attention_k_eq_v": True, "intermediate_size": 2112, "enable_moe_block": True, "num_experts": 128,
             "top_k_experts": 8, "moe_intermediate_size": 704, "vocab_size": 262144, "layer_types": GEMMA_4 * 5}),
    (4.621, {"model_type": "gemma4_text", "hidden_size": 1536, "num_hidden_layers": 35, "num_attention_heads": 8,
             "num_key_value_heads": 1, "head_dim": 256, "intermediate_size": 6144, "num_kv_shared_layers": 20,
             "use_double_wide_mlp": True, "hidden_size_per_layer_input": 256, "vocab_size": 262144,
             "vocab_size_per_layer_input": 262144, "layer_types": ["sliding_attention"] * 28 + ["full_attention"] * 7}),
    (49.12, {"model_type": "kimi_linear", "hidden_size": 2304, "num_hidden_layers": 27, "num_attention_heads": 32,
             "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
             "vocab_size": 163840, "intermediate_size": 9216, "moe_intermediate_size": 1024, "num_experts": 256,
             "num_experts_per_token": 8, "num_shared_experts": 1, "first_k_dense_replace": 1, "linear_attn_config": {
                 "full_attn_layers": [4, 8, 12, 16, 20, 24, 27], "num_heads": 32, "head_dim": 128}}),
    (1.968, {"model_type": "nemotron_h", "hidden_size": 4096, "vocab_size": 131072, "num_attention_heads": 32,
             "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 21504, "mamba_num_heads": 128,
             "layers_block_type": ["linear_attention", "moe", "full_attention", "mlp"], "mamba_head_dim": 64,
             "ssm_state_size": 128, "n_groups": 8, "conv_kernel": 4, "n_routed_experts": 8, "n_shared_experts": 1,
             "moe_intermediate_size": 7688, "moe_shared_expert_intermediate_size": 7688, "num_experts_per_tok": 2,
             "tie_word_embeddings": False}),
    (38.60, {"model_type": "granitemoehybrid", "hidden_size": 4096, "num_hidden_layers": 32, "vocab_size": 32000,
             "intermediate_size": 11008, "num_attention_heads": 32, "num_local_experts": 8, "num_experts_per_tok": 2,
             "shared_intermediate_size": 1024, "layer_types": ["linear_attention"] * 32, "mamba_n_heads": 128,
             "mamba_d_state": 256, "mamba_d_head": 64, "tie_word_embeddings": False}),
    (47.37, {"model_type": "minimax", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
             "num_key_value_heads": 8, "intermediate_size": 14336, "num_local_experts": 8, "num_experts_per_tok": 2,
             "layer_types": ["full_attention", "linear_attention"] * 16, "vocab_size": 32000}),
    (9.993, {"model_type": "bamba", "hidden_size": 4096, "num_hidden_layers": 32, "intermediate_size": 14336,
             "num_attention_heads": 32, "num_key_value_heads": 8, "mamba_n_heads": 128, "mamba_d_state": 256,
             "mamba_n_groups": 1, "vocab_size": 128000}),
    (10.29, {"model_type": "glm4v", "text_config": {
        "model_type": "glm4v_text", "hidden_size": 4096, "intermediate_size": 13696, "num_hidden_layers": 40,
        "num_attention_heads": 32, "num_key_value_heads": 2, "vocab_size": 151552}, "vision_config": {
        "model_type": "glm4v_vision", "depth": 24, "hidden_size": 1536, "intermediate_size": 13696, "num_heads": 12,
        "out_hidden_size": 4096, "patch_size": 14, "spatial_merge_size": 2, "image_size": 336}}),
    (2.2092, {"model_type": "qwen2_vl", "hidden_size": 1536, "intermediate_size": 8960, "num_hidden_layers": 28,
              "num_attention_heads": 12, "num_key_value_heads": 2, "vocab_size": 151936, "tie_word_embeddings": True,
              "vision_config": {"depth": 32, "embed_dim": 1280, "hidden_size": 1536, "mlp_ratio": 4, "num_heads": 16,
                                "patch_size": 14, "temporal_patch_size": 2, "spatial_merge_size": 2}}),
    (0.01355, {"model_type": "electra", "embedding_size": 128, "hidden_size": 256, "num_hidden_layers": 12,
               "num_attention_heads": 4, "intermediate_size": 1024, "vocab_size": 30522,
               "max_position_embeddings": 512}),
    (8.954, {"model_type": "qwen3_5_text", "hidden_size": 4096, "intermediate_size": 12288, "num_hidden_layers": 32,
             "num_attention_heads": 16, "num_key_value_heads": 4, "head_dim": 256, "linear_key_head_dim": 128,
             "linear_value_head_dim": 128, "linear_num_key_heads": 16, "linear_num_value_heads": 32,
             "vocab_size": 248320, "tie_word_embeddings": False}),
    (30.697, {**LLAMA_8B, "model_type": "gemma4_text", "hidden_size": 5376, "intermediate_size": 21504,
              "num_hidden_layers": 60, "num_attention_heads": 32, "num_key_value_heads": 16, "head_dim": 256,
              "vocab_size": 262144, "tie_word_embeddings": True, "attention_k_eq_v": True,
              "layer_types": ["sliding_attention" if (at + 1) % 6 else "full_attention" for at in range(60)],
              "per_layer_config": {
                  f"{at:02d}": {"head_dim": 512, "num_key_value_heads": 4} for at in range(5, 60, 6)}}),
    (0.06699, {"model_type": "distilbert", "architectures": ["DistilBertForMaskedLM"], "dim": 768, "hidden_dim": 3072,
               "n_heads": 12, "n_layers": 6, "vocab_size": 30522, "max_position_embeddings": 512}),
    (1.2169, {"model_type": "blip-2", "qformer_config": {**QFORMER, "model_type": "blip_2_qformer"},
              "vision_config": EVA, "text_config": OPT_125M}),
    (1.2975, {"model_type": "instructblip", "qformer_config": {**QFORMER, "model_type": "instructblip_qformer"},
              "vision_config": EVA, "text_config": OPT_125M}),
    (6.990, {"model_type": "granite_speech", "projector_config": {**QFORMER, "model_type": "blip_2_qformer"},
             "encoder_config": {
                 "model_type": "granite_speech_encoder", "hidden_dim": 1024, "num_layers": 10, "num_heads": 8,
                 "dim_head": 128, "feedforward_mult": 4, "conv_kernel_size": 15, "conv_expansion_factor": 2,
                 "input_dim": 160, "max_pos_emb": 512},
             "text_config": {
                 "model_type": "granite", "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
                 "num_attention_heads": 32, "num_key_value_heads": 32, "vocab_size": 32000,
                 "tie_word_embeddings": True}}),
    (7.721, {"model_type": "qwen", "hidden_size": 4096, "intermediate_size": 22016, "num_hidden_layers": 32,
             "num_attention_heads": 32, "kv_channels": 128, "vocab_size": 151936, "tie_word_embeddings": False}),
    (41.30, {"model_type": "RefinedWeb", "hidden_size": 8192, "n_layer": 60, "n_head": 128, "n_head_kv": 8,
             "vocab_size": 65024}),
    (6.922, {"model_type": "RefinedWebModel", "hidden_size": 4544, "n_layer": 32, "n_head": 71, "multi_query": True,
             "vocab_size": 65024}),
    (7.39, {"model_type": "phi3small", "hidden_size": 4096, "ff_intermediate_size": 14336, "num_hidden_layers": 32,
            "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 100352, "hidden_act": "gegelu"}),
    (7.043, {"model_type": "deci", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
             "num_attention_heads": 32, "num_key_value_heads_per_layer": [4] * 31 + [1], "vocab_size": 32000}),
    (2.768, {"d_model": 2560, "n_layer": 64, "vocab_size": 50277, "ssm_cfg": {}, "pad_vocab_size_multiple": 8}),
    (2.703, {"d_model": 2560, "n_layer": 64, "vocab_size": 50277, "ssm_cfg": {"layer": "Mamba2"},
             "pad_vocab_size_multiple": 16, "tie_embeddings": True}),
    (479, {"model_type": "arctic", "hidden_size": 7168, "intermediate_size": 4864, "num_hidden_layers": 35,
           "num_attention_heads": 56, "num_key_value_heads": 8, "num_local_experts": 128, "num_experts_per_tok": 2,
           "parallel_attn_mlp_res": True, "vocab_size": 32000, "tie_word_embeddings": False}),
    (120.6, LATENT_EXPERTS),
    (20.43, {"_class_name": "QwenImageTransformer2DModel", "num_layers": 60, "in_channels": 64, "out_channels": 16,
             "joint_attention_dim": 3584, "num_attention_heads": 24, "attention_head_dim": 128}),
    (11.90, {"_class_name": "FluxTransformer2DModel", "num_layers": 19, "num_single_layers": 38, "in_channels": 64,
             "joint_attention_dim": 4096, "pooled_projection_dim": 768, "num_attention_heads": 24,
             "attention_head_dim": 128}),
    (2.03, {"_class_name": "SD3Transformer2DModel", "num_layers": 24, "num_attention_heads": 24,
            "attention_head_dim": 64, "sample_size": 128, "patch_size": 2, "joint_attention_dim": 4096,
            "pooled_projection_dim": 2048, "in_channels": 16}),
    (1.42, {"_class_name": "WanTransformer3DModel", "num_attention_heads": 12, "num_layers": 30, "ffn_dim": 8960}),
    (14.29, {"_class_name": "WanTransformer3DModel", "num_attention_heads": 40, "num_layers": 40, "ffn_dim": 13824}),
    (16.4, {"_class_name": "WanTransformer3DModel", "in_channels": 36, "image_dim": 1280, "added_kv_proj_dim": 5120}),
    (5.0, {"_class_name": "WanTransformer3DModel", "num_attention_heads": 24, "num_layers": 30, "ffn_dim": 14336,
           "in_channels": 48, "out_channels": 48}),
    (1.69, {"_class_name": "CogVideoXTransformer3DModel", "num_attention_heads": 30, "num_layers": 30}),
    (5.57, {"_class_name": "CogVideoXTransformer3DModel", "num_attention_heads": 48, "num_layers": 42}),
    (1.604, {"_class_name": "SanaTransformer2DModel", "num_attention_heads": 70, "num_layers": 20}),
    (0.592, {"_class_name": "SanaTransformer2DModel", "num_attention_heads": 36, "num_layers": 28,
             "cross_attention_dim": 1152}),
]  # fmt: skip


def _kind(config: dict[str, Any]) -> str:
    return str(config.get("model_type") or config.get("_class_name") or "mamba_ssm")


@pytest.mark.parametrize(
    ("kind", "preset"),
    [
        ("llama", "llama-3.1-8b"), ("mamba2", "mamba2-2.7b"), ("jamba", "jamba-1.5-mini"),
        ("nemotron_h", "nemotron-h-8b"), ("qwen3_next", "qwen3-next-80b-a3b"), ("deepseek_v3", "deepseek-v3"),
        ("lfm2_moe", "lfm2-8b-a1b"), ("glm4_moe_lite", "glm-4.7-flash"), ("gte", "gte-multilingual-base"),
    ],
)  # fmt: skip
def test_layers_reach_as_far_as_those_of_the_preset(kind: str, preset: str) -> None:
    config = next(given for _, given in PUBLISHED if given.get("model_type") == kind)
    read, known = model_of_config(config, "config.json").values, load_presets()[preset].values
    for name in ("attention_window", "attention_ratio", "windowed_layers", "kv_width"):
        assert float(read.get(name) or 0) == pytest.approx(float(known.get(name) or 0), rel=1e-3), name


WINDOWED = LLAMA_8B | {"sliding_window": 1024}


@pytest.mark.parametrize(
    ("changes", "windowed"),
    [
        ({"layer_types": ["sliding_attention"] * 29 + ["full_attention"] * 3}, 29),
        ({"layer_types": ["full_attention"] * 32}, None),
        ({"model_type": "gemma3_text"}, 27),
        ({"model_type": "gemma2"}, 16),
        ({"model_type": "mistral"}, 32),
        ({"sliding_window_pattern": 4}, 24),
        ({"model_type": "mistral", "use_sliding_window": False}, None),
        ({"model_type": "mistral", "sliding_window": None}, None),
        ({"model_type": "phi3"}, 32),
        ({"model_type": "qwen2", "max_window_layers": 28}, None),
        ({"model_type": "qwen2", "max_window_layers": 28, "use_sliding_window": True}, 4),
        ({"model_type": "exaone4", "sliding_window_pattern": "LLLG"}, 24),
        ({"model_type": "modernbert", "sliding_window": None, "local_attention": 1024,
          "global_attn_every_n_layers": 3}, 21),
        ({"model_type": "llama4_text", "sliding_window": None, "attention_chunk_size": 2048}, 24),
        ({"model_type": "llama4_text", "sliding_window": None, "attention_chunk_size": 2048,
          "layer_types": ["chunked_attention"] * 30 + ["full_attention"] * 2}, 30),
        ({"model_type": "llama4_text", "sliding_window": None, "attention_chunk_size": 2048,
          "no_rope_layers": [1] * 31 + [0]}, 31),
    ],
)  # fmt: skip
def test_windows_are_those_of_the_layers_that_have_them(
    changes: dict[str, Any], windowed: int | None
) -> None:
    values = model_of_config(WINDOWED | changes, "config.json").values
    assert values.get("windowed_layers") == windowed
    assert values.get("attention_window") == (windowed and 1024)


def test_a_window_of_unnamed_layers_is_not_counted_and_said() -> None:
    read = model_of_config(WINDOWED, "config.json")
    assert "attention_window" not in read.values
    assert any("1,024 tokens is not counted" in note for note in read.notes)


@pytest.mark.parametrize(("billions", "config"), PUBLISHED, ids=[_kind(config) for _, config in PUBLISHED])
def test_parameters_are_the_published_ones_to_one_per_cent(billions: float, config: dict[str, Any]) -> None:
    model = model_of_config(config, "config.json")
    assert model.values["params"] / 1e9 == pytest.approx(billions, rel=0.01)
    assert model.values.get("active_params", 0) < model.values["params"]


def test_experts_that_work_on_a_part_of_a_token_have_the_published_parameters_in_use() -> None:
    """Nemotron 3 Super: 12.7 B of 120.6 B, and sizes that give both in the performance model."""
    model = model_of_config(LATENT_EXPERTS, "config.json")
    values = model.values
    assert values["active_params"] / 1e9 == pytest.approx(12.7, rel=0.01)
    experts = values["experts"] * 2 * values["hidden"] * values["moe_ffn"] * 40
    assert experts == 512 * 2 * 1024 * 2688 * 40
    assert values["shared_experts"] * values["moe_ffn"] == 5376
    assert any("1,024 values of a token" in note for note in model.notes)


def test_tables_of_embeddings_for_each_layer_are_looked_up_not_multiplied() -> None:
    """Gemma 4 E2B: 5.1 B parameters with embeddings, 2.3 B effective (its model card)."""
    config = {
        "model_type": "gemma4_text", "hidden_size": 1536, "num_hidden_layers": 35, "num_attention_heads": 8,
        "num_key_value_heads": 1, "head_dim": 256, "intermediate_size": 6144, "num_kv_shared_layers": 20,
        "use_double_wide_mlp": True, "hidden_size_per_layer_input": 256, "vocab_size": 262144,
        "vocab_size_per_layer_input": 262144, "layer_types": ["sliding_attention"] * 28 + ["full_attention"] * 7,
    }  # fmt: skip
    values = model_of_config(config, "config.json").values
    assert values["params"] - values["active_params"] == 262144 * 256 * 35
    assert values["active_params"] / 1e9 == pytest.approx(2.3, rel=0.02)


def test_a_bridge_that_leaves_out_its_sizes_has_those_of_its_class() -> None:
    whole = {"model_type": "blip-2", "text_config": OPT_125M, "vision_config": EVA}
    short = {**whole, "qformer_config": {"model_type": "blip_2_qformer"}}
    assert model_of_config(short, "c").values["params"] / 1e9 == pytest.approx(1.2169, rel=0.01)


@pytest.mark.parametrize("kind", [[], {}, 7, None, "unheard_of"])
def test_a_bridge_of_an_odd_type_is_not_counted(kind: Any) -> None:
    whole = {"model_type": "blip-2", "text_config": OPT_125M, "vision_config": EVA}
    odd = {**whole, "qformer_config": {**QFORMER, "model_type": kind}}
    model = model_of_config(odd, "c")
    assert model.values == model_of_config(whole, "c").values
    assert any("qformer_config: not counted" in note for note in model.notes)


def test_a_vision_transformer_has_the_published_work() -> None:
    config = {"model_type": "vit", "hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16,
              "intermediate_size": 4096, "patch_size": 16, "image_size": 224}  # fmt: skip
    values = model_of_config(config, "config.json").values
    # timm's counts for ViT-L/16, as in presets.csv
    assert values["forward_flops_per_sample"] == pytest.approx(123_200_000_000, rel=0.01)
    assert values["activations_per_sample"] == pytest.approx(63_520_000, rel=0.01)


@pytest.mark.parametrize(
    ("activation", "stepwise"),
    [("gelu_new", True), ("gelu", None), ("relu", None), ("gelu_pytorch_tanh", None)],
)
def test_a_gelu_of_several_operators_is_read(activation: str, stepwise: bool | None) -> None:
    config = {"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "vocab_size": 50257,
              "activation_function": activation}  # fmt: skip
    assert model_of_config(config, "config.json").values.get("stepwise_gelu") is stepwise


def test_a_gate_has_no_gelu_of_several_operators() -> None:
    config = {**LLAMA_8B, "hidden_act": "gelu_new"}
    values = model_of_config(config, "config.json").values
    assert values["gated_mlp"] and "stepwise_gelu" not in values


def test_quantised_weights_do_not_change_the_count() -> None:
    quantised = {**LLAMA_8B, "quantization_config": {"quant_method": "awq", "bits": 4}}
    model = model_of_config(quantised, "config.json")
    assert model.values == model_of_config(LLAMA_8B, "config.json").values
    assert any("awq" in note for note in model.notes)


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"model_type": "albert", "hidden_size": 768}, "share one set of weights"),
        ({"model_type": "llama", "hidden_size": "wide"}, "hidden_size: must be a whole number"),
        ({"model_type": "llama", "hidden_size": 0}, "hidden_size: must be above 0"),
        ({"model_type": "qwen3", "hidden_size": 4096}, "has no 'num_hidden_layers'"),
        ({"hidden_size": 4096}, "has no 'model_type'"),
        ({**LLAMA_8B, "num_attention_heads": 45}, "8 key/value heads do not divide the 45 attention heads"),
        ({"_class_name": "UNet2DConditionModel"}, "stable-diffusion-xl"),
        ({"_class_name": "FluxTransformer2DModel", "num_layers": 0}, "num_layers"),
        ({"model_type": "llama", "tie_word_embeddings": "yes"}, "tie_word_embeddings: must be true or false"),
        (
            {"model_type": "vit", "hidden_size": 768, "num_hidden_layers": 1, "num_attention_heads": 7},
            "divide",
        ),
        ({"model_type": "vit", "image_size": 8, "hidden_size": 8, "num_hidden_layers": 1}, "patch_size"),
    ],
)
def test_odd_configurations_are_refused_with_the_reason(config: dict[str, Any], reason: str) -> None:
    with pytest.raises(InputError) as error:
        model_of_config(config, "config.json")
    assert "config.json" in str(error.value)
    assert reason in str(error.value)


@pytest.mark.parametrize("text", ["{", '{"a": 1, "a": 2}', "[1]", '{"a": ' * 2000 + "1" + "}" * 2000])
def test_json_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"^c\.json"):
        parse_json(text, "c.json")


def test_every_model_type_has_a_reader_or_a_reason() -> None:
    for kind in load_model_types().values():
        assert kind.reader in READERS or (kind.reader == "refused" and kind.note), kind.name


def _workload(folder: Path, model: str) -> Path:
    (folder / "config.json").write_text(json.dumps(LLAMA_8B))
    path = folder / "w.yaml"
    path.write_text(
        f"version: 1\nname: x\nmodel: {{{model}}}\n"
        "training: {tokens: 1e9, global_batch: 64, sequence_length: 4096}\n"
    )
    return path


def test_a_workload_may_name_the_file_and_is_read_again_when_it_changes(tmp_path: Path) -> None:
    path = _workload(tmp_path, "config: ./config.json")
    first = load_workload(path)
    assert first.workload.model is not None
    assert first.workload.model.params == 8_030_261_248
    (tmp_path / "config.json").write_text(json.dumps({**LLAMA_8B, "num_hidden_layers": 16}))
    second = load_workload(path)
    assert second.workload.model is not None
    assert second.workload.model.layers == 16
    assert second.sha256 != first.sha256


def test_a_size_beside_the_file_replaces_its_parameters(tmp_path: Path) -> None:
    loaded = load_workload(_workload(tmp_path, "config: config.json, layers: 16"))
    assert loaded.workload.model is not None
    assert (loaded.workload.model.layers, loaded.workload.model.params) == (16, None)


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        ("config: absent.json", r"w\.yaml:3:\d+: model\.config: .*absent\.json: no such file"),
        ("config: config.json, preset: gpt-2-124m", "remove one of the two"),
        ("config: w.yaml", "is not valid JSON"),
    ],
)
def test_a_file_that_does_not_serve_is_named_with_its_place(tmp_path: Path, model: str, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        load_workload(_workload(tmp_path, model))


SAMPLES = ROOT.parent / "shared" / "training_configs" / "huggingface"


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="no samples beside the project")
@pytest.mark.shared
def test_samples_are_as_large_as_their_names_say() -> None:
    sizes = {"Llama-3.1-8B": 8.03, "Llama-3.2-3B": 3.21, "Qwen2.5-14B": 14.77, "Qwen2.5-7B": 7.62,
             "Qwen3-30B-A3B": 30.53, "Qwen3-32B": 32.76, "Qwen3-8B": 8.19}  # fmt: skip
    for name, billions in sizes.items():
        path = SAMPLES / f"{name}.config.json"
        model = model_of_config(parse_json(path.read_text(), str(path)), str(path))
        assert model.values["params"] / 1e9 == pytest.approx(billions, rel=0.01), name


def test_a_section_that_nothing_counts_is_named() -> None:
    config = {"model_type": "blip-2", "text_config": LLAMA_8B, "qformer_config": {"hidden_size": 768}}
    notes = model_of_config(config, "config.json").notes
    assert any(note.startswith("qformer_config: not counted") for note in notes)


@pytest.mark.parametrize("name", ["longcat_flash", "step3_text", "doge", "xlnet", "moshi", "videomae"])
def test_networks_of_other_parts_are_refused_and_not_read_as_plain_decoders(name: str) -> None:
    with pytest.raises(InputError, match=f"model_type '{name}' cannot be modelled"):
        model_of_config({**LLAMA_8B, "model_type": name}, "config.json")


def test_vocabularies_of_mamba_ssm_are_padded_as_the_package_does_by_default() -> None:
    config = {"d_model": 2560, "n_layer": 64, "vocab_size": 50277, "ssm_cfg": {}}
    assert model_of_config(config, "config.json").values["vocab"] == 50280
    padded = {**config, "pad_vocab_size_multiple": 16}
    assert model_of_config(padded, "config.json").values["vocab"] == 50288


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({**LLAMA_8B, "model_type": "nemotron-nas", "block_configs": [{}]}, "block_configs"),
        ({"d_model": 2560, "n_layer": 64, "vocab_size": 50277, "ssm_cfg": {}, "attn_layer_idx": [9, 18]},
         "attn_layer_idx"),
        ({"d_model": 2560, "vocab_size": 50277, "ssm_cfg": {}}, "n_layer"),
    ],
)  # fmt: skip
def test_layers_that_differ_one_by_one_are_refused_by_name(config: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        model_of_config(config, "config.json")


@pytest.mark.parametrize(("release", "tied"), [("4.57.0", False), ("5.2.0", True), ("", False)])
def test_the_release_tells_which_section_says_whether_embeddings_are_tied(release: str, tied: bool) -> None:
    config = {"model_type": "llava", "transformers_version": release, "tie_word_embeddings": True,
              "text_config": {**LLAMA_8B, "tie_word_embeddings": False}}  # fmt: skip
    assert model_of_config(config, "config.json").values["tied_embeddings"] is tied


# Configurations with their default sizes, without keys that change nothing here, and the parameters of the model that
# Transformers 5.24.0 builds of each on the meta device; `head`: an output that the bare text model of a pair lacks.
BUILT = [
    json.loads(line)
    for line in (ROOT / "tests/fixtures/transformers_5_24.jsonl").read_text(encoding="utf-8").splitlines()
]


@pytest.mark.parametrize("built", BUILT, ids=lambda built: built["config"]["model_type"])
def test_parameters_are_those_that_transformers_builds(built: dict[str, Any]) -> None:
    model = model_of_config(built["config"], "config.json")
    assert model.values["params"] == pytest.approx(built["params"] + built.get("head", 0), rel=0.01)
    assert not any("is not known" in note for note in model.notes)
    if built["config"]["architectures"][0].endswith("ForMaskedLM"):  # each word sees all others
        assert model.values["architecture"] == "encoder"


@pytest.mark.parametrize(
    ("model_type", "more"),
    [("step3p5", {"share_expert_dim": 64}), ("minimax_m3_vl_text", {"dense_intermediate_size": 128 + 64})],
)
def test_shared_experts_and_dense_layers_under_names_of_their_own(
    model_type: str, more: dict[str, int]
) -> None:
    config = {"model_type": model_type, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
              "vocab_size": 100, "intermediate_size": 128, "num_local_experts": 4, "num_experts_per_tok": 2,
              "moe_intermediate_size": 128, "mlp_layer_types": ["dense", "sparse"]}  # fmt: skip
    with_more, without = (model_of_config(each, "x").values for each in ({**config, **more}, config))
    assert with_more["active_params"] - without["active_params"] == 3 * 32 * 64


def test_a_pair_that_is_not_known_is_in_doubt() -> None:
    text = {name: value for name, value in LLAMA_8B.items() if name != "model_type"}
    vision = {"hidden_size": 1024, "num_hidden_layers": 24, "intermediate_size": 4096}
    config = {
        "model_type": "new_pair",
        "text_config": {**text, "model_type": "llama"},
        "vision_config": vision,
    }
    assert any(
        note.startswith("model_type 'new_pair' is not known") for note in model_of_config(config, "x").doubts
    )
