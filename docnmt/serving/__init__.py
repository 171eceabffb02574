"""Serving models: processes that translate, an API over HTTP, pages."""
