"""Models in GGUF on llama.cpp's HTTP server (the package `xllamacpp`): for machines without a GPU."""
