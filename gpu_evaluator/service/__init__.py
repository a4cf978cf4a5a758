"""The evaluator's HTTP server: `POST /v1/evaluate`, `/healthz`, `/readyz`, `/metrics`."""
