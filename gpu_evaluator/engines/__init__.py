"""Engines that run the learned models, behind the two interfaces of `gpu_evaluator.engines.base`."""
