"""The child process that runs llama.cpp's server: `python -m gpu_evaluator.engines.llamacpp.host MODEL PORT ...`.

A process of its own, because a fault of the model or of llama.cpp ends the process that it runs in.
"""

from __future__ import annotations

import argparse
import signal
import threading


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("port", type=int)
    parser.add_argument("--context", type=int, required=True, help="tokens of one slot")
    parser.add_argument("--slots", type=int, required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--gpu-layers", type=int, required=True)
    options = parser.parse_args()

    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = options.model
    parameters.port = options.port
    parameters.n_parallel = options.slots
    parameters.n_ctx = options.context * options.slots
    parameters.n_gpu_layers = options.gpu_layers
    parameters.cpuparams.n_threads = options.threads
    parameters.cpuparams_batch.n_threads = options.threads
    parameters.verbosity = 1  # errors; a line for each request would fill the log
    parameters.ui = False
    end = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: end.set())
    server = xllamacpp.Server(parameters)
    end.wait()
    del server  # its destructor stops it


if __name__ == "__main__":
    main()
