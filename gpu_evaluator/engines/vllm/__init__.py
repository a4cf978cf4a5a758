"""Models on vLLM servers, over their OpenAI routes.

The gate's server never speculates, and labels are never scored on the feedback model's server: with speculative
decoding on, vLLM answers label scores with an error or dies of them (vLLM issue 42592).
"""
