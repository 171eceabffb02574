"""`docnmt serve`: a page and an API in the dialect of LibreTranslate.

To read: server (from port to stop), web (what stands around the application), api and page (what can be asked),
requests (how it is asked) and uploads; then pool, queue and worker (the model processes); explain, metrics.
"""
