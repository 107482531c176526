"""ONNX's tests of our operators that are not ours: the reason, and patterns of names. The first match counts.

Tests of operators without a kernel, and of types that the host core has no numbers of, need no line: see official.py.
That each of these ends in a refusal or in another result is a test too.
"""

EXCLUSIONS: dict[str, tuple[str, ...]] = {
    # Types
    "arithmetic and comparisons have no integers but int8, uint8, int32 and int64, others are only moved and cast": (
        r"^test_(add|sub|mul|div|max|min|equal|greater|less)(_equal)?_(int16|uint16|uint32|uint64)(_|$)",),
    "Pow has no integer bases and no unsigned exponents": (
        r"^test_pow_types_(int32|int64)_", r"^test_pow_types_float32_(uint32|uint64)$"),
    "reductions have no booleans": (r"^test_reduce_(max|min)_bool_inputs$",),
    # Shapes
    "tensors without elements take part, for which memory has no place": (
        r"_empty_set(_|$)", r"^test_constantofshape_int_shape_zero$", r"^test_shape_start_greater_than_end$",
        r"^test_reshape_allowzero_reordered$", r"^test_slice_start_out_of_bounds$", r"^test_split_zero_size_splits_",
        r"^test_rotary_embedding(_3d_input|_no_position_ids)?(_expanded)?$",
        r"^test_causal_conv_with_state_kernel_size_one"),
    "attention with shapes that ONNX's inference does not tell": (
        r"^test_attention_4d_(gqa_)?causal_nonpad_(?!(decode|prefill)_expanded).*_expanded$",
        r"^test_attention_4d_gqa_causal_nonpad_decode_expanded$",
        r"^test_attention_4d_diff_heads_mask4d_padded_kv_expanded$",
        r"^test_attention_local_window_(rank1_boolean|ext_cache_rank3_head|ext_cache_rank4_batch|ext_cache_rank2)_mask(_expanded)?$"),
    # Outputs besides the first, and training
    "training: networks are compiled for inference": (
        r"^test_training_dropout", r"^test_batchnorm_(example|epsilon)_training_mode$"),
    "MaxPool has no indices as an output": (r"^test_maxpool_with_argmax_",),
    "Mod has no kernel, it is only folded": (r"^test_mod_",),
    # Attributes
    "Resize has no tf_crop_and_resize": (r"^test_resize_tf_crop_and_resize",),
    "Resize has no antialias": (r"^test_resize_.*_antialias$",),
    "Resize has no keep_aspect_ratio_policy but stretch": (r"^test_resize_.*_not_(larger|smaller)$",),
    "Resize has no exclude_outside": (r"^test_resize_.*_exclude_outside$",),
    "LpPool has p 1 or 2": (r"^test_lppool_(1d_default|2d_default|2d_pads|2d_same_lower|3d_default)$",),
    "quantisation is by tensor or channel, not by block": (r"^test_(de)?quantizelinear_blocked",),
    # Not as ONNX Runtime has it, and broken
    "ONNX Runtime aligns corners by the size of the result, the test by size times scale, 2.4 pixels: it fails too": (
        r"^test_resize_downsample_scales_(linear|cubic)_align_corners$",),
}
