"""Small configurations of each kind of architecture, for the predictor's tests."""

BERT = {
    "model_type": "bert",
    "architectures": ["BertForSequenceClassification"],
    "hidden_size": 128,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 512,
    "vocab_size": 2000,
}
LLAMA = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 128,
    "num_hidden_layers": 3,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "intermediate_size": 352,
    "vocab_size": 2000,
}
T5 = {
    "model_type": "t5",
    "architectures": ["T5ForConditionalGeneration"],
    "d_model": 128,
    "d_ff": 256,
    "d_kv": 32,
    "num_layers": 2,
    "num_heads": 4,
    "vocab_size": 2000,
    "decoder_start_token_id": 0,
}
MIXTRAL = {
    "model_type": "mixtral",
    "architectures": ["MixtralForCausalLM"],
    "hidden_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "intermediate_size": 256,
    "num_local_experts": 4,
    "num_experts_per_tok": 2,
    "vocab_size": 2000,
}
GPT2 = {
    "model_type": "gpt2",
    "architectures": ["GPT2LMHeadModel"],
    "n_embd": 128,
    "n_layer": 3,
    "n_head": 4,
    "vocab_size": 2000,
    "bos_token_id": 0,
    "eos_token_id": 0,
}
BERT_LARGE = {
    "model_type": "bert",
    "architectures": ["BertForSequenceClassification"],
    "hidden_size": 1024,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "intermediate_size": 4096,
    "vocab_size": 30522,
}
