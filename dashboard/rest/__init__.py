"""The REST API for chat bots and pipelines, below ``/api/v1/``, and its tokens."""
